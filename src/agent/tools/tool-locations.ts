/** Files that a call works on, as far as its arguments say. */
import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../model/json.ts";
import type { ToolCallEvent } from "../events.ts";

const PATHS = ["path", "file_path", "filePath", "filename", "file", "source", "destination", "uri", "paths", "files"];
const LINES = ["line", "start_line", "startLine", "line_number", "lineNumber"];
const MOST = 20;
const LONGEST = 4096;

export function locationsOf(input: JsonObject, workspaceDir: string | undefined): ToolCallEvent["locations"] {
  const line = LINES.map((key) => input[key]).find(isLine);
  const paths = PATHS.flatMap((key) => [input[key]].flat()).flatMap((value) => pathOf(value, workspaceDir) ?? []);
  return [...new Set(paths)].slice(0, MOST).map((path) => (line === undefined ? { path } : { path, line }));
}

function isLine(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1;
}

/** Absolute; undefined for what is no path, or one that nobody knows the folder of. */
function pathOf(value: unknown, workspaceDir: string | undefined): string | undefined {
  if (typeof value !== "string" || value === "" || value.length > LONGEST || /[\0\n]/.test(value)) return undefined;
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
