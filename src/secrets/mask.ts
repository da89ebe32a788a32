import { isCredentialName } from "./credential-names.ts";

/** Replaces a secret. */
export const MASK = "[redacted]";

/** Masks the span that `spanOf` returns for each match; without one, the search continues after the match. */
export function maskEach(
  text: string,
  pattern: RegExp,
  spanOf: (match: RegExpExecArray, text: string) => readonly [start: number, end: number] | undefined,
): string {
  let masked = "";
  let position = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const span = spanOf(match, text);
    if (span === undefined) continue;
    masked += text.slice(position, span[0]) + MASK;
    position = span[1];
    pattern.lastIndex = position;
  }
  return position === 0 ? text : masked + text.slice(position);
}

/** Prefixes that makers of tokens put there so that tokens can be recognised, with the least that follows. */
const PREFIXED = [
  "gh[pousr]_[A-Za-z0-9]{20}",
  "github_pat_[A-Za-z0-9_]{20}",
  "gl(?:pat|ptt|rt|dt|oas)-[A-Za-z0-9_-]{16}",
  "sk-[A-Za-z0-9_-]{16}",
  "[rsp]k_(?:live|test)_[A-Za-z0-9]{10}",
  "whsec_[A-Za-z0-9]{16}",
  "xox[abeoprs]-[A-Za-z0-9-]{8}",
  "xapp-[A-Za-z0-9-]{16}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
  "AIza[A-Za-z0-9_-]{30}",
  "ya29\\.[A-Za-z0-9_-]{20}",
  "hv[sbr]\\.[A-Za-z0-9_-]{20}",
  "npm_[A-Za-z0-9]{30}",
  "pypi-[A-Za-z0-9_-]{30}",
  "hf_[A-Za-z0-9]{24}",
  "dop_v1_[a-f0-9]{32}",
  "lin_api_[A-Za-z0-9]{20}",
  "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{24}",
  "SG\\.[A-Za-z0-9_-]{16}",
  // JSON in base64, with which a JSON Web Token begins.
  "eyJ[A-Za-z0-9_-]{14}",
];

