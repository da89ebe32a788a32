/** `toolcrib backup`: saves the state of a home to one file, while hubs may run. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { toolcribHome } from "../../config/find-config.ts";
import { withLock } from "../../files/lock-file.ts";
import { formatBytes } from "../../model/content.ts";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { LOCK_WAIT_MS, registryLock } from "../../skills/registry/manifest-store.ts";
import type { Store } from "../../store/store.ts";
import { commandStore } from "../command-store.ts";
import type { Invocation } from "../command.ts";
import { parseJson } from "../../model/json.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, cwd, env, flags, out } = invocation;
  const file = resolve(cwd, args[0] ?? "");
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isDirectory() === true) {
    throw new ToolcribError("invalid_arguments", `${file} is a folder; a backup is one file.`, {
      hint: `toolcrib backup ${args[0] ?? ""}/toolcrib-backup.tar.gz`,
    });
  }
  if (existing !== undefined && !flags.has("force")) {
    throw new ToolcribError("conflict", `The file ${file} already exists.`, { hint: "Use --force to overwrite it." });
  }
  const stores = commandStore(invocation, { refuseUnknownStore: true, needsAll: true });
  try {
    const store = await stores.open({ create: false });
    const withKey = flags.has("withKey");
    const progress = (what: string): Progress => out.progressBar(what, formatBytes);
    const { files, madeAt } = await makeBackup({ home: toolcribHome(env), store, file, withKey, progress });
    const bytes = (await stat(file)).size;
    if (out.json) out.value({ file, madeAt, bytes, files: files.length, store: store?.place ?? null, withKey });
    else {
      out.line(`Saved ${files.length} files to ${file} (${bytes} bytes).`);
      out.note(
        withKey
          ? "The backup contains the key: anyone who has the file can read the secrets in the store. Logins are not included."
          : "Secrets and logins are not included. Keep the file private anyway: it shows which calls were made and by whom.",
      );
    }
    return 0;
  } finally {
    await stores.close();
  }
}

interface BackupOptions {
  readonly home: string;
  readonly store: Store | undefined;
  readonly file: string;
  readonly withKey: boolean;
  /** Called once for each part of the work. */
  readonly progress?: (what: string) => Progress;
}

/** Called with bytes. */
type Progress = (done: number, of: number) => void;

