/** Where the manifests of imported skills are kept: the store, which takes in what an earlier version kept in a file. */
import { createHash, randomUUID } from "node:crypto";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { SkillManifest } from "../../model/skill.ts";
import type { Store } from "../../store/store.ts";
import { isManifest } from "./manifest-check.ts";
import { readRegistry, registryFile, stampOf } from "./registry-file.ts";

export interface ManifestStore {
  /** For messages. */
  readonly place: string;
  /** Which store it is, for the names of folders: eight characters, of this database at this place. */
  owner(): Promise<string>;
  /** In order of id. */
  list(): Promise<SkillManifest[]>;
  /** Changes whenever the manifests do, whichever process changed them. */
  stamp(): Promise<string>;
  /** The files of skills, where hubs on other machines need them too. */
  readonly files?: Store["skillFiles"] | undefined;
  /** All of it at once. */
  change(put: readonly SkillManifest[], remove: readonly string[]): Promise<void>;
}

export type SkillStore = Pick<Store, "skills" | "settings" | "place"> & Partial<Pick<Store, "kind" | "skillFiles">>;

/** With `create` one that is not there yet is made. Undefined where there is none and none may be made. */
export type OpenSkillStore = (options: { readonly create: boolean }) => Promise<SkillStore | undefined>;

/** A batch of thousands takes a while; whoever comes meanwhile waits for it. */
export const LOCK_WAIT_MS = 120_000;

/** What to lock while manifests and the files beside them change. */
export function registryLock(home: string): string {
  return join(home, "skills", "registry");
}

/** Undefined if nothing was ever imported. Rejects, and leaves it alone, if the file of before cannot be used. */
export async function openManifests(
  home: string,
  open: OpenSkillStore,
  { create }: { readonly create: boolean },
): Promise<ManifestStore | undefined> {
  const file = registryFile(home);
  const hasFile = (await stampOf(file)) !== undefined;
  const store = await open({ create: create || hasFile });
  if (store === undefined) return hasFile ? manifestsInFile(file) : undefined;
  if (hasFile) await withLock(registryLock(home), () => takeIn(file, store), { waitMs: LOCK_WAIT_MS });
  return manifestsIn(store);
}

/**
 * The manifests first, in one transaction, then the file's new name: a process that dies in between leaves both, and the next
 * one finds that the store has them.
 */
async function takeIn(file: string, { skills }: SkillStore): Promise<void> {
  if ((await stampOf(file)) === undefined) return;
  const manifests = await readRegistry(file);
  const known = new Set((await skills.list()).map(({ id }) => id));
  await skills.change(manifests.filter(({ id }) => !known.has(id)).map(entryOf), []);
  await rename(file, `${file}.moved`);
}

function manifestsIn({ skills, settings, place, kind, skillFiles }: SkillStore): ManifestStore {
  return {
    place,
    files: kind === "postgres" ? skillFiles : undefined,
    async owner() {
      // A copy of a database has its id too; the place tells them apart.
      const id = await settings.setOnce("store.id", randomUUID());
      return createHash("sha256").update(`${id} ${place}`).digest("hex").slice(0, 8);
    },
    async list() {
      return (await skills.list()).map(({ id, manifest }): SkillManifest => {
        if (isManifest(manifest) && manifest.id === id) return manifest;
        throw new ToolcribError("invalid_config", `The imported skill ${id} in ${place} cannot be used.`, {
          hint: "Bring back a backup of it with toolcrib restore.",
        });
      });
    },
    stamp: () => skills.stamp(),
    change: (put, remove) => skills.change(put.map(entryOf), remove),
  };
}

/** For a program that keeps nothing: what is there can be read. */
function manifestsInFile(file: string): ManifestStore {
  return {
    place: file,
    owner: () => Promise.reject(noStore()),
    list: () => readRegistry(file),
    stamp: async () => (await stampOf(file)) ?? "",
    change: () => Promise.reject(noStore()),
  };
}

export function noStore(): ToolcribError {
  return new ToolcribError("invalid_config", "Skills are imported into a store, and there is none here.", {
    hint: "Run the hub on a config file, or give it a store.",
  });
}

function entryOf(manifest: SkillManifest): { id: string; manifest: JsonObject } {
  // A manifest is plain JSON.
  return { id: manifest.id, manifest: manifest as unknown as JsonObject };
}
