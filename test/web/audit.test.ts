import { afterEach, describe, expect, it, vi } from "vitest";
import type { AuditEntry } from "../../src/contract/activity-schemas.ts";
import * as filter from "../../web/src/views/audit/audit-filter.ts";
import {
  aboutOf,
  findingsOf,
  ruleText,
  stampText,
  titleOf,
  verdictOf,
  whoOf,
} from "../../web/src/views/audit/audit-words.ts";
import { gathered } from "../../web/src/views/audit/gathered.ts";
import { strayStarts, withEnds, withNewest } from "../../web/src/views/audit/newest-records.ts";

function entry(seq: number, more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    type: "call",
    time: `2026-11-16T07:00:${String(seq).padStart(2, "0")}.000Z`,
    chain: "a",
    seq,
    hash: `hash-${seq}`,
    callId: `call-${seq}`,
    outcome: "ok",
    ...more,
  };
}
const start = (seq: number, callId: string): AuditEntry => entry(seq, { type: "start", callId, outcome: "unfinished" });
const seqs = (pages: readonly { readonly entries: readonly AuditEntry[] }[]): number[][] =>
  pages.map((page) => page.entries.map(({ seq }) => seq));

describe("the filters of the audit log", () => {
  it("[oper-09g] become what the hub is asked", () => {
    expect(filter.inputOf({ q: " x ", type: "call", outcome: "failed", since: "1h", server: "" })).toEqual({
      q: "x",
      type: "call",
      outcome: "failed",
      since: "1h",
    });
    expect(filter.inputOf({ type: "gone" })).toEqual({});
    expect(filter.inputOf(filter.NO_FILTER)).toEqual({});
    expect(filter.isFiltered({ callId: "c" })).toBe(true);
  });

  it("tell a span from an exact time, and count what is folded away", () => {
    expect([undefined, "1h", "2026-11-16T07:00:00.000Z"].map((since) => filter.spanOf({ since }))).toEqual([
      "",
      "1h",
      filter.EXACT,
    ]);
    expect(filter.furtherCount({ since: "2026-11-16T07:00:00.000Z", user: "ada", q: "x" })).toBe(2);
    expect(filter.furtherCount({ since: "1h" })).toBe(0);
  });

  it("keep an exact time through the input of local time", () => {
    const iso = "2026-11-16T07:05:00.000Z";
    expect(filter.isoTime(filter.localTime(iso))).toBe(iso);
    expect(filter.localTime("15m")).toBe("");
    expect(filter.localTime("no time")).toBe("");
    expect(filter.isoTime("")).toBeUndefined();
  });
});

describe("following the log", () => {
  const pages = [
    { entries: [entry(9), start(8, "long"), entry(7)], nextCursor: "p2" },
    { entries: [entry(6), entry(5)], nextCursor: "p3" },
  ];

  it("[oper-09g] [oper-10a] puts new records on top, each once, and keeps the way to older ones", () => {
    const merged = withNewest(pages, { entries: [entry(11), entry(10), entry(9)], nextCursor: "x" });
    expect(seqs(merged)).toEqual([
      [11, 10, 9, 8, 7],
      [6, 5],
    ]);
    expect(merged.map(({ nextCursor }) => nextCursor)).toEqual(["p2", "p3"]);
  });

  it("takes the beginning of a call away when its end is there, in the order of the hub", () => {
    const end = entry(10, { callId: "long", time: "2026-11-16T07:00:08.000Z" });
    const merged = withNewest(pages, { entries: [entry(11), entry(9), end, entry(7)], nextCursor: "x" });
    expect(seqs(merged)).toEqual([
      [11, 9, 10, 7],
      [6, 5],
    ]);
  });

  it("begins anew when more came than a page holds, so that there is no gap", () => {
    const newest = { entries: [entry(30), entry(29)], nextCursor: "x" };
    expect(withNewest(pages, newest)).toEqual([newest]);
    expect(withNewest([{ entries: [] }], newest)).toEqual([newest]);
    const all = { entries: [entry(9)] };
    expect(withNewest(pages, all)).toEqual([all]);
  });

  it("finds calls that ended further down, and puts their end in the place of their beginning", () => {
    expect(strayStarts(pages, new Set(["long", "call-7"]))).toEqual(["long"]);
    const ended = withEnds(pages, [entry(12, { callId: "long" })]);
    expect(seqs(ended)[0]).toEqual([9, 12, 7]);
    expect(strayStarts(ended, new Set(["long"]))).toEqual([]);
  });
});

