import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { checkUntrustedArguments } from "../tools/check-arguments.ts";
import { checkUntrustedSchema } from "../tools/untrusted-schemas.ts";

/** A copy of the arguments that fits the schema that the model was shown; throws `invalid_arguments`. */
export async function checkModelArguments(
  tool: Pick<Tool, "name" | "parameters">,
  args: JsonObject,
): Promise<JsonObject> {
  return (await isUsableSchema(tool.parameters)) ? checkUntrustedArguments(tool, args) : args;
}

/**
 * A server's schema may be one that ajv cannot make sense of, or too large; the server then checks by itself. Whose schema
 * it is cannot be told here, so none may keep the hub busy.
 */
async function isUsableSchema(schema: JsonObject): Promise<boolean> {
  try {
    await checkUntrustedSchema(schema);
    return true;
  } catch {
    return false;
  }
}
