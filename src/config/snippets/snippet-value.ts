/** The value of a pasted text, whichever notation it is in; undefined if it is none of them. */
import { TextSyntaxError, editorFor } from "../../files/edit/editor.ts";
import { Document } from "../document.ts";
import { notUnderstood } from "./shell-words.ts";

/** `[mcp_servers.files]` on a line of its own. */
const TOML_TABLE = /^[ \t]*\[{1,2}[\w. \t"'-]+\]{1,2}[ \t]*(?:#.*)?$/m;
/** Not `NAME=value`, which begins a command line. */
const TOML_PAIR = /^[\w."-]+\s+=\s/;

/**
 * What the parsers take too long for, or more room than there is: a key of TOML with many dots, a map of YAML with many
 * keys. No server has either.
 */
const MOST_STEPS = 64;
const MOST_PAIRS = 2000;

export function snippetValue(text: string): unknown {
  const isToml = TOML_TABLE.test(text) || TOML_PAIR.test(text);
  if (/^[{[]/.test(text) && !isToml) return jsonValue(text);
  // `"files": { … }`, cut out of a file.
  if (/^"[^"\n]+"\s*:\s*\{/.test(text)) return jsonValue(`{${text.replace(/,\s*$/, "")}}`);
  if (isToml) {
    if (text.split(/[\n=,{]/).some((part) => count(part, /\./g) > MOST_STEPS)) throw notUnderstood("it nests too deep");
    const value = parsedAs("toml", text);
    return value instanceof TextSyntaxError ? refuse("TOML", value) : value;
  }
  if (!/^(?:-\s+)?["']?[\w.@ -]+["']?\s*:(?:\s|$)/.test(text)) return undefined;
  if (count(text, /[:,?]/g) > MOST_PAIRS) throw notUnderstood("it has too many keys");
  const value = parsedAs("yaml", text);
  return value instanceof TextSyntaxError ? refuse("YAML", value) : value;
}

function count(text: string, mark: RegExp): number {
  return text.match(mark)?.length ?? 0;
}

function jsonValue(text: string): unknown {
  const document = Document.parse("snippet", text);
  if (document.errors.length === 0) return document.value;
  const lenient = Document.parseJson5("snippet", text);
  if (lenient !== undefined) return lenient.value;
  const [error] = document.errors;
  const place = error === undefined ? "" : ` in line ${error.line}, column ${error.column}: ${error.message}`;
  throw notUnderstood(`it begins like JSON and is none${place}`);
}

function parsedAs(format: "yaml" | "toml", text: string): unknown {
  try {
    return editorFor(format).parse(text);
  } catch (error) {
    if (error instanceof TextSyntaxError) return error;
    throw error;
  }
}

function refuse(format: string, { message }: TextSyntaxError): never {
  throw notUnderstood(`it looks like ${format} and is none, ${message}`);
}
