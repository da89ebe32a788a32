/**
 * Makes an install, an update or a removal all or nothing, also if the process is killed in the middle.
 *
 * Files, folders and the registry are changed through a change set. Secrets in the keychain and servers on trial are not part
 * of it: `PendingInstall` notes them before they exist, and a later run removes them. `installed.json`, which is part of the
 * change set, tells whether the install was completed.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { UndoEntries } from "../../files/change-set/change-journal.ts";
import { ChangeSet, recoverChanges } from "../../files/change-set/change-set.ts";
import { isProcessAlive, withLock } from "../../files/lock-file.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ManifestChange, SkillRegistry, WithinChanges } from "../../skills/registry/skill-registry.ts";
import { PidRecords } from "../../upstream/stdio/pid-records.ts";
import { changesDir, installLock, isTrialHome, pendingFile } from "./install-files.ts";
import { removeKeychainSecret } from "./install-secrets.ts";
import { readInstalled } from "./installed-skills.ts";

const PendingSchema = z.object({
  run: z.string(),
  pid: z.int(),
  secrets: z.array(z.string()),
  /** The home of the hub that tries the new servers, which holds the records of its children. */
  trial: z.string().optional(),
});

type PendingRecord = z.output<typeof PendingSchema>;

export class PendingInstall {
  /** Names this install in `installed.json`. */
  readonly run = randomUUID();
  readonly #home: string;
  #noted: PendingRecord;

  constructor(home: string) {
    this.#home = home;
    this.#noted = { run: this.run, pid: process.pid, secrets: [] };
  }

  noteSecret(name: string): Promise<void> {
    return this.#note({ secrets: [...this.#noted.secrets, name] });
  }

  /** Call it before there is anything in the folder. */
  noteTrial(dir: string): Promise<void> {
    return this.#note({ trial: dir });
  }

  /** Removes what was noted; the change set undoes the files. */
  async undo(env: NodeJS.ProcessEnv): Promise<void> {
    await removePendingSecrets(this.#noted, env);
    await this.settle();
  }

  async settle(): Promise<void> {
    await rm(pendingFile(this.#home), { force: true });
  }

  async #note(more: Partial<PendingRecord>): Promise<void> {
    this.#noted = { ...this.#noted, ...more };
    await mkdir(this.#home, { recursive: true, mode: 0o700 });
    await writeAtomic(pendingFile(this.#home), `${JSON.stringify(this.#noted)}\n`, { mode: 0o600 });
  }
}

export interface RecoveryContext {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly registry: SkillRegistry;
}

/** Undoes what a killed process left, and returns the files and folders that were put back. Does nothing while one is running. */
export async function recoverInstall({ home, env, registry }: RecoveryContext): Promise<string[]> {
  try {
    return await withLock(installLock(home), () => recover({ home, env, registry }), { waitMs: 0 });
  } catch (error) {
    if (error instanceof ToolcribError && error.code === "conflict") return [];
    throw error;
  }
}

async function recover({ home, env, registry }: RecoveryContext): Promise<string[]> {
  const restored = await recoverChanges(changesDir(home), { undoEntries: undoManifests(registry) });
  // Copies of skills that were being added or removed.
  if (restored.length > 0) await registry.sweep();
  await removeEmptyChangesDir(home);
  const pending = await readPending(home);
  if (pending === undefined || isProcessAlive(pending.pid)) return restored;
  if (pending.trial !== undefined) await endTrial(pending.trial);
  const installed = await readInstalled(home);
  if (!Object.values(installed).some(({ run }) => run === pending.run)) await removePendingSecrets(pending, env);
  await rm(pendingFile(home), { force: true });
  return restored;
}

/** The records say which processes are its own, and whether their hub is dead. */
async function endTrial(dir: string): Promise<void> {
  // Nothing else is removed, whatever the file says.
  if (!isTrialHome(dir)) return;
  await new PidRecords(join(dir, "run")).reapOrphans();
  await rm(dir, { recursive: true, force: true });
}

async function removePendingSecrets({ secrets }: PendingRecord, env: NodeJS.ProcessEnv): Promise<void> {
  for (const name of secrets) await removeKeychainSecret(name, env);
}

/** A truncated file was written before anything was done. */
async function readPending(home: string): Promise<PendingRecord | undefined> {
  const text = await readFile(pendingFile(home), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return PendingSchema.parse(JSON.parse(text));
  } catch {
    return { run: "", pid: 0, secrets: [] };
  }
}

/** One install, update or removal at a time; the others wait. */
export async function withInstallLock<T>(home: string, work: () => Promise<T>): Promise<T> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  return withLock(installLock(home), async () => {
    try {
      return await work();
    } finally {
      await removeEmptyChangesDir(home);
    }
  });
}

/** Runs `work` under the lock with a change set, which is undone if it fails. `work` itself calls `done()`. */
export function withInstallChanges<T>(
  home: string,
  registry: SkillRegistry,
  work: (changes: ChangeSet) => Promise<T>,
): Promise<T> {
  return withInstallLock(home, async () => {
    const changes = createInstallChanges(home, registry);
    try {
      return await work(changes);
    } catch (error) {
      await changes.undo();
      throw error;
    } finally {
      await registry.sweep();
    }
  });
}

/** It stays if another process has a journal there. */
async function removeEmptyChangesDir(home: string): Promise<void> {
  await rmdir(changesDir(home)).catch(() => undefined);
}

/** A change set of files, folders, and with `withinChanges` the registry of imported skills. */
export function createInstallChanges(home: string, registry: SkillRegistry): ChangeSet {
  return new ChangeSet({ journalDir: changesDir(home), undoEntries: undoManifests(registry) });
}

const REGISTRY_LABEL = "the list of imported skills";

export function withinChanges(changes: ChangeSet): Required<WithinChanges> {
  return { within: (manifests, write) => changes.changeEntries(REGISTRY_LABEL, manifests, write) };
}

function undoManifests(registry: SkillRegistry): UndoEntries {
  // Entries of these journals were written by `withinChanges`.
  return (changes) => registry.undoChanges(changes as readonly ManifestChange[]);
}

export function interruptedError(): ToolcribError {
  return new ToolcribError("cancelled", "The install was interrupted. All changes were undone.");
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw interruptedError();
}
