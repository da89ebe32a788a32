/** The folders in which images are made, `$TOOLCRIB_HOME/run/images/<pid>-…`: one that a killed process left is found again. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../../files/lock-file.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { type ProcessTable, systemProcessTable } from "../../orphans/process-table.ts";

interface Turn {
  readonly home: string;
  readonly image: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Making an image is over by then, wherever it was begun. */
const LONGEST_USE_MS = 24 * 3600 * 1000;
const LOOK_MS = 500;

/** Gives the work a folder that is gone afterwards. */
export async function inImageFolder(home: string, work: (folder: string) => Promise<void>): Promise<void> {
  const place = placeHash(systemProcessTable()?.place ?? "");
  const folder = join(foldersOf(home), `${process.pid}-${place}-${randomBytes(4).toString("hex")}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Does the work when no other process does it. The lock itself does not hear a signal. */
export async function whileNobodyElse(turn: Turn, work: () => Promise<void>): Promise<void> {
  const { home, image, waitMs, signal } = turn;
  const run = join(home, "run");
  await mkdir(run, { recursive: true, mode: 0o700 });
  const key = createHash("sha256").update(image).digest("hex").slice(0, 16);
  const deadline = performance.now() + waitMs;
  let isOurs = false;
  const begin = (): Promise<void> => {
    isOurs = true;
    return work();
  };
  for (;;) {
    if (signal.aborted) throw new ToolcribError("cancelled", "making an image was cancelled");
    try {
      return await withLock(join(run, `image-${key}`), begin, { waitMs: LOOK_MS });
    } catch (error) {
      if (isOurs || performance.now() > deadline) throw error;
      if (!(error instanceof ToolcribError && error.code === "conflict")) throw error;
    }
  }
}

/** Removes those of processes that are dead. Never rejects. */
export async function sweepImageFolders(home: string, table: ProcessTable | null): Promise<void> {
  const here = placeHash(table?.place ?? "");
  for (const name of await readdir(foldersOf(home)).catch(() => [])) {
    const [, pid, place] = /^(\d+)-([0-9a-f]{8})-[0-9a-f]{8}$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const folder = join(foldersOf(home), name);
    // A pid says nothing about processes of another boot, container or machine, and may be somebody else's by now.
    const isDead = table !== null && place === here && table.find(Number(pid)) === null;
    const age =
      Date.now() -
      (await stat(folder)
        .then(({ mtimeMs }) => mtimeMs)
        .catch(() => Date.now()));
    if (isDead || age > LONGEST_USE_MS) await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

function foldersOf(home: string): string {
  return join(home, "run", "images");
}

function placeHash(place: string): string {
  return createHash("sha256").update(place).digest("hex").slice(0, 8);
}
