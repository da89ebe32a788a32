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
export type { Config, ConfigInput } from "./model/config.ts";
export type { Outcome } from "./model/outcome.ts";
export type { CallToolResult, ContentBlock, GetPromptResult, Progress, ReadResourceResult } from "./model/protocol.ts";
export type { ServerInfo, ServerState } from "./model/server-state.ts";
export type { ServerSpec } from "./model/server-spec.ts";
export type { SkillFacts, SkillFinding, SkillManifest, SkillWarning } from "./model/skill.ts";
export type { CallRecord } from "./telemetry/call-record.ts";
export { VERSION } from "./model/version.ts";
