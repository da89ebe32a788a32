/** `toolcrib restore`: replaces the state of a home with that of a backup. */
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { readHubRecords } from "../../hub/activity/hub-records.ts";
import { storeAddress as addressOf } from "../../hub/create/open-home.ts";
import { formatBytes } from "../../model/content.ts";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { checkFile } from "../../store/sqlite-file.ts";
import type { Invocation } from "../command.ts";
import { loadConfigForStore } from "../load-with-trust.ts";
import { counted } from "../table.ts";
import {
  type BackupManifest,
  belongsInHome,
  CONFIG_PATHS,
  DATABASE_FILE,
  DATABASE_FILES,
  describeFiles,
  KEY_FILE,
  MANIFEST_FILE,
  readBackupManifest,
  STATE_PATHS,
} from "./backup.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, cwd, env, flags, out } = invocation;
  const file = resolve(cwd, args[0] ?? "");
  const home = toolcribHome(env);
  await assertNoHub(home);
  const address = await storeAddress(invocation);
  await assertNotOpen(home);
  await mkdir(home, { recursive: true, mode: 0o700 });
  const staged = await mkdtemp(join(home, ".restoring-"));
  try {
    const manifest = await unpackAndVerify(file, staged, out);
    const names = await readdir(staged);
    const database = names.includes(DATABASE_FILE);
    const moved = await pathsToMoveAside(home, names);
    const { hasState, restoreInto } = await import("../../store/restore-store.ts");
    const used = address !== undefined && database && (await hasState(address));
    if ((moved.length > 0 || used) && !flags.has("force")) throw inUse(home, moved, used);
    const aside = join(home, `before-restore-${new Date().toISOString().replace(/[:.]/g, "-")}`);
    if (address !== undefined && database) {
      const { stop } = out.spinner(() => "Restoring the database");
      try {
        if (used) await saveDatabase(address, home, aside);
        await restoreInto(address, join(staged, DATABASE_FILE));
      } finally {
        stop();
      }
      await rm(join(staged, DATABASE_FILE));
    }
    await replaceHome(home, staged, aside, moved);
    const keptAside = moved.length > 0 || used ? aside : null;
    if (out.json) out.value({ home, madeAt: manifest.madeAt, files: manifest.files.length, movedAside: keptAside });
    else {
      out.line(`Restored ${manifest.files.length} files from ${manifest.madeAt} into ${home}.`);
      if (keptAside !== null) out.line(`The previous state was moved to ${keptAside}.`);
    }
    if (manifest.store === "postgres" && address === undefined) {
      out.warn(
        "The backup comes from a PostgreSQL store, but `store` in the config is not set. Its database is now a file in the home.",
      );
    }
    return 0;
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

/** A running hub would keep writing to the files that are moved away. */
async function assertNoHub(home: string): Promise<void> {
  const [running] = readHubRecords(home);
  if (running === undefined) return;
  throw new ToolcribError("conflict", `A hub is running on ${home}: process ${running.pid} at ${running.url}.`, {
    hint: "Stop it first, and any client that started `toolcrib mcp` or `toolcrib acp` on this home.",
  });
}

/** A process that a client started has no address, and would keep writing too. */
async function assertNotOpen(home: string): Promise<void> {
  const { findDatabaseUsers } = await import("../../store/sqlite-file.ts");
  const file = join(home, DATABASE_FILE);
  const users = await findDatabaseUsers(file);
  if (users === undefined) return;
  const who = users.length === 0 ? "another process" : `process ${users.join(", ")}`;
  throw new ToolcribError("conflict", `The database ${file} is in use by ${who}.`, {
    hint: "Stop it first, and any client that started `toolcrib mcp` on this home.",
    details: { file, processes: users },
  });
}

function inUse(home: string, moved: readonly string[], used: boolean): ToolcribError {
  const what = [...moved, ...(used ? ["the PostgreSQL database"] : [])].join(", ");
  return new ToolcribError("conflict", `${home} already has state: ${what}.`, {
    hint: "Use --force to move it aside, or set TOOLCRIB_HOME to another folder.",
    details: { home },
  });
}

async function saveDatabase(url: string, home: string, aside: string): Promise<void> {
  const { openStore } = await import("../../store/open-store.ts");
  const store = await openStore({ home, url });
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 });
    await store?.backup(join(aside, DATABASE_FILE));
  } finally {
    await store?.close();
  }
}

