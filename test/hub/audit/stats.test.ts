/** Figures over time: from the store, from the files, after a restart, and over what an older version had taken in. */
import { describe, expect, it } from "vitest";
import { type InputOf, OPERATIONS } from "../../../src/contract/operations.ts";
import type { Stats } from "../../../src/contract/stats-schemas.ts";
import type { HubAudit } from "../../../src/hub/audit/hub-audit.ts";
import { callOfLine } from "../../../src/hub/audit/stats.ts";
import { blockOf } from "../../../src/telemetry/audit/files.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { callRecord } from "../../support/call-record.ts";
import { JournalPlace } from "./journal-place.ts";

const MINUTE = 60_000;
/** In the middle of a minute. */
const NOW = Math.floor(Date.now() / MINUTE) * MINUTE + MINUTE / 2;
const clock = { now: () => NOW, after: () => () => {} };

async function stats(audit: HubAudit, wish: InputOf<"getStats"> = {}): Promise<Stats> {
  const { input, output } = OPERATIONS.getStats;
  return output.parse(await audit.stats(input.parse(wish)));
}

function call(minutesAgo: number, changes: Partial<CallRecord> = {}): CallRecord {
  const time = new Date(NOW - minutesAgo * MINUTE).toISOString();
  return callRecord({ time, callId: `${minutesAgo} ${changes.name ?? ""}`, ...changes });
}

const git = { name: "git__push", origin: { source: "git", name: "push" } };

/** Some of each outcome, in three ranges. */
const CALLS: readonly CallRecord[] = [
  call(1, { durationMs: 100, resultBytes: 1000, client: { name: "Cursor" }, role: "dev" }),
  call(1, { durationMs: 100, callId: "second", client: { name: "Cursor" }, role: "dev" }),
  call(2, { ...git, durationMs: 5000, outcome: "timeout", callId: "slow" }),
  call(3, { ...git, durationMs: 90_000, waitedMs: 89_000, callId: "approved" }),
  call(4, { ...git, outcome: "denied", decision: "ask", isHeld: true, durationMs: 3 }),
  call(5, { outcome: "denied", decision: "deny", durationMs: 1 }),
  call(6, { outcome: "cancelled", durationMs: 70_000 }),
  call(7, { findings: [{ code: "concealment", severity: "high" }], callId: "found" }),
  call(90, { durationMs: 10 }),
  call(60 * 24 * 20, { durationMs: 10 }),
];

describe.each([{ withStore: true }, { withStore: false }])("figures of calls, store: $withStore", ({ withStore }) => {
  async function written(): Promise<{ place: JournalPlace; audit: HubAudit }> {
    const place = await JournalPlace.open();
    const log = place.log();
    for (const record of CALLS) void log.write(record);
    return { place, audit: place.audit(log, { withStore, clock }) };
  }

  it("[joy-05a] counts calls that wait for approval as waiting, neither refused nor failed", async () => {
    const { audit } = await written();
    const { total, failures } = await stats(audit, { range: "1h" });
    expect(total).toMatchObject({ calls: 8, failed: 1, refused: 1, waiting: 1, cancelled: 1 });
    expect(failures.map(({ name, code, count }) => [name, code, count])).toEqual([
      ["git__push", "timeout", 1],
      ["files__read", "denied", 1],
    ]);
    expect(failures[0]?.last).toEqual({ at: CALLS[2]?.time, callId: "slow" });
  });

  it("[joy-05a] does not take the time that a call waited for approval for its latency", async () => {
    const { audit } = await written();
    const { total } = await stats(audit, { range: "1h", server: "git" });
    expect(total.slowest).toEqual({ ms: 5000, callId: "slow" });
    expect(total.p50 ?? 0).toBeGreaterThan(900);
    expect(total.p50 ?? 0).toBeLessThan(1100);
    expect(Math.abs((total.p99 ?? 0) - 5000)).toBeLessThan(500);
  });

  it("[joy-05a] has a point for each step of a range, and groups by server, tool, client and role", async () => {
    const { audit } = await written();
    const hour = await stats(audit, { range: "1h" });
    expect(hour.points).toHaveLength(60);
    expect(hour.points.at(-2)).toMatchObject({
      at: new Date(NOW - 1.5 * MINUTE).toISOString(),
      calls: 2,
      failed: 0,
    });
    expect(hour.points.at(-1)).toMatchObject({ calls: 0, p50: null });
    expect(hour.servers.map(({ server, calls }) => [server, calls])).toEqual([
      ["files", 5],
      ["git", 3],
    ]);
    expect(hour.tools[0]).toMatchObject({ server: "files", tool: "files__read", calls: 5 });
    expect(hour.tools[0]?.series.at(-2)).toBe(2);
    expect(hour.clients.find(({ client }) => client === "Cursor")).toMatchObject({ calls: 2, failed: 0 });
    expect(hour.roles.find(({ role }) => role === "dev")?.calls).toBe(2);
    expect(hour.slowest[0]).toMatchObject({ tool: "git__push" });
    expect(hour.findings).toMatchObject([{ name: "files__read", code: "concealment", last: { callId: "found" } }]);
    expect((await stats(audit, { range: "24h" })).total.calls).toBe(9);
    expect((await stats(audit, { range: "7d" })).total.calls).toBe(9);
    expect((await stats(audit, { range: "30d" })).total.calls).toBe(10);
  });

  it("[joy-05b] narrows to one server, tool, client or role", async () => {
    const { audit } = await written();
    expect((await stats(audit, { range: "1h", server: "git" })).total.calls).toBe(3);
    expect((await stats(audit, { range: "1h", client: "Cursor" })).total.calls).toBe(2);
    expect((await stats(audit, { range: "1h", role: "dev" })).points.at(-2)?.calls).toBe(2);
    const tool = await stats(audit, { range: "1h", tool: "files__read" });
    expect(tool.total).toMatchObject({ calls: 5, last: { callId: "second" } });
    expect(tool.failures.map(({ code }) => code)).toEqual(["denied"]);
    expect(tool.clients.map(({ client, calls }) => [client, calls])).toEqual([
      ["", 5],
      ["Cursor", 2],
    ]);
    expect((await stats(audit, { tool: "files__rea_" })).total.calls).toBe(0);
    await expect(stats(audit, { server: "git", role: "dev" })).rejects.toMatchObject({ code: "invalid_arguments" });
  });
});

