/**
 * The references in config strings: `${VAR}`, `${VAR:-default}`, `secret://provider/…` and
 * `${secret://provider/…}`, anywhere in a string. `$${` stands for a literal `${`. One pass from left to right; what a
 * reference resolves to is never read again as a reference, and a text that looks like a reference but is none is an
 * error, so none is ever passed on.
 */
import { ToolcribError } from "../model/errors.ts";

export interface VariableReference {
  readonly kind: "variable";
  readonly text: string;
  readonly name: string;
  readonly fallback?: string;
}

export interface SecretReference {
  readonly kind: "secret";
  /** As it was written, for messages. */
  readonly text: string;
  readonly provider: string;
  readonly path: string;
  /** The part after `#`, if the provider has one. */
  readonly field?: string;
}

export type Reference = VariableReference | SecretReference;

/** A piece of a string: literal text, or a reference to look up. */
export type Part = string | Reference;

const OPENING = /\$\$\{|\$\{|secret:\/\//gi;
const SCHEME = "secret://";
const PROVIDER = /([A-Za-z0-9+.-]*)(\/?)/y;
const REST_OF_REFERENCE = /[^\s"'`,;<>{}|\\^]{0,120}/y;
/** Longer than any name that a provider takes, and short enough that checking it costs nothing. */
const MAX_REFERENCE_LENGTH = 4096;
/** How much of a broken reference an error shows. */
const MAX_SHOWN_LENGTH = 160;
const HINT =
  "Allowed are ${VAR}, ${VAR:-default}, secret://provider/… and ${secret://provider/…}; write `$${` for a literal `${`.";

/** Throws `invalid_config`, naming the reference, for one that can never resolve. */
export function parseReferences(text: string): Part[] {
  const parts: Part[] = [];
  let literal = "";
  let position = 0;
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match !== null; match = OPENING.exec(text)) {
    literal += text.slice(position, match.index);
    if (match[0] === "$${") {
      literal += "${";
      position = OPENING.lastIndex;
      continue;
    }
    const reference = match[0] === "${" ? readBraces(text, match.index) : readBare(text, match.index);
    if (literal !== "") parts.push(literal);
    literal = "";
    parts.push(reference);
    position = match.index + reference.text.length;
    OPENING.lastIndex = position;
  }
  literal += text.slice(position);
  if (literal !== "" || parts.length === 0) parts.push(literal);
  return parts;
}

/** True for any text that begins like a reference, a broken one too. */
export function hasReference(text: string): boolean {
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match !== null; match = OPENING.exec(text)) {
    if (match[0] !== "$${") return true;
  }
  return false;
}

/** Undefined for a text with a broken reference. */
export function tryParseReferences(text: string): Part[] | undefined {
  try {
    return parseReferences(text);
  } catch {
    return undefined;
  }
}

/** The well-formed references of a text; none for a text with a broken one. */
export function findReferences(text: string): Reference[] {
  return (tryParseReferences(text) ?? []).filter((part) => typeof part !== "string");
}

/** The shortest way to write a reference that is read back as the same one. */
export function writeReference(provider: string, path: string): string {
  const bare = `${SCHEME}${provider}/${path}`;
  const [first, ...rest] = findReferences(bare);
  return first?.text === bare && rest.length === 0 ? bare : `\${${bare}}`;
}

function readBraces(text: string, start: number): Reference {
  const end = text.indexOf("}", start);
  if (end === -1)
    throw invalidReference(text.slice(start, start + 40), "is not closed with }", "Write `$${` for a literal `${`.");
  const whole = text.slice(start, end + 1);
  const inner = whole.slice(2, -1);
  return inner.slice(0, SCHEME.length).toLowerCase() === SCHEME
    ? delimitedSecret(whole, inner)
    : variableReference(whole, inner);
}

function variableReference(whole: string, inner: string): Reference {
  const split = inner.indexOf(":-");
  const name = split === -1 ? inner : inner.slice(0, split);
  if (!VARIABLE_NAME.test(name)) throw invalidReference(whole, "is not a valid reference", HINT);
  if (split === -1) return { kind: "variable", text: whole, name };
  const fallback = inner.slice(split + 2);
  // Resolving it would need a grammar with nesting; leaving it would hand the reference's text to the server.
  if (hasReference(fallback))
    throw invalidReference(whole, "has a reference in its default", "A default is plain text.");
  return { kind: "variable", text: whole, name, fallback };
}

function delimitedSecret(whole: string, inner: string): Reference {
  const rest = inner.slice(SCHEME.length);
  // A default would be the opposite of failing closed.
  if (rest.includes(":-"))
    throw invalidReference(whole, "has a default, which a secret cannot have", "Leave out `:-` and what follows.");
  const slash = rest.indexOf("/");
  return secretReference(whole, slash === -1 ? rest : rest.slice(0, slash), slash === -1 ? "" : rest.slice(slash + 1));
}

function readBare(text: string, start: number): Reference {
  const from = start + SCHEME.length;
  PROVIDER.lastIndex = from;
  const [path = "", provider = "", slash = ""] = PROVIDER.exec(text) ?? [];
  const form = formOf(provider);
  if (form === undefined) {
    REST_OF_REFERENCE.lastIndex = from;
    throw unknownProvider(text.slice(start, from) + (REST_OF_REFERENCE.exec(text)?.[0] ?? ""), provider);
  }
  form.bare.lastIndex = from + path.length;
  const rest = slash === "" ? "" : (form.bare.exec(text)?.[0] ?? "");
  return secretReference(text.slice(start, from) + path + rest, provider, rest);
}

function secretReference(text: string, provider: string, rest: string): SecretReference {
  const form = formOf(provider);
  if (form === undefined) throw unknownProvider(text, provider);
  if (rest.length > MAX_REFERENCE_LENGTH)
    throw invalidReference(text, "is too long", `A reference has at most ${MAX_REFERENCE_LENGTH} characters.`);
  const hash = form.hasField ? rest.indexOf("#") : -1;
  const path = hash === -1 ? rest : rest.slice(0, hash);
  const field = hash === -1 ? undefined : rest.slice(hash + 1);
  const isWhole = form.path.test(path) && (field === undefined || form.field?.test(field) === true);
  if (!isWhole) throw invalidReference(text, "is not a complete reference", `Write ${form.example}.`);
  return { kind: "secret", text, provider, path, field };
}

function unknownProvider(reference: string, provider: string): ToolcribError {
  const why = `names the secret provider ${JSON.stringify(provider.slice(0, MAX_SHOWN_LENGTH))}, which does not exist`;
  return invalidReference(reference, why, `Providers are ${PROVIDER_NAMES.join(", ")}.`);
}

function invalidReference(reference: string, why: string, hint: string): ToolcribError {
  const shown = reference.length > MAX_SHOWN_LENGTH ? `${reference.slice(0, MAX_SHOWN_LENGTH)}…` : reference;
  return new ToolcribError("invalid_config", `${shown} ${why}`, { hint, details: { reference: shown } });
}

// The form of a reference to each provider: where it ends inside a longer text, and what it may contain.

interface Form {
  /** As the documentation and messages write it. */
  readonly example: string;
  /** Matches the path of a reference without `${…}` around it; sticky. */
  readonly bare: RegExp;
  /** Whether `#` begins a field, a key or a version. */
  readonly hasField: boolean;
  readonly path: RegExp;
  readonly field?: RegExp;
}

/** Ends at white space, quotes and everything that closes or separates something in URLs, JSON, shells and headers. */
const BARE = /[^\s"'`,;<>()[\]{}|\\^$&?]*/y;
/** Control characters have no business in a name, and would forge lines in messages. */
// oxlint-disable-next-line no-control-regex
const ANY = /^[^\u0000-\u001f\u007f]+$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const ENV_FORM: Form = { example: "secret://env/NAME", bare: /[A-Za-z0-9_]*/y, hasField: false, path: VARIABLE_NAME };

const FORMS: Readonly<Record<string, Form>> = {
  env: ENV_FORM,
  file: { example: "secret://file/path", bare: BARE, hasField: false, path: ANY },
  vault: {
    example: "secret://vault/mount/path#field",
    bare: BARE,
    hasField: true,
    // No empty, `.` or `..` part: a URL would swallow them and name another secret.
    path: /^(?!\.{1,2}(?:\/|$))[^/\s]+(?:\/(?!\.{1,2}(?:\/|$))[^/\s]+)+$/,
    field: ANY,
  },
  aws: {
    example: "secret://aws/name#jsonkey",
    bare: BARE,
    hasField: true,
    path: /^[A-Za-z0-9/_+=.@:][A-Za-z0-9/_+=.@:!-]*$/,
    field: ANY,
  },
  gcp: {
    example: "secret://gcp/[project/]name[#version]",
    bare: BARE,
    hasField: true,
    path: /^(?:[a-z0-9][a-z0-9.:-]*\/)?[A-Za-z0-9_][A-Za-z0-9_-]*$/,
    field: /^[A-Za-z0-9_][A-Za-z0-9_-]*$/,
  },
  // The last slash divides, because a service is often a URL.
  keychain: {
    example: "secret://keychain/service/account",
    bare: BARE,
    hasField: false,
    path: /^[^\u0000-\u001f\u007f-][^\u0000-\u001f\u007f]*\/[^/\u0000-\u001f\u007f-][^/\u0000-\u001f\u007f]*$/,
  }, // oxlint-disable-line no-control-regex
  exec: {
    example: "secret://exec/name[/argument]",
    bare: BARE,
    hasField: false,
    path: /^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[^-\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*)?$/,
  }, // oxlint-disable-line no-control-regex
  user: { ...ENV_FORM, example: "secret://user/NAME" },
  store: {
    example: "secret://store/name",
    bare: /[A-Za-z0-9_.@/-]*/y,
    hasField: false,
    path: /^[A-Za-z0-9_][A-Za-z0-9_.@-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.@-]*)*$/,
  },
};

function formOf(provider: string): Form | undefined {
  return Object.hasOwn(FORMS, provider) ? FORMS[provider] : undefined;
}

const PROVIDER_NAMES: readonly string[] = Object.keys(FORMS);
