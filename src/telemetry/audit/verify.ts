/** Checks that the log is as it was written: every line, every file of a chain, and what chains saw of one another. */
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { systemErrorCode } from "../../model/errors.ts";
import {
  type AuditBlock,
  type AuditFile,
  blockOf,
  fileName,
  hasRested,
  type KeptFile,
  type KeptLog,
  linesOf,
  listFiles,
  listLog,
  type LogFile,
  mayGrow,
  parseFileName,
} from "./files.ts";
import { type ChainHead, type FoundHeads, type Heads, readHeads } from "./heads.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { HEADS_LOST, type SeenFile } from "./record.ts";
import { type AuditProblem, type FileReport, verifyText } from "./verify-file.ts";

export type { AuditProblem } from "./verify-file.ts";

const ATTEMPTS = 4;

/** Processes that begin together may sign the heads in another order than that of their files. */
const FIRST_KEYED_MS = 60_000;

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

/** No chain of this folder left a head, because there was none. */
const NO_HEADS: FoundHeads = { heads: new Map(), signature: "none" };

export async function verifyAudit(dir: string, options: VerifyOptions = {}): Promise<AuditReport> {
  const { keys = NO_KEYS, kept, wroteHere, onProgress } = options;
  for (let attempt = 1; ; attempt += 1) {
    // Before the files, and the folder before the store: what is written meanwhile makes a chain longer than its head.
    const found = readHeads(dir, keys);
    const isNew = wroteHere === false && listFiles(dir).length === 0;
    const heads = found === "missing" && isNew ? NO_HEADS : found;
    const files = await listLog(dir, kept);
    const reports: FileReport[] = [];
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    let done = 0;
    for (const file of files) {
      reports.push(await reportOf(file, kept, keys));
      onProgress?.((done += file.size), bytes);
      await turn();
    }
    const isGone = wroteHere === true && found === "missing" && files.length === 0;
    const others = [...(await strangers(kept)), ...(isGone ? [GONE] : [])];
    const report = judge(reports, heads, { keys, others });
    // A file that was begun or pruned meanwhile looks like one that is missing.
    if (report.ok || attempt === ATTEMPTS || namesOf(await listLog(dir, kept)) === namesOf(files)) return report;
  }
}

/** The store remembers that this folder had a log. Files that go by intention leave the one that says so. */
const GONE = problem(
  { name: "heads.json" },
  "removed",
  "the whole log is missing, and the store knows that there was one",
);

/** What the store has and the log did not put there. */
async function strangers(kept: KeptLog | undefined): Promise<AuditProblem[]> {
  // In this order: a file comes with its first block, and goes with its last.
  const blocks = new Set(((await kept?.blocks()) ?? []).map(({ file }) => file));
  const names = new Set(((await kept?.files()) ?? []).map(({ file }) => file));
  const misnamed = [...names].filter((name) => parseFileName(name) === undefined);
  const problems = misnamed.map((name) => problem({ name }, "foreign", "the log gives no file in the store this name"));
  for (const name of blocks) {
    // What was pruned meanwhile has no lines any more.
    if (names.has(name) || (await kept?.textOf(name)) === "") continue;
    problems.push(problem({ name }, "changed", "the store has lines of a file that it did not take in"));
  }
  return problems;
}

async function reportOf(file: LogFile, kept: KeptLog | undefined, keys: AuditKeys): Promise<FileReport> {
  // Before the file in the folder, which is never behind.
  const blocks = file.kept === undefined ? undefined : await kept?.wholeBlocks(file.name);
  const before = blocks?.map((block) => block.text).join("");
  const inFolder = file.isInFolder ? textOf(file.path) : undefined;
  if (typeof inFolder === "object")
    return { ...verifyText(file, "", keys), problems: [problem(file, "unreadable", inFolder.why)] };
  // One that was in the folder a moment ago is in the store as a whole now.
  const isGone = file.isInFolder && inFolder === undefined;
  const text = inFolder ?? (isGone ? await kept?.textOf(file.name) : before) ?? "";
  const report = verifyText(file, text, keys);
  const found = typeof inFolder === "string" && before !== undefined ? difference(file, before, inFolder) : undefined;
  const problems = [...report.problems, ...(found === undefined ? [] : [found])];
  // The lines tell where it is broken; the rest tells only that it is.
  const isKnown = problems.some(({ severity }) => severity === "error");
  if (!isKnown && file.kept !== undefined) problems.push(...storeProblems(file, file.kept, blocks ?? []));
  return { ...report, problems };
}

