/** Checks a log whose files are partly or wholly in a store. It holds what `verifyAudit` holds of files alone. */
import { readFile } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import { listFiles, parseFileName } from "./files.ts";
import { type FoundHeads, readHeads } from "./heads.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { type AuditProblem, type FileReport, verifyText } from "./verify-file.ts";
import { type AuditReport, judge } from "./verify.ts";
import { joinFiles, type KeptFile, type KeptLog, type LogFile } from "./whole-log.ts";

const ATTEMPTS = 4;

export interface VerifyOptions {
  readonly keys?: AuditKeys;
  /**
   * Whether anything in the store was written in this folder, where that is known; others may have written all of it
   * elsewhere.
   */
  readonly wroteHere?: boolean | undefined;
}

/** No chain of this folder left a head, because there was none. */
const NO_HEADS: FoundHeads = { heads: new Map(), signature: "none" };

export async function verifyLog(dir: string, kept: KeptLog, options: VerifyOptions = {}): Promise<AuditReport> {
  const { keys = NO_KEYS, wroteHere } = options;
  for (let attempt = 1; ; attempt += 1) {
    // In this order: the log grows meanwhile, and its files go from the folder into the store.
    const found = readHeads(dir, keys);
    const inFolder = listFiles(dir);
    const isNew = wroteHere === false && inFolder.length === 0;
    const heads = found === "missing" && isNew ? NO_HEADS : found;
    const stored = await kept.files();
    const files = joinFiles(dir, inFolder, stored);
    const reports: FileReport[] = [];
    for (const file of files) {
      reports.push(await reportOf(file, kept, keys));
      await turn();
    }
    const isGone = wroteHere === true && found === "missing" && files.length === 0;
    const others = [...misnamed(stored), ...(isGone ? [goneProblem()] : [])];
    const report = judge(reports, heads, { keys, others });
    // A file that was begun or pruned meanwhile looks like one that is missing.
    if (report.ok || attempt === ATTEMPTS) return report;
    const now = joinFiles(dir, listFiles(dir), await kept.files());
    if (namesOf(now) === namesOf(files)) return report;
  }
}

async function reportOf(file: LogFile, kept: KeptLog, keys: AuditKeys): Promise<FileReport> {
  // Before the file in the folder, which is never behind.
  const before = file.kept === undefined ? undefined : await kept.linesOf(file.name);
  const text = file.isInFolder ? await textOf(file.path) : undefined;
  if (text !== undefined) {
    const report = await verifyText(file, text, keys);
    if (before === undefined) return report;
    const differing = difference(file.name, before, text);
    return differing === undefined ? report : { ...report, problems: [...report.problems, differing] };
  }
  // One that was in the folder a moment ago is in the store as a whole now.
  const lines = before === undefined || file.isInFolder ? await kept.linesOf(file.name) : before;
  const report = await verifyText(file, lines.map((line) => `${line}\n`).join(""), keys);
  const miscounted = file.kept === undefined ? [] : countProblems(file.kept, lines.length);
  // The lines tell where it is broken; the count tells only that it is.
  const isKnown = report.problems.some(({ severity }) => severity === "error");
  return isKnown ? report : { ...report, problems: [...report.problems, ...miscounted] };
}

/** undefined for a file that is not in the folder any more. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** What the store has of a file must be its beginning. */
function difference(file: string, stored: readonly string[], text: string): AuditProblem | undefined {
  const lines = text.split("\n").slice(0, -1);
  const at = stored.findIndex((line, index) => line !== lines[index]);
  if (at === -1) return undefined;
  if (at < lines.length)
    return problem(file, "changed", at + 1, "the store has another line here than the file in the folder");
  return problem(file, "truncated", 0, `the store has ${stored.length - at} lines more than the file in the folder`);
}

function countProblems({ file, lines, lastSeq }: KeptFile, found: number): AuditProblem[] {
  if (found < lines) return [problem(file, "removed", 0, `the store has ${found} lines of it and took in ${lines}`)];
  // More than were counted is no sign by itself: a hub elsewhere may be at it.
  if (lastSeq !== lines - 1)
    return [
      problem(file, "changed", 0, "the lines in the store are not numbered as they were when they were taken in"),
    ];
  return [];
}

/** The store remembers that this folder had a log. Files that go by intention leave the one that says so. */
function goneProblem(): AuditProblem {
  return problem("heads.json", "removed", 0, "the whole log is missing, and the store knows that there was one");
}

function misnamed(stored: readonly KeptFile[]): AuditProblem[] {
  const names = stored.map(({ file }) => file).filter((name) => parseFileName(name) === undefined);
  return names.map((name) => problem(name, "foreign", 0, "the log gives no file in the store this name"));
}

function problem(file: string, what: AuditProblem["what"], line: number, message: string): AuditProblem {
  return { severity: "error", what, file, line, message };
}

function namesOf(files: readonly LogFile[]): string {
  return files.map((file) => file.name).join("\n");
}
