import type { Outcome } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { Source, Use, UseContext } from "../../model/source.ts";
import type { CallRecord, StartRecord } from "../../telemetry/call-record.ts";
import type { CallSpan } from "../../telemetry/tracing.ts";
import { type CallInProgress, type CallPath, publicNameOf } from "./call-context.ts";

/** What is known of a call when it is about to reach its source. */
export function startRecord(call: CallInProgress): StartRecord {
  const { session, use, target, decision } = call;
  return {
    callId: call.id,
    time: isoTime(call.startedAt),
    session: session.id,
    door: session.door,
    role: session.role ?? null,
    user: session.user ?? null,
    kind: use.kind,
    name: publicNameOf(use),
    origin: target?.capability.origin ?? null,
    decision: decision?.verdict ?? "none",
    rule: decision?.rule ?? null,
  };
}

/** The record of a call that has ended. */
export function callRecord(call: CallInProgress, outcome: Outcome, now: number): CallRecord {
  return {
    ...startRecord(call),
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: now - call.startedAt,
    resultBytes: call.resultBytes,
    findings: call.findings.map(({ code, severity }) => ({ code, severity })),
    notes: call.notes,
  };
}

let lastTime = Number.NaN;
let lastText = "";

/** A call's records state the same time, and many calls begin in one millisecond. */
function isoTime(time: number): string {
  if (time !== lastTime) [lastTime, lastText] = [time, new Date(time).toISOString()];
  return lastText;
}

/** Where a call meets OpenTelemetry: its spans begin, surround the run, and end. Undefined while nobody traces. */

export function beginSpan(
  { tracing }: CallPath,
  { id, session, use }: CallInProgress,
  meta: JsonObject | undefined,
): CallSpan | undefined {
  return tracing?.begin(() => ({ callId: id, session: session.id, door: session.door, use, meta }));
}

/** Runs the use; traced, the source gets a `_meta` that continues the trace. */
export function runInSpan(span: CallSpan | undefined, source: Source, use: Use, context: UseContext): Promise<Result> {
  if (span === undefined) return source.run(use, context);
  return span.run(source, use, context.meta, (meta) => source.run(use, { ...context, meta }));
}

export function endSpan(span: CallSpan | undefined, { target, decision }: CallInProgress, outcome: Outcome): void {
  span?.end({
    server: target?.capability.origin.source ?? null,
    decision: decision?.verdict ?? "none",
    outcome: outcome.ok ? "ok" : outcome.error.code,
  });
}