/** undefined for a file that is not in the folder any more. */
function textOf(path: string): string | { readonly why: string } | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    return { why: `the file cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** What the store has of a file must be its beginning. */
function difference(file: LogFile, stored: string, text: string): AuditProblem | undefined {
  if (text.startsWith(stored)) return undefined;
  const [kept, lines] = [linesOf(stored), linesOf(text)];
  const at = kept.findIndex((line, index) => line !== lines[index]);
  if (at === -1 || at >= lines.length) {
    const more = at === -1 ? "text" : `${kept.length - at} lines`;
    return problem(file, "truncated", `the store has ${more} more than the file in the folder`);
  }
  const differs = "the store has another line here than the file in the folder";
  return { ...problem(file, "changed", differs), line: at + 1 };
}

/** The lines are whole; there must be as many as were taken in, and each block must be what queries take it for. */
function storeProblems(
  file: LogFile,
  taken: KeptFile,
  blocks: readonly (AuditBlock & { readonly text: string })[],
): AuditProblem[] {
  let [lines, bytes] = [0, 0];
  for (const block of blocks) {
    const expected = blockOf(file, lines, block.text);
    if (!isDeepStrictEqual({ ...block }, expected)) {
      const message = "the store files the lines from here on under something that they do not say";
      return [{ ...problem(file, "changed", message), line: lines + 1 }];
    }
    lines += expected.lines;
    bytes += expected.bytes;
  }
  if (lines < taken.lines)
    return [problem(file, "removed", `the store has ${lines} lines of it and took in ${taken.lines}`)];
  // More of them have come since the files were listed.
  if (lines > taken.lines || bytes === taken.bytes) return [];
  return [problem(file, "changed", `the store has ${bytes} bytes of it and says that it took in ${taken.bytes}`)];
}

interface JudgeOptions {
  readonly keys: AuditKeys;
  /** Problems of the log as a whole that are known already. */
  readonly others?: readonly AuditProblem[];
}

/** What the reports of all files mean together. */
function judge(
  reports: readonly FileReport[],
  found: ReturnType<typeof readHeads>,
  { keys, others = [] }: JudgeOptions,
): AuditReport {
  const heads: Heads = typeof found === "string" ? new Map() : found.heads;
  const pruned = new PrunedFiles(reports);
  const seen = new SeenFiles(reports, pruned);
  const parts = Map.groupBy(reports, (report) => report.file.chain);
  const own = [
    ...missingChains(heads, parts, pruned, seen),
    ...[...parts].map(([chain, its]) => chainReport(chain, its, heads.get(chain), pruned, seen)),
  ];
  // Only when every chain has told of itself: what one chain saw of another is told where nothing else tells it.
  const chains = own.map((report) => {
    const witnessed = (parts.get(report.chain) ?? []).flatMap((part) => seen.problemsOf(part));
    const unkeyed = plainProblem(parts.get(report.chain) ?? [], keyedSince(reports));
    return { ...report, problems: [...report.problems, ...witnessed, ...unkeyed] };
  });
  const files = reports.map((report) => report.file);
  const problems = [
    ...others,
    ...headsProblems(found, files),
    ...keyProblems(found, reports, keys),
    ...lostHeads(reports),
  ];
  const all = [...problems, ...chains.flatMap((chain) => chain.problems)];
  return { ok: all.every(({ severity }) => severity === "warning"), problems, chains };
}

function headsProblems(found: ReturnType<typeof readHeads>, files: readonly AuditFile[]): AuditProblem[] {
  const where = { name: "heads.json" };
  if (found === "damaged") return [problem(where, "changed", "the file is not what was written")];
  if (found !== "missing" || !files.some(hasRested)) return [];
  return [
    problem(
      where,
      "removed",
      "the file is missing, so ends that were cut off and newest files that were removed may not show",
    ),
  ];
}

/** When the first keyed chain that is left began; undefined for a plain log. Names of files can be changed, headers cannot. */
function keyedSince(reports: readonly FileReport[]): string | undefined {
  const intact = reports.filter(
    ({ header, isKeyed, hashes }) => isKeyed && hashes.get(header?.seq ?? -1) !== undefined,
  );
  return intact.flatMap(({ header }) => (header === undefined ? [] : [header.time])).toSorted()[0];
}

/** Whoever lacks the key can still write plain chains: a log that was keyed once stays so. */
function plainProblem(parts: readonly FileReport[], since: string | undefined): AuditProblem[] {
  const [first] = parts;
  const header = first?.header;
  if (since === undefined || header === undefined || header.key !== undefined || header.time < since) return [];
  const message = `the chain is not keyed, although the log is since ${since}: its process had no \`audit.key\`, or it is forged`;
  return [problem(first?.file ?? { name: "" }, "foreign", message)];
}

