import { describe, expect, it } from "vitest";
import { LatencyHistogram, MINUTES_KEPT, RecentCalls } from "../../../src/hub/activity/hub-activity.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { callRecord } from "../../support/call-record.ts";

const START = Date.parse("2026-11-16T10:00:30.000Z");
const MINUTE = 60_000;

function record(changes: Partial<CallRecord> = {}): CallRecord {
  return callRecord({ time: new Date(START).toISOString(), durationMs: 10, ...changes });
}

describe("percentiles from counters", () => {
  it("are at most a tenth off", () => {
    const latencies = new LatencyHistogram();
    for (let ms = 1; ms <= 1000; ms += 1) latencies.add(ms);
    for (const [share, exact] of [
      [0.5, 500],
      [0.95, 950],
      [0.99, 990],
    ] as const) {
      const found = latencies.quantile(share) ?? 0;
      expect(Math.abs(found - exact) / exact).toBeLessThan(0.1);
    }
  });

  it("tell short and very long ones apart, and nothing from nothing", () => {
    const latencies = new LatencyHistogram();
    expect(latencies.quantile(0.5)).toBeNull();
    latencies.add(0);
    expect(latencies.quantile(0.5)).toBe(0);
    latencies.add(1e12);
    expect(latencies.quantile(0.95)).toBeGreaterThan(3_000_000);
    latencies.clear();
    expect(latencies.quantile(0.95)).toBeNull();
  });
});

describe("recent calls", () => {
  it("stand in the minute in which they ended, empty minutes included", () => {
    const recent = new RecentCalls();
    recent.add(record(), START);
    recent.add(record({ outcome: "timeout", durationMs: 100 }), START);
    recent.add(record(), START + 2 * MINUTE);
    const minutes = recent.minutes(START + 2 * MINUTE);
    expect(minutes).toHaveLength(MINUTES_KEPT);
    expect(minutes.slice(-3)).toEqual([
      { at: "2026-11-16T10:00:00.000Z", calls: 2, failed: 1, p50: 10, p95: 105 },
      { at: "2026-11-16T10:01:00.000Z", calls: 0, failed: 0, p50: null, p95: null },
      { at: "2026-11-16T10:02:00.000Z", calls: 1, failed: 0, p50: 10, p95: 10 },
    ]);
  });

  it("are forgotten after half an hour, and their place is used again", () => {
    const recent = new RecentCalls();
    for (let call = 0; call < 5; call += 1) recent.add(record({ durationMs: 5000 }), START);
    const later = START + MINUTES_KEPT * MINUTE;
    expect(recent.minutes(later).every(({ calls }) => calls === 0)).toBe(true);
    recent.add(record(), later);
    expect(recent.minutes(later).at(-1)).toMatchObject({ calls: 1, failed: 0, p95: 10 });
  });

  it("keep the last twenty denials and findings, the newest first", () => {
    const recent = new RecentCalls();
    const findings = [
      { code: "concealment", severity: "high" },
      { code: "concealment", severity: "medium" },
    ] as const;
    for (let call = 0; call < 25; call += 1) {
      recent.add(
        record({ callId: `denied-${call}`, outcome: call % 2 === 0 ? "denied" : "blocked", origin: null }),
        START,
      );
      recent.add(record({ callId: `found-${call}`, findings: findings }), START);
    }
    recent.add(record({ outcome: "tool_error" }), START);
    expect(recent.denials()).toHaveLength(20);
    expect(recent.denials()[0]).toMatchObject({ callId: "denied-24", server: null, outcome: "denied", findings: [] });
    expect(recent.findings()).toHaveLength(20);
    expect(recent.findings()[0]).toMatchObject({ callId: "found-24", server: "files", findings: ["concealment"] });
  });
});
