/** What `import … from "toolcrib"` gives. Everything else is internal. */
export { createHub, type HubOptions } from "./hub/create/create-hub.ts";
export type { CallRequest, CompleteRequest, Hub, PromptRequest, ReadRequest, ToolsOptions } from "./hub/hub.ts";
export type { HubEvents } from "./hub/hub-events.ts";
export type { ActiveSkill, HubSkills, SkillInfo } from "./hub/skills/hub-skills.ts";
export type { AfterVerdict, BeforeVerdict, HookCall, Hooks, PersistVerdict } from "./hub/call/hooks.ts";
export type { McpToolDetails } from "./hub/view/agent-tools.ts";
export type { View } from "./hub/view/view.ts";
export { loadMCPServers, type LoadMCPServersOptions, type MCPProvider } from "./hub/create/load-mcp-servers.ts";
export { Session, type SessionOptions } from "./sessions/session.ts";
export { defineTool, type DefineToolOptions, type ExecuteContext } from "./tools/define-tool.ts";
export { ToolRegistry, type ToolContext, type ToolFactory } from "./tools/tool-registry.ts";
export type { PluginApi } from "./tools/plugins.ts";
export type { Provider } from "./schemas/normalize.ts";
export { loadConfig, type LoadedConfig } from "./config/load-config.ts";
export type { Diagnostic } from "./config/config-document.ts";
export { createAgent } from "./agent/agent.ts";
export type {
  Agent,
  AgentMode,
  AgentOptions,
  AskContext,
  RunOptions,
  SamplingQuestion,
  SlashCommand,
} from "./agent/agent-options.ts";
export type {
  AgentEvent,
  EndReason,
  PlanEntry,
  Tokens,
  ToolCallEvent,
  ToolCallState,
  ToolKind,
} from "./agent/agent-options.ts";
export type { AgentMessage, AssistantMessage, AssistantPart, CallPart, CallResult } from "./agent/model/chat-model.ts";
export type { ToolMessage, UserMessage } from "./agent/model/chat-model.ts";
export type { ChatModel, ModelStep, ModelTool, StepPart } from "./agent/model/chat-model.ts";
export { Conversations, type ConversationsPage, type NewConversation } from "./agent/conversation.ts";
export type { Conversation } from "./agent/conversation.ts";
export { closeOnSignals } from "./upstream/stdio/child-processes.ts";
export { describeBlock, modelContent, resultText } from "./model/content.ts";
export { ERROR_TABLE, ToolcribError, type ErrorCode, type ErrorObject } from "./model/errors.ts";
export { ToolAuthorizationError, ToolInputError, type Tool, type ToolResult, type ToolUpdate } from "./model/tool.ts";
export type {
  Capability,
  PromptCapability,
  ResourceCapability,
  TemplateCapability,
  ToolCapability,
} from "./model/capability.ts";
export type { AskAnswer, AskRequest } from "./model/decision.ts";
export type { ModelSetting } from "./model/config.ts";
export type { Config, ConfigInput } from "./model/config.ts";
export type { Outcome } from "./model/errors.ts";
export type { CallToolResult, ContentBlock, GetPromptResult, Progress, ReadResourceResult } from "./model/protocol.ts";
export type { ServerInfo, ServerState } from "./model/server-state.ts";
export type { ServerSpec } from "./model/server-spec.ts";
export type { SkillFacts, SkillFinding, SkillManifest, SkillWarning } from "./model/skill.ts";
export type { CallRecord } from "./telemetry/call-record.ts";
export { type AiToolsOptions, toAiTools } from "./agent/adapters/ai-sdk.ts";
export {
  runAnthropicCall,
  toAnthropicTools,
  type AnthropicTool,
  type AnthropicToolResult,
  type AnthropicToolUse,
} from "./agent/adapters/anthropic.ts";
export {
  runOpenAICall,
  toOpenAIResponsesTools,
  toOpenAITools,
  type OpenAIChatCall,
  type OpenAIChatResult,
  type OpenAIChatTool,
  type OpenAIResponsesCall,
  type OpenAIResponsesResult,
  type OpenAIResponsesTool,
} from "./agent/adapters/openai.ts";
export { toAgentTools, type PiAgentTool, type PiToolResult } from "./agent/adapters/pi.ts";
export type { RunCallOptions } from "./agent/adapters/run-call.ts";
export { VERSION } from "./model/version.ts";