describe("gathered work", () => {
  afterEach(() => void vi.useRealTimers());

  it("runs once for many wishes, never twice at a time, and once more for a wish meanwhile", async () => {
    vi.useFakeTimers();
    const ends: (() => void)[] = [];
    const work = gathered(() => new Promise<void>((resolve) => ends.push(resolve)), 100);
    for (let wish = 0; wish < 5; wish += 1) work.ask();
    await vi.advanceTimersByTimeAsync(100);
    expect(ends).toHaveLength(1);
    work.ask();
    await vi.advanceTimersByTimeAsync(500);
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await vi.advanceTimersByTimeAsync(500);
    expect(ends).toHaveLength(2);
  });

  it("goes on after a failure, and ends when it is stopped", async () => {
    vi.useFakeTimers();
    let runs = 0;
    const work = gathered(() => {
      runs += 1;
      return Promise.reject(new Error("away"));
    }, 100);
    work.ask();
    await vi.advanceTimersByTimeAsync(100);
    work.ask();
    await vi.advanceTimersByTimeAsync(100);
    expect(runs).toBe(2);
    work.ask();
    work.stop();
    work.ask();
    await vi.advanceTimersByTimeAsync(500);
    expect(runs).toBe(2);
  });
});

describe("a record in words", () => {
  it("[oper-09g] says how it went", () => {
    const words = [
      entry(1),
      entry(1, { outcome: "denied" }),
      entry(1, { outcome: "cancelled" }),
      start(1, "x"),
      entry(1, { type: "decision", decision: "ask", answer: "once" }),
      entry(1, { type: "decision", decision: "ask", answer: "no" }),
      entry(1, { type: "decision", decision: "deny" }),
      entry(1, { type: "event", event: "pin.approved" }),
    ].map((each) => Object.values(verdictOf(each)).join(" "));
    expect(words).toEqual([
      "ok ok",
      "denied bad",
      "cancelled neutral",
      "no end yet info",
      "answer: once ok",
      "answer: no bad",
      "deny bad",
      "event neutral",
    ]);
  });

  it("says what, who, which rule and what was found", () => {
    expect(titleOf(entry(1, { event: "pin.approved", name: "a__b" }))).toBe("pin.approved");
    expect(aboutOf(entry(1, { event: "skill.imported", name: "~/skills" }))).toBe("~/skills");
    expect(aboutOf(entry(1, { event: "pin.reset", origin: { source: "files", name: "read" } }))).toBe("read");
    expect(aboutOf(entry(1, { event: "login" }))).toBe("");
    expect(aboutOf(entry(1, { name: "a__b" }))).toBe("");
    expect(whoOf(entry(1, { user: "ada", role: "reviewer" }))).toBe("ada as reviewer");
    expect(whoOf(entry(1, { user: null, role: "reviewer" }))).toBe("as reviewer");
    expect(whoOf(entry(1, { user: null }))).toBe("");
    expect(findingsOf(entry(1, { findings: [{ code: "role_marker", severity: "warn" }, 3] }))).toEqual(["role_marker"]);
    const rule = { level: "hub", list: "deny", pattern: "a__*", where: "toolcrib.json" };
    expect(ruleText(entry(1, { rule }))).toBe('deny · "a__*" · hub · toolcrib.json');
    expect(ruleText(entry(1, { rule: null }))).toBeUndefined();
  });

  it("gives the day only where it is not today", () => {
    const at = new Date(2026, 10, 15, 9, 5, 3);
    expect(stampText(at.toISOString(), at.getTime())).toBe("09:05:03");
    expect(stampText(at.toISOString(), at.getTime() + 86_400_000)).toBe("Nov 15 09:05:03");
    expect(stampText("odd", 0)).toBe("odd");
  });
});
