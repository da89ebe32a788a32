/**
 * The references that config strings may hold: `${VAR}`, `${VAR:-default}`, `secret://provider/…` and
 * `${secret://provider/…}`, anywhere in a string. `$${` stands for a literal `${`. One pass from left to right; what a
 * reference resolves to is never read again as a reference, and a text that looks like a reference but is none is an
 * error, so none is ever passed on.
 */
import { ToolcribError } from "../model/errors.ts";
import { formOf, PROVIDER_NAMES, VARIABLE_NAME } from "./reference-forms.ts";

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
  /** What stands after `#`, where the provider has such a thing. */
  readonly field?: string;
}

export type Reference = VariableReference | SecretReference;

/** A string split into what stands for itself and what must be looked up. */
export type Part = string | Reference;

const OPENING = /\$\$\{|\$\{|secret:\/\//gi;
const SCHEME = "secret://";
const PROVIDER = /([A-Za-z0-9+.-]*)(\/?)/y;
const REST_OF_REFERENCE = /[^\s"'`,;<>{}|\\^]{0,120}/y;
/** Longer than any name that a provider takes, and short enough that checking it costs nothing. */
const LONGEST = 4096;
/** How much of a broken reference an error shows. */
const SHOWN = 160;
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
export function holdsReference(text: string): boolean {
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match !== null; match = OPENING.exec(text)) {
    if (match[0] !== "$${") return true;
  }
  return false;
}

/** The well-formed references of a text; none for a text with a broken one. */
export function findReferences(text: string): Reference[] {
  try {
    return parseReferences(text).filter((part) => typeof part !== "string");
  } catch {
    return [];
  }
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
    throw broken(text.slice(start, start + 40), "is not closed with }", "Write `$${` for a literal `${`.");
  const whole = text.slice(start, end + 1);
  const inner = whole.slice(2, -1);
  return inner.slice(0, SCHEME.length).toLowerCase() === SCHEME
    ? delimitedSecret(whole, inner)
    : variable(whole, inner);
}

function variable(whole: string, inner: string): Reference {
  const split = inner.indexOf(":-");
  const name = split === -1 ? inner : inner.slice(0, split);
  if (!VARIABLE_NAME.test(name)) throw broken(whole, "is no valid reference", HINT);
  if (split === -1) return { kind: "variable", text: whole, name };
  const fallback = inner.slice(split + 2);
  // Resolving it would need a grammar with nesting; leaving it would hand the reference's text to the server.
  if (holdsReference(fallback)) throw broken(whole, "holds a reference in its default", "A default is plain text.");
  return { kind: "variable", text: whole, name, fallback };
}

function delimitedSecret(whole: string, inner: string): Reference {
  const rest = inner.slice(SCHEME.length);
  // A default would be the opposite of failing closed.
  if (rest.includes(":-"))
    throw broken(whole, "has a default, which a secret cannot have", "Leave out `:-` and what follows.");
  const slash = rest.indexOf("/");
  return secret(whole, slash === -1 ? rest : rest.slice(0, slash), slash === -1 ? "" : rest.slice(slash + 1));
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
  return secret(text.slice(start, from) + path + rest, provider, rest);
}

function secret(text: string, provider: string, rest: string): SecretReference {
  const form = formOf(provider);
  if (form === undefined) throw unknownProvider(text, provider);
  if (rest.length > LONGEST) throw broken(text, "is too long", `A reference has at most ${LONGEST} characters.`);
  const hash = form.hasField ? rest.indexOf("#") : -1;
  const path = hash === -1 ? rest : rest.slice(0, hash);
  const field = hash === -1 ? undefined : rest.slice(hash + 1);
  const isWhole = form.path.test(path) && (field === undefined || form.field?.test(field) === true);
  if (!isWhole) throw broken(text, "is no complete reference", `Write ${form.example}.`);
  return { kind: "secret", text, provider, path, field };
}

function unknownProvider(reference: string, provider: string): ToolcribError {
  const why = `names the secret provider ${JSON.stringify(provider.slice(0, SHOWN))}, which does not exist`;
  return broken(reference, why, `Providers are ${PROVIDER_NAMES.join(", ")}.`);
}

function broken(reference: string, why: string, hint: string): ToolcribError {
  const shown = reference.length > SHOWN ? `${reference.slice(0, SHOWN)}…` : reference;
  return new ToolcribError("invalid_config", `${shown} ${why}`, { hint, details: { reference: shown } });
}