export async function makeBackup(options: BackupOptions): Promise<BackupManifest> {
  const { home, store, file, withKey, progress = () => () => {} } = options;
  await mkdir(dirname(file), { recursive: true });
  // On the same disk, and readable only by this user.
  const folder = await mkdtemp(join(dirname(file), `.${basename(file)}.`));
  try {
    const stage = join(folder, "home");
    await mkdir(stage);
    const copied = counter(progress("Copying"), await sizeOfState(home));
    await stageState(home, store, stage, copied);
    for (const name of CONFIG_PATHS) await copyInto(home, name, stage, copied);
    if (withKey) await copyInto(home, KEY_FILE, stage, copied);
    copied.end();
    const manifest: BackupManifest = {
      format: "toolcrib-backup",
      version: BACKUP_VERSION,
      madeAt: new Date().toISOString(),
      toolcrib: VERSION,
      store: store?.kind ?? null,
      files: await describeFiles(stage, progress("Checking")),
    };
    await writeFile(join(stage, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
    const bytes = manifest.files.reduce((sum, each) => sum + each.bytes, 0);
    await pack(stage, file, counter(progress("Packing"), bytes));
    return manifest;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** No skill may be imported meanwhile, because the database names the folders of skills. */
async function stageState(home: string, store: Store | undefined, stage: string, copied: Counter): Promise<void> {
  const copy = async (): Promise<void> => {
    await stageAuditLog(home, store, stage, copied);
    for (const name of STATE_PATHS) if (name !== AUDIT_DIR) await copyInto(home, name, stage, copied);
  };
  // The lock is in the skills folder, which the first import creates.
  if (!existsSync(join(home, "skills"))) await copy();
  if (existsSync(join(home, "skills"))) await withLock(registryLock(home), copy, { waitMs: LOCK_WAIT_MS });
}

/** Adds up bytes for a progress bar. */
interface Counter {
  add(bytes: number): void;
  end(): void;
}

function counter(progress: Progress, of: number): Counter {
  let done = 0;
  progress(0, of);
  return { add: (bytes) => progress(Math.min((done += bytes), of - 1), of), end: () => progress(of, of) };
}

/** About what will be copied: files change while a hub runs. */
async function sizeOfState(home: string): Promise<number> {
  const sizes = [...STATE_PATHS, ...CONFIG_PATHS, DATABASE_FILE].map(async (name) => {
    const path = join(home, name);
    const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => undefined);
    const files = entries?.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return Promise.all((files ?? [path]).map(sizeOf));
  });
  return (await Promise.all(sizes)).flat().reduce((sum, size) => sum + size, 0);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function pack(stage: string, file: string, packed: Counter): Promise<void> {
  const { create } = await import("tar");
  const temporary = join(dirname(stage), `${randomUUID()}.tar.gz`);
  // The manifest first, so that the beginning of the file identifies it.
  const names = (await readdir(stage)).filter((name) => name !== MANIFEST_FILE).toSorted();
  const filter = (_path: string, { size }: { readonly size: number }): boolean => {
    packed.add(size);
    return true;
  };
  await create({ gzip: true, file: temporary, cwd: stage, portable: true, filter }, [MANIFEST_FILE, ...names]);
  packed.end();
  await chmod(temporary, 0o600);
  const handle = await open(temporary, "r+");
  await handle.sync().finally(() => handle.close());
  await rename(temporary, file);
}

/** The last record of each chain. A version newer than the copied files would make them look truncated. */
const HEADS_FILE = "heads.json";
const NEWLINE = 10;

/**
 * The audit log moves from its folder into the database, also during a backup. The folder is copied first, because a file is
 * deleted once the database has it, and again after the database, because the folder must not be behind.
 */
async function stageAuditLog(home: string, store: Store | undefined, stage: string, copied: Counter): Promise<void> {
  await copyInto(home, AUDIT_DIR, stage, copied);
  if (store === undefined) return;
  const [folder, heads] = [join(stage, AUDIT_DIR), join(stage, AUDIT_DIR, HEADS_FILE)];
  const before = await readFile(heads).catch(() => undefined);
  await store.backup(join(stage, DATABASE_FILE));
  copied.add(await sizeOf(join(stage, DATABASE_FILE)));
  await copyInto(home, AUDIT_DIR, stage);
  if (before !== undefined) await writeFile(heads, before);
  const gone = (await readdir(folder).catch(() => [])).filter((name) => !existsSync(join(home, AUDIT_DIR, name)));
  for (const name of gone) await removeIfStored(join(folder, name), name, join(stage, DATABASE_FILE));
}

/** The file may have grown after it was copied, before it moved into the database. */
async function removeIfStored(path: string, name: string, database: string): Promise<void> {
  const { copiedLines } = await import("../../store/restore-store.ts");
  const lines = (await readFile(path)).reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0);
  if (lines <= copiedLines(database, name)) await rm(path);
}

/** Files and folders only. Files that a hub removes meanwhile are skipped. */
async function copyInto(from: string, name: string, to: string, copied?: Counter): Promise<void> {
  const source = join(from, name);
  const entries = await readdir(source, { withFileTypes: true }).catch(codeOf);
  if (entries === "ENOTDIR") return copyOne(source, join(to, name), copied);
  if (entries === "ENOENT") return;
  if (typeof entries === "string") throw unreadable(source, entries);
  await mkdir(join(to, name), { recursive: true, mode: 0o700 });
  // Newest first, if names contain the time: records refer to the end of older files.
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? 1 : -1))) {
    if (entry.isDirectory()) await copyInto(source, entry.name, join(to, name), copied);
    // Unfinished files of other processes. Locks are links, which are skipped anyway.
    else if (entry.isFile() && !entry.name.endsWith(".tmp"))
      await copyOne(join(source, entry.name), join(to, name, entry.name), copied);
  }
}

