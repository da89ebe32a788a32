/**
 * What an install that is under way has done outside of files: secrets in the keychain, and servers that it tries. A
 * change set cannot take those back, so they are noted before they are done, and a later run takes them back if this one is killed. `installed.json`,
 * which is part of the change set, tells whether the install came to its end.
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
import { changesDir } from "./changes-dir.ts";
import { installLock, isTrialHome, pendingFile } from "./install-files.ts";
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

  async noteSecret(name: string): Promise<void> {
    this.#noted = { ...this.#noted, secrets: [...this.#noted.secrets, name] };
    await this.#write();
  }

  /** To be called before there is anything in the folder. */
  async noteTrial(dir: string): Promise<void> {
    this.#noted = { ...this.#noted, trial: dir };
    await this.#write();
  }

  /** Takes back what was noted; the files are the change set's business. */
  async undo(env: NodeJS.ProcessEnv): Promise<void> {
    await removePendingSecrets(this.#noted, env);
    await this.settle();
  }

  async settle(): Promise<void> {
    await rm(pendingFile(this.#home), { force: true });
  }

  async #write(): Promise<void> {
    await mkdir(this.#home, { recursive: true, mode: 0o700 });
    await writeAtomic(pendingFile(this.#home), `${JSON.stringify(this.#noted)}\n`, { mode: 0o600 });
  }
}

export interface RecoveryPlace {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly registry: SkillRegistry;
}

/**
 * Undoes what a process left that was killed in the middle, and gives the files and folders that were put back. While
 * another one is at work nothing is done: it takes care of itself.
 */
export async function recoverInstall({ home, env, registry }: RecoveryPlace): Promise<string[]> {
  try {
    return await withLock(installLock(home), () => recover({ home, env, registry }), { waitMs: 0 });
  } catch (error) {
    if (error instanceof ToolcribError && error.code === "conflict") return [];
    throw error;
  }
}

async function recover({ home, env, registry }: RecoveryPlace): Promise<string[]> {
  const restored = await recoverChanges(changesDir(home), { undoEntries: undoManifests(registry) });
  // Copies of skills that were to come, or were to go.
  if (restored.length > 0) await registry.sweep();
  // Only if nobody else has a journal there.
  await rmdir(changesDir(home)).catch(() => undefined);
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

/** One that was cut off was written before anything was done. */
async function readPending(home: string): Promise<PendingRecord | undefined> {
  const text = await readFile(pendingFile(home), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return PendingSchema.parse(JSON.parse(text));
  } catch {
    return { run: "", pid: 0, secrets: [] };
  }
}

/** The registry of imported skills as a part of a change set. Copies that are over then are swept when that is settled. */

const REGISTRY_LABEL = "the list of imported skills";

/** A change set of an install: files, folders, and with `withinChanges` the registry. */
export function createInstallChanges(home: string, registry: SkillRegistry): ChangeSet {
  return new ChangeSet({ journalDir: changesDir(home), undoEntries: undoManifests(registry) });
}

export function withinChanges(changes: ChangeSet): Required<WithinChanges> {
  return { within: (manifests, write) => changes.changeEntries(REGISTRY_LABEL, manifests, write) };
}

export function undoManifests(registry: SkillRegistry): UndoEntries {
  // Entries of these journals are what `withinChanges` wrote down.
  return (changes) => registry.undoChanges(changes as readonly ManifestChange[]);
}

export function interruptedError(): ToolcribError {
  return new ToolcribError("cancelled", "The install was interrupted; everything is as it was before.");
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw interruptedError();
}
