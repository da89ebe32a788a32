/** The arguments of a call as a model wrote them. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";

export type ReadArguments = { readonly input: JsonObject } | { readonly problem: string };

/** Nothing and `null` are no arguments; an object inside a string is taken out, because some models write that. */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === "") return { input: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
    if (typeof value === "string") value = JSON.parse(value);
  } catch (error) {
    const why = error instanceof Error ? ` (${error.message.slice(0, 200)})` : "";
    return { problem: `The arguments are not valid JSON${why}. Call again with one JSON object.` };
  }
  if (value === null) return { input: {} };
  if (isJsonObject(value)) return { input: value };
  return { problem: `The arguments are ${Array.isArray(value) ? "a list" : `a ${typeof value}`}, not a JSON object.` };
}
