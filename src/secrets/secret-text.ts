/** How the text that a provider hands over becomes a value. */
import { isJsonObject } from "../model/json.ts";
import { SecretFailure } from "./provider.ts";

/** The largest secret. Keys and certificates are far below it, and a wrong path to a big file is noticed. */
export const LARGEST_SECRET = 64 * 1024;

/** Files and commands end their output with a line break that is not part of the secret. */
export function withoutFinalNewline(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end--;
  return text.slice(0, end);
}

/** Bytes that are no UTF-8 would reach a server as something else than they are. */
export function decodeSecret(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new SecretFailure("is not UTF-8 text", { cause });
  }
}

/** One field of a secret that has several; without a name the only one. */
export function fieldOf(fields: Readonly<Record<string, unknown>>, name: string | undefined): string {
  const names = Object.keys(fields);
  const key = name ?? (names.length === 1 ? names[0] : undefined);
  if (key === undefined) throw new SecretFailure(`has ${names.length} fields and none was chosen`, fieldHint(names));
  if (!Object.hasOwn(fields, key)) throw new SecretFailure(`has no field ${JSON.stringify(key)}`, fieldHint(names));
  const value = fields[key];
  if (value === null || value === undefined) throw new SecretFailure("is empty");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A key of a secret that is a JSON object, as AWS keeps several values in one. */
export function jsonField(text: string, name: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which is the secret.
  }
  if (!isJsonObject(parsed))
    throw new SecretFailure(`has no keys: it is no JSON object`, { hint: `Leave out #${name}.` });
  return fieldOf(parsed, name);
}

/** Names of fields are no secrets; they are what somebody who mistyped one needs. */
function fieldHint(names: readonly string[]): { hint: string } {
  const shown = names.slice(0, 20).join(", ") || "none";
  return { hint: `Its fields: ${shown}. Choose one with #field.` };
}
