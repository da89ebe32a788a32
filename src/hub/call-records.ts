import type { Outcome } from "../model/outcome.ts";
import type { CallRecord } from "../telemetry/call-record.ts";
import { type CallInProgress, publicNameOf } from "./call-path.ts";

/** The record of a call that has ended. */
export function recordOf(call: CallInProgress, outcome: Outcome, now: number): CallRecord {
  const { session, use, target, decision } = call;
  return {
    callId: call.id,
    time: new Date(call.startedAt).toISOString(),
    session: session.id,
    door: session.door,
    role: session.role ?? null,
    user: session.user ?? null,
    kind: use.kind,
    name: publicNameOf(use),
    origin: target?.capability.origin ?? null,
    decision: decision?.verdict ?? "none",
    rule: decision?.rule ?? null,
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: now - call.startedAt,
    resultBytes: call.resultBytes,
    findings: call.findings.map(({ code, severity }) => ({ code, severity })),
    notes: call.notes,
  };
}
