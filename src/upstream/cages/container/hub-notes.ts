/**
 * Notes of hubs that have containers running: which process it is, and the engines that it used. A hub without
 * containers writes none, so that the next one need not ask an engine anything.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../../model/json.ts";
import type { HubMark } from "./labels.ts";

export interface HubNote extends HubMark {
  /** The engines' programs. */
  readonly programs: readonly string[];
  /** When it was last written. */
  readonly writtenAt: number;
}

export function writeNote(home: string, note: Omit<HubNote, "writtenAt">): void {
  const dir = notesFolder(home);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // A folder that was there before may be open to others, and a forged note could name a program.
  chmodSync(dir, 0o700);
  writeFileSync(noteFile(home, note), JSON.stringify(note), { mode: 0o600 });
}

export function removeNote(home: string, mark: Pick<HubMark, "id">): void {
  rmSync(noteFile(home, mark), { force: true });
}

/** Only those that this user wrote. */
export function readNotes(home: string): HubNote[] {
  const dir = notesFolder(home);
  let names: string[];
  try {
    names = readdirSync(dir);
  } catch {
    return [];
  }
  return names
    .filter((name) => /^[0-9a-f]{16}\.json$/.test(name))
    .map((name) => readNote(join(dir, name), name.slice(0, 16)))
    .filter((note) => note !== undefined);
}

function readNote(file: string, id: string): HubNote | undefined {
  try {
    const uid = process.getuid?.();
    const { uid: owner, mtimeMs: writtenAt } = statSync(file);
    if (uid !== undefined && owner !== uid) return undefined;
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (!isJsonObject(value)) return undefined;
    const { pid, startTime, place, programs } = value;
    if (typeof pid !== "number" || typeof startTime !== "string" || typeof place !== "string") return undefined;
    if (!Array.isArray(programs)) return undefined;
    const named = programs.filter((program) => typeof program === "string");
    return { id, pid, startTime, place, programs: named, writtenAt };
  } catch {
    return undefined;
  }
}

function notesFolder(home: string): string {
  return join(home, "run", "containers");
}

function noteFile(home: string, { id }: Pick<HubMark, "id">): string {
  return join(notesFolder(home), `${id}.json`);
}
