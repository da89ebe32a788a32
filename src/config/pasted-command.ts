/** Command lines: one that starts a server, or one that adds a server to another program. */
import { parse as parseJsonc } from "jsonc-parser";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";

export interface NamedEntry {
  /** The name that was written; proposed from the entry if absent. */
  readonly id?: string;
  readonly entry: JsonObject;
  readonly warnings?: readonly string[];
}

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;

export function parseCommandLine(words: readonly string[]): NamedEntry {
  const env: Record<string, string> = {};
  let start = words[0] === "env" ? 1 : 0;
  for (; start < words.length; start++) {
    const [, name, value] = ASSIGNMENT.exec(words[start] ?? "") ?? [];
    if (name === undefined || value === undefined) break;
    env[name] = value;
  }
  const rest = words.slice(start);
  const adding = addingArguments(rest);
  if (adding !== undefined) return addedEntry(adding, env);
  const [command, ...args] = rest;
  if (command === undefined) throw notUnderstoodError("it names variables and no program");
  return { entry: { ...targetOf(command, args), ...unlessEmpty("env", env) } };
}

/** `claude mcp add …`, `codex mcp add …`, `gemini mcp add …`, `toolcrib add …`, `code --add-mcp …`: what follows. */
function addingArguments(words: readonly string[]): readonly string[] | undefined {
  const [program = "", second, third] = words;
  const name =
    program
      .split(/[/\\]/)
      .at(-1)
      ?.replace(/\.(?:exe|cmd)$/i, "") ?? "";
  if (["claude", "codex", "gemini", "qwen"].includes(name) && second === "mcp") {
    return third === "add" || third === "add-json" ? words.slice(3) : undefined;
  }
  if (name === "toolcrib" && second === "add") return words.slice(2);
  return /^code(?:-insiders)?$/.test(name) && second === "--add-mcp" ? words.slice(2) : undefined;
}

/** Options that take a value and say nothing about the server. */
const IGNORED = new Set(["-s", "--scope", "--callback-port", "--client-id", "--config"]);

interface Draft {
  readonly env: Record<string, string>;
  readonly headers: Record<string, string>;
  transport?: string;
  url?: string;
}

function addedEntry(given: readonly string[], before: Readonly<Record<string, string>>): NamedEntry {
  const draft: Draft = { env: { ...before }, headers: {} };
  const plain: string[] = [];
  let at = 0;
  const next = (option: string): string => {
    const value = given[++at];
    if (value === undefined) throw notUnderstoodError(`${option} is followed by nothing`);
    return value;
  };
  // After the name and the program, every word belongs to the program.
  for (; at < given.length && plain.length < 2; at++) {
    const word = given[at] ?? "";
    const [, long, inline] = /^(--[a-z-]+)=(.*)$/s.exec(word) ?? [];
    const option = long ?? word;
    const value = (): string => inline ?? next(option);
    if (word === "--") {
      plain.push(...given.slice(at + 1));
      at = given.length;
    } else if (option === "-e" || option === "--env") at = takePairs(value(), given, at, addVariable(draft));
    else if (option === "-H" || option === "--header") addHeader(draft, value());
    else if (option === "-t" || option === "--transport") draft.transport = value();
    else if (option === "--url") draft.url = value();
    else if (option === "--bearer-token-env-var") draft.headers["Authorization"] = `Bearer \${${value()}}`;
    else if (IGNORED.has(option)) value();
    else if (!word.startsWith("-")) plain.push(word);
  }
  plain.push(...given.slice(at));
  return finishEntry(plain, draft);
}

/** Some programs take several after one option: `-e A=1 B=2`. */
function takePairs(first: string, given: readonly string[], at: number, add: (pair: string) => void): number {
  add(first);
  let last = at;
  while (ASSIGNMENT.test(given[last + 1] ?? "")) add(given[++last] ?? "");
  return last;
}

function addVariable({ env }: Draft): (pair: string) => void {
  return (pair) => {
    const [, name, value] = ASSIGNMENT.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw notUnderstoodError("an option for a variable has no NAME=value");
    env[name] = value;
  };
}

function addHeader({ headers }: Draft, text: string): void {
  const [, name, value] = /^([\w-]+)\s*[:=]\s*(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw notUnderstoodError("an option for a header has no Name: value");
  headers[name] = value;
}

function finishEntry(plain: readonly string[], { env, headers, transport, url }: Draft): NamedEntry {
  const [name, target, ...args] = plain;
  const json = [name, target].find((word) => word?.trimStart().startsWith("{") === true);
  if (json !== undefined) {
    const entry: unknown = parseJsonc(json);
    if (!isJsonObject(entry)) throw notUnderstoodError("what follows the name is not a JSON object");
    const id = json === name ? entry["name"] : name;
    return typeof id === "string" ? { id, entry } : { entry };
  }
  if (name === undefined) throw notUnderstoodError("the name of the server is missing");
  const address = url ?? target;
  if (address === undefined) throw notUnderstoodError("neither a program nor an address follows the name");
  return {
    id: name,
    entry: {
      ...(url === undefined ? targetOf(address, args) : { url }),
      ...(transport === undefined ? {} : { type: transport }),
      ...unlessEmpty("env", env),
      ...unlessEmpty("headers", headers),
    },
  };
}

function targetOf(target: string, args: readonly string[]): JsonObject {
  if (/^https?:\/\//i.test(target)) return { url: target };
  return { command: target, ...(args.length === 0 ? {} : { args: [...args] }) };
}

function unlessEmpty(key: string, record: Readonly<Record<string, string>>): JsonObject {
  return Object.keys(record).length === 0 ? {} : { [key]: record };
}

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
      throw notUnderstoodError(`the command line contains ${JSON.stringify(operator)}, which only a shell understands`);
    }
    const [taken, value] = readPiece(rest);
    word = (word ?? "") + value;
    at += taken;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** How many characters it takes, and what they mean. */
function readPiece(rest: string): [number, string] {
  const char = rest.charAt(0);
  if (char === "'") {
    const end = rest.indexOf("'", 1);
    if (end === -1) throw notUnderstoodError("a single quote is not closed");
    return [end + 1, rest.slice(1, end)];
  }
  if (char === '"') return doubleQuoted(rest);
  if (char === "\\") return [2, rest.charAt(1)];
  return char === "$" ? readVariable(rest) : [1, char];
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
    const [taken, text] = char === "$" ? readVariable(rest.slice(at)) : [1, char];
    value += text;
    at += taken;
  }
  throw notUnderstoodError("a double quote is not closed");
}

function readVariable(rest: string): [number, string] {
  const [bare, name] = /^\$([A-Za-z_]\w*)/.exec(rest) ?? [];
  if (bare !== undefined && name !== undefined) return [bare.length, `\${${name}}`];
  const [braces] = /^\$\{[^{}]*\}/.exec(rest) ?? [];
  return braces === undefined ? [1, "$"] : [braces.length, braces];
}

export function notUnderstoodError(what: string, hint?: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `The text is not understood: ${what}.`, {
    hint: hint ?? "Paste a command line, an address, or an entry as JSON, YAML or TOML.",
  });
}
