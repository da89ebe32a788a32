import type { Outcome } from "../model/outcome.ts";
import type { CallRecord, StartRecord } from "../telemetry/call-record.ts";
import { type CallInProgress, publicNameOf } from "./call-path.ts";

/** What is known of a call when it is about to reach its source. */
export function startOf(call: CallInProgress): StartRecord {
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
export function recordOf(call: CallInProgress, outcome: Outcome, now: number): CallRecord {
  return {
    ...startOf(call),
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
