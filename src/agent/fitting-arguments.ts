import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { checkedArguments } from "../tools/arguments.ts";
import { compileForeignSchema } from "../tools/validator.ts";

/** A copy of the arguments that fits the schema that the model was shown; throws `invalid_arguments`. */
export function fittingArguments(tool: Pick<Tool, "name" | "parameters">, args: JsonObject): JsonObject {
  return isKnown(tool.parameters) ? checkedArguments(tool, args) : args;
}

/**
 * A server's schema may be one that ajv cannot make sense of; the server then checks by itself. Whose schema it is cannot be
 * told here, so none may keep the hub busy.
 */
function isKnown(schema: JsonObject): boolean {
  try {
    compileForeignSchema(schema);
    return true;
  } catch {
    return false;
  }
}
