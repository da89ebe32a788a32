/** Checks that the log is as it was written: every line, every file of a chain, and what chains saw of one another. */
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { AuditText, KeptFile, KeptLog } from "../../model/audit-blocks.ts";
import { asToolcribError, systemErrorCode } from "../../model/errors.ts";
import {
  type AuditFile,
  blockOf,
  bytesOf,
  fileName,
  hasRested,
  isInUse,
  linesOf,
  listFiles,
  listLog,
  type LogFile,
  parseFileName,
} from "./files.ts";
import { type FoundHeads, readHeads } from "./heads.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { openLine, parseLine } from "./line.ts";
import { type AnyRecord, HEADS_LOST, type HeaderRecord, isStored, KEYED, type SeenFile } from "./record.ts";

/** Each but the first reads only what has changed since. */
const PASSES = 20;

/** Processes that begin together may sign the heads in another order than that of their files. */
const FIRST_KEYED_MS = 60_000;

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

export interface ChainReport {
  readonly chain: string;
  readonly pid: number;
  readonly files: readonly string[];
  /** Lines of the log itself included. */
  readonly records: number;
  /**
   * closed: ended properly. open: its process may still write. unclosed: it was killed, or the end was cut off. missing:
   * none of its files is there.
   */
  readonly state: "closed" | "open" | "unclosed" | "missing";
  /** The last record: kept elsewhere, it shows later that nothing before it was changed. */
  readonly head: { readonly seq: number; readonly hash: string } | null;
  /** The id of the key that it is written with; null for a plain chain. */
  readonly key: string | null;
  /** Of a cluster: the node that wrote it. */
  readonly node?: string | undefined;
  readonly problems: readonly AuditProblem[];
}

export interface AuditReport {
  /** No errors; warnings are allowed. */
  readonly ok: boolean;
  /** Of the log as a whole. */
  readonly problems: readonly AuditProblem[];
  readonly chains: readonly ChainReport[];
}

export interface VerifyOptions {
  readonly keys?: AuditKeys;
  /** Has the files that are not in the folder. */
  readonly kept?: KeptLog | undefined;
  /**
   * Whether anything in the store was written in this folder, where that is known; others may have written all of it
   * elsewhere.
   */
  readonly wroteHere?: boolean | undefined;
  /** Called with the bytes that were checked. */
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
}

/** What `heads.json` is called in problems. */
const HEADS = "heads.json";

export async function verifyAudit(dir: string, options: VerifyOptions = {}): Promise<AuditReport> {
  const { keys = NO_KEYS, kept, wroteHere, onProgress } = options;
  // Before the files, and the folder before the store: what is written meanwhile makes a chain longer than its head.
  const found = readHeads(dir, keys);
  const isMissing = found.state === "missing";
  // No chain of this folder left a head, because there was none.
  const isNew = isMissing && wroteHere === false && listFiles(dir).length === 0;
  let [files, reports] = [await listLog(dir, kept), new Map<string, FileReport>()];
  // A file that was begun or pruned while others were read looks like one that is missing.
  for (let pass = 1, isSettled = false; pass <= PASSES && !isSettled; pass += 1) {
    const before = reports;
    reports = new Map();
    const bytes = bytesOf(files);
    let done = 0;
    for (const file of files) {
      const known = before.get(file.name);
      reports.set(file.name, known?.file.size === file.size ? known : await reportOf(file, kept, keys));
      onProgress?.((done += file.size), bytes);
      await turn();
    }
    const listed = await listLog(dir, kept);
    isSettled = namesOf(listed) === namesOf(files);
    files = listed;
  }
  const others = await strangers(kept);
  // Files that go by intention leave the one that says so.
  if (wroteHere === true && isMissing && reports.size === 0)
    others.push(problem(HEADS, "removed", "the whole log is missing, and the store knows that there was one"));
  return judge([...reports.values()], isNew ? { ...found, state: "plain" } : found, keys, others);
}

function namesOf(files: readonly AuditFile[]): string {
  return files.map((file) => file.name).join("\n");
}

