/** `toolcrib audit`: shows, follows and verifies the audit log. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { toolcribHome } from "../../config/find-config.ts";
import { type AuditWish, filterOf } from "../../hub/audit/query.ts";
import { type AuditStore, verifyAll } from "../../hub/audit/verify.ts";
import { formatBytes } from "../../model/content.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { listLog } from "../../telemetry/audit/files.ts";
import { type AuditKeys, NO_KEYS } from "../../telemetry/audit/key.ts";
import {
  type AuditEntry,
  AuditTail,
  isRefusal,
  parseTime,
  readAudit,
  type RecordFilter,
} from "../../telemetry/audit/read.ts";
import type { StoredRecord } from "../../telemetry/audit/record.ts";
import type { AuditProblem } from "../../telemetry/audit/verify.ts";
import { loadCommandConfigQuietly } from "../command-config.ts";
import { commandAuditKeys } from "../command-home.ts";
import { commandStore } from "../command-store.ts";
import { type Flags, type Invocation, unknownAction } from "../command.ts";
import { bar } from "../output.ts";
import { listenForStopSignals } from "../signals.ts";
import { type Column, renderTable } from "../table.ts";

const DEFAULT_LIMIT = 100;
const FOLLOW_LIMIT = 10;
const POLL_MS = 250;

/** The journal, and the store with older records. */
interface AuditLocation {
  readonly dir: string;
  readonly store: AuditStore | undefined;
}

export async function run(invocation: Invocation): Promise<number> {
  const { args, env, flags, attached } = invocation;
  const [action] = args;
  if (action !== undefined && action !== "verify")
    throw unknownAction("audit", action, "Use toolcrib audit or toolcrib audit verify.");
  const opened = commandStore(invocation, { refuseUnknownStore: action === "verify" });
  await attached?.hub.audit.flush().catch(() => {});
  try {
    const store = await opened.open({ create: false });
    const place = { dir: join(toolcribHome(env), "audit"), store };
    if (action === "verify") return await verify(invocation, place);
    return await (flags.has("follow") ? showAndFollow(invocation, place) : show(invocation, place));
  } finally {
    await opened.close();
  }
}

/** Calls in the order in which they ended. A log that cannot be read has none. */
export async function* recordedCalls(
  invocation: Invocation,
  wish: Pick<AuditWish, "since">,
): AsyncGenerator<AuditEntry> {
  const opened = commandStore(invocation, { readOnly: true });
  try {
    const kept = (await opened.open({ create: false }))?.audit;
    const dir = join(toolcribHome(invocation.env), "audit");
    yield* readAudit(dir, { kept, filter: filterOf({ ...wish, type: "call" }) });
  } catch (error) {
    invocation.out.note(`The audit log cannot be read: ${asToolcribError(error).message}`);
  } finally {
    await opened.close();
  }
}

async function show({ flags, out }: Invocation, { dir, store }: AuditLocation): Promise<number> {
  const limit = limitOf(flags, DEFAULT_LIMIT);
  const { entries, more } = await newest(readAudit(dir, { kept: store?.audit, filter: wantedBy(flags) }), limit);
  if (out.json) out.value(entries.map(jsonOf));
  else if (entries.length === 0) out.note(`No matching records in ${dir}.`);
  else out.table(COLUMNS, entries);
  if (more > 0) out.note(`${more} older records are not shown. Use --limit 0 to show all.`);
  return 0;
}

