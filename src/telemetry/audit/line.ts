/**
 * One line of the log: a JSON object whose last member is the SHA-256 of the line's own text without that member, or with a
 * key its HMAC. The
 * text as it stands is hashed, not a canonical form of it, so that no edit at all goes unseen and any program can check.
 */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { type AuditKey, digestOf } from "./key.ts";
import type { AnyRecord } from "./record.ts";

const TAIL = /,"hash":"([0-9a-f]{64})"\}$/;
const TAIL_LENGTH = 75;
const TYPES = new Set(["start", "call", "decision", "event", "header", "rotated", "closed", "pruned"]);

export interface SealedLine {
  /** With its newline. */
  readonly line: string;
  readonly hash: string;
}

/** `body` is the JSON text of an object with at least one member. */
export function sealLine(seq: number, prev: string | null, body: string, key?: AuditKey): SealedLine {
  const text = `{"seq":${seq},"prev":${prev === null ? "null" : `"${prev}"`},${body.slice(1)}`;
  const digest = digestOf(text, key);
  return { line: `${text.slice(0, -1)},"hash":"${digest}"}\n`, hash: digest };
}

export interface OpenedLine {
  readonly record: AnyRecord;
  /** Whether the text still has the hash that it states. */
  readonly intact: boolean;
}

/**
 * `line` is without its newline. undefined for what is no record at all.
 *
 * @param key Of the file; "unknown" if it has one that is not given here: then only the form of the line is checked.
 */
export function openLine(line: string, key?: AuditKey | "unknown"): OpenedLine | undefined {
  const record = parseLine(line);
  if (record === undefined) return undefined;
  if (!TAIL.test(line)) return { record, intact: false };
  return { record, intact: key === "unknown" || digestOf(`${line.slice(0, -TAIL_LENGTH)}}`, key) === record.hash };
}

/** As `openLine`, without checking the hash: for reading. */
export function parseLine(line: string): AnyRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  return isJsonObject(value) && isRecord(value) ? value : undefined;
}

/** The members that are read without being checked again where they are used. The rest is shown, not relied on. */
function isRecord(value: JsonObject): value is JsonObject & AnyRecord {
  const { seq, prev, hash: stated, type, time, origin } = value;
  if (!Number.isSafeInteger(seq) || !(prev === null || typeof prev === "string")) return false;
  if (typeof stated !== "string" || typeof type !== "string" || !TYPES.has(type) || typeof time !== "string")
    return false;
  if (origin !== undefined && origin !== null && !isJsonObject(origin)) return false;
  if (type === "header") return isHeader(value);
  return type !== "pruned" || isSeenList(value["files"]);
}

function isHeader({ chain, part, process, salt, seen, key }: JsonObject): boolean {
  if (key !== undefined && typeof key !== "string") return false;
  if (typeof chain !== "string" || !Number.isSafeInteger(part) || typeof salt !== "string") return false;
  return (
    isJsonObject(process) &&
    typeof process["pid"] === "number" &&
    typeof process["host"] === "string" &&
    isSeenList(seen)
  );
}

function isSeenList(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => isJsonObject(each) && typeof each["file"] === "string");
}
