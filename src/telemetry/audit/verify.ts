/** Checks that the log is as it was written: every line, every file of a chain, and what chains saw of one another. */
import { type AuditFile, isInUse, listFiles } from "./files.ts";
import type { SeenFile } from "./record.ts";
import { type AuditProblem, type FileReport, verifyFile } from "./verify-file.ts";

export type { AuditProblem } from "./verify-file.ts";

export interface ChainReport {
  readonly chain: string;
  readonly pid: number;
  readonly files: readonly string[];
  /** Lines of the log itself included. */
  readonly records: number;
  /** closed: ended properly. open: its process may still write. unclosed: it was killed, or the end was cut off. */
  readonly state: "closed" | "open" | "unclosed";
  /** The last record: kept elsewhere, it shows later that nothing before it was changed. */
  readonly head: { readonly seq: number; readonly hash: string } | null;
  readonly problems: readonly AuditProblem[];
}

export interface AuditReport {
  /** No errors; warnings are allowed. */
  readonly ok: boolean;
  readonly chains: readonly ChainReport[];
}

export function verifyAudit(dir: string): AuditReport {
  for (let attempt = 0; ; attempt += 1) {
    const files = listFiles(dir);
    const report = verifyFiles(files);
    // A file that was begun or pruned meanwhile looks like one that is missing.
    if (report.ok || attempt === 3 || namesOf(listFiles(dir)) === namesOf(files)) return report;
  }
}

function verifyFiles(files: readonly AuditFile[]): AuditReport {
  const reports = files.map((file) => verifyFile(file));
  const pruned = new PrunedFiles(reports);
  const seen = new SeenFiles(reports, pruned);
  const chains = [...Map.groupBy(reports, (report) => report.file.chain)].map(([chain, parts]) =>
    chainReport(chain, parts, pruned, seen),
  );
  return { ok: chains.every(({ problems }) => problems.every(({ severity }) => severity === "warning")), chains };
}

function namesOf(files: readonly AuditFile[]): string {
  return files.map((file) => file.name).join("\n");
}

/** What the log itself says it removed. */
class PrunedFiles {
  readonly #hashes = new Set<string>();
  #newest = "";

  constructor(reports: readonly FileReport[]) {
    for (const { file, hash } of reports.flatMap((report) => report.pruned)) {
      this.#hashes.add(hash);
      if (file > this.#newest) this.#newest = file;
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
  pruned: PrunedFiles,
  seen: SeenFiles,
): ChainReport {
  const problems = parts.flatMap((report) => [...report.problems]);
  for (const [index, part] of parts.entries()) {
    problems.push(...joint(parts[index - 1], part, pruned), ...seen.problemsOf(part));
  }
  const newest = parts.at(-1);
  const last = newest?.last;
  const state = stateOf(newest);
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
    problems,
  };
}

function stateOf(newest: FileReport | undefined): ChainReport["state"] {
  if (newest?.last?.type === "closed") return "closed";
  return newest !== undefined && isInUse(newest.file, Date.now()) ? "open" : "unclosed";
}

/** Whether a file goes on where the one before it ended. */
function joint(before: FileReport | undefined, part: FileReport, pruned: PrunedFiles): AuditProblem[] {
  const { header, file } = part;
  // A missing header is a problem of its own, and nothing more can be told.
  if (header === undefined) return [];
  if (before === undefined) {
    if (header.part === 0 || pruned.explainsHash(header.prev) || pruned.explains(file.name)) return [];
    return [problem(file, "removed", `${header.part === 1 ? "the file" : `${header.part} files`} before this one are missing`)];
  }
  const { last } = before;
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
      return this.#pruned.explains(file) ? undefined : problem({ name: file }, "removed", `the file is missing; ${witness} it`);
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