async function showAndFollow({ flags, out, attached }: Invocation, { dir, store }: AuditLocation): Promise<number> {
  const kept = store?.audit;
  const filter = wantedBy(flags);
  // A single row: while following, the widths of later rows are not known.
  const showOne = (entry: AuditEntry): void =>
    out.json ? out.record(jsonOf(entry)) : out.line(renderTable(COLUMNS, [entry]).slice(1).join(""));
  const files = await listLog(dir, kept);
  const { entries } = await newest(readAudit(dir, { filter, files, kept }), limitOf(flags, FOLLOW_LIMIT));
  for (const entry of entries) showOne(entry);
  // New records are in the folder first, even if they are moved into a store.
  const inFolder = files.filter((file) => file.isInFolder);
  const tail = new AuditTail(dir, inFolder);
  // The command may run at a hub.
  const signal = attached?.signal ?? endOfProcess();
  // A watch on a folder does not report growing files on some platforms.
  while (!signal.aborted) {
    for (const entry of tail.poll(filter)) showOne(entry);
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return 0;
}

/** The last `limit` entries; all for 0. */
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

function wantedBy(flags: Flags): RecordFilter {
  const now = Date.now();
  const time = (flag: string): string | undefined => {
    const text = flags.text(flag);
    return text === undefined ? undefined : new Date(parseTime(`--${flag}`, text, now)).toISOString();
  };
  return filterOf({
    since: time("since"),
    until: time("until"),
    name: flags.text("tool"),
    sessionPrefix: flags.text("session"),
    server: flags.text("server"),
    client: flags.text("client"),
    denied: flags.has("denied"),
  });
}

function limitOf(flags: Flags, usual: number): number {
  const text = flags.text("limit");
  if (text === undefined) return usual;
  if (!/^\d{1,9}$/.test(text))
    throw new ToolcribError("invalid_arguments", `--limit ${JSON.stringify(text)} is not a whole number.`);
  return Number(text);
}

/** Exits with 1 for errors. A process that was killed is only a warning. */
async function verify(invocation: Invocation, { dir, store }: AuditLocation): Promise<number> {
  const { out } = invocation;
  const keys = await keysForVerify(invocation);
  let state = "Reading the log";
  const { redraw, stop } = out.spinner(() => state);
  const onProgress = (done: number, of: number): void => {
    state =
      done < of ? `Checking ${bar(done, of)} ${formatBytes(done)}/${formatBytes(of)}` : "Comparing with the store";
    redraw();
  };
  const report = await verifyAll(dir, store, keys, onProgress).finally(stop);
  if (out.json) out.value(report);
  else {
    for (const { problems } of [report, ...report.chains]) showProblems(out, problems);
    const records = report.chains.reduce((sum, chain) => sum + chain.records, 0);
    const { length } = report.chains;
    const isElsewhere = store !== undefined && (await listLog(dir, store.audit)).some((file) => !file.isInFolder);
    const place = isElsewhere ? `${dir} and in the store` : dir;
    const keyed = report.chains.filter((chain) => chain.key !== null).length;
    const chains = `${length} ${length === 1 ? "chain" : "chains"}${keyed === 0 ? "" : ` (${keyed} keyed)`}`;
    const what = `${chains}, ${records} lines in ${place}`;
    out.line(report.ok ? `${out.paint("green", "ok")}: ${what}` : `${out.paint("red", "broken")}: ${what}`);
  }
  return report.ok ? 0 : 1;
}

/** If a key is missing, its files cannot be checked, and verify reports each of them. */
async function keysForVerify(invocation: Invocation): Promise<AuditKeys> {
  try {
    return await commandAuditKeys(invocation, await loadCommandConfigQuietly(invocation));
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    invocation.out.warn(hint === undefined ? message : `${message} ${hint}`);
    return NO_KEYS;
  }
}

function showProblems(out: Invocation["out"], problems: readonly AuditProblem[]): void {
  for (const { severity, what, file, line, message } of problems) {
    const label = severity === "error" ? out.paint("red", what) : out.paint("yellow", `warning, ${what}`);
    out.line(`${label}: ${file}${line === 0 ? "" : `:${line}`}: ${message}`);
  }
}

const SESSION_LENGTH = 8;

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "TIME", cell: ({ record }) => record.time, short: ({ record }) => localTime(record.time) },
  { title: "SESSION", cell: ({ record }) => (record.session ?? "-").slice(0, SESSION_LENGTH), dropAt: 1 },
  { title: "CLIENT", cell: ({ record }) => record.client?.name ?? "-", dropAt: 5 },
  { title: "ROLE", cell: ({ record }) => record.role ?? "-", dropAt: 3 },
  { title: "DOOR", cell: ({ record }) => record.door ?? "-", dropAt: 2 },
  { title: "NAME", cell: ({ record }) => nameOf(record) },
  { title: "DECISION", cell: ({ record: { decision = "none" } }) => (decision === "none" ? "-" : decision) },
  { title: "OUTCOME", cell: ({ record }) => record.outcome ?? record.answer ?? "-" },
  {
    title: "TIME TAKEN",
    cell: ({ record }) => (record.durationMs === undefined ? "-" : `${record.durationMs} ms`),
    dropAt: 6,
  },
  {
    title: "RESULT",
    cell: ({ record }) => (record.resultBytes === undefined ? "-" : formatBytes(record.resultBytes)),
    dropAt: 4,
  },
  { title: "WHY", cell: ({ record }) => whyOf(record), shrink: true },
];

/** As a person at the terminal reads it: without the date today. */
function localTime(time: string): string {
  const at = new Date(time);
  const pad = (part: number): string => String(part).padStart(2, "0");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":");
  const day = (date: Date): string => [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(pad).join("-");
  return day(at) === day(new Date()) ? clock : `${day(at)} ${clock}`;
}

/** With the chain, so that the record can be found in its file. */
function jsonOf({ chain, record }: AuditEntry): object {
  return { ...record, chain };
}

function nameOf({ type, name, event, origin }: StoredRecord): string {
  if (type !== "event") return name ?? "-";
  const about = name ?? (origin === undefined || origin === null ? undefined : originText(origin));
  return about === undefined ? (event ?? "-") : `${event ?? "-"} ${about}`;
}

/** Events about a server as a whole have its id twice. */
function originText({ source, name }: NonNullable<StoredRecord["origin"]>): string {
  return source === name ? source : `${source} ${name}`;
}

function whyOf(record: StoredRecord): string {
  const reasons: string[] = [];
  if (record.rule !== undefined && record.rule !== null && (isRefusal(record) || record.decision === "ask")) {
    reasons.push(`${record.rule.list} "${record.rule.pattern}" in ${record.rule.where}`);
  }
  const findings = new Set((record.findings ?? []).map(({ code, severity }) => `${code} (${severity})`));
  if (findings.size > 0) reasons.push([...findings].join(", "));
  if (record.details !== undefined) reasons.push(JSON.stringify(record.details));
  return reasons.join("; ");
}

function endOfProcess(): AbortSignal {
  const stopped = listenForStopSignals({ onSecond: "exit" });
  // The reader of the pipe is gone.
  const unread = new AbortController();
  process.stdout.once("error", () => unread.abort());
  return AbortSignal.any([stopped.signal, unread.signal]);
}
