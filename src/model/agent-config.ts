/** The config's `agent` and `sessions`. */
import { z } from "zod";

const Count = z.int().positive();
const Patterns = z.array(z.string().min(1));

/** How an endpoint that is not its provider's own is reached. */
const EndpointSchema = z.strictObject({
  model: z.string().min(1).describe("What the endpoint calls the model."),
  provider: z
    .enum(["openai-compatible", "openai", "anthropic", "google"])
    .default("openai-compatible")
    .describe("The protocol that it speaks: `openai-compatible` is that of Ollama, vLLM, llama.cpp and LM Studio."),
  baseUrl: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Its address, such as `http://localhost:11434/v1`; the provider's own if absent. `/v1` may be left out where there is no other path.",
    ),
  apiKey: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Its key, by reference; the provider's usual variable if absent. It is not sent over plain http to another machine.",
    ),
  headers: z.record(z.string(), z.string()).optional().describe("Further HTTP headers. Values may hold references."),
  images: z.boolean().optional().describe("Whether the model sees images; known by its name if absent."),
});

export const ModelSettingSchema = z.union([
  z.string().regex(/^[^/\s]+\/\S+$/, "`<provider>/<model>`, such as `anthropic/claude-sonnet-4-5`"),
  EndpointSchema,
]);

/** `"anthropic/…"`, `"openai/…"`, `"google/…"`, `"ollama/…"`, `"lmstudio/…"`, `"llamacpp/…"`, `"vllm/…"`, or an endpoint. */
export type ModelSetting = z.input<typeof ModelSettingSchema>;
export type ModelEndpoint = z.output<typeof EndpointSchema>;

export const AgentSchema = z.strictObject({
  model: ModelSettingSchema.optional().describe(
    "The model: `anthropic/…`, `openai/…`, `google/…`, `ollama/…`, `lmstudio/…`, `llamacpp/…`, `vllm/…`, or an endpoint of your own.",
  ),
  models: z
    .array(ModelSettingSchema)
    .prefault([])
    .describe("Others that a user may choose instead, in ACP clients and in `toolcrib run -i`."),
  instructions: z.string().optional().describe("Put before everything else in the system prompt."),
  maxTools: Count.default(50).describe(
    "Tools that the model is told of at once; those that fit the prompt best, and search tools that reach the rest.",
  ),
  include: Patterns.optional().describe("Patterns of tools that the agent uses; all that it may if absent."),
  exclude: Patterns.optional().describe("Patterns of tools that the agent does not use."),
  maxSteps: Count.default(50).describe("Answers of the model in one run."),
  maxTokens: Count.optional().describe("Tokens of one run, input and output together; no limit if absent."),
  maxOutputTokens: Count.optional().describe("Tokens of one answer of the model; its own limit if absent."),
  retries: z
    .int()
    .min(0)
    .default(3)
    .describe("How often a model that is busy, or whose answer broke off, is asked again."),
  resultBytes: Count.default(32 * 1024).describe(
    "Of a longer text of a tool the model gets beginning and end, and a resource to read the whole.",
  ),
  skillsBudget: Count.default(8000).describe("Characters of the system prompt that the list of skills may take."),
  sampling: z
    .enum(["deny", "ask", "allow"])
    .default("deny")
    .describe("Whether servers may use the model (MCP sampling)."),
  samplingTokens: Count.default(4096).describe("Tokens of one answer for a server."),
});

export type AgentConfig = z.output<typeof AgentSchema>;

export const SessionsSchema = z.strictObject({
  wait: z.int().min(0).default(5000).describe("Milliseconds that opening a session waits for the servers it brings."),
  allowHosts: z
    .array(z.string().min(1))
    .prefault([])
    .describe(
      "Hosts and addresses that a session's servers may be at although they are private: names, `*.example.internal`, addresses, or networks such as `10.1.0.0/16`. A server on Toolcrib's own machine is named with its port: `127.0.0.1:8080`. Plain http is allowed to names and private addresses that stand here.",
    ),
  allowReferences: z
    .array(
      z
        .string()
        .regex(/^(?:\$\{[^{}]+\}|secret:\/\/[^\s"'{}]+)$/i, "one reference such as `secret://env/NAME` or `${NAME}`"),
    )
    .prefault([])
    .describe(
      "References that servers of clients on stdio, and of tokens with the scope `admin`, may hold, each exactly as the client writes it. What a client brings is literal otherwise: a server with any other reference is left out.",
    ),
});

export type SessionsConfig = z.output<typeof SessionsSchema>;
