/** `defineTool()`: an in-process tool whose arguments are described by any Standard Schema (zod, valibot, arktype). */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { textBlock } from "../model/content.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { type Tool, ToolInputError, type ToolResult, type ToolUpdate } from "../model/tool.ts";

export interface DefineToolOptions<Schema extends StandardSchemaV1, Details = unknown> extends Pick<
  Tool,
  "name" | "label" | "description" | "ownerOnly" | "annotations"
> {
  /** Describes the arguments, and checks and converts them before each call. */
  readonly input: Schema;
  /** JSON Schema of the arguments; needed where `input` cannot be converted to one. */
  readonly inputSchema?: JsonObject;
  /** May return just the text of the result. */
  execute(args: StandardSchemaV1.InferOutput<Schema>, context: ExecuteContext): ToolOutput<Details>;
}

export interface ExecuteContext {
  readonly toolCallId: string;
  readonly signal?: AbortSignal;
  readonly onUpdate?: ToolUpdate;
}

type ToolOutput<Details> = string | ToolResult<Details> | Promise<string | ToolResult<Details>>;

/**
 * @example
 * registry.register(defineTool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => String(a + b),
 * }));
 */
export function defineTool<Schema extends StandardSchemaV1, Details = unknown>(
  options: DefineToolOptions<Schema, Details>,
): Tool<JsonObject, Details> {
  const { input, inputSchema, execute, ...rest } = options;
  return {
    ...rest,
    parameters: inputSchema ?? toJsonSchema(rest.name, input),
    async execute(toolCallId, params, signal, onUpdate) {
      const args = await checkedInput(rest.name, input, params);
      const output = await execute.call(options, args, { toolCallId, signal, onUpdate });
      return typeof output === "string" ? { content: [textBlock(output)] } : output;
    },
  };
}

async function checkedInput<Schema extends StandardSchemaV1>(
  tool: string,
  schema: Schema,
  params: JsonObject,
): Promise<StandardSchemaV1.InferOutput<Schema>> {
  const result = await schema["~standard"].validate(params);
  if (result.issues === undefined) return result.value;
  throw new ToolInputError(
    `Arguments of the tool "${tool}" do not fit: ${result.issues.map(describeIssue).join("; ")}.`,
  );
}

/** Some libraries begin the message with the path. */
function describeIssue({ message, path = [] }: StandardSchemaV1.Issue): string {
  const where = path.map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  const text = message.replace(/\.$/, "");
  return where === "" || text.startsWith(where) ? text : `${where}: ${text}`;
}

function toJsonSchema(tool: string, schema: StandardSchemaV1): JsonObject {
  // Programs without types may pass anything.
  const standard: unknown = (schema as Partial<StandardSchemaV1> | undefined)?.["~standard"];
  if (!isJsonObject(standard) || typeof standard["validate"] !== "function") {
    throw new ToolcribError("invalid_arguments", `The input of the tool "${tool}" is not a Standard Schema.`, {
      hint: "Use a schema of zod, valibot, arktype or another library that implements Standard Schema. For plain JSON Schema, write the tool as an object with parameters.",
    });
  }
  const vendor = String(standard["vendor"]);
  try {
    const { $schema: _, ...converted } = converterOf(schema, standard)();
    return converted;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\.?$/, ".") : "";
    throw new ToolcribError(
      "invalid_arguments",
      `The input of the tool "${tool}", a schema of ${vendor}, cannot be converted to JSON Schema. ${reason}`.trim(),
      { hint: "Set inputSchema to the JSON Schema of the arguments.", cause: error },
    );
  }
}

/** Throws if the library offers no conversion. Zod 4.0 and 4.1 do, but not by the standard's extension. */
function converterOf(schema: StandardSchemaV1, standard: JsonObject): () => JsonObject {
  const { jsonSchema, vendor } = standard as Partial<StandardJSONSchemaV1.Props>;
  if (jsonSchema !== undefined) return () => jsonSchema.input({ target: "draft-2020-12" });
  if (vendor === "zod" && "_zod" in schema) return () => z.toJSONSchema(schema as z.ZodType, { io: "input" });
  throw new Error(`${String(vendor)} does not offer it`);
}
