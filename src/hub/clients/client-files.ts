/**
 * Writes servers into the config files of other programs and removes them again. `$TOOLCRIB_HOME/clients.json` records what was
 * written, so that exactly that is removed.
 */
import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type {
  AgentClient,
  ClientEnvironment,
  ClientFile,
  ClientScope,
  WrittenServer,
} from "../../clients/agent-client.ts";
import { writeServer } from "../../clients/server-entries.ts";
import { isToolcribEntry } from "../../config/entry-reader.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { missingFolders } from "../../files/change-set/change-steps.ts";
import { editorFor } from "../../files/edit/editors.ts";
import { type PathStep, type TextEditor, valueAt } from "../../files/edit/text-editor.ts";
import { withLock } from "../../files/lock-file.ts";
import { assertInside } from "../../files/path-safety.ts";
import { ToolcribError } from "../../model/errors.ts";
import { canonicalJson, type JsonObject } from "../../model/json.ts";
import { assertNoSecrets } from "./no-secrets.ts";

interface ChangeTarget {
  /** Both files are changed through it, so that undoing it undoes both. */
  readonly changes: ChangeSet;
  /** Toolcrib's home. */
  readonly home: string;
}

/** Of new files; config files of clients often contain secrets. */
const NEW_FILE_MODE = 0o600;

/**
 * Throws, and leaves the file alone, where it does not parse (`invalid_config`), has an entry of the same name that is not
 * ours (`conflict`, unless `replace`), where the client cannot do it, or where a secret would be written (`invalid_arguments`).
 */
export async function writeClientServers(given: ChangeTarget & WriteRequest): Promise<WritePlan> {
  const { changes, home, ...request } = given;
  return withEntriesLock(home, async () => {
    const known = await readWrittenEntries(home);
    const { path } = request.file;
    // A plan for no servers; editFile runs the edit at least once.
    let plan: WritePlan = { text: "", written: [], present: [], records: [] };
    const edit = (text: string | null): string | null => {
      plan = planWrite(text, request, known);
      return plan.written.length === 0 ? text : plan.text;
    };
    const madeFolders = await missingFolders(dirname(path));
    await changes.editFile(path, edit, { mode: NEW_FILE_MODE, backup: true });
    if (plan.records.length > 0) {
      const mine = plan.records.map((entry) =>
        entry.madeFile && madeFolders.length > 0 ? { ...entry, madeFolders } : entry,
      );
      const isOther = (entry: WrittenEntry): boolean => !mine.some(({ path: at }) => isEntryAt(entry, path, at));
      await editWrittenEntries(changes, home, (all) => [...all.filter(isOther), ...mine]);
    }
    return plan;
  });
}

/** Removes what `writeClientServers` wrote. An entry that was edited since is kept, and reported. */
export async function removeClientServers(given: ChangeTarget & RemoveRequest): Promise<RemovePlan> {
  const { changes, home, ...request } = given;
  return withEntriesLock(home, async () => {
    const known = await readWrittenEntries(home);
    const { path } = request.file;
    let plan = planRemove(await readTextIfPresent(path), request, known);
    const edit = (text: string | null): string | null => (plan = planRemove(text, request, known)).text;
    // With the last entry the copy of the file before the first goes too.
    const isLast = !plan.records.some((entry) => entry.file === path);
    await changes.editFile(path, edit, { mode: NEW_FILE_MODE, backup: isLast ? "remove" : true });
    if (plan.records !== known) await editWrittenEntries(changes, home, () => plan.records);
    return plan;
  });
}

export async function readWrittenEntries(home: string): Promise<readonly WrittenEntry[]> {
  const file = writtenEntriesFile(home);
  return parseWrittenEntries(await readTextIfPresent(file), file);
}

/** null if there is no such file. */
export async function readTextIfPresent(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw new ToolcribError("invalid_config", `${file} cannot be read (${error.code ?? "unknown reason"}).`);
  });
}

type EditWrittenEntries = (all: readonly WrittenEntry[]) => readonly WrittenEntry[];

