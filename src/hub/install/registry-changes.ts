import type { ChangeSet } from "../../files/change-set/change-set.ts";
import type { WithinChanges } from "../../skills/registry/registry.ts";

/** The registry's file as one of the files of a change set. Copies that are over then are swept when that is settled. */
export function withinChanges(changes: ChangeSet): Required<WithinChanges> {
  return { write: (file, text) => changes.editFile(file, () => text) };
}
