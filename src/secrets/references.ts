/**
 * The references that config strings may hold: `${VAR}`, `${VAR:-default}` and `secret://env/NAME`, anywhere in a
 * string. `$${` stands for a literal `${`. One pass from left to right; what a reference resolves to is never read
 * again as a reference, and a text that looks like a reference but is none is an error, so none is ever passed on.
 */
import { ToolcribError } from "../model/errors.ts";

export type Reference =
  | { readonly kind: "variable"; readonly text: string; readonly name: string; readonly fallback?: string }
  | { readonly kind: "secret"; readonly text: string; readonly provider: string; readonly name: string };

/** A string split into what stands for itself and what must be looked up. */
type Part = string | Reference;

interface Resolved {
  readonly value: string;
  /** What was looked up, for the redactor. Defaults written in the file are not among them. */
  readonly looked: readonly { readonly reference: Reference; readonly value: string }[];
}

const OPENING = /\$\$\{|\$\{|secret:\/\//gi;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const SECRET_PATH = /([A-Za-z0-9+.-]*)(\/?)([A-Za-z0-9_]*)/y;
/** How much of a foreign provider's reference an error shows. */
const REST_OF_REFERENCE = /[^\s"'`,;<>{}|\\^]{0,120}/y;

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
    const reference = match[0] === "${" ? readVariable(text, match.index) : readSecret(text, match.index);
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

/**
 * Resolves every reference of a text, or throws `invalid_config` that names the reference and never a value.
 *
 * `await resolveReferences("Bearer ${TOKEN}", { TOKEN: "t" })` gives `{ value: "Bearer t", … }`.
 */
export async function resolveReferences(text: string, env: NodeJS.ProcessEnv): Promise<Resolved> {
  let value = "";
  const looked: { reference: Reference; value: string }[] = [];
  for (const part of parseReferences(text)) {
    if (typeof part === "string") {
      value += part;
      continue;
    }
    const found = lookUp(part, env);
    if (found !== undefined) looked.push({ reference: part, value: found });
    value += found ?? fallbackOf(part);
  }
  return { value, looked };
}

/** The value; undefined where the default of the file counts. */
function lookUp(reference: Reference, env: NodeJS.ProcessEnv): string | undefined {
  const value = env[reference.name];
  if (reference.kind === "variable") {
    // Like a shell: `:-` counts an empty variable as unset, plain `${VAR}` does not.
    if (reference.fallback !== undefined) return value === "" ? undefined : value;
    if (value === undefined) throw unresolved(reference, `${reference.text} is not set`);
    return value;
  }
  if (value === undefined) throw unresolved(reference, `${reference.text} is not set`);
  if (value === "") throw unresolved(reference, `${reference.text} is empty`);
  return value;
}

function fallbackOf(reference: Reference): string {
  return reference.kind === "variable" ? (reference.fallback ?? "") : "";
}

function readVariable(text: string, start: number): Reference {
  const end = text.indexOf("}", start);
  if (end === -1) throw broken(text.slice(start, start + 40), "is not closed with }", "Write `$${` for a literal `${`.");
  const whole = text.slice(start, end + 1);
  const inner = whole.slice(2, -1);
  const split = inner.indexOf(":-");
  const name = split === -1 ? inner : inner.slice(0, split);
  if (!VARIABLE_NAME.test(name)) {
    throw broken(
      whole,
      "is no valid reference",
      "Allowed are ${VAR}, ${VAR:-default} and secret://env/NAME; write `$${` for a literal `${`.",
    );
  }
  if (split === -1) return { kind: "variable", text: whole, name };
  const fallback = inner.slice(split + 2);
  // Resolving it would need a grammar with nesting; leaving it would hand the reference's text to the server.
  if (holdsReference(fallback)) throw broken(whole, "holds a reference in its default", "A default is plain text.");
  return { kind: "variable", text: whole, name, fallback };
}

function readSecret(text: string, start: number): Reference {
  const from = start + "secret://".length;
  SECRET_PATH.lastIndex = from;
  const [path = "", provider = "", , name = ""] = SECRET_PATH.exec(text) ?? [];
  if (provider !== "env") {
    REST_OF_REFERENCE.lastIndex = from;
    const shown = text.slice(start, from) + (REST_OF_REFERENCE.exec(text)?.[0] ?? "");
    throw broken(
      shown,
      `names the secret provider ${JSON.stringify(provider)}, which is not built in this version`,
      "The provider that works is env: secret://env/NAME.",
    );
  }
  const whole = text.slice(start, from) + path;
  if (!VARIABLE_NAME.test(name)) throw broken(whole, "names no variable", "Write secret://env/NAME.");
  return { kind: "secret", text: whole, provider, name };
}

function broken(reference: string, why: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `${reference} ${why}`, { hint, details: { reference } });
}

function unresolved(reference: Reference, message: string): ToolcribError {
  return new ToolcribError("invalid_config", message, {
    hint: `Set ${reference.name} in the environment that Toolcrib runs in.`,
    details: { reference: reference.text },
  });
}
