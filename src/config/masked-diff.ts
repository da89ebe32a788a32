/**
 * The diff of a config for `--dry-run`. Secrets are masked here, so that no caller can forget to: texts are compared as they
 * are and shown masked.
 */
import { type ChangeObject, diffArrays } from "diff";
import type { PlacedScalar } from "../files/edit/brackets.ts";
import { jsonScalars } from "../files/edit/json-edit.ts";
import { isPlainText, isCredentialName } from "../secrets/credential-names.ts";
import { MASK, maskTokens } from "../secrets/mask.ts";
import { hasReference } from "../secrets/secret-references.ts";

const CONTEXT_LINES = 2;
const MAX_WHOLE_LINE = 160;
const CONTEXT_CHARACTERS = 50;
/** Beyond this many changed lines the comparison takes long, and the whole text is shown as replaced. */
const MAX_EDITS = 2000;

interface DiffLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/**
 * Lines that begin with `-`, `+` or a space, with some context around each change; empty if nothing differs. `mask` must keep
 * the number of lines. The default is for JSON.
 */
export function diffLines(before: string, after: string, mask: (text: string) => string = maskConfig): string[] {
  if (before === after) return [];
  const masked = { before: splitLines(mask(before)), after: splitLines(mask(after)) };
  let [i, j] = [0, 0];
  const lines = compareLines(splitLines(before), splitLines(after)).flatMap(({ added, removed, count }) =>
    Array.from({ length: count }, (): DiffLine => {
      if (removed) return { sign: "-", text: masked.before[i++] ?? "" };
      if (!added) i += 1;
      return { sign: added ? "+" : " ", text: masked.after[j++] ?? "" };
    }),
  );
  return withContext(lines);
}

function compareLines(
  before: string[],
  after: string[],
): Pick<ChangeObject<string[]>, "added" | "removed" | "count">[] {
  return (
    diffArrays(before, after, { maxEditLength: MAX_EDITS }) ?? [
      { removed: true, added: false, count: before.length },
      { removed: false, added: true, count: after.length },
    ]
  );
}

function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function withContext(lines: readonly DiffLine[]): string[] {
  const near = new Set<number>();
  for (const [index, { sign }] of lines.entries()) {
    if (sign === " ") continue;
    for (let at = index - CONTEXT_LINES; at <= index + CONTEXT_LINES; at++) near.add(at);
  }
  const shown: string[] = [];
  for (const [index, { sign, text }] of lines.entries()) {
    if (!near.has(index)) continue;
    if (!near.has(index - 1) && shown.length > 0) shown.push("  …");
    const [before, after] = [lines[index - 1], lines[index + 1]];
    const other =
      sign === "-" && after?.sign === "+" ? after : sign === "+" && before?.sign === "-" ? before : undefined;
    shown.push(`${sign} ${other === undefined ? text : differingPart(text, other.text)}`.trimEnd());
  }
  return shown;
}