/** What the store has and the log did not put there. */
async function strangers(kept: KeptLog | undefined): Promise<AuditProblem[]> {
  // In this order: a file comes with its first block, and goes with its last.
  const blocks = new Set(((await kept?.blocks()) ?? []).map(({ file }) => file));
  const names = new Set(((await kept?.files()) ?? []).map(({ file }) => file));
  const misnamed = [...names].filter((name) => parseFileName(name) === undefined);
  const problems = misnamed.map((name) => problem(name, "foreign", "the log gives no file in the store this name"));
  for (const name of blocks) {
    // What was pruned meanwhile has no lines any more.
    if (names.has(name) || (await kept?.textOf(name)) === "") continue;
    problems.push(problem(name, "changed", "the store has lines of a file that it did not take in"));
  }
  return problems;
}

async function reportOf(file: LogFile, kept: KeptLog | undefined, keys: AuditKeys): Promise<FileReport> {
  const { name, path } = file;
  // Before the file in the folder, which is never behind.
  const blocks = (file.kept && (await kept?.wholeBlocks(name))) ?? [];
  const stored = blocks.map((block) => block.text).join("");
  let text = stored;
  try {
    if (file.isInFolder) text = readFileSync(path, "utf8");
  } catch (error) {
    // It was in the folder a moment ago, and is in the store as a whole now.
    if (systemErrorCode(error) === "ENOENT")
      return reportOf({ ...file, isInFolder: false, kept: (await kept?.files([name]))?.[0] }, kept, keys);
    const why = `the file cannot be read: ${asToolcribError(error).message}`;
    return { ...checkLines(file, "", keys), problems: [problem(name, "unreadable", why)] };
  }
  const report = checkLines(file, text, keys);
  const problems = [...report.problems, ...differences(file, stored, text)];
  // The lines tell where it is broken; the rest tells only that it is.
  const isKnown = problems.some(({ severity }) => severity === "error");
  if (!isKnown && file.kept !== undefined) problems.push(...storeProblems(file, file.kept, blocks));
  return { ...report, problems };
}

/** What the store has of a file must be its beginning. */
function differences({ name }: LogFile, stored: string, text: string): AuditProblem[] {
  if (text.startsWith(stored)) return [];
  const [kept, lines] = [linesOf(stored), linesOf(text)];
  const at = kept.findIndex((line, index) => line !== lines[index]);
  if (at === -1 || at >= lines.length) {
    const more = at === -1 ? "text" : `${kept.length - at} lines`;
    return [problem(name, "truncated", `the store has ${more} more than the file in the folder`)];
  }
  return [problem(name, "changed", "the store has another line here than the file in the folder", at + 1)];
}

/** The lines are whole; there must be as many as were taken in, and each block must be what queries take it for. */
function storeProblems(file: LogFile, taken: KeptFile, blocks: readonly AuditText[]): AuditProblem[] {
  const { name } = file;
  let [lines, bytes, lastTime] = [0, 0, ""];
  for (const block of blocks) {
    const expected = blockOf(file, lines, block.text);
    if (!isDeepStrictEqual({ ...block }, expected)) {
      const message = "the store files the lines from here on under something that they do not say";
      return [problem(name, "changed", message, lines + 1)];
    }
    lines += expected.lines;
    bytes += expected.bytes;
    if (expected.lastTime > lastTime) lastTime = expected.lastTime;
  }
  if (lines < taken.lines)
    return [problem(name, "removed", `the store has ${lines} lines of it and took in ${taken.lines}`)];
  // More of them have come since the files were listed.
  if (lines > taken.lines) return [];
  // It would go before its time. An earlier version counted lines of the log itself, so it may be later.
  if (bytes === taken.bytes && taken.lastTime >= lastTime) return [];
  const said = `${taken.bytes} bytes up to ${taken.lastTime}`;
  return [problem(name, "changed", `the store says that it has ${said} of it, and has ${bytes} up to ${lastTime}`)];
}

function problem(file: string, what: AuditProblem["what"], message: string, line = 0): AuditProblem {
  return { severity: "error", what, file, line, message };
}

function warning(file: string, message: string, line = 0): AuditProblem {
  return { ...problem(file, "truncated", message, line), severity: "warning" };
}

interface FileReport {
  readonly file: AuditFile;
  readonly header?: HeaderRecord | undefined;
  /** Hash by sequence number, of the lines that are whole. */
  readonly hashes: ReadonlyMap<number, string>;
  readonly last?: AnyRecord | undefined;
  readonly pruned: readonly { readonly file: string; readonly hash: string }[];
  /** Records about `heads.json`, from which it follows what cannot be known of older chains. */
  readonly marks: readonly { readonly event: string; readonly line: number; readonly time: string }[];
  /** The lines were written with a key that is known. */
  readonly isKeyed: boolean;
  /** The node that its records name. */
  readonly node?: string | undefined;
  readonly problems: readonly AuditProblem[];
}

