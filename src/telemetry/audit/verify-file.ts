/** Walks the lines of one file and says where its chain is broken. */
import type { AuditFile } from "./files.ts";
import { type AuditKey, type AuditKeys, NO_KEYS } from "./key.ts";
import { openLine, type OpenedLine, parseLine } from "./line.ts";
import { type AnyRecord, HEADS_LOST, type HeaderRecord, isStored, KEYED } from "./record.ts";

/** Anyone may have written anything into a header. */
const MAX_ID_LENGTH = 40;

export interface AuditProblem {
  readonly severity: "error" | "warning";
  readonly what: "removed" | "changed" | "reordered" | "truncated" | "foreign" | "unreadable";
  readonly file: string;
  /** From 1; 0 for the file as a whole. */
  readonly line: number;
  readonly message: string;
}

export interface FileReport {
  readonly file: AuditFile;
  readonly header: HeaderRecord | undefined;
  /** Hash by sequence number, of the lines that are whole. */
  readonly hashes: ReadonlyMap<number, string>;
  readonly first: AnyRecord | undefined;
  readonly last: AnyRecord | undefined;
  readonly pruned: readonly { readonly file: string; readonly hash: string }[];
  /** Records about `heads.json`, from which it follows what cannot be known of older chains. */
  readonly marks: readonly HeadsMark[];
  /** The lines were written with a key that is known. */
  readonly isKeyed: boolean;
  /** The node that its records name. */
  readonly node: string | undefined;
  readonly problems: readonly AuditProblem[];
}

export interface HeadsMark {
  readonly event: typeof HEADS_LOST | typeof KEYED;
  readonly line: number;
  readonly time: string;
}

interface Line {
  readonly number: number;
  readonly opened: OpenedLine | undefined;
}

export function verifyText(file: AuditFile, text: string, keys: AuditKeys = NO_KEYS): FileReport {
  const parts = text.split("\n");
  const torn = parts.pop() ?? "";
  const { id, key } = keyOf(parts[0] ?? "", keys);
  const lines = parts.map((line, index): Line => ({ number: index + 1, opened: openLine(line, key) }));
  const walk = new Walk(file, new Set(lines.map(({ opened }) => opened?.record.seq)));
  for (const line of lines) walk.take(line);
  walk.end(torn === "" ? undefined : parts.length + 1);
  if (key === "unknown") walk.leaveUnchecked(id);
  return walk.report(key !== undefined && key !== "unknown");
}

/** The header says which key a file has. One that lies about it makes every line fail. */
function keyOf(first: string, keys: AuditKeys): { id: string; key: AuditKey | "unknown" | undefined } {
  const record = parseLine(first);
  const id = record?.type === "header" ? record.key : undefined;
  return { id: id ?? "", key: id === undefined ? undefined : (keys.known.get(id) ?? "unknown") };
}

class Walk {
  readonly #file: AuditFile;
  /** Every sequence number that stands anywhere in the file: what is merely in the wrong place is not missing. */
  readonly #present: ReadonlySet<number | undefined>;
  readonly #problems: AuditProblem[] = [];
  readonly #hashes = new Map<number, string>();
  readonly #pruned: { file: string; hash: string }[] = [];
  readonly #marks: HeadsMark[] = [];
  #header: HeaderRecord | undefined;
  #first: AnyRecord | undefined;
  #last: AnyRecord | undefined;
  /** Whether the hash of `#last` can be held against the next line. */
  #lastIsSure = false;
  #node: string | undefined;
  /** Lines since the last record that are no records: changed beyond recognition, or never ours. */
  #unknown: number[] = [];

  constructor(file: AuditFile, present: ReadonlySet<number | undefined>) {
    this.#file = file;
    this.#present = present;
  }