const TOKENS = new RegExp(`(?<![A-Za-z0-9_-])(?:${PREFIXED.join("|")})`, "g");
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const END_OF_KEY = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const AUTHORIZATION = /\b(?:Bearer|Basic)(?:\s{1,4}|%20|\+)(?=[A-Za-z0-9._~+/=-]{8})/gi;
const USERINFO = /\b[a-z][a-z0-9+.-]{1,20}:\/\/(?=[^\s/?#@"'<>]{1,512}@)/gi;
/** `GITHUB_TOKEN=abc`, `?api_key=abc`, `"password":"abc"`, `x-api-key: abc`. */
const NAMED =
  /(?<![A-Za-z0-9_.-])([A-Za-z][A-Za-z0-9_.-]{1,63})(=|["']:\s{0,4}["']|:\s{0,4}(?=\S{12}))(?=[^\s"'&;,<>(){}]{4})/g;

/** One look that finds nothing in most short texts. It ignores case and so finds no less than the patterns one by one. */
const ANY_SHAPE = new RegExp(
  [TOKENS, PRIVATE_KEY, AUTHORIZATION, USERINFO, NAMED].map(({ source }) => source).join("|"),
  "i",
);
const MAX_SHORT_LENGTH = 200;

/** The characters of a token; any other ends it. */
const TOKEN = charactersOf(/[A-Za-z0-9._~+/=-]/, false);
const VALUE = charactersOf(/[^\s"'&;,<>(){}]/, true);
const BEFORE_AT = charactersOf(/[^@]/, true);
/** References and masks say nothing; a path or a URL after a name is what the name is about. */
const NO_SECRET = /^(?:\$|secret:\/\/|\[redacted|https?:\/\/|\.{0,2}\/|(?:Bearer|Basic) [$[<])/i;

/**
 * Masks what looks like a credential by its shape alone, for text that may quote a program or a server.
 *
 * Every pattern is of bounded length and what follows is walked character by character: a pattern without a bound makes
 * the engine run out of stack on a text of some megabytes, and may read the same characters again and again.
 */
export function maskTokens(text: string): string {
  if (text.length < 8 || (text.length <= MAX_SHORT_LENGTH && !ANY_SHAPE.test(text))) return text;
  let masked = maskEach(text, PRIVATE_KEY, ({ index }) => [index, endOfKey(text, index)]);
  masked = maskEach(masked, TOKENS, ({ index, 0: found }, from) => [index, runFrom(from, index + found.length, TOKEN)]);
  masked = maskEach(masked, AUTHORIZATION, ({ index, 0: found }, from) => {
    const start = index + found.length;
    const end = runFrom(from, start, TOKEN);
    // `name=` before a mask is a name whose value is masked already, not the padding of base64.
    const following = from.startsWith(MASK, end) ? MASK : "";
    return isRandom(from.slice(start, end) + following) ? [start, end] : undefined;
  });
  masked = maskEach(masked, USERINFO, ({ index, 0: found }, from) => {
    const start = index + found.length;
    const end = runFrom(from, start, BEFORE_AT);
    return from.slice(start, end) === "git" ? undefined : [start, end];
  });
  return maskEach(masked, NAMED, ({ index, 0: found, 1: name = "", 2: sign = "" }, from) => {
    const start = index + found.length;
    if (!isCredentialName(name) || NO_SECRET.test(from.slice(start, start + 16))) return undefined;
    const end = runFrom(from, start, VALUE);
    return isNamedSecret(name, sign, from.slice(start, end)) ? [start, end] : undefined;
  });
}

/** Which characters belong, by code: asking a pattern for each one of millions takes long. */
interface Characters {
  readonly ascii: readonly boolean[];
  readonly others: boolean;
}

function charactersOf(pattern: RegExp, others: boolean): Characters {
  return { ascii: Array.from({ length: 128 }, (_, code) => pattern.test(String.fromCharCode(code))), others };
}

function runFrom(text: string, start: number, { ascii, others }: Characters): number {
  let end = start;
  const belongs = (code: number): boolean => ascii[code] ?? others;
  while (end < text.length && belongs(text.charCodeAt(end))) end++;
  return end;
}

/** Without its end the rest is masked: it is the key that was cut off. */
function endOfKey(text: string, start: number): number {
  END_OF_KEY.lastIndex = start;
  const end = END_OF_KEY.exec(text);
  return end === null ? text.length : end.index + end[0].length;
}

/** Prose such as "Bearer authentication" is not; it has neither digits nor capitals inside. What is masked already says nothing. */
function isRandom(given: string): boolean {
  const value = given.replaceAll(`=${MASK}`, " ").replaceAll(MASK, " ");
  return /\d/.test(value) || /[a-z][A-Z]/.test(value) || value.endsWith("=") || value.length >= 32;
}

function isNamedSecret(name: string, sign: string, value: string): boolean {
  // `tokens=12000` is a count.
  if (/tokens$/i.test(name) && /^\d{1,9}$/.test(value)) return false;
  // After a colon a sentence may go on, and `key=value` is how arguments are explained.
  return sign.startsWith(":") || name.toLowerCase() === "key" ? isRandom(value) : true;
}

/** Values under names of credentials, at any depth: the redactor does not know a caller's own secrets. For plain data. */
export function maskCredentials<Value extends object>(value: Value): Value {
  const text = JSON.stringify(value, (key, each: unknown) => (isCredentialKey(key, each) ? MASK : each));
  // The same with some texts replaced.
  return JSON.parse(text) as Value;
}

/** `key` alone does not count: many tools call the id of an entry or an issue so, and a person has to see it. */
function isCredentialKey(key: string, value: unknown): boolean {
  return value !== null && typeof value !== "boolean" && key.toLowerCase() !== "key" && isCredentialName(key);
}
