/** A backup of a home as one file. Hubs may run meanwhile. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { VERSION } from "../../model/version.ts";
import { LOCK_WAIT_MS, registryLock } from "../../skills/registry/manifest-store.ts";
import type { Store } from "../../store/store.ts";
import { copyInto } from "./copy-into.ts";
import { AUDIT, CONFIG, KEY, STATE } from "./home-state.ts";
import { stageLog } from "./stage-log.ts";
import { BACKUP_VERSION, describeFiles, MANIFEST, type Manifest } from "./manifest.ts";

interface BackupOptions {
  readonly home: string;
  readonly store: Store | undefined;
  /** Where the backup shall be. */
  readonly file: string;
  readonly withKey: boolean;
}

export async function makeBackup({ home, store, file, withKey }: BackupOptions): Promise<Manifest> {
  await mkdir(dirname(file), { recursive: true });
  // On the same disk, and for nobody else to read.
  const folder = await mkdtemp(join(dirname(file), `.${basename(file)}.`));
  try {
    const stage = join(folder, "home");
    await mkdir(stage);
    await stageState(home, store, stage);
    for (const name of CONFIG) await copyInto(home, name, stage);
    if (withKey) await copyInto(home, KEY, stage);
    const manifest: Manifest = {
      format: "toolcrib-backup",
      version: BACKUP_VERSION,
      madeAt: new Date().toISOString(),
      toolcrib: VERSION,
      store: store?.kind ?? null,
      files: await describeFiles(stage),
    };
    await writeFile(join(stage, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    await pack(stage, file);
    return manifest;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The database and the skills while nobody imports one: it names their folders. */
async function stageState(home: string, store: Store | undefined, stage: string): Promise<void> {
  const copy = async (): Promise<void> => {
    await stageLog(home, store, stage);
    for (const name of STATE) if (name !== AUDIT) await copyInto(home, name, stage);
  };
  // The lock stands in the folder of the skills, which the first import makes.
  if (!existsSync(join(home, "skills"))) await copy();
  if (existsSync(join(home, "skills"))) await withLock(registryLock(home), copy, { waitMs: LOCK_WAIT_MS });
}

async function pack(stage: string, file: string): Promise<void> {
  const { create } = await import("tar");
  const temporary = join(dirname(stage), `${randomUUID()}.tar.gz`);
  // The manifest first, so that a look at the beginning tells what it is.
  const names = (await readdir(stage)).filter((name) => name !== MANIFEST).toSorted();
  await create({ gzip: true, file: temporary, cwd: stage, portable: true }, [MANIFEST, ...names]);
  await chmod(temporary, 0o600);
  const handle = await open(temporary, "r+");
  await handle.sync().finally(() => handle.close());
  await rename(temporary, file);
}
