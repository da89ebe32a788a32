/** Finds secrets that are written out in a server's entry, where a reference should be. */
import { isJsonObject, type JsonObject, valueAt } from "../model/json.ts";
import { isPlainText, isCredentialName } from "./credential-names.ts";
import { tryParseReferences } from "./secret-references.ts";
import { maskTokens } from "./mask.ts";

export interface PlaintextCredential {
  readonly path: readonly (string | number)[];
  /** As a person would point at it: `env.TOKEN`, `args[2]`. */
  readonly where: string;
  /** The part of the text that is secret. */
  readonly value: string;
  /** The text of that place with something else instead. */
  readonly replacedBy: (text: string) => string;
  /** Whether a reference can replace it; not for the default of another reference, and not for text beside one. */
  readonly replaceable: boolean;
}

const SECRET_OF_AUTH = new Set(["token", "key", "clientSecret"]);
/** Programs take variables and headers with these: `-e NAME=value`, `-H "Name: value"`. */
const PAIR_OPTIONS = new Set(["-e", "--env", "-H", "--header"]);

/** `entry` is in Toolcrib's own words. No two of the results overlap. */
export function findPlaintextCredentials(entry: JsonObject): PlaintextCredential[] {
  const found: PlaintextCredential[] = [];
  for (const { path, text } of stringsOf(entry, [])) {
    const span = spanOf(entry, path, text);
    if (span === undefined) continue;
    const [start, end] = span;
    found.push({
      path,
      where: whereOf(path),
      value: text.slice(start, end),
      replacedBy: (other) => text.slice(0, start) + other + text.slice(end),
      replaceable: span.length === 2,
    });
  }
  return found;
}

/** The entry with something else in each of these places. */
export function replaceCredentials(
  entry: JsonObject,
  found: readonly PlaintextCredential[],
  other: (credential: PlaintextCredential) => string,
): JsonObject {
  return found.reduce((draft, each) => withText(draft, each.path, each.replacedBy(other(each))), entry);
}

type Span = readonly [start: number, end: number] | readonly [start: number, end: number, kind: "fixed"];

function spanOf(entry: JsonObject, path: readonly (string | number)[], text: string): Span | undefined {
  const parts = tryParseReferences(text);
  const isSecretPlace = isCredentialPlace(path);
  // Text that looks like a reference and is not one is a password.
  if (parts === undefined) return isSecretPlace || maskTokens(text) !== text ? [0, text.length] : undefined;
  if (isSecretPlace && isPlainText(text)) return schemeSpan(text);
  if (isSecretPlace && isBesideReference(text, path[1])) return [0, text.length, "fixed"];
  const [list, index] = path;
  if (list === "args" && typeof index === "number") {
    const before = valueAt(entry, ["args", index - 1]);
    const span = argumentSpan(text, typeof before === "string" ? before : undefined);
    if (span !== undefined) return span;
  }
  const hasDefault = parts.some(
    (part) =>
      typeof part !== "string" &&
      part.kind === "variable" &&
      part.fallback !== undefined &&
      (maskTokens(part.fallback) !== part.fallback ||
        ((isSecretPlace || isCredentialName(part.name)) && isPlainText(part.fallback))),
  );
  if (hasDefault) return [0, text.length, "fixed"];
  return parts.some((part) => typeof part === "string" && maskTokens(part) !== part) ? [0, text.length] : undefined;
}

function isCredentialPlace(path: readonly (string | number)[]): boolean {
  const [first, key, ...rest] = path;
  // What an override fixes is sent to the server like a variable or a header.
  const [, parameter, last] = rest;
  if (first === "overrides" && last === "fixed" && rest.length === 3)
    return typeof parameter === "string" && isCredentialName(parameter);
  if (typeof key !== "string" || rest.length > 0) return false;
  if (first === "auth") return SECRET_OF_AUTH.has(key);
  return (first === "env" || first === "headers") && isCredentialName(key);
}

