/** What `import … from "toolcrib"` gives. Everything else is internal. */
export { createHub, type HubOptions } from "./hub/create.ts";
export type { CallRequest, CompleteRequest, Hub, PromptRequest, ReadRequest, ToolsOptions } from "./hub/hub.ts";
export type { HubEvents } from "./hub/events.ts";
export type { ActiveSkill, HubSkills, SkillInfo } from "./hub/skills/hub-skills.ts";
export type { AfterVerdict, BeforeVerdict, HookCall, Hooks, PersistVerdict } from "./hub/hooks.ts";
export type { McpToolDetails } from "./hub/agent-tools.ts";
export type { View } from "./hub/view.ts";
export { loadMCPServers, type LoadMCPServersOptions, type MCPProvider } from "./hub/load-mcp-servers.ts";
export { Session, type SessionOptions } from "./sessions/session.ts";
export { ToolRegistry, type ToolContext, type ToolFactory } from "./tools/registry.ts";
export type { PluginApi } from "./tools/plugins.ts";
export type { Provider } from "./schemas/normalize.ts";
export { loadConfig, type LoadedConfig } from "./config/load-config.ts";
export type { Diagnostic } from "./config/diagnostics.ts";
export { createAgent } from "./agent/create-agent.ts";
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
} from "./agent/events.ts";
export type { AgentMessage, AssistantMessage, AssistantPart, CallPart, CallResult } from "./agent/messages.ts";
export type { ToolMessage, UserMessage } from "./agent/messages.ts";
export type { ChatModel, ModelStep, ModelTool, StepPart } from "./agent/model/chat-model.ts";
export { Conversations, type ConversationsPage, type NewConversation } from "./agent/conversation/conversations.ts";
export type { Conversation } from "./agent/conversation/conversation.ts";
export { closeOnSignals } from "./upstream/stdio/live-children.ts";
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
export type { AskAnswer, AskRequest } from "./model/ask.ts";
export type { ModelSetting } from "./model/agent-config.ts";
export type { Config, ConfigInput } from "./model/config.ts";
export type { Outcome } from "./model/outcome.ts";
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
