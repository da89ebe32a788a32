/** What an edit changes, as far as its arguments say. Names of arguments are those of the common file servers and editors. */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isReallyInside, type Workspace } from "./workspace.ts";

const PATH_KEYS = ["path", "file_path", "filePath", "file", "filename", "uri"];
const OLD_KEYS = ["old_text", "oldText", "old_string", "oldString", "old_str"];
const NEW_KEYS = ["new_text", "newText", "new_string", "newString", "new_str"];
const WHOLE_KEYS = ["content", "contents", "text", "file_text"];
/** A diff of a longer file is nothing that anybody reads. */
const MOST_BYTES = 256 * 1024;

/** Pieces of text that are replaced. */
export function editsOf(input: JsonObject, { cwd }: Workspace): ToolCallContent[] {
  const path = pathOf(input, cwd);
  if (path === undefined) return [];
  const edits = Array.isArray(input["edits"]) ? input["edits"].filter(isJsonObject) : [input];
  return edits.flatMap((edit) => {
    const oldText = firstText(edit, OLD_KEYS);
    const newText = firstText(edit, NEW_KEYS);
    return oldText === undefined || newText === undefined ? [] : [{ type: "diff", path, oldText, newText }];
  });
}

/** A file that is written as a whole, compared with what is on the disk now: ask before the tool runs. */
export function rewriteOf(input: JsonObject, workspace: Workspace): ToolCallContent[] {
  const path = pathOf(input, workspace.cwd);
  const newText = firstText(input, WHOLE_KEYS);
  if (path === undefined || newText === undefined || newText.length > MOST_BYTES) return [];
  const oldText = isReallyInside(path, workspace) ? textBefore(path) : undefined;
  // It cannot be read, or has been written already: a diff would say something wrong.
  if (oldText === undefined || oldText === newText) return [];
  return [{ type: "diff", path, oldText, newText }];
}

/** Null if there is no such file; undefined if it cannot be told. */
function textBefore(path: string): string | null | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return null;
    return stat.isFile() && stat.size <= MOST_BYTES ? readFileSync(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}

function pathOf(input: JsonObject, cwd: string): string | undefined {
  const given = firstText(input, PATH_KEYS);
  if (given === undefined) return undefined;
  if (!given.startsWith("file:")) return given.includes("://") ? undefined : resolve(cwd, given);
  try {
    return fileURLToPath(given);
  } catch {
    return undefined;
  }
}

function firstText(input: JsonObject, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = input[key];
    if (typeof value === "string") return value;
  }
  return undefined;
}