async function editWrittenEntries(changes: ChangeSet, home: string, edit: EditWrittenEntries): Promise<void> {
  const file = writtenEntriesFile(home);
  const change = (text: string | null): string | null => {
    const entries = edit(parseWrittenEntries(text, file));
    return entries.length === 0 ? null : `${JSON.stringify({ version: 1, entries }, null, 2)}\n`;
  };
  await changes.editFile(file, change, { mode: NEW_FILE_MODE });
}

/** One lock over both files: each is locked while it is written, but what the record says must fit the client's file. */
async function withEntriesLock<T>(home: string, task: () => Promise<T>): Promise<T> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  return withLock(join(home, "clients"), task);
}

/**
 * The file of a scope that is written; undefined if the client has none. Several products and versions of a client have
 * folders of their own, so the first folder that is there counts, and in it the file that is there. Throws `denied` for a
 * project's file that a link of the project leads out of it.
 */
export function fileToWrite(client: AgentClient, scope: ClientScope, place: ClientEnvironment): ClientFile | undefined {
  // A user's file that also keeps servers by project is read, but a project's own file is the one to write.
  const files = client.files(place).filter((file) => file.scope === scope && file.projectKey === undefined);
  const folder = files.map(({ path }) => dirname(path)).find((path) => existsSync(path));
  const inFolder = files.filter(({ path }) => folder === undefined || dirname(path) === folder);
  const chosen = inFolder.find(({ path }) => existsSync(path)) ?? inFolder[0];
  if (chosen?.scope === "project") assertInside(place.projectDir, chosen.path);
  return chosen;
}

/** The same; throws `invalid_arguments` for a client that has none of that scope. */
export function fileToWriteFor(client: AgentClient, scope: ClientScope, place: ClientEnvironment): ClientFile {
  const file = fileToWrite(client, scope, place);
  if (file !== undefined) return file;
  throw new ToolcribError("invalid_arguments", `${client.name} has no ${scope} file for MCP servers.`, {
    hint: `Use --scope ${scope === "user" ? "project" : "user"}.`,
  });
}

export interface WriteRequest {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly servers: Readonly<Record<string, WrittenServer>>;
  /** Overwrite an entry of the same name that is not Toolcrib's. It is restored when ours is removed. */
  readonly replace?: boolean;
  /** Who writes: the names of skills; `toolcrib connect` if absent. */
  readonly by?: string;
}

export interface WritePlan {
  readonly text: string;
  /** Ids that are new or changed, and ids that were there as wanted. */
  readonly written: readonly string[];
  readonly present: readonly string[];
  /** The entries that were written; they replace earlier records. */
  readonly records: readonly WrittenEntry[];
}

/** Throws `conflict` for entries that are not Toolcrib's, `invalid_config` for a text that does not parse. */
export function planWrite(before: string | null, request: WriteRequest, known: readonly WrittenEntry[]): WritePlan {
  const { client, file } = request;
  const servers = Object.entries(request.servers);
  const wanted = servers.map(([id, server]) => ({ id, value: renderEntry(client, id, server) }));
  return withEditor(client, file, (editor) => {
    let text = before ?? client.newFile ?? "";
    let document = editor.parse(text);
    const records: WrittenEntry[] = [];
    const conflicts: string[] = [];
    for (const { id, value } of wanted) {
      const path = client.pathOf(id, file);
      const current = valueAt(document, path);
      if (current !== undefined && entryDigest(current) === entryDigest(value)) continue;
      const earlier = current === undefined ? undefined : known.find((entry) => isEntryAt(entry, file.path, path));
      const isOurs = earlier !== undefined && earlier.digest === entryDigest(current);
      if (current !== undefined && !isOurs && request.replace !== true) {
        conflicts.push(id);
        continue;
      }
      // From the text before ours, so that the way back stays exact.
      const original = earlier?.undo === undefined ? undefined : revertPatch(text, earlier.undo);
      const base = original ?? text;
      const stood = original === undefined ? current : valueAt(editor.parse(base), path);
      const edited = editor.set(base, path, value);
      const by = earlier?.by ?? request.by ?? WRITTEN_BY_CONNECT;
      const place = { client: client.id, scope: file.scope, file: file.path, id, by, path: [...path] };
      const bare = bareDigest(client, file, editor.parse(edited.text), id);
      const common = { ...place, digest: entryDigest(value), bareDigest: bare };
      if (earlier !== undefined && original === undefined) {
        // What it made and replaced is what counts when it goes.
        records.push({ ...earlier, ...common, undo: undefined });
      } else {
        records.push({
          ...common,
          madeFrom: edited.madeFrom,
          madeFile: earlier?.madeFile ?? (before === null && records.length === 0),
          madeFolders: earlier?.madeFolders,
          replaced: stood,
          undo: patchBetween(base, edited.text),
        });
      }
      text = edited.text;
      document = editor.parse(text);
    }
    if (conflicts.length > 0) throw conflictError(request, conflicts, known);
    const written = records.map(({ id }) => id);
    const present = wanted.map(({ id }) => id).filter((id) => !written.includes(id));
    return { text, written, present, records };
  });
}