/** Walks the lines of one file and says where its chain is broken. */
function checkLines(file: AuditFile, text: string, keys: AuditKeys): FileReport {
  const lines = text.split("\n");
  const isTorn = lines.pop() !== "";
  const first = parseLine(lines[0] ?? "");
  // The header says which key a file has. One that lies about it makes every line fail.
  const id = first?.type === "header" ? first.key : undefined;
  const key = id === undefined ? undefined : (keys.known.get(id) ?? "unknown");
  const opened = lines.map((line) => openLine(line, key));
  // Every sequence number that is anywhere in the file: what is merely in the wrong place is not missing.
  const present = [...new Set(opened.map((each) => each?.record.seq ?? -1))];
  const problems: AuditProblem[] = [];
  const add = (what: AuditProblem["what"], line: number, message: string): void =>
    void problems.push(problem(file.name, what, message, line));
  const hashes = new Map<number, string>();
  const [pruned, marks]: [SeenFile[], { event: string; line: number; time: string }[]] = [[], []];
  let header: HeaderRecord | undefined;
  let last: AnyRecord | undefined;
  let node: string | undefined;
  /** Whether the hash of `last` can be held against the next line. */
  let isSure = false;
  /** Lines since the last record that are no records: changed beyond recognition, or never ours. */
  let unknown: number[] = [];
  for (const [index, each] of opened.entries()) {
    const line = index + 1;
    if (each === undefined) {
      unknown.push(line);
      continue;
    }
    const { record, intact } = each;
    const { seq, hash, type } = record;
    if (last !== undefined && seq <= last.seq) {
      if (hashes.get(seq) === hash) add("foreign", line, "a second copy of an earlier line");
      else if (hashes.has(seq)) add("foreign", line, "another line has this number");
      else add("reordered", line, "the line belongs further up");
      hashes.set(seq, hash);
      continue;
    }
    const gap = last === undefined ? Number.POSITIVE_INFINITY : seq - last.seq - 1;
    for (const each of unknown.slice(0, gap)) add("changed", each, "the line is no record");
    for (const each of unknown.slice(gap)) add("foreign", each, "a line that the log did not write");
    if (last === undefined) {
      if (type !== "header") add("removed", line, "the first line of the file is missing");
      else if (record.chain === file.chain) header = record;
      else add("foreign", line, "the file belongs to another chain than its name says");
    } else {
      const before = last.seq;
      const elsewhere = gap === 0 ? 0 : present.filter((each) => each > before && each < seq).length;
      const missing = gap - elsewhere - unknown.length;
      if (missing > 0) {
        add("removed", line, `${missing === 1 ? "a line is" : `${missing} lines are`} missing before this one`);
      } else if (gap === 0 && isSure && record.prev !== last.hash) {
        add("changed", line, "the line before this one is not the one that was written");
      }
      if (type === "header") add("foreign", line, "a second beginning within the file");
      if (last.type === "closed" || last.type === "rotated") add("foreign", line, "a line after the end of the file");
    }
    if (!intact) add("changed", line, "the line is not what was written");
    [unknown, last, isSure] = [[], record, intact];
    if (intact) hashes.set(seq, hash);
    if (intact && type === "pruned") pruned.push(...record.files);
    // Somebody may have put anything into a line.
    if (isStored(record) && typeof record.node === "string") node ??= record.node;
    if (type === "event" && (record.event === HEADS_LOST || record.event === KEYED))
      marks.push({ event: record.event, line, time: record.time });
  }
  for (const line of unknown) add("changed", line, "the line is no record");
  if (isTorn)
    problems.push(
      warning(file.name, "the last line is torn: its process was killed or the disk was full", lines.length + 1),
    );
  if (last === undefined && problems.length === 0) problems.push(warning(file.name, "the file is empty"));
  if (key === "unknown") {
    const named = JSON.stringify(id?.slice(0, MAX_ID_LENGTH));
    add("unreadable", 0, `the file cannot be checked without the key ${named}: \`audit.key\` or \`audit.oldKeys\``);
  }
  problems.sort((a, b) => a.line - b.line);
  const isKeyed = key !== undefined && key !== "unknown";
  return { file, header, hashes, last, pruned, marks, isKeyed, node, problems };
}

