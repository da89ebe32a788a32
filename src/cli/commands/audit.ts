import { join } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { compileGlob } from "../../policy/glob.ts";
import { listFiles } from "../../telemetry/audit/files.ts";
import type { AuditFilter } from "../../telemetry/audit/filter.ts";
import { type AuditEntry, readAudit } from "../../telemetry/audit/read.ts";
import { type AuditProblem, verifyAudit } from "../../telemetry/audit/verify.ts";
import { follow } from "../audit/follow.ts";
import { jsonOf, lineOf, showTable } from "../audit/show.ts";
import { parseTime } from "../audit/time.ts";
import type { Flags, Invocation } from "../command.ts";

const DEFAULT_LIMIT = 100;
const FOLLOW_LIMIT = 10;

export async function run(invocation: Invocation): Promise<number> {
  const { args, env, flags } = invocation;
  const dir = join(toolcribHome(env), "audit");
  const [action] = args;
  if (action === "verify") return verify(invocation, dir);
  if (action !== undefined) {
    throw new ToolcribError("invalid_arguments", `There is no "audit ${action}".`, {
      hint: "toolcrib audit, or toolcrib audit verify.",
    });
  }
  return flags.has("follow") ? showAndFollow(invocation, dir) : show(invocation, dir);
}

async function show({ flags, out }: Invocation, dir: string): Promise<number> {
  const limit = limitOf(flags, DEFAULT_LIMIT);
  const { entries, more } = await newest(readAudit(dir, filterOf(flags)), limit);
  if (out.json) out.value(entries.map(jsonOf));
  else if (entries.length === 0) out.note(`No records in ${dir} fit.`);
  else showTable(out, entries);
  if (more > 0) out.note(`${more} older records are not shown; --limit 0 shows all.`);
  return 0;
}

async function showAndFollow({ flags, out }: Invocation, dir: string): Promise<number> {
  const filter = filterOf(flags);
  const showOne = (entry: AuditEntry): void => out.line(out.json ? JSON.stringify(jsonOf(entry)) : lineOf(entry));
  const files = listFiles(dir);
  const { entries } = await newest(readAudit(dir, filter, files), limitOf(flags, FOLLOW_LIMIT));
  for (const entry of entries) showOne(entry);
  await follow(dir, files, filter, showOne);
  return 0;
}

/** The last `limit` of them, 0 for all. */
async function newest(all: AsyncIterable<AuditEntry>, limit: number): Promise<{ entries: AuditEntry[]; more: number }> {
  let entries: AuditEntry[] = [];
  let count = 0;
  for await (const entry of all) {
    entries.push(entry);
    count += 1;
    if (limit > 0 && entries.length >= 2 * limit) entries = entries.slice(-limit);
  }
  if (limit > 0) entries = entries.slice(-limit);
  return { entries, more: count - entries.length };
}

function filterOf(flags: Flags): AuditFilter {
  const now = Date.now();
  const [since, until, tool] = [flags.text("since"), flags.text("until"), flags.text("tool")];
  const [session, server] = [flags.text("session"), flags.text("server")];
  return {
    ...(since === undefined ? {} : { since: parseTime("--since", since, now) }),
    ...(until === undefined ? {} : { until: parseTime("--until", until, now) }),
    ...(tool === undefined ? {} : { tool: compileGlob(tool) }),
    ...(session === undefined ? {} : { session }),
    ...(server === undefined ? {} : { server }),
    denied: flags.has("denied"),
  };
}

function limitOf(flags: Flags, usual: number): number {
  const text = flags.text("limit");
  if (text === undefined) return usual;
  if (!/^\d{1,9}$/.test(text))
    throw new ToolcribError("invalid_arguments", `--limit ${JSON.stringify(text)} is no whole number.`);
  return Number(text);
}

/** Exit 1 for an error; a process that was killed is only a warning. */
function verify({ out }: Invocation, dir: string): number {
  const report = verifyAudit(dir);
  if (out.json) out.value(report);
  else {
    for (const { problems } of [report, ...report.chains]) showProblems(out, problems);
    const records = report.chains.reduce((sum, chain) => sum + chain.records, 0);
    const what = `${report.chains.length} chains, ${records} lines in ${dir}`;
    out.line(report.ok ? `${out.paint("green", "ok")}: ${what}` : `${out.paint("red", "broken")}: ${what}`);
  }
  return report.ok ? 0 : 1;
}

function showProblems(out: Invocation["out"], problems: readonly AuditProblem[]): void {
  for (const { severity, what, file, line, message } of problems) {
    const label = severity === "error" ? out.paint("red", what) : out.paint("yellow", `warning, ${what}`);
    out.line(`${label}: ${file}${line === 0 ? "" : `:${line}`}: ${message}`);
  }
}
