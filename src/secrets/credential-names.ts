/** Guesses from a key's name whether its value is a credential. A guess only warns and masks; it never refuses. */
import { hasReference } from "./secret-references.ts";

const CREDENTIAL_WORDS = new Set(
  `apikey authorization bearer cookie credential credentials passphrase passwd password secret secrets token`.split(
    /\s+/,
  ),
);

/** Count only as the last word: `DB_PASS`, `GITHUB_PAT`, `X-Auth`, `DB_PWD`; not `PASS_THROUGH`. */
const FINAL_CREDENTIAL_WORDS = new Set(["auth", "pass", "pat", "pwd"]);

/** Endings of words run together: `GITHUBTOKEN`, `dbpassword`. */
const CREDENTIAL_SUFFIX = /(?:token|secret|password|passwd|apikey|accesskey|secretkey|privatekey)$/;

/** A last word that says the value is about a credential and is none itself: `TOKEN_URL`, `PASSWORD_FILE`. */
const DESCRIPTIVE_WORDS = new Set(
  `algorithm budget count dir enabled endpoint expires expiry file format header id length limit max min mode name
  path policy prefix provider region required size store timeout ttl type uri url usage version`.split(/\s+/),
);

/** A key of this kind opens nothing. */
const HARMLESS_KEYS = new Set(["cache", "foreign", "hot", "index", "partition", "primary", "public", "sort", "unique"]);

const COUNTED_TOKENS = new Set(["completion", "context", "input", "max", "min", "num", "output", "prompt", "total"]);

/** Does this name of a variable, header, flag or query parameter look like that of a credential? */
export function isCredentialName(name: string): boolean {
  const words = wordsOf(name);
  const last = words.at(-1);
  // PWD alone is the working directory.
  if (last === undefined || (words.length === 1 && last === "pwd")) return false;
  if (words.length > 1 && DESCRIPTIVE_WORDS.has(last)) return false;
  if (FINAL_CREDENTIAL_WORDS.has(last)) return true;
  if (last === "key") return !HARMLESS_KEYS.has(words.at(-2) ?? "");
  if (last === "keys") return words.at(-2) === "api";
  if (last === "tokens") return !words.some((word) => COUNTED_TOKENS.has(word));
  return words.some((word) => CREDENTIAL_WORDS.has(word) || CREDENTIAL_SUFFIX.test(word));
}

/** That of `postgres://me:password@host/db`, anywhere in a text; empty if there is none. */
export function passwordIn(text: string): string {
  return /[a-z][\w+.-]{0,20}:\/\/[^\s/?#@:]*:([^\s/?#@]+)@/i.exec(text)?.[1] ?? "";
}

/** Is this value written out, where a reference should be? Switches such as `true` or `0` are not credentials. */
export function isPlainText(value: string): boolean {
  const text = value.trim();
  if (text === "" || /^(?:true|false|yes|no|on|off|none|null|\d)$/i.test(text)) return false;
  if (/^(?:bearer|basic|token)$/i.test(text)) return false;
  return !hasReference(text);
}

/** `githubAPIKey`, `X-Api-Key` and `GITHUB_API_KEY` as lower-case words. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/(?<![A-Z])([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
}
