/** The records of a call: for the audit log and listeners, and for OpenTelemetry. */
import type { Outcome } from "../../model/errors.ts";
import type { Result } from "../../model/protocol.ts";
import type { Source, Use, UseContext } from "../../model/source.ts";
import type { CallRecord, StartRecord } from "../../telemetry/call-record.ts";
import type { CallSpan } from "../../telemetry/tracing.ts";
import { type CallContext, publicNameOf } from "./call-context.ts";

type StartedCall = Pick<CallContext, "callId" | "session" | "use" | "startedAt" | "target" | "decision">;

/** The record of a call that is about to reach its source. */
export function startRecord(call: StartedCall): StartRecord {
  const { session, use, target, decision } = call;
  return {
    callId: call.callId,
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
export function callRecord(call: CallContext, outcome: Outcome): CallRecord {
  return {
    ...startRecord(call),
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: call.path.clock.now() - call.startedAt,
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

/** The OpenTelemetry span of a call; undefined while no SDK is registered. */
export function beginSpan({ path, callId, session, use, meta }: CallContext): CallSpan | undefined {
  return path.tracing?.begin(() => ({ callId, session: session.id, door: session.door, use, meta }));
}

/** Runs the use; traced, the source gets a `_meta` that continues the trace. */
export function runInSpan(span: CallSpan | undefined, source: Source, use: Use, context: UseContext): Promise<Result> {
  if (span === undefined) return source.run(use, context);
  return span.run(source, use, context.meta, (meta) => source.run(use, { ...context, meta }));
}

export function endSpan(span: CallSpan | undefined, { target, decision }: CallContext, outcome: Outcome): void {
  span?.end({
    server: target?.capability.origin.source ?? null,
    decision: decision?.verdict ?? "none",
    outcome: outcome.ok ? "ok" : outcome.error.code,
  });
}