function renderEntry(client: AgentClient, id: string, server: WrittenServer): JsonObject {
  assertNoSecrets(client, id, server);
  const value = writeServer(client, id, server);
  if (value !== undefined) return value;
  if (
    "url" in server &&
    server.token !== undefined &&
    client.write(id, { ...server, token: undefined }) !== undefined
  ) {
    throw new ToolcribError("invalid_arguments", `${client.name} cannot read a token from a variable.`, {
      hint: "Use --token-stdin to write the token itself, or --stdio, which needs none.",
    });
  }
  throw new ToolcribError(
    "invalid_arguments",
    "url" in server
      ? `${client.name} cannot reach a server by ${server.transport === "sse" ? "SSE" : "URL"} in its file.`
      : `${client.name} cannot start a server with these settings.`,
    { hint: "url" in server ? "Use --stdio: then it starts Toolcrib itself." : undefined },
  );
}

function conflictError(
  { client, file }: WriteRequest,
  ids: readonly string[],
  known: readonly WrittenEntry[],
): ToolcribError {
  const edited = ids.filter((id) => known.some((entry) => isEntryAt(entry, file.path, client.pathOf(id, file))));
  const others = ids.filter((id) => !edited.includes(id));
  const parts = [
    ...(others.length === 0 ? [] : [`has a server of the same name that Toolcrib did not write: ${others.join(", ")}`]),
    ...(edited.length === 0 ? [] : [`has an entry that was edited since Toolcrib wrote it: ${edited.join(", ")}`]),
  ];
  return new ToolcribError("conflict", `${file.path} ${parts.join("; it ")}.`, {
    hint: `--force replaces it${others.length === 0 ? "" : ", and `toolcrib disconnect` brings it back"}. Nothing was written.`,
    details: { client: client.id, file: file.path, ids },
  });
}

export interface RemoveRequest {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly ids: readonly string[];
  /** Also remove entries that were edited since, and entries that start Toolcrib but were not written by it. */
  readonly force?: boolean;
}

interface KeptEntry {
  readonly id: string;
  readonly reason: "edited" | "not ours";
}

export interface RemovePlan {
  /** null: the file was made by Toolcrib, and nothing else is in it. */
  readonly text: string | null;
  readonly removed: readonly string[];
  readonly kept: readonly KeptEntry[];
  /** Ids that are not in the file. */
  readonly absent: readonly string[];
  /** All records without what is gone. */
  readonly records: readonly WrittenEntry[];
  /** Folders that were made for the file, to be removed with it if they are empty. */
  readonly madeFolders: readonly string[];
}

