/** What taking servers out of a client's file comes to. */
import { isDeepStrictEqual } from "node:util";
import type { AgentClient, ClientFile } from "../../clients/client.ts";
import { startsToolcrib } from "../../config/dialects/own-entry.ts";
import { valueAt } from "../../files/edit/paths.ts";
import type { TextEditor } from "../../files/edit/text-editor.ts";
import { entryDigest, isAt, type WrittenEntry } from "./client-records.ts";
import { editing } from "./editing.ts";
import { revert } from "./text-patch.ts";

export interface RemoveRequest {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly ids: readonly string[];
  /** Take out entries too that were edited since, and such that start Toolcrib and were written by somebody else. */
  readonly force?: boolean;
}

export interface KeptEntry {
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
    .filter((entry) => isAt(entry, file.path, client.pathOf(entry.id, file)))
    .toReversed();
  editing(client, file, (editor) => {
    for (const { path } of ours) {
      const isThis = (each: WrittenEntry): boolean => isAt(each, file.path, path);
      // What the ones before handed on counts.
      const entry = records.find(isThis);
      if (entry === undefined) continue;
      const { text: after, outcome } = without(editor, text, entry, force);
      if (outcome === "edited") {
        kept.push({ id: entry.id, reason: "edited" });
        continue;
      }
      text = after;
      const others = records.filter((each) => !isThis(each));
      records = handOn(others, entry);
      if (outcome === "removed") removed.push(entry.id);
      if (text !== null && isLastOfMadeFile(records, entry) && (text === client.newFile || isEmpty(text))) {
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
      if (force && asRead !== undefined && startsToolcrib(id, asRead)) {
        text = editor.remove(text, path);
        removed.push(id);
      } else kept.push({ id, reason: "not ours" });
    }
  });
  const absent = request.ids.filter((id) => !removed.includes(id) && !kept.some((each) => each.id === id));
  return { text, removed, kept, absent, records, madeFolders };
}

function without(
  editor: TextEditor,
  text: string | null,
  { path, madeFrom, digest, replaced, undo }: WrittenEntry,
  force: boolean,
): { text: string | null; outcome: "removed" | "edited" | "absent" } {
  if (text === null) return { text, outcome: "absent" };
  const original = undo === undefined ? undefined : revert(text, undo);
  if (original !== undefined) return { text: original, outcome: "removed" };
  const value = valueAt(editor.parse(text), path);
  if (value === undefined) return { text, outcome: "absent" };
  if (entryDigest(value) !== digest && !force) return { text, outcome: "edited" };
  const after =
    replaced === undefined ? editor.remove(text, path, { alsoFrom: madeFrom }) : editor.set(text, path, replaced).text;
  return { text: after, outcome: "removed" };
}

/** Containers and files that stay because other entries of ours are in them go with the last of those. */
function handOn(records: readonly WrittenEntry[], gone: WrittenEntry): WrittenEntry[] {
  return records.map((entry) => {
    if (entry.file !== gone.file) return entry;
    const shares = gone.path.slice(0, gone.madeFrom + 1).every((step, at) => isDeepStrictEqual(step, entry.path[at]));
    return {
      ...entry,
      madeFile: entry.madeFile || gone.madeFile,
      ...(gone.madeFolders === undefined ? {} : { madeFolders: gone.madeFolders }),
      madeFrom: shares ? Math.min(entry.madeFrom, gone.madeFrom) : entry.madeFrom,
    };
  });
}

function isLastOfMadeFile(records: readonly WrittenEntry[], gone: WrittenEntry): boolean {
  return gone.madeFile && !records.some((entry) => entry.file === gone.file);
}

/** Nothing in it but what the format needs; a comment is something. */
function isEmpty(text: string): boolean {
  return /^\uFEFF?\s*(?:\{\s*\})?\s*$/.test(text);
}
