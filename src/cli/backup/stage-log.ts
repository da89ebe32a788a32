/** Copies the audit log, which is in its folder and in the database, and moves from the one to the other meanwhile. */
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "../../store/store.ts";
import { copyInto } from "./copy-into.ts";
import { AUDIT, DATABASE } from "./home-state.ts";

/** How far each chain had come. What is newer than the files that were copied would make them look cut off. */
const HEADS = "heads.json";
const NEWLINE = 10;

/**
 * The folder before the database, because a file goes when the database has it; and again after it, because the folder must
 * not be behind.
 */
export async function stageLog(home: string, store: Store | undefined, stage: string): Promise<void> {
  await copyInto(home, AUDIT, stage);
  if (store === undefined) return;
  const [folder, heads] = [join(stage, AUDIT), join(stage, AUDIT, HEADS)];
  const before = await readFile(heads).catch(() => undefined);
  await store.backup(join(stage, DATABASE));
  await copyInto(home, AUDIT, stage);
  if (before !== undefined) await writeFile(heads, before);
  const gone = (await namesIn(folder)).filter((name) => !existsSync(join(home, AUDIT, name)));
  for (const name of gone) await dropIfKept(join(folder, name), name, join(stage, DATABASE));
}

/** It may have grown after it was copied, before the database took all of it and it went. */
async function dropIfKept(path: string, name: string, database: string): Promise<void> {
  const { copiedLines } = await import("../../store/restore-store.ts");
  const lines = (await readFile(path)).reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0);
  if (lines <= copiedLines(database, name)) await rm(path);
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