  take({ number, opened }: Line): void {
    if (opened === undefined) {
      this.#unknown.push(number);
      return;
    }
    const { record, intact } = opened;
    const before = this.#last;
    if (before === undefined) this.#begin(record, number);
    else if (record.seq <= before.seq) {
      this.#outOfPlace(record, number);
      return;
    } else this.#follow(before, record, number);
    if (!intact) this.#add("changed", number, "the line is not what was written");
    this.#first ??= record;
    this.#last = record;
    this.#lastIsSure = intact;
    if (intact) this.#hashes.set(record.seq, record.hash);
    if (intact && record.type === "pruned") this.#pruned.push(...record.files);
    // Somebody may have put anything into a line.
    if (isStored(record) && typeof record.node === "string") this.#node ??= record.node;
    if (record.type !== "event") return;
    const { event, time } = record;
    if (event === HEADS_LOST || event === KEYED) this.#marks.push({ event, line: number, time });
  }

  leaveUnchecked(key: string): void {
    const id = JSON.stringify(key.slice(0, MAX_ID_LENGTH));
    this.#add("unreadable", 0, `the file cannot be checked without the key ${id}: \`audit.key\` or \`audit.oldKeys\``);
  }

  end(tornLine: number | undefined): void {
    for (const number of this.#unknown) this.#add("changed", number, "the line is no record");
    if (tornLine !== undefined) {
      this.#add("truncated", tornLine, "the last line is torn: its process was killed or the disk was full", "warning");
    }
    if (this.#last === undefined && this.#problems.length === 0) {
      this.#add("truncated", 0, "the file is empty", "warning");
    }
  }

  report(isKeyed: boolean): FileReport {
    return {
      file: this.#file,
      header: this.#header,
      hashes: this.#hashes,
      first: this.#first,
      last: this.#last,
      pruned: this.#pruned,
      marks: this.#marks,
      isKeyed,
      node: this.#node,
      problems: this.#problems.toSorted((a, b) => a.line - b.line),
    };
  }

  #begin(record: AnyRecord, number: number): void {
    for (const line of this.#unknown.splice(0)) this.#add("changed", line, "the line is no record");
    if (record.type !== "header") this.#add("removed", number, "the first line of the file is missing");
    else if (record.chain === this.#file.chain) this.#header = record;
    else this.#add("foreign", number, "the file belongs to another chain than its name says");
  }

  #follow(before: AnyRecord, record: AnyRecord, number: number): void {
    const gap = record.seq - before.seq - 1;
    const elsewhere = range(before.seq + 1, record.seq).filter((seq) => this.#present.has(seq)).length;
    const unknown = this.#unknown.splice(0);
    for (const line of unknown.slice(0, gap)) this.#add("changed", line, "the line is no record");
    for (const line of unknown.slice(gap)) this.#add("foreign", line, "a line that the log did not write");
    const missing = gap - elsewhere - unknown.length;
    if (missing > 0) {
      this.#add("removed", number, `${missing === 1 ? "a line is" : `${missing} lines are`} missing before this one`);
    } else if (gap === 0 && this.#lastIsSure && record.prev !== before.hash) {
      this.#add("changed", number, "the line before this one is not the one that was written");
    }
    if (record.type === "header") this.#add("foreign", number, "a second beginning within the file");
    if (before.type === "closed" || before.type === "rotated")
      this.#add("foreign", number, "a line after the end of the file");
  }

  #outOfPlace({ seq, hash }: AnyRecord, number: number): void {
    if (this.#hashes.get(seq) === hash) this.#add("foreign", number, "a second copy of an earlier line");
    else if (this.#hashes.has(seq)) this.#add("foreign", number, "another line has this number");
    else this.#add("reordered", number, "the line belongs further up");
    this.#hashes.set(seq, hash);
  }

  #add(what: AuditProblem["what"], line: number, message: string, severity: AuditProblem["severity"] = "error"): void {
    this.#problems.push({ severity, what, file: this.#file.name, line, message });
  }
}

/** Bounded: a forged number must not cost memory. */
function range(from: number, to: number): number[] {
  return Array.from({ length: Math.min(to - from, 10_000) }, (_, index) => from + index);
}