/**
 * What the reports of all files mean together.
 *
 * @param others Problems of the log as a whole that are known already.
 */
function judge(
  reports: readonly FileReport[],
  found: FoundHeads,
  keys: AuditKeys,
  others: readonly AuditProblem[],
): AuditReport {
  const byName = new Map(reports.map((report) => [report.file.name, report]));
  const byChain = Map.groupBy(reports, (report) => report.file.chain);
  // When the first keyed chain that is left began; undefined for a plain log. Names of files can be changed, headers cannot.
  const keyed = reports.filter(({ header, isKeyed, hashes }) => isKeyed && hashes.has(header?.seq ?? -1));
  const keyedSince = keyed.flatMap(({ header }) => header?.time ?? []).toSorted()[0];
  // What the log itself says it removed. In a keyed log plain chains explain only what is older than the first keyed one:
  // anyone may have written them.
  const firstKeyed = keyedSince && fileName(Date.parse(keyedSince), 0, "");
  const pruned = reports.flatMap((report) =>
    report.pruned.filter(({ file }) => report.isKeyed || firstKeyed === undefined || file < firstKeyed),
  );
  const prunedHashes = new Set<string | null>(pruned.map(({ hash }) => hash));
  const newestPruned = pruned.reduce((newest, { file }) => (file > newest ? file : newest), "");
  // Several chains may have seen the same file; it is reported once.
  const told = new Set<string>();

  const own = [...missingChains(), ...[...byChain].flatMap(([chain, parts]) => chainReport(chain, parts))];
  // Only when every chain has told of itself: what one chain saw of another is told where nothing else tells it.
  const chains = own.map((report) => {
    const parts = byChain.get(report.chain) ?? [];
    const seen = parts.flatMap(({ header }) => header?.seen ?? []);
    const witnessed = seen.flatMap((each) => check(each, `the chain ${report.chain}`));
    return { ...report, problems: [...report.problems, ...witnessed, ...plainProblem(parts[0])] };
  });
  const problems = [...others, ...headsProblems(), ...lostHeads()];
  const all = [...problems, ...chains.flatMap((chain) => chain.problems)];
  return { ok: all.every(({ severity }) => severity === "warning"), problems, chains };

  /** Files go oldest first, so one that is older than a pruned one may have gone with a marker that is gone itself. */
  function isPruned(file: string): boolean {
    return file <= newestPruned;
  }

  function headsProblems(): AuditProblem[] {
    const { state } = found;
    const isKeyed = reports.some((report) => report.isKeyed);
    const hasKey = keys.current !== undefined;
    const isOld = reports.some(({ file }) => hasRested(file));
    const problems: AuditProblem[] = [];
    const add = (what: AuditProblem["what"], message: string): void =>
      void problems.push(problem(HEADS, what, message));
    if (state === "damaged") add("changed", "the file is not what was written");
    if (state === "missing" && isOld)
      add("removed", "the file is missing, so ends that were cut off and newest files that were removed may not show");
    if (state === "foreign" && hasKey) add("unreadable", "the file is signed with a key that is not known");
    else if (state === "plain" && isKeyed) add("changed", "the file is not signed, although the log is keyed");
    else if (!isKeyed && hasKey && isOld)
      add(
        "removed",
        "nothing in the log is keyed with `audit.key`. If the key was set just now, this ends with the next record that is written",
      );
    return problems;
  }

  /** What processes found when they wrote `heads.json`. They write it again with what they know, so it cannot tell any more. */
  function lostHeads(): AuditProblem[] {
    const since = Date.parse(keyedSince ?? "");
    return reports.flatMap(({ file, marks }) =>
      marks.flatMap(({ event, line, time }): AuditProblem[] => {
        // A log gets its key once. Later, somebody took the signature away.
        const isFirst = Number.isNaN(since) || Date.parse(time) - since < FIRST_KEYED_MS;
        if (event !== HEADS_LOST && isFirst) return [];
        const was = event === HEADS_LOST ? "was removed or damaged" : "had lost its signature";
        const message = `heads.json ${was} before ${time}: ends cut off and newest files removed until then do not show`;
        return [problem(file.name, "removed", message, line)];
      }),
    );
  }

  /** Whoever lacks the key can still write plain chains: a log that was keyed once stays so. */
  function plainProblem(first: FileReport | undefined): AuditProblem[] {
    if (keyedSince === undefined || first?.header === undefined) return [];
    const { key, time } = first.header;
    if (key !== undefined || time < keyedSince) return [];
    const message = `the chain is not keyed, although the log is since ${keyedSince}: its process had no \`audit.key\`, or it is forged`;
    return [problem(first.file.name, "foreign", message)];
  }

  function missingChains(): ChainReport[] {
    return [...found.heads].flatMap(([chain, head]): ChainReport[] => {
      const problems = byChain.has(chain) ? [] : check(head, HEADS);
      if (problems.length === 0) return [];
      const { seq, hash, key = null } = head;
      return [{ chain, pid: 0, files: [], records: 0, state: "missing", head: { seq, hash }, key, problems }];
    });
  }

  function chainReport(chain: string, parts: readonly FileReport[]): ChainReport[] {
    const newest = parts.at(-1);
    if (newest === undefined) return [];
    const { file, last } = newest;
    const problems = parts.flatMap((report) => [...report.problems]);
    for (const [index, part] of parts.entries()) problems.push(...joint(parts[index - 1], part));
    const state = last?.type === "closed" ? "closed" : isInUse(file, Date.now(), newest) ? "open" : "unclosed";
    const head = found.heads.get(chain);
    // A chain that is longer than its head was killed before the head was written; one that is shorter was cut.
    const cut = head === undefined ? [] : check(head, HEADS);
    problems.push(...cut);
    if (last?.type === "rotated" && cut.length === 0)
      problems.push(problem(file.name, "removed", "the file that follows this one is missing"));
    else if (last?.type !== "rotated" && state === "unclosed")
      problems.push(warning(file.name, "the chain has no end: its process was killed, or the end was cut off"));
    const report: ChainReport = {
      chain,
      pid: file.pid,
      files: parts.map((part) => part.file.name),
      records: parts.reduce((sum, part) => sum + part.hashes.size, 0),
      state,
      head: last === undefined ? null : { seq: last.seq, hash: last.hash },
      key: newest.header?.key ?? null,
      // All records of a chain are of one node.
      node: parts.map((part) => part.node).find((each) => each !== undefined),
      problems,
    };
    return [report];
  }

  /** Whether a file goes on where the one before it ended. */
  function joint(before: FileReport | undefined, { header, file: { name } }: FileReport): AuditProblem[] {
    // A missing header is a problem of its own, and nothing more can be told.
    if (header === undefined) return [];
    const { part } = header;
    if (before === undefined) {
      if (part === 0 || prunedHashes.has(header.prev) || isPruned(name)) return [];
      const missing = part === 1 ? "the file before this one is" : `${part} files before this one are`;
      return [problem(name, "removed", `${missing} missing`)];
    }
    if (before.header !== undefined && before.header.key !== header.key)
      return [problem(name, "changed", "the chain has another key from this file on")];
    if (before.header !== undefined && part > before.header.part + 1)
      return [problem(name, "removed", "a file between this one and the one before is missing")];
    if (header.prev === null || header.seq < 1) return [problem(name, "foreign", "a second beginning of the chain")];
    return check({ file: before.file.name, seq: header.seq - 1, hash: header.prev }, "the file after it");
  }

  /** What is known elsewhere of the end of a file must still be so. */
  function check({ file, seq, hash }: SeenFile, witness: string): AuditProblem[] {
    const report = byName.get(file);
    if (told.has(file) || (report === undefined && isPruned(file))) return [];
    const there = report?.hashes.get(seq);
    // A file that is broken anyway is reported line by line.
    const isBroken = report?.problems.some(({ severity }) => severity === "error") === true;
    if (report !== undefined && (isBroken || seq < 0 || there === hash)) return [];
    told.add(file);
    if (report === undefined) return [problem(file, "removed", `the file is missing; ${witness} knows it`)];
    if (there !== undefined)
      return [problem(file, "changed", `the record ${seq} is not the one that ${witness} knows`)];
    const after = report.last === undefined ? "" : `after record ${report.last.seq}, `;
    return [problem(file, "truncated", `the file ends ${after}before record ${seq} that ${witness} knows`)];
  }
}
