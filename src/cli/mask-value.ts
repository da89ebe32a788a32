/**
 * Takes what may be secret out of one value of a config, by where it stands and by what it looks like. References such as
 * `${TOKEN}` say where a secret is and not what it is, so they stay readable.
 */
import { isPlainText, looksLikeCredential } from "../secrets/looks-like-secret.ts";
import { MASK } from "../secrets/mask.ts";
import { holdsReference } from "../secrets/references.ts";
import { maskTokens } from "../secrets/token-shapes.ts";

/** Under these everything is private, whatever it is called. */
const PRIVATE = new Set(["env", "envs", "environment", "headers", "http_headers", "httpheaders", "requestinit"]);
/** What Toolcrib itself writes there. */
const OWN_VARIABLES = new Set(["TOOLCRIB_HOME", "TOOLCRIB_CONFIG"]);
/** The value is the name of a variable. */
const NAMES_VARIABLE = /env_?var$/i;
/** Programs take variables and headers with these: `-e NAME=value`, `-H "Name: value"`. */
const PAIR_OPTIONS = new Set(["-e", "--env", "-H", "--header"]);

export interface ValuePlace {
  /** Keys and places in lists. */
  readonly path: readonly (string | number)[];
  /** What stands before it in its list. */
  readonly before?: string | undefined;
}

export function maskValue(value: string, { path, before }: ValuePlace): string {
  const key = path.findLast((step) => typeof step === "string") ?? "";
  const isPrivate = path.slice(0, -1).some((step) => typeof step === "string" && PRIVATE.has(step.toLowerCase()));
  if (isPrivate) return OWN_VARIABLES.has(key) ? value : hideWhole(value);
  if (isCredential(key) && isSecret(value)) return hideWhole(value);
  if (before !== undefined) {
    const [, option] = /^--?([A-Za-z][\w-]*)$/.exec(before) ?? [];
    if (option !== undefined && isCredential(option) && isSecret(value)) return hideWhole(value);
    if (PAIR_OPTIONS.has(before)) return hidePair(value);
  }
  return hideShapes(value);
}

/** Masks what looks like a secret in a text that stands nowhere in particular. */
export function hideShapes(text: string): string {
  return withReferences(text, true, (bare) => {
    let masked = hideAddresses(bare);
    masked = masked.replace(OPTION_IN_TEXT, (whole, start: string, name: string, value: string) =>
      isCredential(name) && isSecret(value) ? start + hideLiterals(value) : whole,
    );
    masked = masked.replace(PAIR, (whole, start: string, name: string, value: string) =>
      isCredential(name) && isSecret(value) ? start + hideLiterals(value) : whole,
    );
    // Piece by piece: it does not know what stands in for a reference.
    masked = betweenHoles(masked, maskTokens);
    return isPath(text) ? masked : hideRandom(masked);
  });
}

function isCredential(name: string): boolean {
  return looksLikeCredential(name) && !NAMES_VARIABLE.test(name);
}

function isSecret(value: string): boolean {
  return (isPlainText(value) || holdsReference(value)) && value.toLowerCase() !== "oauth";
}

/** `NAME=value`, `Name: value`. */
function hidePair(text: string): string {
  const [, start, value] = /^([^=:]*[=:]\s*)(.*)$/s.exec(text) ?? [];
  return start === undefined || value === undefined ? hideShapes(text) : start + hideWhole(value);
}

function hideWhole(text: string): string {
  return withReferences(text, false, hideLiterals);
}

const REFERENCE =
  /(?<!\$)\$\{(?:[A-Za-z_][\w.-]*(?::-[^{}]*)?|(?:env|input|secret):[^{}]*)\}|\$\{\{[^{}]*\}\}|\{(?:env|file):[^{}]*\}|secret:\/\/[^\s"'`,;<>()[\]{}|\\^$&?]*|^\$[A-Za-z_]\w*$/g;

/** References stand in for one character each while the rest is looked at. */
const FIRST_HOLE = 0xe000;
const MOST_HOLES = 1000;
const HOLES = /([\uE000-\uE3E7])/;
const ALL_HOLES = new RegExp(HOLES, "g");

function withReferences(text: string, showsDefaults: boolean, mask: (bare: string) => string): string {
  const references: string[] = [];
  const bare = text.replace(REFERENCE, (found) => {
    if (references.length === MOST_HOLES) return found;
    references.push(found.replace(/:-([^{}]*)\}$/, (_, other: string) => `:-${showsDefaults ? other : hide(other)}}`));
    return String.fromCharCode(FIRST_HOLE + references.length - 1);
  });
  return mask(bare).replace(ALL_HOLES, (hole) => references[hole.charCodeAt(0) - FIRST_HOLE] ?? hole);
}

function hideLiterals(text: string): string {
  return betweenHoles(text, hide);
}

function betweenHoles(text: string, mask: (part: string) => string): string {
  return text
    .split(HOLES)
    .map((part) => (HOLES.test(part) ? part : mask(part)))
    .join("");
}

/** What says nothing stays: the scheme of a header, and what stands between two references. */
function hide(text: string): string {
  return /^[\s:@/]*(?:(?:bearer|basic|token)\s*)?$/i.test(text) ? text : MASK;
}

/** Up to the last @ that can belong to it. A password with a slash in it is found where there is no path with an @. */
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

/** A path may look like anything. */
function isPath(text: string): boolean {
  return /^(?:[~.]{0,2}[/\\]|[A-Za-z]:[\\/]|file:)/.test(text);
}

const WORDS = /(?<!sha\d{3}[:-])(?<![A-Za-z0-9])[A-Za-z0-9]{16,}(?![A-Za-z0-9])/g;
const UUIDS = /(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])/gi;
const MIXED = /(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{24,}/g;

/** What nobody would call anything: tokens without a maker's mark. */
function hideRandom(text: string): string {
  return text
    .replace(UUIDS, MASK)
    .replace(WORDS, (word) => (has(word, /\d/g, 2) && has(word, /[A-Za-z]/g, 2) ? MASK : word))
    .replace(MIXED, (word) => (has(word, /\d/g, 3) && has(word, /[A-Z]/g, 3) && has(word, /[a-z]/g, 3) ? MASK : word));
}

function has(text: string, pattern: RegExp, least: number): boolean {
  return (text.match(pattern)?.length ?? 0) >= least;
}