function keyProblems(
  found: ReturnType<typeof readHeads>,
  reports: readonly FileReport[],
  { current }: AuditKeys,
): AuditProblem[] {
  const where = { name: "heads.json" };
  if (typeof found !== "string" && found.signature === "unknown" && current !== undefined) {
    return [problem(where, "unreadable", "the file is signed with a key that is not known")];
  }
  if (reports.some((report) => report.isKeyed)) {
    const isUnsigned = typeof found !== "string" && found.signature === "none";
    return isUnsigned ? [problem(where, "changed", "the file is not signed, although the log is keyed")] : [];
  }
  if (current === undefined || !reports.some(({ file }) => hasRested(file))) return [];
  const message =
    "nothing in the log is keyed with `audit.key`. If the key was set just now, this ends with the next record that is written";
  return [problem(where, "removed", message)];
}

/** What processes found when they wrote `heads.json`. They write it again with what they know, so it cannot tell any more. */
function lostHeads(reports: readonly FileReport[]): AuditProblem[] {
  const since = keyedSince(reports);
  return reports.flatMap(({ file, marks }) =>
    marks.flatMap(({ event, line, time }): AuditProblem[] => {
      // A log gets its key once. Later, somebody took the signature away.
      const isFirst = since === undefined || Date.parse(time) - Date.parse(since) < FIRST_KEYED_MS;
      if (event !== HEADS_LOST && isFirst) return [];
      const was = event === HEADS_LOST ? "was removed or damaged" : "had lost its signature";
      const message = `heads.json ${was} before ${time}: ends cut off and newest files removed until then do not show`;
      return [{ ...problem(file, "removed", message), line }];
    }),
  );
}

function missingChains(
  heads: Heads,
  parts: ReadonlyMap<string, readonly FileReport[]>,
  pruned: PrunedFiles,
  seen: SeenFiles,
): ChainReport[] {
  return [...heads].flatMap(([chain, { file, seq, hash, key = null }]): ChainReport[] => {
    if (parts.has(chain) || pruned.explains(file)) return [];
    seen.tell(file);
    const problems = [problem({ name: file }, "removed", "the file is missing; heads.json knows it")];
    return [{ chain, pid: 0, files: [], records: 0, state: "missing", head: { seq, hash }, key, problems }];
  });
}

function namesOf(files: readonly AuditFile[]): string {
  return files.map((file) => file.name).join("\n");
}

/** What the log itself says it removed. */
class PrunedFiles {
  readonly #hashes = new Set<string>();
  #newest = "";

