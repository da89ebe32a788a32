/** The manifests of imported skills in the store, with those that an earlier version kept in a file. */
import { createHash, randomUUID } from "node:crypto";
import { readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../model/json.ts";
import type { SkillManifest } from "../../model/skill.ts";
import type { Store } from "../../store/store.ts";
import { isSafePath } from "../verified-files.ts";
import { isSkillId } from "./skill-id.ts";

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

/** `create` creates a missing store. Undefined if there is none and it must not be created. */
export type OpenSkillStore = (options: { readonly create: boolean }) => Promise<SkillStore | undefined>;

/** A batch of thousands takes a while; other processes wait for it. */
export const LOCK_WAIT_MS = 120_000;

/** The lock for changes of manifests and their files. */
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
  if (store === undefined) return hasFile ? fileManifests(file) : undefined;
  if (hasFile) await withLock(registryLock(home), () => migrateRegistryFile(file, store), { waitMs: LOCK_WAIT_MS });
  return storedManifests(store);
}

/**
 * The manifests first, in one transaction, then the file's new name: a process that dies in between leaves both, and the next
 * one finds that the store has them.
 */
async function migrateRegistryFile(file: string, { skills }: SkillStore): Promise<void> {
  if ((await stampOf(file)) === undefined) return;
  const manifests = await readRegistryFile(file);
  const known = new Set((await skills.list()).map(({ id }) => id));
  await skills.change(manifests.filter(({ id }) => !known.has(id)).map(storeEntry), []);
  await rename(file, `${file}.moved`);
}

function storedManifests({ skills, settings, place, kind, skillFiles }: SkillStore): ManifestStore {
  return {
    place,
    files: kind === "postgres" ? skillFiles : undefined,
    async owner() {
      // A copy of a database has the same id; the place distinguishes them.
      const id = await settings.setOnce("store.id", randomUUID());
      return createHash("sha256").update(`${id} ${place}`).digest("hex").slice(0, 8);
    },
    async list() {
      return (await skills.list()).map(({ id, manifest }): SkillManifest => {
        if (isManifest(manifest) && manifest.id === id) return manifest;
        throw new ToolcribError("invalid_config", `The imported skill ${id} in ${place} cannot be used.`, {
          hint: "Restore a backup with `toolcrib restore`.",
        });
      });
    },
    stamp: () => skills.stamp(),
    change: (put, remove) => skills.change(put.map(storeEntry), remove),
  };
}

/** For a program that keeps nothing: what is there can be read. */
function fileManifests(file: string): ManifestStore {
  return {
    place: file,
    owner: () => Promise.reject(noStore()),
    list: () => readRegistryFile(file),
    stamp: async () => (await stampOf(file)) ?? "",
    change: () => Promise.reject(noStore()),
  };
}

export function noStore(): ToolcribError {
  return new ToolcribError("invalid_config", "Skills are imported into a store, and this hub has none.", {
    hint: "Run the hub with a config file, or give it a store.",
  });
}

function storeEntry(manifest: SkillManifest): { id: string; manifest: JsonObject } {
  // A manifest is plain JSON.
  return { id: manifest.id, manifest: manifest as unknown as JsonObject };
}

// `registry.json` held the manifests before there was a store. It is read, moved into the store and set aside.

const REGISTRY_VERSION = 1;

export function registryFile(home: string): string {
  return join(home, "skills", "registry.json");
}

/** Changes whenever the file does; undefined if there is none. */
export async function stampOf(file: string): Promise<string | undefined> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found === undefined ? undefined : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/** In order of id; empty if there is no file. Rejects with `invalid_config` for an unusable file. */
async function readRegistryFile(file: string): Promise<SkillManifest[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = systemErrorCode(error) ?? "unknown reason";
    if (code === "ENOENT") return [];
    throw unusableRegistry(file, `cannot be read (${code})`, "Make it readable.");
  }
  return parseRegistryFile(file, text);
}

function parseRegistryFile(file: string, text: string): SkillManifest[] {
  const value = parseJson(text);
  if (value === undefined) throw damagedRegistry(file, "is not JSON");
  const version = isJsonObject(value) ? value["version"] : undefined;
  if (typeof version === "number" && version > REGISTRY_VERSION) {
    throw unusableRegistry(
      file,
      `has version ${version}, and this Toolcrib supports ${REGISTRY_VERSION}`,
      "Use a newer Toolcrib.",
    );
  }
  const skills = isJsonObject(value) && version === REGISTRY_VERSION ? value["skills"] : undefined;
  if (!Array.isArray(skills)) throw damagedRegistry(file, "has no list of skills");
  const ids = new Set<string>();
  const manifests = skills.map((manifest: unknown, index): SkillManifest => {
    if (!isManifest(manifest)) throw damagedRegistry(file, `has an invalid skill at position ${index + 1}`);
    if (ids.has(manifest.id)) throw damagedRegistry(file, `has ${manifest.id} twice`);
    ids.add(manifest.id);
    return manifest;
  });
  return manifests.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

function damagedRegistry(file: string, what: string): ToolcribError {
  return unusableRegistry(file, what, "Restore an earlier version of it, or move it away and import the skills again.");
}

function unusableRegistry(file: string, what: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `The imported skills in ${file} cannot be used: it ${what}.`, {
    hint,
    details: { file },
  });
}

const TEXTS = ["name", "version", "author", "description", "source", "sourcePath", "importedAt", "digest"];
const LISTS = ["tools", "keywords", "warnings", "findings"];

/** Checks what other code relies on, and that no path leaves the folder. Toolcrib wrote the rest itself. */
function isManifest(value: unknown): value is SkillManifest {
  if (!isJsonObject(value)) return false;
  const { id, dir, facts } = value;
  return (
    typeof id === "string" &&
    isSkillId(id) &&
    typeof dir === "string" &&
    dir.startsWith(`files/${id}/`) &&
    isSafePath(dir) &&
    TEXTS.every((key) => typeof value[key] === "string") &&
    LISTS.every((key) => Array.isArray(value[key])) &&
    isNeeds(value["missing"]) &&
    isJsonObject(facts) &&
    isNeeds(facts["needs"]) &&
    Array.isArray(facts["files"]) &&
    facts["files"].every(isFile)
  );
}

function isNeeds(value: unknown): boolean {
  return isJsonObject(value) && ["bins", "anyBins", "env", "config", "os"].every((key) => Array.isArray(value[key]));
}

function isFile(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { path, digest, size }: JsonObject = value;
  return typeof path === "string" && isSafePath(path) && typeof digest === "string" && typeof size === "number";
}