async function copyOne(source: string, target: string, copied: Counter | undefined): Promise<void> {
  try {
    await copyFile(source, target);
    copied?.add(await sizeOf(target));
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ENOENT") throw unreadable(source, code);
  }
}

function unreadable(path: string, code: string): ToolcribError {
  return new ToolcribError("internal", `${path} cannot be copied (${code}).`, {
    hint: "Check its owner and the disk.",
  });
}

function codeOf(error: unknown): string {
  return systemErrorCode(error) ?? "unknown reason";
}

export const MANIFEST_FILE = "manifest.json";
const BACKUP_VERSION = 1;

const FileSchema = z.object({
  path: z.string().min(1),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const ManifestSchema = z.object({
  format: z.literal("toolcrib-backup"),
  version: z.int().min(1),
  madeAt: z.string(),
  toolcrib: z.string(),
  store: z.enum(["sqlite", "postgres"]).nullable(),
  files: z.array(FileSchema),
});

export type BackupManifest = z.output<typeof ManifestSchema>;
type ManifestFile = z.output<typeof FileSchema>;

export async function readBackupManifest(dir: string, backup: string): Promise<BackupManifest> {
  const text = await readFile(join(dir, MANIFEST_FILE), "utf8").catch(() => undefined);
  const value = text === undefined ? undefined : parseJson(text);
  const version = z.object({ format: z.literal("toolcrib-backup"), version: z.int() }).safeParse(value).data?.version;
  if (version !== undefined && version > BACKUP_VERSION) {
    const message = `${backup} has backup version ${version}; this Toolcrib supports version ${BACKUP_VERSION}.`;
    const hint = "Restore it with the Toolcrib version that made it, or a newer one.";
    throw new ToolcribError("invalid_arguments", message, { hint });
  }
  const parsed = ManifestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const message = `${backup} is not a Toolcrib backup, or it is damaged: it has no valid ${MANIFEST_FILE}.`;
  const hint = "Use a file written by toolcrib backup. Nothing was changed.";
  throw new ToolcribError("invalid_arguments", message, { hint });
}

/** All files below the folder, sorted, as paths with forward slashes. */
export async function describeFiles(dir: string, progress: Progress = () => {}): Promise<ManifestFile[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const total = (await Promise.all(paths.map(sizeOf))).reduce((sum, size) => sum + size, 0);
  const read = counter(progress, total);
  const files: ManifestFile[] = [];
  for (const path of paths.toSorted()) {
    const { size } = await stat(path);
    files.push({ path: relative(dir, path).split(sep).join("/"), bytes: size, sha256: await digestOf(path, read) });
  }
  read.end();
  return files;
}

async function digestOf(path: string, read: Counter): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(
    createReadStream(path).on("data", ({ length }) => read.add(length)),
    hash,
  );
  return hash.digest("hex");
}

/** State of the home that cannot be recreated. Secrets, logins, caches and the files of a running hub are not included. */
export const DATABASE_FILE = "toolcrib.db";
export const KEY_FILE = "store.key";
const AUDIT_DIR = "audit";

/** Replaced as a whole by a restore, or removed if the backup lacks them. */
export const STATE_PATHS = ["skills", AUDIT_DIR, "locks", "replaced", "installed.json", "clients.json"] as const;
/** The user's own files; a restore changes only those that the backup has. */
export const CONFIG_PATHS = ["etc", "toolcrib.json", "toolcrib.jsonc", "toolcrib.lock"] as const;
/** The database and its SQLite side files. */
export const DATABASE_FILES = [DATABASE_FILE, `${DATABASE_FILE}-wal`, `${DATABASE_FILE}-shm`] as const;

const TOP_LEVEL_PATHS: ReadonlySet<string> = new Set([...STATE_PATHS, ...CONFIG_PATHS, DATABASE_FILE, KEY_FILE]);

/** Whether a path of a backup, with slashes, may be written into a home. */
export function belongsInHome(path: string): boolean {
  const parts = path.split("/");
  return (
    TOP_LEVEL_PATHS.has(parts[0] ?? "") &&
    parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\\0]/.test(part))
  );
}