/** Throws `invalid_config` for a text that does not parse. */
export function planRemove(before: string | null, request: RemoveRequest, known: readonly WrittenEntry[]): RemovePlan {
  const { client, file, force = false } = request;
  const removed: string[] = [];
  const kept: KeptEntry[] = [];
  let records = known;
  let madeFolders: readonly string[] = [];
  let text = before;
  // The last one first: then each finds the text as it left it.
  const ours = known
    .filter(({ id }) => request.ids.includes(id))
    .filter((entry) => isEntryAt(entry, file.path, client.pathOf(entry.id, file)))
    .toReversed();
  withEditor(client, file, (editor) => {
    for (const { path } of ours) {
      const isThis = (each: WrittenEntry): boolean => isEntryAt(each, file.path, path);
      // An entry before it may have passed its containers on.
      const entry = records.find(isThis);
      if (entry === undefined) continue;
      const isOurs = (document: unknown): boolean =>
        force || (entry.bareDigest !== undefined && bareDigest(client, file, document, entry.id) === entry.bareDigest);
      const { text: after, outcome } = withoutEntry(editor, text, entry, isOurs);
      if (outcome === "edited") {
        kept.push({ id: entry.id, reason: "edited" });
        continue;
      }
      text = after;
      const others = records.filter((each) => !isThis(each));
      records = inheritContainers(others, entry);
      if (outcome === "removed") removed.push(entry.id);
      const isLast = entry.madeFile && !records.some((each) => each.file === entry.file);
      if (text !== null && isLast && (text === client.newFile || isEmptyFile(text))) {
        text = null;
        madeFolders = entry.madeFolders ?? [];
      }
    }
    for (const id of request.ids) {
      if (text === null || ours.some((entry) => entry.id === id)) continue;
      const path = client.pathOf(id, file);
      const value = valueAt(editor.parse(text), path);
      if (value === undefined) continue;
      const asRead = client.read(editor.parse(text), file).servers[id];
      if (force && asRead !== undefined && isToolcribEntry(id, asRead)) {
        text = editor.remove(text, path);
        removed.push(id);
      } else kept.push({ id, reason: "not ours" });
    }
  });
  const absent = request.ids.filter((id) => !removed.includes(id) && !kept.some((each) => each.id === id));
  return { text, removed, kept, absent, records, madeFolders };
}

function withoutEntry(
  editor: TextEditor,
  text: string | null,
  { path, madeFrom, digest, replaced, undo }: WrittenEntry,
  isOurs: (document: unknown) => boolean,
): { text: string | null; outcome: "removed" | "edited" | "absent" } {
  if (text === null) return { text, outcome: "absent" };
  const original = undo === undefined ? undefined : revertPatch(text, undo);
  if (original !== undefined) return { text: original, outcome: "removed" };
  const document = editor.parse(text);
  const value = valueAt(document, path);
  if (value === undefined) return { text, outcome: "absent" };
  if (entryDigest(value) !== digest && !isOurs(document)) return { text, outcome: "edited" };
  const after =
    replaced === undefined ? editor.remove(text, path, { alsoFrom: madeFrom }) : editor.set(text, path, replaced).text;
  return { text: after, outcome: "removed" };
}

/** Containers and files that stay because of other entries of ours are removed with the last of those. */
function inheritContainers(records: readonly WrittenEntry[], gone: WrittenEntry): WrittenEntry[] {
  return records.map((entry) => {
    if (entry.file !== gone.file) return entry;
    const shares = gone.path.slice(0, gone.madeFrom + 1).every((step, at) => isDeepStrictEqual(step, entry.path[at]));
    return {
      ...entry,
      madeFile: entry.madeFile || gone.madeFile,
      madeFolders: gone.madeFolders ?? entry.madeFolders,
      madeFrom: shares ? Math.min(entry.madeFrom, gone.madeFrom) : entry.madeFrom,
    };
  });
}

/** Nothing in it but what the format needs; a comment is something. */
function isEmptyFile(text: string): boolean {
  return /^\uFEFF?\s*(?:\{\s*\})?\s*$/.test(text);
}

/** No skill has such a name. */
export const WRITTEN_BY_CONNECT = "toolcrib connect";

const StepSchema = z.union([z.string(), z.object({ key: z.string(), is: z.string() })]);

/** Restores the text before an edit byte by byte, as long as nothing else has changed it. */
export const TextPatchSchema = z.object({
  /** sha256 of the text that the patch can revert. */
  after: z.string(),
  /** Where the two texts start to differ. */
  start: z.int().min(0),
  /** Length of the new part. */
  length: z.int().min(0),
  /** The old part. */
  removed: z.string(),
});

