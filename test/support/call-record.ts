import type { CallRecord } from "../../src/telemetry/call-record.ts";

let count = 0;

/** A call that went well, with what a test says otherwise. */
export function callRecord(change: Partial<CallRecord> = {}): CallRecord {
  count += 1;
  return {
    callId: `call-${count}`,
    time: "2026-11-15T10:00:00.000Z",
    session: "session-1",
    door: "library",
    role: null,
    kind: "tool",
    name: "files__read",
    origin: { source: "files", name: "read" },
    decision: "allow",
    rule: null,
    outcome: "ok",
    durationMs: 5,
    resultBytes: 120,
    notes: {},
    ...change,
  };
}
