/** Runs a command's changes to files as one: all of them stand at the end, or none. */
import { rmdir } from "node:fs/promises";
import { recoverChanges, ChangeSet } from "../../files/change-set/change-set.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { changesDir } from "../../hub/clients/write-client.ts";
import type { Output } from "../output.ts";

export async function withChanges<T>(home: string, out: Output, task: (changes: ChangeSet) => Promise<T>): Promise<T> {
  const journalDir = changesDir(home);
  const onKept = (file: string): void =>
    out.warn(`${file} was left half changed by a run that was killed, and somebody changed it since; look at it.`);
  for (const file of await recoverChanges(journalDir, { onKept })) {
    out.note(`${file} was left half changed by a run that was killed; it is as it was before.`);
  }
  const changes = new ChangeSet({ journalDir });
  let result: T;
  try {
    result = await task(changes);
  } catch (thrown) {
    const { kept } = await changes.undo();
    if (kept.length === 0) throw thrown;
    const error = asToolcribError(thrown);
    throw new ToolcribError(error.code, `${error.message} Changed by others meanwhile and left: ${kept.join(", ")}`, {
      hint: error.hint,
      details: error.details,
      cause: thrown,
    });
  }
  await changes.done();
  // Its being there means to every command that there may be something to recover.
  await rmdir(journalDir).catch(() => undefined);
  return result;
}
