/** The public API of `toolcrib/adapters`: a hub's tools in the form of other agent loops. */
export { type AiToolsOptions, toAiTools } from "./ai-sdk.ts";
export {
  type AnthropicTool,
  type AnthropicToolResult,
  type AnthropicToolUse,
  runAnthropicCall,
  toAnthropicTools,
} from "./anthropic.ts";
export {
  type OpenAIChatCall,
  type OpenAIChatResult,
  type OpenAIChatTool,
  type OpenAICustomCall,
  type OpenAIResponsesCall,
  type OpenAIResponsesResult,
  type OpenAIResponsesTool,
  runOpenAICall,
  toOpenAIResponsesTools,
  toOpenAITools,
} from "./openai.ts";
export { type PiAgentTool, type PiToolResult, toAgentTools } from "./pi.ts";
export type { RunCallOptions } from "./run-call.ts";
