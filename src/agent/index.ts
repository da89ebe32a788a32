/** The public API of `toolcrib/agent`: the built-in agent, its conversations and the models it talks to. */
export type {
  Agent,
  AgentEvent,
  AgentMode,
  AgentOptions,
  AskContext,
  EndReason,
  PlanEntry,
  RunOptions,
  SamplingQuestion,
  SlashCommand,
  Tokens,
  ToolCallEvent,
  ToolCallState,
  ToolKind,
} from "./agent-options.ts";
export { createAgent } from "./agent.ts";
export { type Conversation, Conversations, type ConversationsPage, type NewConversation } from "./conversation.ts";
export type {
  AgentMessage,
  AssistantMessage,
  AssistantPart,
  CallPart,
  CallResult,
  ChatModel,
  ModelStep,
  ModelTool,
  StepPart,
  ToolMessage,
  UserMessage,
} from "./model/chat-model.ts";
export type { ModelSetting } from "../model/config.ts";
