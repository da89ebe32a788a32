/** What a call does, in one line for people: `Read text file notes.txt (files)`. */
import { isAbsolute, relative } from "node:path";
import type { JsonObject } from "../../model/json.ts";
import type { ToolDefinition } from "../../model/protocol.ts";
import { oneLine, wordsOf } from "./tool-words.ts";

const LONGEST = 100;
const LONGEST_NAME = 50;

/** Arguments that tell most, the most telling first. */
const TELLING = [
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

export interface Titled {
  readonly definition: ToolDefinition;
  /** Name of its server for people; undefined for tools of the hub and the session itself. */
  readonly server: string | undefined;
  readonly workspaceDir: string | undefined;
}

export function titleOf({ definition, server, workspaceDir }: Titled, input: JsonObject): string {
  const name = oneLine(nameOf(definition), LONGEST_NAME);
  const suffix = server === undefined ? "" : ` (${oneLine(server, LONGEST_NAME / 2)})`;
  const object = oneLine(objectOf(input, workspaceDir), LONGEST - name.length - suffix.length - 1);
  return `${object === "" ? name : `${name} ${object}`}${suffix}`;
}

function nameOf({ title, annotations, name }: ToolDefinition): string {
  const given = title ?? annotations?.title;
  if (typeof given === "string" && given.trim() !== "") return given;
  const [first = name, ...rest] = wordsOf(name);
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
}

/** What it is used on. */
function objectOf(input: JsonObject, workspaceDir: string | undefined): string {
  const { source, destination } = input;
  if (typeof source === "string" && typeof destination === "string") {
    return `${shortPath(source, workspaceDir)} → ${shortPath(destination, workspaceDir)}`;
  }
  const telling = TELLING.map((key) => input[key]).find(isText);
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
