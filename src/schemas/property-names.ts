import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Notes } from "./notes.ts";
import { mapSubschemas, schemaMap, stringList } from "./positions.ts";

const CLAUDE_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

/**
 * Claude refuses the whole request for one property name that it does not take. An optional property of such a name is
 * left out, so that the tool stays usable; with a required one the tool cannot be offered, which is an error.
 */
export function withClaudeNames(schema: JsonObject, notes: Notes, path = ""): JsonObject {
  const inner = mapSubschemas(schema, path, (sub, at) => withClaudeNames(sub, notes, at));
  const properties = schemaMap(inner["properties"]);
  const bad = Object.keys(properties).filter((name) => !CLAUDE_NAME.test(name));
  if (bad.length === 0) return inner;
  const required = stringList(inner["required"]);
  for (const name of bad) {
    if (required.includes(name)) {
      throw new ToolcribError("invalid_arguments", `Claude takes no property named ${JSON.stringify(name)}, and it is required.`, {
        hint: "A name has up to 64 letters, digits, dots, underscores and hyphens.",
      });
    }
    notes.add(`the optional property ${JSON.stringify(name)} is left out: Claude takes no such name`, `${path}/properties`);
  }
  return { ...inner, properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !bad.includes(name))) };
}