  /** In a keyed log plain chains explain only what is older than the first keyed one: anyone may have written them. */
  constructor(reports: readonly FileReport[]) {
    const since = keyedSince(reports);
    const firstKeyed = since === undefined ? undefined : fileName(Date.parse(since), 0, "");
    for (const { pruned, isKeyed } of reports) {
      for (const { file, hash } of pruned) {
        if (!isKeyed && firstKeyed !== undefined && file >= firstKeyed) continue;
        this.#hashes.add(hash);
        if (file > this.#newest) this.#newest = file;
      }
    }
  }

  /** Files go oldest first, so one that is older than a pruned one may have gone with a marker that is gone itself. */
  explains(file: string): boolean {
    return file <= this.#newest;
  }

  explainsHash(hash: string | null): boolean {
    return hash !== null && this.#hashes.has(hash);
  }
}

function chainReport(
  chain: string,
  parts: readonly FileReport[],
  head: ChainHead | undefined,
  pruned: PrunedFiles,
  seen: SeenFiles,
): ChainReport {
  const problems = parts.flatMap((report) => [...report.problems]);
  for (const [index, part] of parts.entries()) problems.push(...joint(parts[index - 1], part, pruned));
  const newest = parts.at(-1);
  const last = newest?.last;
  const state = stateOf(newest);
  // What is broken anyway is reported in detail, and what is missing for that reason is not told twice.
  if (last?.type !== "rotated" && problems.every(({ severity }) => severity === "warning")) {
    const short = headProblem(parts, head, pruned);
    if (short !== undefined) {
      problems.push(short);
      seen.tell(short.file);
    }
  }
  if (newest !== undefined && last?.type === "rotated") {
    problems.push(problem(newest.file, "removed", "the file that follows this one is missing"));
  } else if (newest !== undefined && state === "unclosed") {
    const message = "the chain has no end: its process was killed, or the end was cut off";
    problems.push({ ...problem(newest.file, "truncated", message), severity: "warning" });
  }
  return {
    chain,
    pid: newest?.file.pid ?? 0,
    files: parts.map((part) => part.file.name),
    records: parts.reduce((sum, part) => sum + part.hashes.size, 0),
    state,
    head: last === undefined ? null : { seq: last.seq, hash: last.hash },
    key: newest?.header?.key ?? null,
    // All records of a chain are of one node.
    ...nodeOf(parts),
    problems,
  };
}

function nodeOf(parts: readonly FileReport[]): { readonly node?: string } {
  const node = parts.map((part) => part.node).find((each) => each !== undefined);
  return node === undefined ? {} : { node };
}

function stateOf(newest: FileReport | undefined): ChainReport["state"] {
  if (newest?.last?.type === "closed") return "closed";
  if (newest === undefined) return "unclosed";
  return mayGrow(newest.file, newest.header, newest.last, Date.now()) ? "open" : "unclosed";
}

/** A chain that is longer than its head was killed before the head was written; one that is shorter was cut. */
function headProblem(
  parts: readonly FileReport[],
  head: ChainHead | undefined,
  pruned: PrunedFiles,
): AuditProblem | undefined {
  if (head === undefined) return undefined;
  const hash = parts.map((part) => part.hashes.get(head.seq)).find((found) => found !== undefined);
  if (hash === head.hash) return undefined;
  const where = { name: head.file };
  if (hash !== undefined)
    return problem(where, "changed", `the record ${head.seq} is not the one that heads.json knows`);
  if (parts.some((part) => part.file.name === head.file)) {
    const ends = parts.at(-1)?.last?.seq;
    const message = `the file ends ${ends === undefined ? "" : `after record ${ends}, `}before record ${head.seq} that heads.json knows`;
    return problem(where, "truncated", message);
  }
  return pruned.explains(head.file) ? undefined : problem(where, "removed", "the file is missing; heads.json knows it");
}

/** Whether a file goes on where the one before it ended. */
function joint(before: FileReport | undefined, part: FileReport, pruned: PrunedFiles): AuditProblem[] {
  const { header, file } = part;
  // A missing header is a problem of its own, and nothing more can be told.
  if (header === undefined) return [];
  if (before === undefined) {
    if (header.part === 0 || pruned.explainsHash(header.prev) || pruned.explains(file.name)) return [];
    return [
      problem(
        file,
        "removed",
        `${header.part === 1 ? "the file" : `${header.part} files`} before this one are missing`,
      ),
    ];
  }
  const { last } = before;
  if (before.header !== undefined && before.header.key !== header.key) {
    return [problem(file, "changed", "the chain has another key from this file on")];
  }
  if (last === undefined || header.prev === last.hash) return [];
  if (before.header !== undefined && header.part > before.header.part + 1) {
    return [problem(file, "removed", "a file between this one and the one before is missing")];
  }
  const missing = header.seq - last.seq - 1;
  if (missing > 0) return [problem(before.file, "truncated", `${missing} lines are missing at the end of the file`)];
  return [problem(file, "changed", "the file does not follow from the one before")];
}

/** What the header of a file saw of other chains must still be there. */
class SeenFiles {
  readonly #reports: ReadonlyMap<string, FileReport>;
  readonly #pruned: PrunedFiles;
  /** Several chains may have seen the same file; it is told of once. */
  readonly #told = new Set<string>();

  constructor(reports: readonly FileReport[], pruned: PrunedFiles) {
    this.#reports = new Map(reports.map((report) => [report.file.name, report]));
    this.#pruned = pruned;
  }

  /** Somebody else has told of it. */
  tell(file: string): void {
    this.#told.add(file);
  }

  problemsOf({ header }: FileReport): AuditProblem[] {
    if (header === undefined) return [];
    return header.seen.flatMap((seen) => {
      const found = this.#told.has(seen.file) ? undefined : this.#problemOf(seen, `the chain ${header.chain} saw`);
      if (found === undefined) return [];
      this.#told.add(seen.file);
      return [found];
    });
  }

  #problemOf({ file, seq, hash }: SeenFile, witness: string): AuditProblem | undefined {
    const report = this.#reports.get(file);
    if (report === undefined) {
      return this.#pruned.explains(file)
        ? undefined
        : problem({ name: file }, "removed", `the file is missing; ${witness} it`);
    }
    // A file that is broken anyway is reported line by line.
    if (seq < 0 || report.problems.some(({ severity }) => severity === "error")) return undefined;
    const found = report.hashes.get(seq);
    if (found === hash) return undefined;
    return found === undefined
      ? problem(report.file, "truncated", `lines are missing at the end of the file; ${witness} them`)
      : problem(report.file, "changed", `the record ${seq} is not the one that ${witness}`);
  }
}

function problem(file: Pick<AuditFile, "name">, what: AuditProblem["what"], message: string): AuditProblem {
  return { severity: "error", what, file: file.name, line: 0, message };
}
