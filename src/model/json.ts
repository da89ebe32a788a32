export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;

/** `unknown` values, because what servers send is passed on as it came and is only narrowed where it is read. */
export type JsonObject = { [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
