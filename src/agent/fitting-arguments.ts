import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { checkedForeignArguments } from "../tools/arguments.ts";
import { checkForeignSchema } from "../tools/foreign-schemas.ts";

/** A copy of the arguments that fits the schema that the model was shown; throws `invalid_arguments`. */
export async function fittingArguments(tool: Pick<Tool, "name" | "parameters">, args: JsonObject): Promise<JsonObject> {
  return (await isUsable(tool.parameters)) ? checkedForeignArguments(tool, args) : args;
}

/**
 * A server's schema may be one that ajv cannot make sense of, or too large; the server then checks by itself. Whose schema
 * it is cannot be told here, so none may keep the hub busy.
 */
async function isUsable(schema: JsonObject): Promise<boolean> {
  try {
    await checkForeignSchema(schema);
    return true;
  } catch {
    return false;
  }
}
