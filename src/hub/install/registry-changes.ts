/** The registry of imported skills as a part of a change set. Copies that are over then are swept when that is settled. */
import { ChangeSet } from "../../files/change-set/change-set.ts";
import type { UndoEntries } from "../../files/change-set/steps.ts";
import type { ManifestChange, SkillRegistry, WithinChanges } from "../../skills/registry/registry.ts";
import { changesDir } from "../changes-dir.ts";

const PLACE = "the list of imported skills";

/** A change set of an install: files, folders, and with `withinChanges` the registry. */
export function installChanges(home: string, registry: SkillRegistry): ChangeSet {
  return new ChangeSet({ journalDir: changesDir(home), undoEntries: undoManifests(registry) });
}

export function withinChanges(changes: ChangeSet): Required<WithinChanges> {
  return { within: (manifests, write) => changes.changeEntries(PLACE, manifests, write) };
}

export function undoManifests(registry: SkillRegistry): UndoEntries {
  // Entries of these journals are what `withinChanges` wrote down.
  return (changes) => registry.takeBack(changes as readonly ManifestChange[]);
}
