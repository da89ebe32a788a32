/** Checks the arguments of a call against a tool's schema and describes the problems in words. */
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { checkUntrustedSchema, untrustedProblems } from "./untrusted-schemas.ts";
import { compileSchema, type Problems, problemsOf } from "./validator.ts";

type CheckedTool = Pick<Tool, "name" | "parameters">;

/**
 * A deep copy of the arguments that fits the tool's schema. The copy keeps a tool from changing its caller's object,
 * and makes sure that what was checked is what is run. Arguments are JSON, so it costs little compared to a call.
 */
export function checkArguments(tool: CheckedTool, args: JsonObject): JsonObject {
  const copy = plainCopy(tool, args);
  throwProblems(tool, problemsOf(compileSchema(tool.parameters), copy));
  return copy;
}

/** The same for a schema that a client or a server wrote: it cannot keep the hub busy. */
export async function checkUntrustedArguments(tool: CheckedTool, args: JsonObject): Promise<JsonObject> {
  const copy = plainCopy(tool, args);
  throwProblems(tool, await untrustedProblems(tool.parameters, copy));
  return copy;
}

function throwProblems(tool: CheckedTool, { problems, more, isEndless }: Problems): void {
  if (isEndless) {
    const message = `Arguments of the tool "${tool.name}" cannot be checked: its schema has no end.`;
    throw new ToolcribError("invalid_arguments", message);
  }
  if (problems.length === 0) return;
  const shown = more === 0 ? problems : [...problems, `${more} more`];
  throw new ToolcribError(
    "invalid_arguments",
    `Arguments of the tool "${tool.name}" do not fit: ${shown.join("; ")}.`,
    { hint: "Check the tool's input schema and call it again.", details: { tool: tool.name, problems } },
  );
}

function plainCopy(tool: CheckedTool, args: JsonObject): JsonObject {
  try {
    return structuredClone(args);
  } catch (error) {
    const message = `Arguments of the tool "${tool.name}" must be plain JSON values.`;
    throw new ToolcribError("invalid_arguments", message, { cause: error });
  }
}

/** A copy of the arguments that fits the schema that the model was shown; throws `invalid_arguments`. */
export async function checkModelArguments(tool: CheckedTool, args: JsonObject): Promise<JsonObject> {
  return (await isUsableSchema(tool.parameters)) ? checkUntrustedArguments(tool, args) : args;
}

/**
 * A server's schema may be one that ajv cannot make sense of, or too large; the server then checks by itself. Whose schema
 * it is cannot be known here, so it is treated as untrusted.
 */
async function isUsableSchema(schema: JsonObject): Promise<boolean> {
  try {
    await checkUntrustedSchema(schema);
    return true;
  } catch {
    return false;
  }
}
