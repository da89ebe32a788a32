import { isJsonObject, type JsonObject } from "../model/json.ts";

/** A JSON column as an object; what somebody else made of it counts as empty. */
export function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
