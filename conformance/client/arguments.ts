/** Arguments for a tool that nobody has said how to call: one plain value for each of its parameters. */
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";

export function plainArguments(schema: Readonly<JsonObject>): JsonObject {
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  return Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, plainValue(of)]));
}

/** What a form holds if its user changes nothing. */
export function defaultContent(schema: unknown): JsonObject {
  const properties = isJsonObject(schema) && isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const given = Object.entries(properties).filter(([, of]) => isJsonObject(of) && of["default"] !== undefined);
  return Object.fromEntries(given.map(([name, of]) => [name, isJsonObject(of) ? of["default"] : undefined]));
}

function plainValue(schema: unknown): unknown {
  switch (isJsonObject(schema) ? schema["type"] : undefined) {
    case "number":
    case "integer":
      return 5;
    case "boolean":
      return true;
    case "object":
      return {};
    case "array":
      return [];
    default:
      return "text";
  }
}
