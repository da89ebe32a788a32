/** A command line as a person copies it from a page, split the way a shell would, without running anything. */
import { ToolcribError } from "../../model/errors.ts";

/** Operators whose meaning only a shell knows. */
const OPERATORS = /^(?:&&|\|\||[|;&<>()`])/;

/** `$NAME` becomes the reference `${NAME}`, where a shell would replace it. */
export function shellWords(line: string): string[] {
  const text = line.replace(/\\\r?\n/g, " ");
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const char = rest.charAt(0);
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
      continue;
    }
    const operator = OPERATORS.exec(rest)?.[0] ?? (rest.startsWith("$(") ? "$(" : undefined);
    if (operator !== undefined) {
      throw notUnderstood(`the command line holds ${JSON.stringify(operator)}, which only a shell understands`);
    }
    const [taken, value] = piece(rest);
    word = (word ?? "") + value;
    at += taken;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** How many characters it takes, and what they mean. */
function piece(rest: string): [number, string] {
  const char = rest.charAt(0);
  if (char === "'") {
    const end = rest.indexOf("'", 1);
    if (end === -1) throw notUnderstood("a single quote is not closed");
    return [end + 1, rest.slice(1, end)];
  }
  if (char === '"') return doubleQuoted(rest);
  if (char === "\\") return [2, rest.charAt(1)];
  return char === "$" ? variable(rest) : [1, char];
}

function doubleQuoted(rest: string): [number, string] {
  let value = "";
  for (let at = 1; at < rest.length;) {
    const char = rest.charAt(at);
    if (char === '"') return [at + 1, value];
    if (char === "\\" && /["\\$`]/.test(rest.charAt(at + 1))) {
      value += rest.charAt(at + 1);
      at += 2;
      continue;
    }
    const [taken, text] = char === "$" ? variable(rest.slice(at)) : [1, char];
    value += text;
    at += taken;
  }
  throw notUnderstood("a double quote is not closed");
}

function variable(rest: string): [number, string] {
  const [bare, name] = /^\$([A-Za-z_]\w*)/.exec(rest) ?? [];
  if (bare !== undefined && name !== undefined) return [bare.length, `\${${name}}`];
  const [braces] = /^\$\{[^{}]*\}/.exec(rest) ?? [];
  return braces === undefined ? [1, "$"] : [braces.length, braces];
}

export function notUnderstood(what: string, hint?: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `The text is not understood: ${what}.`, {
    hint: hint ?? "Paste a command line, an address, or an entry as JSON, YAML or TOML.",
  });
}