describe("figures in the store", () => {
  it("[joy-05a] survive the hub, and a line that is taken in twice counts once", async () => {
    const place = await JournalPlace.open();
    const log = place.log();
    const first = place.audit(log, { clock });
    for (const record of CALLS) void log.write(record);
    await first.flush();
    await first.close();
    const next = place.audit(place.log(), { clock });
    await next.flush();
    await next.flush();
    expect((await stats(next, { range: "30d" })).total.calls).toBe(10);
    await next.close();
  });

  it("[joy-05c] cover what an older version took in without them, once", async () => {
    const place = await JournalPlace.open();
    const log = place.log();
    const audit = place.audit(log, { clock });
    for (let each = 0; each < 1200; each += 1) void log.write(call(1 + (each % 50), { callId: `old-${each}` }));
    await audit.flush();
    place.edit("delete from call_sums");
    place.edit("update audit_files set summed = 0");
    // More of the same file comes while it is not summed up.
    void log.write(call(1, { callId: "new" }));
    const intake = place.keeper(log, { clock });
    await expect
      .poll(async () => (await intake.takeIn(), (await stats(audit, { range: "1h" })).total.calls))
      .toBe(1201);
    void log.write(call(1, { callId: "newer" }));
    await audit.flush();
    await intake.takeIn();
    expect((await stats(audit, { range: "1h" })).total.calls).toBe(1202);
  });

  it("[joy-05c] cover what comes after lines that somebody removed from the store", async () => {
    const place = await JournalPlace.open();
    const log = place.log();
    for (let each = 0; each < 300; each += 1) void log.write(call(1, { callId: `c${each}` }));
    log.flush();
    const [[name, text] = ["", ""]] = place.texts();
    const lines = text.split(/(?<=\n)/);
    for (const [from, to] of [
      [0, 100],
      [100, 200],
      [200, 301],
    ] as const)
      await place.store.audit.append(blockOf({ name, chain: log.chain }, from, lines.slice(from, to).join("")));
    place.edit("delete from audit_blocks where first_line = 100");
    const audit = place.audit(log, { clock });
    expect((await stats(audit, { range: "1h" })).total.calls).toBe(200);
    await audit.close();
  });

  it("[joy-05c] forget what no range reaches and what is too old for the log", async () => {
    const place = await JournalPlace.open();
    const log = place.log();
    for (const record of CALLS) void log.write(record);
    log.flush();
    for (const [name, text] of place.texts())
      await place.store.audit.append(blockOf({ name, chain: log.chain }, 0, text));
    while (await place.store.audit.sumUpSome(callOfLine, 0));
    const rows = (step: number) => place.store.audit.sums({ step, since: 0, subjects: [{ prefix: '["all"]' }] });
    const hasOld = async (): Promise<boolean> =>
      (await rows(21_600)).some(({ at }) => at * 1000 < NOW - 8 * 24 * 60 * MINUTE);
    expect([(await rows(60)).length, await hasOld()]).toEqual([9, true]);
    await place.store.audit.pruneSums(NOW);
    expect([(await rows(60)).length, await hasOld()]).toEqual([7, true]);
    await place.store.audit.pruneSums(NOW, 7);
    expect([(await rows(60)).length, await hasOld()]).toEqual([7, false]);
  });

  it("[joy-05c] stay bounded, however many names callers think up", async () => {
    const place = await JournalPlace.open();
    const log = place.log();
    for (let each = 0; each < 700; each += 1) {
      const name = `tool ${each}`;
      void log.write(call(1, { callId: name, name, origin: null, outcome: "not_found", client: { name } }));
    }
    const audit = place.audit(log, { clock });
    await audit.flush();
    const rows = await place.store.audit.sums({ step: 60, since: 0, subjects: [{ prefix: '["client",' }] });
    expect(rows).toHaveLength(501);
    const { total, clients } = await stats(audit, { range: "1h" });
    expect(total).toMatchObject({ calls: 700, failed: 700 });
    expect(clients[0]).toMatchObject({ client: "…", calls: 200 });
  });
});