/** A file may be one long line: of such a line, the part that differs from the other one, with some text around it. */
function differingPart(text: string, other: string): string {
  if (text.length <= MAX_WHOLE_LINE || other.length <= MAX_WHOLE_LINE) return text;
  const shorter = Math.min(text.length, other.length);
  let start = 0;
  while (start < shorter && text[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  const from = Math.max(0, start - CONTEXT_CHARACTERS);
  const to = Math.min(text.length, text.length - end + CONTEXT_CHARACTERS);
  return `${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`;
}

/** Returns the values in a text, or throws if it cannot be parsed. */
export type ReadScalars = (text: string) => readonly PlacedScalar[];

/** The text of a config with everything masked that may be secret. The lines stay, so that they can be compared. */
export function maskConfig(original: string, read: ReadScalars = jsonScalars): string {
  const text = original.replace(/^\uFEFF/, "");
  let masked = "";
  let position = 0;
  let previous: PlacedScalar | undefined;
  for (const scalar of scalarsOf(text, read)) {
    const { path, start, end, value } = scalar;
    if (start < position) continue;
    const before = previous !== undefined && isNext(previous, scalar) ? previous.value : undefined;
    masked += maskComments(text.slice(position, start));
    masked += written(text.slice(start, end), value, maskValue(value, { path, before }));
    position = end;
    previous = scalar;
  }
  return masked + maskComments(text.slice(position));
}

/** A text that cannot be parsed is masked like a comment, which is stricter. */
function scalarsOf(text: string, read: ReadScalars): readonly PlacedScalar[] {
  try {
    return read(text);
  } catch {
    return [];
  }
}

/** Whether one follows the other in a list. */
function isNext(one: PlacedScalar, other: PlacedScalar): boolean {
  const [at, then] = [one.path.at(-1), other.path.at(-1)];
  if (typeof at !== "number" || then !== at + 1 || one.path.length !== other.path.length) return false;
  return one.path.slice(0, -1).every((step, index) => step === other.path[index]);
}

/** The masked value, quoted as the original was. */
function written(raw: string, value: string, masked: string): string {
  if (masked === value) return raw;
  if (raw.includes("\n")) return raw.replaceAll(/[^\s][^\r\n]*/g, MASK);
  const quote = /^["']/.exec(raw)?.[0];
  if (quote === undefined) return masked.replaceAll(/[\r\n]+/g, " ");
  const escaped = JSON.stringify(masked).slice(1, -1);
  return quote + (quote === '"' ? escaped : escaped.replaceAll('\\"', '"')) + quote;
}

const KEY_BLOCK = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z -]*|$)/g;
/** Comments may contain disabled entries. */
const QUOTED = /([:=][ \t]*)(["'])((?:(?!\2)[^\\\r\n]|\\.)*)\2/g;
const OPTION = /((["'])--?([A-Za-z][\w-]{0,63})\2[ \t]*,[ \t]*)(["'])((?:(?!\4)[^\\\r\n]|\\.)*)\4/g;
const NAMED = /([A-Za-z][\w.-]{0,63})(["']?[ \t]*[:=][ \t]*)([^\s"',{}[\]]+)/g;

/** The text between values: keys, brackets and comments. */
function maskComments(text: string): string {
  if (!/\S/.test(text)) return text;
  return text
    .replace(KEY_BLOCK, (block) => block.replaceAll(/[^\s][^\r\n]*/g, MASK))
    .replace(QUOTED, (whole, start: string, quote: string, value: string) =>
      isPlainText(value) ? `${start}${quote}${MASK}${quote}` : whole,
    )
    .replace(OPTION, (whole, start: string, _quote, name: string, quote: string, value: string) =>
      isCredentialName(name) && isPlainText(value) ? `${start}${quote}${MASK}${quote}` : whole,
    )
    .replace(NAMED, (whole, name: string, sign: string, value: string) =>
      isCredentialName(name) && isPlainText(value) ? `${name}${sign}${MASK}` : whole,
    )
    .split("\n")
    .map(maskSecretShapes)
    .join("\n");
}

/** Everything below these keys is private. */
const PRIVATE_KEYS = new Set(["env", "envs", "environment", "headers", "http_headers", "httpheaders", "requestinit"]);
/** Written by Toolcrib itself. */
const OWN_VARIABLES = new Set(["TOOLCRIB_HOME", "TOOLCRIB_CONFIG"]);
/** The value is the name of a variable. */
const NAMES_VARIABLE = /env_?var$/i;
/** Options that take a variable or a header: `-e NAME=value`, `-H "Name: value"`. */
const PAIR_OPTIONS = new Set(["-e", "--env", "-H", "--header"]);

interface ValuePlace {
  /** Keys and list indexes. */
  readonly path: readonly (string | number)[];
  /** The previous element of its list. */
  readonly before?: string | undefined;
}

/**
 * Masks what may be secret in one value, by its place and by its shape. References such as `${TOKEN}` stay readable: they say
 * where a secret is, not what it is.
 */
export function maskValue(value: string, { path, before }: ValuePlace): string {
  const key = path.findLast((step) => typeof step === "string") ?? "";
  const isPrivate = path.slice(0, -1).some((step) => typeof step === "string" && PRIVATE_KEYS.has(step.toLowerCase()));
  if (isPrivate) return OWN_VARIABLES.has(key) ? value : hideWhole(value);
  if (isCredential(key) && isSecret(value)) return hideWhole(value);
  if (before !== undefined) {
    const [, option] = /^--?([A-Za-z][\w-]*)$/.exec(before) ?? [];
    if (option !== undefined && isCredential(option) && isSecret(value)) return hideWhole(value);
    if (PAIR_OPTIONS.has(before)) return hidePair(value);
  }
  return maskSecretShapes(value);
}

/** Masks what looks like a secret, whatever its place. */
function maskSecretShapes(text: string): string {
  return withReferences(text, true, (bare) => {
    let masked = hideAddresses(bare);
    masked = masked.replace(OPTION_IN_TEXT, (whole, start: string, name: string, value: string) =>
      isCredential(name) && isSecret(value) ? start + hideLiterals(value) : whole,
    );
    masked = masked.replace(PAIR, (whole, start: string, name: string, value: string) =>
      isCredential(name) && isSecret(value) ? start + hideLiterals(value) : whole,
    );
    // Piece by piece, because maskTokens does not know the placeholders.
    masked = mapLiterals(masked, maskTokens);
    return isPath(text) ? masked : hideRandom(masked);
  });
}

function isCredential(name: string): boolean {
  return isCredentialName(name) && !NAMES_VARIABLE.test(name);
}

function isSecret(value: string): boolean {
  return (isPlainText(value) || hasReference(value)) && value.toLowerCase() !== "oauth";
}

/** `NAME=value`, `Name: value`. */
function hidePair(text: string): string {
  const [, start, value] = /^([^=:]*[=:]\s*)(.*)$/s.exec(text) ?? [];
  return start === undefined || value === undefined ? maskSecretShapes(text) : start + hideWhole(value);
}

function hideWhole(text: string): string {
  return withReferences(text, false, hideLiterals);
}

const REFERENCE =
  /(?<!\$)\$\{(?:[A-Za-z_][\w.-]*(?::-[^{}]*)?|(?:env|input|secret):[^{}]*)\}|\$\{\{[^{}]*\}\}|\{(?:env|file):[^{}]*\}|secret:\/\/[^\s"'`,;<>()[\]{}|\\^$&?]*|^\$[A-Za-z_]\w*$/g;

/** While the rest is examined, each reference is replaced by one placeholder character. */
const FIRST_PLACEHOLDER = 0xe000;
const MAX_PLACEHOLDERS = 1000;
const PLACEHOLDER = /([\uE000-\uE3E7])/;
const ALL_PLACEHOLDERS = new RegExp(PLACEHOLDER, "g");

function withReferences(text: string, showsDefaults: boolean, mask: (bare: string) => string): string {
  const references: string[] = [];
  const bare = text.replace(REFERENCE, (found) => {
    if (references.length === MAX_PLACEHOLDERS) return found;
    references.push(found.replace(/:-([^{}]*)\}$/, (_, other: string) => `:-${showsDefaults ? other : hide(other)}}`));
    return String.fromCharCode(FIRST_PLACEHOLDER + references.length - 1);
  });
  return mask(bare).replace(ALL_PLACEHOLDERS, (hole) => references[hole.charCodeAt(0) - FIRST_PLACEHOLDER] ?? hole);
}

function hideLiterals(text: string): string {
  return mapLiterals(text, hide);
}

function mapLiterals(text: string, mask: (part: string) => string): string {
  return text
    .split(PLACEHOLDER)
    .map((part) => (PLACEHOLDER.test(part) ? part : mask(part)))
    .join("");
}

/** Keeps what reveals nothing: the scheme of a header, and separators between two references. */
function hide(text: string): string {
  return /^[\s:@/]*(?:(?:bearer|basic|token)\s*)?$/i.test(text) ? text : MASK;
}

/** Up to the last @ that can belong to the user part. A password with a slash is found if the path has no @. */
const WEB_USER = /\b((?:https?|wss?):\/\/)([^\s/?#"'<>]*)(?=@)/gi;
const OTHER_USER = /\b((?!https?:|wss?:)[a-z][a-z0-9+.-]{1,20}:\/\/)([^\s"'<>]*)(?=@)/gi;
const QUERY = /([?&;#])([^=&;#?\s]{1,64})=([^&;#\s"'<>]+)/g;

function hideAddresses(text: string): string {
  if (!text.includes("://") && !text.includes("=")) return text;
  const hideUser = (whole: string, scheme: string, user: string): string =>
    user === "git" ? whole : scheme + hideLiterals(user);
  return text
    .replace(WEB_USER, hideUser)
    .replace(OTHER_USER, hideUser)
    .replace(QUERY, (whole, sign: string, name: string, value: string) =>
      isCredential(name) && isSecret(value) ? `${sign}${name}=${hideLiterals(value)}` : whole,
    );
}

/** `--api-key x` and `--api-key=x` within a longer text, such as a whole command line. */
const OPTION_IN_TEXT = /(?<![\w-])(--?([A-Za-z][\w-]{0,63})(?:=|\s{1,4}))([^\s"'-][^\s"']*)/g;
/** `NAME=x` and `Name: x` as the whole text. */
const PAIR = /^(([A-Za-z][\w.-]{0,63})(?:=|:(?!\/\/)\s{0,4}))(.+)$/s;

/** Path segments may look like random tokens. */
function isPath(text: string): boolean {
  return /^(?:[~.]{0,2}[/\\]|[A-Za-z]:[\\/]|file:)/.test(text);
}

const WORDS = /(?<!sha\d{3}[:-])(?<![A-Za-z0-9])[A-Za-z0-9]{16,}(?![A-Za-z0-9])/g;
const UUIDS = /(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])/gi;
const MIXED = /(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{24,}/g;

/** Random-looking words: tokens without a known prefix. */
function hideRandom(text: string): string {
  return text
    .replace(UUIDS, MASK)
    .replace(WORDS, (word) => (has(word, /\d/g, 2) && has(word, /[A-Za-z]/g, 2) ? MASK : word))
    .replace(MIXED, (word) => (has(word, /\d/g, 3) && has(word, /[A-Z]/g, 3) && has(word, /[a-z]/g, 3) ? MASK : word));
}

function has(text: string, pattern: RegExp, least: number): boolean {
  return (text.match(pattern)?.length ?? 0) >= least;
}