/** In `Bearer abc` the token alone, so that the header can still be read. */
function schemeSpan(text: string): Span {
  const [, scheme] = /^(\s*(?:Bearer|Basic|Token)\s+)\S/i.exec(text) ?? [];
  return [scheme?.length ?? 0, text.length];
}

/** `--token=abc`, `--token abc`, `-e TOKEN=abc`, `-H "Authorization: Bearer abc"`. */
function argumentSpan(text: string, before: string | undefined): Span | undefined {
  const [whole, option, value] = /^--?([A-Za-z][\w-]*)=(.*)$/s.exec(text) ?? [];
  if (whole !== undefined && option !== undefined && value !== undefined) {
    return isCredentialName(option) ? valueSpan(text, value) : undefined;
  }
  const [, opened] = /^--?([A-Za-z][\w-]*)$/.exec(before ?? "") ?? [];
  if (opened !== undefined && isCredentialName(opened) && !text.startsWith("-")) {
    const span = valueSpan(text, text);
    if (span !== undefined) return span;
  }
  if (before === undefined || !PAIR_OPTIONS.has(before)) return undefined;
  const [, name, rest] = /^([\w-]+)\s*[=:]\s*(?:(?:Bearer|Basic|Token)\s+)?(\S.*)$/is.exec(text) ?? [];
  if (name === undefined || rest === undefined) return undefined;
  return isCredentialName(name) ? valueSpan(text, rest) : undefined;
}

/** @param value The end of the text. */
function valueSpan(text: string, value: string): Span | undefined {
  if (isPlainText(value)) return [text.length - value.length, text.length];
  return isBesideReference(value) ? [0, text.length, "fixed"] : undefined;
}

/** `abc${HOME}`: half of a secret is one. A scheme, what makes an address or a path, and signs between two references are none. */
function isBesideReference(text: string, name: string | number = ""): boolean {
  const parts = tryParseReferences(text);
  if (parts === undefined || !parts.some((part) => typeof part !== "string")) return false;
  const shape = parts.map((part) => (typeof part === "string" ? part : "x")).join("");
  if (/^(?:[a-z][a-z0-9+.-]*:\/\/|(?:x|~|\.{0,2})[\\/])/i.test(shape)) return false;
  const harmless = WITH_NAMES.test(String(name)) ? NAMES : SCHEME;
  return parts.some((part) => typeof part === "string" && /[A-Za-z0-9]/.test(part) && !harmless.test(part));
}

const SCHEME = /^\s*(?:Bearer|Basic|Token)\s+$/i;
/** Headers with any scheme, and names of their parts. */
const WITH_NAMES = /^(?:(?:proxy-)?authorization|cookie)$/i;
const NAMES = /^\s*(?:[A-Za-z]{2,20}\s+)?(?:[;,&\s]*[A-Za-z_][\w.-]{0,63}=)?$/;

function* stringsOf(
  value: unknown,
  path: readonly (string | number)[],
): Generator<{ path: readonly (string | number)[]; text: string }> {
  if (typeof value === "string") yield { path, text: value };
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* stringsOf(item, [...path, index]);
  else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) yield* stringsOf(item, [...path, key]);
  }
}

function withText(value: JsonObject, path: readonly (string | number)[], text: string): JsonObject {
  const [step, ...rest] = path;
  if (typeof step !== "string") return value;
  return { ...value, [step]: textIn(value[step], rest, text) };
}

function textIn(value: unknown, path: readonly (string | number)[], text: string): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return text;
  if (Array.isArray(value))
    return value.map((item: unknown, index) => (index === step ? textIn(item, rest, text) : item));
  return isJsonObject(value) && typeof step === "string"
    ? { ...value, [step]: textIn(value[step], rest, text) }
    : value;
}

function whereOf(path: readonly (string | number)[]): string {
  return path.map((step, index) => (typeof step === "number" ? `[${step}]` : index === 0 ? step : `.${step}`)).join("");
}
