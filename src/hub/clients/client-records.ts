/** `$TOOLCRIB_HOME/clients.json`: what Toolcrib wrote into files of other programs, so that exactly that is taken out again. */
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { PathStep } from "../../files/edit/text-editor.ts";
import { ToolcribError } from "../../model/errors.ts";
import { digestOf } from "./text-patch.ts";

/** No skill has such a name. */
export const BY_CONNECT = "toolcrib connect";

const StepSchema = z.union([z.string(), z.object({ key: z.string(), is: z.string() })]);

const PatchSchema = z.object({
  after: z.string(),
  start: z.int().min(0),
  length: z.int().min(0),
  removed: z.string(),
});

const WrittenEntrySchema = z.object({
  client: z.string(),
  scope: z.enum(["user", "project"]),
  file: z.string(),
  /** Of the server in that file. */
  id: z.string(),
  /** Who wrote it: BY_CONNECT, or the skills that brought the server. */
  by: z.string(),
  path: z.array(StepSchema),
  /** What `TextEditor.set` said: the containers that were made go with the last entry in them. */
  madeFrom: z.int().min(-1),
  /** Whether the file was made for it. */
  madeFile: z.boolean(),
  /** Folders that were made for the file, outermost first. */
  madeFolders: z.array(z.string()).optional(),
  /** Of the entry as it was written: another one now means that somebody edited it. */
  digest: z.string(),
  /** What stood there before, if it was replaced. It may hold other programs' secrets, so the file is the user's alone. */
  replaced: z.unknown().optional(),
  undo: PatchSchema.optional(),
});

/** One server in one file of a client. */
export type WrittenEntry = z.output<typeof WrittenEntrySchema>;

const RecordsSchema = z.object({ version: z.literal(1), entries: z.array(WrittenEntrySchema) });

export function recordsFile(home: string): string {
  return join(home, "clients.json");
}

/** Throws where the text is not what Toolcrib wrote: writing over it would lose the way back. */
export function parseRecords(text: string | null, file: string): readonly WrittenEntry[] {
  if (text === null || text.trim() === "") return [];
  try {
    return RecordsSchema.parse(JSON.parse(text)).entries;
  } catch (error) {
    throw new ToolcribError("invalid_config", `${file}, where Toolcrib keeps what it wrote for clients, is damaged.`, {
      hint: "Move it away. What was written before is then yours to take out.",
      cause: error,
    });
  }
}

export function renderRecords(entries: readonly WrittenEntry[]): string | null {
  return entries.length === 0 ? null : `${JSON.stringify({ version: 1, entries }, null, 2)}\n`;
}

/** One file may hold servers of several scopes, so the id alone does not say which entry it is. */
export function isAt(entry: WrittenEntry, file: string, path: readonly PathStep[]): boolean {
  return entry.file === file && isDeepStrictEqual(entry.path, path);
}

/** Of a value as its content says, whatever the order of its keys: programs that rewrite their file may change that. */
export function entryDigest(value: unknown): string {
  return digestOf(JSON.stringify(sorted(value)) ?? "");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}