/** Unpacks into an empty folder, and checks every file against the manifest before anything is replaced. */
async function unpackAndVerify(file: string, dir: string, out: Invocation["out"]): Promise<BackupManifest> {
  await unpack(file, dir, (count) => out.transient(`Unpacking ${counted(count, "file")}`));
  out.transient("");
  const manifest = await readBackupManifest(dir, file);
  const wanted = new Map(manifest.files.map((each) => [each.path, each]));
  const found = (await describeFiles(dir, out.progressBar("Checking", formatBytes))).filter(
    ({ path }) => path !== MANIFEST_FILE,
  );
  for (const { path, bytes, sha256 } of found) {
    const listed = wanted.get(path);
    if (listed === undefined || !belongsInHome(path)) throw unusableBackup(file, `${path} does not belong in a backup`);
    if (listed.bytes !== bytes || listed.sha256 !== sha256) throw unusableBackup(file, `${path} has changed`);
    wanted.delete(path);
  }
  for (const path of wanted.keys()) throw unusableBackup(file, `${path} is missing`);
  await makePrivate(dir);
  if (found.some(({ path }) => path === DATABASE_FILE)) await checkFile(join(dir, DATABASE_FILE));
  return manifest;
}

/** The permissions that a hub sets. Scripts of skills stay executable. */
async function makePrivate(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isOpened = entry.isDirectory() || ((await stat(path)).mode & 0o100) !== 0;
    await chmod(path, isOpened ? 0o700 : 0o600);
  }
}

/** `onFile` is called for each of the first files, then for every hundredth. */
async function unpack(file: string, dir: string, onFile: (count: number) => void): Promise<void> {
  const { extract } = await import("tar");
  let count = 0;
  try {
    extract({
      file,
      // Asynchronous extraction could keep writing after it has failed.
      sync: true,
      cwd: dir,
      strict: true,
      noChmod: true,
      // No links and no devices: nothing that could lead out of the folder.
      filter: (_path, entry) => {
        count += 1;
        if (count <= 100 || count % 100 === 0) onFile(count);
        return "type" in entry && (entry.type === "File" || entry.type === "Directory");
      },
    });
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") throw new ToolcribError("not_found", `The file ${file} does not exist.`);
    throw unusableBackup(file, error instanceof Error ? error.message : String(error));
  }
}

function unusableBackup(file: string, why: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `${file} is not a valid backup: ${why}.`, {
    hint: "Use another copy of it. Nothing was changed.",
    details: { file },
  });
}

/** Paths in the home that a restore of these names would move aside. */
async function pathsToMoveAside(home: string, restored: readonly string[]): Promise<string[]> {
  const names = [
    ...DATABASE_FILES,
    ...STATE_PATHS,
    ...[...CONFIG_PATHS, KEY_FILE].filter((name) => restored.includes(name)),
  ];
  const found = await Promise.all(names.map(async (name) => ((await hasContent(join(home, name))) ? [name] : [])));
  return found.flat();
}

/**
 * Replaces state by renames within the home, and undoes them if one fails. `staged` is a folder of the home; `aside` is created if needed.
 */
async function replaceHome(home: string, staged: string, aside: string, moved: readonly string[]): Promise<void> {
  const done: { from: string; to: string }[] = [];
  const move = async (from: string, to: string): Promise<void> => {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await rename(from, to);
    done.push({ from, to });
  };
  try {
    for (const name of moved) await move(join(home, name), join(aside, name));
    for (const name of await readdir(staged)) {
      if (name === MANIFEST_FILE) continue;
      // At most an empty folder or file of that name is left.
      await rm(join(home, name), { recursive: true, force: true });
      await move(join(staged, name), join(home, name));
    }
  } catch (error) {
    for (const { from, to } of done.toReversed()) await rename(to, from);
    throw error;
  }
}

async function hasContent(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return false;
  return found.isDirectory() ? (await readdir(path)).length > 0 : found.size > 0;
}

async function storeAddress(invocation: Invocation): Promise<string | undefined> {
  const config = await loadConfigForStore(invocation);
  const { store, secrets } = config.config;
  if (store === undefined || store === "sqlite") return undefined;
  const { env, out } = invocation;
  const lookup = new Secrets({ env, home: toolcribHome(env), redactor: out.redactor, ...secrets });
  return addressOf(store, config.baseDir, lookup);
}
