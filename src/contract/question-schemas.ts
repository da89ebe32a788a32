/** Questions of servers while a call runs, as the HTTP contract shows them. */
import { z } from "zod";

export const QUESTION_ACTIONS = ["accept", "decline", "cancel"] as const;

export const QuestionSchema = z
  .object({
    id: z.string(),
    kind: z
      .enum(["form", "url", "sampling"])
      .describe("A form to fill in, an address to open, or a request to a model."),
    server: z.string().describe("The server that asks, as people call it."),
    session: z.string().describe("The session of the call."),
    name: z.string().describe("The tool, prompt or resource that is in use."),
    askedAt: z.string(),
    message: z.string().describe("Empty for `sampling`."),
    schema: z.record(z.string(), z.unknown()).optional().describe("Of a form: JSON Schema of a flat object."),
    url: z.string().optional().describe("Of `url`: open it only if the person agrees."),
    sampling: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Of `sampling`: the params of MCP, such as `messages`, `systemPrompt` and `maxTokens`."),
  })
  .meta({ id: "Question" });

export type Question = z.output<typeof QuestionSchema>;
