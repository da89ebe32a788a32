/** The form of a pid record: which process wrote it, and which children it had. */
import { isJsonObject } from "../../model/json.ts";
import type { CommandWords } from "./command-words.ts";

export interface ProcessMark {
  readonly pid: number;
  readonly startTime: string;
}

export interface ChildRecord extends ProcessMark {
  readonly pgid: number;
  readonly serverId: string;
  /** Name of the program, for people. */
  readonly program: string;
  /** Of every command line that this process was seen with. */
  readonly words: CommandWords;
  /** Other processes seen in its group: while one of them lives, the group id cannot have passed to a stranger. */
  readonly members: readonly ProcessMark[];
}

export interface PidRecord {
  readonly version: 1;
  readonly place: string;
  readonly owner: ProcessMark;
  readonly children: readonly ChildRecord[];
}

/** Null for anything that this version did not write. */
export function parseRecord(text: string): PidRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isJsonObject(value) || value["version"] !== 1 || typeof value["place"] !== "string") return null;
  const { place, owner, children } = value;
  if (!isMark(owner) || !Array.isArray(children) || !children.every(isChild)) return null;
  return { version: 1, place, owner, children };
}

function isMark(value: unknown): value is ProcessMark {
  return isJsonObject(value) && isPid(value["pid"]) && typeof value["startTime"] === "string";
}

function isChild(value: unknown): value is ChildRecord {
  if (!isJsonObject(value) || !isMark(value)) return false;
  const { pgid, serverId, program, words, members } = value;
  return (
    // Always a group of the child's own; any other could be somebody else's.
    pgid === value.pid &&
    typeof serverId === "string" &&
    typeof program === "string" &&
    isJsonObject(words) &&
    isStrings(words["all"]) &&
    isStrings(words["telling"]) &&
    Array.isArray(members) &&
    members.every(isMark)
  );
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** To kill(), 0, 1 and negative numbers mean our own group, init, or everything. */
function isPid(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 1;
}
