/** The manifests of imported skills in the store, with those that an earlier version kept in a file. */
import { createHash, randomUUID } from "node:crypto";
import { readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { withLock } from "../../files/lock-file.ts";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../model/json.ts";
import { SKILL_SOURCES, type SkillDialect, type SkillManifest } from "../../model/skill.ts";
import type { Store } from "../../store/store.ts";
import { isSafePath } from "../verified-files.ts";
import { isSkillId } from "./skill-id.ts";
import { DEFAULT_ICON, sourceOf } from "./skill-manifest.ts";

/** A row of the store that is not a manifest. It stops no other skill; importing it again replaces it. */
export interface BrokenSkill {
  readonly id: string;
  /** If that much can be read. */
  readonly name: string;
  readonly message: string;
}

export interface StoredManifests {
  /** In order of id. */
  readonly manifests: readonly SkillManifest[];
  readonly broken: readonly BrokenSkill[];
}

export interface ManifestStore {
  /** For messages. */
  readonly place: string;
  /** Which store it is, for the names of folders: eight characters, of this database at this place. */
  owner(): Promise<string>;
  read(): Promise<StoredManifests>;
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
    async read() {
      const manifests: SkillManifest[] = [];
      const broken: BrokenSkill[] = [];
      for (const { id, manifest: row } of await skills.list()) {
        const manifest = withPresentFields(row);
        if (isManifest(manifest) && manifest.id === id) manifests.push(manifest);
        else broken.push(brokenSkill(id, row, place));
      }
      return { manifests, broken };
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
    read: async () => ({ manifests: await readRegistryFile(file), broken: [] }),
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
  const manifests = skills.map((entry: unknown, index): SkillManifest => {
    const manifest = withPresentFields(entry);
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

function brokenSkill(id: string, { name }: JsonObject, place: string): BrokenSkill {
  return {
    id,
    name: typeof name === "string" && name !== "" ? name : id,
    message: `Its record in ${place} is damaged. Import it again, or remove it with toolcrib skill remove ${id}.`,
  };
}

/** In 0.2 `source` was what a skill was imported from, and tools were names. */
function withPresentFields(row: unknown): unknown {
  if (!isJsonObject(row) || row["from"] !== undefined) return row;
  const { source, tools, facts, icon, keywords, missing, description } = row;
  const dialect = isJsonObject(facts) ? facts["dialect"] : undefined;
  if (!Array.isArray(tools) || !Array.isArray(keywords) || !isJsonObject(missing)) return row;
  return {
    ...row,
    from: source,
    source: sourceOf({ dialect: isDialect(dialect) ? dialect : "agent-skills" }),
    icon: icon ?? DEFAULT_ICON,
    tools: tools.map((name) => (typeof name === "string" ? { name, description } : name)),
    keywords: [...new Set(["imported", ...keywords])],
    missing: { servers: [], ...missing },
  };
}

function isDialect(value: unknown): value is SkillDialect {
  return value === "openclaw" || value === "claude-code" || value === "agent-skills";
}

const NeedsSchema = z.object({
  bins: z.array(z.unknown()),
  anyBins: z.array(z.unknown()),
  env: z.array(z.unknown()),
  config: z.array(z.unknown()),
  os: z.array(z.unknown()),
});

/** Checks the keys that other code relies on, and that no path leaves the folder. Toolcrib wrote the rest itself. */
const ManifestSchema = z
  .object({
    id: z.string().refine(isSkillId),
    dir: z.string().refine(isSafePath),
    ...{ name: z.string(), version: z.string(), author: z.string(), description: z.string() },
    ...{
      source: z.enum(SKILL_SOURCES),
      from: z.string(),
      sourcePath: z.string(),
      icon: z.string(),
      importedAt: z.string(),
      digest: z.string(),
    },
    ...{ tools: z.array(z.object({ name: z.string() })), keywords: z.array(z.unknown()) },
    ...{ warnings: z.array(z.unknown()), findings: z.array(z.unknown()) },
    missing: NeedsSchema.extend({ servers: z.array(z.unknown()) }),
    facts: z.object({
      needs: NeedsSchema,
      files: z.array(z.object({ path: z.string().refine(isSafePath), digest: z.string(), size: z.number() })),
    }),
  })
  .refine(({ id, dir }) => dir.startsWith(`files/${id}/`));

function isManifest(value: unknown): value is SkillManifest {
  return ManifestSchema.safeParse(value).success;
}
