/** The parts of a call's arguments that a person should look at before approving it. Nothing is read: links are not followed. */
import { posix, win32 } from "node:path";
import type { JsonObject } from "../model/json.ts";

export type Risk = "outside" | "host" | "shell" | "rule";

export interface RiskyPart {
  readonly risk: Risk;
  /** Keys and indexes that lead to the value. */
  readonly at: (string | number)[];
  /** The part of a text; the whole value if absent. */
  readonly from?: number;
  readonly to?: number;
}

export interface RiskContext {
  /** Folders that the caller works in. Without any, no path is outside. */
  readonly roots: readonly string[];
  /** Of the server that is called; undefined if it is not at an address. */
  readonly host?: string | undefined;
  /** Names of the arguments that the rules look at. */
  readonly looked: readonly string[];
}

const MAX_PARTS = 200;
const MAX_DEPTH = 20;
const MAX_TEXT = 100_000;

export function riskyParts(args: Readonly<JsonObject>, context: RiskContext): RiskyPart[] {
  const looked = new Set(context.looked.map((name) => (/^[^.[]*/.exec(name)?.[0] ?? name).toLowerCase()));
  const parts: RiskyPart[] = [];
  const visit = (value: unknown, at: (string | number)[], key: string): void => {
    if (parts.length >= MAX_PARTS || at.length > MAX_DEPTH) return;
    if (typeof value === "string") parts.push(...textRisks(value.slice(0, MAX_TEXT), at, key, context));
    // An entry of a list belongs to the key of the list: `args: ["-rf", "/"]`.
    else if (Array.isArray(value)) value.forEach((each, index) => visit(each, [...at, index], key));
    else if (typeof value === "object" && value !== null)
      for (const [name, each] of Object.entries(value)) visit(each, [...at, name], name);
  };
  for (const [name, value] of Object.entries(args)) {
    if (looked.has(name.toLowerCase())) parts.push({ risk: "rule", at: [name] });
    visit(value, [name], name);
  }
  return parts.slice(0, MAX_PARTS);
}

/** Keys whose text is run by a shell, or by something like one. */
const COMMAND_KEY =
  /^(?:cmd|command|commands|script|shell|bash|code|args|argv)$|_(?:cmd|command|script)$|[a-z](?:Command|Script)$/;
const PATH_KEY = /path|file|dir|folder|cwd|root|source|destination|target/i;

function textRisks(text: string, at: (string | number)[], key: string, context: RiskContext): RiskyPart[] {
  const isCommand = COMMAND_KEY.test(key);
  const addresses = addressesIn(text);
  const isCovered = (from: number): boolean => addresses.some((each) => each.from <= from && from < each.to);
  const part = (risk: Risk, from: number, to: number): RiskyPart => ({ risk, at, from, to });
  return [
    ...addresses
      .filter(({ host }) => host !== "" && host !== context.host?.toLowerCase())
      .map(({ from, to }) => part("host", from, to)),
    ...pathsIn(text, { isCommand, isPath: PATH_KEY.test(key) })
      .filter(({ from, path }) => !isCovered(from) && isOutside(path, context.roots))
      .map(({ from, to }) => part("outside", from, to)),
    ...addresses
      .filter(({ file }) => file !== undefined && isOutside(file, context.roots))
      .map(({ from, to }) => part("outside", from, to)),
    ...shellIn(text, isCommand)
      .filter(({ from }) => !isCovered(from))
      .map(({ from, to }) => part("shell", from, to)),
  ].toSorted((a, b) => (a.from ?? 0) - (b.from ?? 0));
}

interface Address {
  readonly from: number;
  readonly to: number;
  /** In lower case, with its port; empty for a file. */
  readonly host: string;
  readonly file?: string;
}

function addressesIn(text: string): Address[] {
  const found = [...text.matchAll(/\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'`<>{}|\\^]+/gi)].slice(0, MAX_PARTS);
  return found.map(({ 0: word, index: from }) => {
    const written = withoutPunctuation(word);
    const url = URL.parse(written);
    const isFile = url?.protocol === "file:";
    const place = { from, to: from + written.length, host: isFile ? "" : (url?.host ?? written) };
    return isFile ? { ...place, file: decoded(url.pathname) } : place;
  });
}

/** Of the sentence that it is in. */
function withoutPunctuation(word: string): string {
  let end = word.length;
  while (end > 0 && ").,;:!?]".includes(word[end - 1] ?? " ")) end -= 1;
  return word.slice(0, end);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

interface FoundPath {
  readonly from: number;
  readonly to: number;
  readonly path: string;
}

interface TextKind {
  readonly isCommand: boolean;
  readonly isPath: boolean;
}

const BEGINS_PATH = /^(?:~(?:$|[/\\])|\/|\.\.?(?:$|[/\\])|[A-Za-z]:[\\/]|\\\\)/;
const CLIMBS = /(?:^|[/\\])\.\.(?:[/\\]|$)/;

/** A text that is a path, or the paths among its words. */
function pathsIn(text: string, { isCommand, isPath }: TextKind): FoundPath[] {
  const isLine = !/[\r\n]/.test(text);
  if (!isCommand && isLine && (BEGINS_PATH.test(text) || isPath)) return [{ from: 0, to: text.length, path: text }];
  return [...text.matchAll(/[^\s"'`=,;|&<>()]+/g)].flatMap((match) => {
    const [word] = match;
    const { index: from } = match;
    // `/help` in a message is not a path of this machine.
    const isMeant = isCommand || /^~[/\\]|.[/\\]/.test(word);
    if (!isMeant || !(BEGINS_PATH.test(word) || CLIMBS.test(word))) return [];
    return [{ from, to: from + word.length, path: word }];
  });
}

function isOutside(path: string, roots: readonly string[]): boolean {
  const [first] = roots;
  if (first === undefined || path === "") return false;
  // What `~` means is the server's to say.
  if (path.startsWith("~")) return true;
  const isWindows = win32.isAbsolute(first) && !first.startsWith("/");
  const { resolve, relative, isAbsolute } = isWindows ? win32 : posix;
  // A drive or a share is not on this machine.
  if (!isWindows && /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path)) return true;
  const full = resolve(first, isWindows ? path : path.replaceAll("\\", "/"));
  return roots.every((root) => {
    const way = relative(root, full);
    return way === ".." || /^\.\.[/\\]/.test(way) || isAbsolute(way);
  });
}

/** Everything that a shell acts on. */
const SHELL = /\$[({]|[;|&<>`\r\n]+/g;
/** In a text that is not known to be a command, only what hardly means anything else. */
const LIKELY_SHELL =
  /\$[({]|`|&&|\|\||[;|] *(?=(?:bash|cat|chmod|cp|curl|dd|echo|env|eval|exec|kill|mv|nc|node|python3?|rm|scp|sh|ssh|sudo|tee|wget)\b)|>>? *(?=[~./])/g;

function shellIn(text: string, isCommand: boolean): { readonly from: number; readonly to: number }[] {
  // Backticks and bars are ordinary in prose and Markdown.
  if (!isCommand && /[\r\n]/.test(text)) return [];
  return [...text.matchAll(isCommand ? SHELL : LIKELY_SHELL)].map(({ 0: found, index: from }) => ({
    from,
    to: from + (found.trimEnd().length || found.length),
  }));
}
