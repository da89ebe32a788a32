/** An error in one text, for those who can do something about it and for models. */
import type { ErrorObject } from "./errors.ts";
import { isJsonObject } from "./json.ts";

export function errorText({ code, message, hint }: ErrorObject): string {
  return hint === undefined ? `${code}: ${message}` : `${code}: ${message} ${hint}`;
}

/**
 * Without what only people are to do: a model that is told how a refusal could be lifted may try to lift it, and one that is
 * told of commands may try to run them.
 */
export function errorTextForModel(error: ErrorObject): string {
  const { code, message, hint, details } = error;
  if (code !== "denied" && code !== "blocked") {
    return hint !== undefined && NAMES_COMMAND.test(hint) ? `${code}: ${message}` : errorText(error);
  }
  const rule = details?.["rule"];
  const where = isJsonObject(rule) ? rule["where"] : undefined;
  return `${code}: ${typeof where === "string" && where !== "" ? message.replaceAll(where, "the rules") : message}`;
}

const NAMES_COMMAND = /\btoolcrib [a-z]/;
