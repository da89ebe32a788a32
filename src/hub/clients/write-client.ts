/** Writes servers into the files of other programs and takes them out again, with a record of what was written. */
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { missingFolders } from "../../files/change-set/file-state.ts";
import { withLock } from "../../files/lock-file.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isAt, parseRecords, recordsFile, renderRecords, type WrittenEntry } from "./client-records.ts";
import { planRemove, type RemovePlan, type RemoveRequest } from "./plan-remove.ts";
import { planWrite, type WritePlan, type WriteRequest } from "./plan-write.ts";

export { changesDir } from "../changes-dir.ts";
export { gatewayCommand } from "./gateway-command.ts";

interface Target {
  /** Both files are changed through it, so that undoing it undoes both. */
  readonly changes: ChangeSet;
  /** Toolcrib's home. */
  readonly home: string;
}

/** Of a file that did not exist; the files of clients often hold secrets. */
const NEW_FILE_MODE = 0o600;

/**
 * Throws, and leaves the file alone, where it does not parse (`invalid_config`), has an entry of the same name that is not
 * ours (`conflict`, unless `replace`), where the client cannot do it, or where a secret would be written (`invalid_arguments`).
 */
export async function writeClientServers({ changes, home, ...request }: Target & WriteRequest): Promise<WritePlan> {
  return underLock(home, async () => {
    const known = await readRecords(home);
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
      const isOther = (entry: WrittenEntry): boolean => !mine.some(({ path: at }) => isAt(entry, path, at));
      await editRecords(changes, home, (all) => [...all.filter(isOther), ...mine]);
    }
    return plan;
  });
}

/** Takes out what `writeClientServers` wrote. An entry that somebody edited since is kept, and told of. */
export async function removeClientServers({ changes, home, ...request }: Target & RemoveRequest): Promise<RemovePlan> {
  return underLock(home, async () => {
    const known = await readRecords(home);
    const { path } = request.file;
    let plan = planRemove(await textOf(path), request, known);
    const edit = (text: string | null): string | null => (plan = planRemove(text, request, known)).text;
    // A file that goes holds nothing but what was written; a copy of that would be litter.
    await changes.editFile(path, edit, { mode: NEW_FILE_MODE, backup: plan.text !== null });
    if (plan.records !== known) await editRecords(changes, home, () => plan.records);
    return plan;
  });
}

/** What Toolcrib wrote into files of other programs. */
export async function readRecords(home: string): Promise<readonly WrittenEntry[]> {
  const file = recordsFile(home);
  return parseRecords(await textOf(file), file);
}

/** null if there is no such file. */
export async function textOf(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw new ToolcribError("invalid_config", `${file} cannot be read (${error.code ?? "unknown reason"}).`);
  });
}

type EditRecords = (all: readonly WrittenEntry[]) => readonly WrittenEntry[];

function editRecords(changes: ChangeSet, home: string, edit: EditRecords): Promise<void> {
  const file = recordsFile(home);
  return changes.editFile(file, (text) => renderRecords(edit(parseRecords(text, file))), { mode: NEW_FILE_MODE });
}

/** One lock over both files: each is locked while it is written, but what the record says must fit the client's file. */
async function underLock<T>(home: string, task: () => Promise<T>): Promise<T> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  return withLock(join(home, "clients"), task);
}
