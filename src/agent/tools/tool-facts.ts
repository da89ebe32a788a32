/** How a call is shown to people: its title, `Read text file notes.txt (files)`, its kind and the files it works on. */
import { isAbsolute, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../model/json.ts";
import type { ToolAnnotations, ToolDefinition } from "../../model/protocol.ts";
import type { ToolCallEvent, ToolKind } from "../agent-options.ts";

const MAX_TITLE_LENGTH = 100;
const MAX_NAME_LENGTH = 50;

/** The most informative arguments, best first. */
const TITLE_ARGUMENTS = [
  "path",
  "file_path",
  "filePath",
  "filename",
  "file",
  "uri",
  "url",
  "query",
  "pattern",
  "command",
  "cmd",
  "name",
  "title",
  "id",
];

interface TitledTool {
  readonly definition: ToolDefinition;
  /** Name of its server for people; undefined for tools of the hub and the session itself. */
  readonly server: string | undefined;
  readonly workspaceDir: string | undefined;
}

export function toolCallTitle({ definition, server, workspaceDir }: TitledTool, input: JsonObject): string {
  const name = oneLine(readableName(definition), MAX_NAME_LENGTH);
  const suffix = server === undefined ? "" : ` (${oneLine(server, MAX_NAME_LENGTH / 2)})`;
  const object = oneLine(titleObject(input, workspaceDir), MAX_TITLE_LENGTH - name.length - suffix.length - 1);
  return `${object === "" ? name : `${name} ${object}`}${suffix}`;
}

function readableName({ title, annotations, name }: ToolDefinition): string {
  const given = title ?? annotations?.title;
  if (typeof given === "string" && given.trim() !== "") return given;
  const [first = name, ...rest] = nameWords(name);
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
}

/** The object of the call. */
function titleObject(input: JsonObject, workspaceDir: string | undefined): string {
  const { source, destination } = input;
  if (typeof source === "string" && typeof destination === "string") {
    return `${shortPath(source, workspaceDir)} → ${shortPath(destination, workspaceDir)}`;
  }
  const telling = TITLE_ARGUMENTS.map((key) => input[key]).find(isText);
  const [only, another] = Object.values(input);
  const found = telling ?? (another === undefined && isText(only) ? only : undefined);
  return found === undefined ? "" : shortPath(found, workspaceDir);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function shortPath(text: string, workspaceDir: string | undefined): string {
  if (workspaceDir === undefined || !isAbsolute(text)) return text;
  const inside = relative(workspaceDir, text);
  return inside === "" || inside.startsWith("..") || isAbsolute(inside) ? text : inside;
}

const KIND_BY_WORD: ReadonlyMap<string, ToolKind> = new Map(
  Object.entries({
    read: "read list get show view describe load open cat stat info",
    search: "search find query grep lookup glob",
    edit: "write edit create update set add append insert put patch replace save modify make mkdir upload",
    delete: "delete remove drop destroy unlink rm purge clear erase",
    move: "move rename mv",
    execute: "run exec execute shell bash command eval start spawn",
    fetch: "fetch http download crawl browse navigate url web",
    think: "think plan reason",
  } satisfies Partial<Record<ToolKind, string>>).flatMap(([kind, words]) =>
    // The keys are kinds: `satisfies` checks them, and `Object.entries` forgets it.
    words.split(" ").map((word) => [word, kind as ToolKind] as const),
  ),
);

const CHANGING_KINDS: ReadonlySet<ToolKind> = new Set(["edit", "delete", "move", "execute"]);

/** By the first word of the name that implies a kind. Annotations take precedence over the name: a read-only tool changes nothing. */
export function toolKind(name: string, annotations: ToolAnnotations | undefined): ToolKind {
  const isReadOnly = annotations?.readOnlyHint === true;
  for (const word of nameWords(name)) {
    const kind = KIND_BY_WORD.get(word);
    if (kind === undefined || (isReadOnly && CHANGING_KINDS.has(kind))) continue;
    if (kind === "fetch" && annotations?.openWorldHint === false) return "read";
    return kind;
  }
  return isReadOnly ? "read" : "other";
}

const PATH_ARGUMENTS = [
  "path",
  "file_path",
  "filePath",
  "filename",
  "file",
  "source",
  "destination",
  "uri",
  "paths",
  "files",
];
const LINE_ARGUMENTS = ["line", "start_line", "startLine", "line_number", "lineNumber"];
const MAX_LOCATIONS = 20;
const MAX_PATH_LENGTH = 4096;

/** The files that a call works on, as far as its arguments say. */
export function toolCallLocations(input: JsonObject, workspaceDir: string | undefined): ToolCallEvent["locations"] {
  const line = LINE_ARGUMENTS.map((key) => input[key]).find(isLine);
  const paths = PATH_ARGUMENTS.flatMap((key) => [input[key]].flat()).flatMap(
    (value) => pathOf(value, workspaceDir) ?? [],
  );
  return [...new Set(paths)].slice(0, MAX_LOCATIONS).map((path) => (line === undefined ? { path } : { path, line }));
}

function isLine(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1;
}

/** An absolute path; undefined if it is not a path, or its folder is unknown. */
function pathOf(value: unknown, workspaceDir: string | undefined): string | undefined {
  if (typeof value !== "string" || value === "" || value.length > MAX_PATH_LENGTH || /[\0\n]/.test(value))
    return undefined;
  if (/^file:\/\//i.test(value)) return fromFileUrl(value);
  if (isAbsolute(value)) return resolve(value);
  if (/^[a-z][a-z0-9+.-]+:/i.test(value) || workspaceDir === undefined) return undefined;
  return resolve(workspaceDir, value);
}

function fromFileUrl(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/** A tool's name as words: `readTextFile`, `read_text_file` and `read-text-file` say the same. */
function nameWords(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
}

/** One line of a server's or a model's words, for people: no terminal codes and no hidden characters. */
export function oneLine(text: string, longest: number): string {
  const clean = text
    .slice(0, longest * 4)
    .replace(/[\p{Cf}\p{Cs}\p{Co}]/gu, "")
    .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return clean.length <= longest ? clean : `${clean.slice(0, Math.max(0, longest - 1)).toWellFormed()}…`;
}