type TextPatch = z.output<typeof TextPatchSchema>;

const WrittenEntrySchema = z.object({
  client: z.string(),
  scope: z.enum(["user", "project"]),
  file: z.string(),
  /** Of the server in that file. */
  id: z.string(),
  /** The writer: `WRITTEN_BY_CONNECT`, or the names of the skills that need the server. */
  by: z.string(),
  path: z.array(StepSchema),
  /** The result of `TextEditor.set`: containers that were made are removed with the last entry in them. */
  madeFrom: z.int().min(-1),
  /** Whether the file was made for it. */
  madeFile: z.boolean(),
  /** Folders that were made for the file, outermost first. */
  madeFolders: z.array(z.string()).optional(),
  /** Of the entry as written; a different one now means that it was edited. */
  digest: z.string(),
  /** Of a URL without its headers: a token that the user entered since does not make it someone else's. */
  bareDigest: z.string().optional(),
  /** The value that was replaced. It may contain secrets of other programs, so only the user can read the file. */
  replaced: z.unknown().optional(),
  undo: TextPatchSchema.optional(),
});

/** One server in one file of a client. */
export type WrittenEntry = z.output<typeof WrittenEntrySchema>;

const RecordsSchema = z.object({ version: z.literal(1), entries: z.array(WrittenEntrySchema) });

function writtenEntriesFile(home: string): string {
  return join(home, "clients.json");
}

/** Throws for a damaged file: overwriting it would lose the record of what to remove. */
function parseWrittenEntries(text: string | null, file: string): readonly WrittenEntry[] {
  if (text === null || text.trim() === "") return [];
  try {
    return RecordsSchema.parse(JSON.parse(text)).entries;
  } catch (error) {
    throw new ToolcribError("invalid_config", `${file}, where Toolcrib keeps what it wrote for clients, is damaged.`, {
      hint: "Move it away. Then remove the earlier entries yourself.",
      cause: error,
    });
  }
}

/** One file may have servers of several scopes, so the id alone is not enough. */
function isEntryAt(entry: WrittenEntry, file: string, path: readonly PathStep[]): boolean {
  return entry.file === file && isDeepStrictEqual(entry.path, path);
}

/** Does not depend on the order of keys: programs that rewrite their file may change it. */
function entryDigest(value: unknown): string {
  return hash("sha256", canonicalJson(value));
}

/** Undefined for a command. */
function bareDigest(client: AgentClient, file: ClientFile, document: unknown, id: string): string | undefined {
  const { headers: _headers, ...entry } = client.read(document, file).servers[id] ?? {};
  return ["url", "httpUrl", "serverUrl"].some((key) => entry[key] !== undefined) ? entryDigest(entry) : undefined;
}

/** Runs a task on the text of a client's file. An error names the file, which is not changed. */
function withEditor<T>(client: AgentClient, file: ClientFile, task: (editor: TextEditor) => T): T {
  try {
    return task(editorFor(client.format));
  } catch (error) {
    // Editors do not know the file.
    if (!(error instanceof ToolcribError) || error.message.includes(file.path)) throw error;
    if (error.code === "invalid_arguments") throw error;
    throw new ToolcribError("invalid_config", `${file.path}: ${error.message}`, {
      hint: `${client.name}'s file was not changed. Fix it and try again.`,
      details: { file: file.path, ...error.details },
      cause: error,
    });
  }
}

export function patchBetween(before: string, after: string): TextPatch {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let tail = 0;
  while (tail < shorter - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const removed = before.slice(start, before.length - tail);
  return { after: hash("sha256", after), start, length: after.length - start - tail, removed };
}

/** The text before; undefined if this is not the text that the patch was made for. */
export function revertPatch(text: string, { after, start, length, removed }: TextPatch): string | undefined {
  if (hash("sha256", text) !== after) return undefined;
  return text.slice(0, start) + removed + text.slice(start + length);
}
