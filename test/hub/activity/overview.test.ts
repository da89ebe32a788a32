import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { OverviewSchema } from "../../../src/contract/activity-schemas.ts";
import { eventually } from "../../support/eventually.ts";
import { misbehaving } from "../../support/servers.ts";
import { place } from "./place.ts";

describe("[oper-09a] the overview", () => {
  it("counts what there is", async () => {
    const { hub: make } = await place();
    const hub = await make({
      mcpServers: { one: misbehaving("ok"), off: { ...misbehaving("ok"), enabled: false } },
      tools: { deny: ["pay"] },
    });
    const session = hub.openSession({ door: "mcp" });
    expect(session.closed).toBe(false);
    const overview = OverviewSchema.parse(hub.internals.activity.overview());
    expect(overview).toMatchObject({
      startedAt: "1970-01-01T00:16:40.000Z",
      store: "sqlite",
      servers: { ready: 1, disabled: 1 },
      tools: hub.view(hub.session).tools.length,
      skills: 0,
      sessions: 2,
      pendingApprovals: 0,
      findings: [],
      warnings: [],
    });
  });

  it("[joy-05a] has figures of calls that are still there after a restart", async () => {
    const { hub: make } = await place();
    // Figures that are long past are not kept, so these calls are made now.
    const options = { clock: systemClock };
    const config = { mcpServers: { one: misbehaving("ok") }, tools: { deny: ["pay"] } };
    const first = await make(config, options);
    const session = first.openSession({ door: "mcp" });
    await first.call({ session, name: "look" });
    await first.call({ session, name: "pay" });
    await first.call({ session, name: "nothing-of-that-name" });
    await first.close();
    const { audit } = await make(config, options);
    // The log is taken in by a thread, for which nobody waits long.
    await eventually(async () => (await audit.stats({ range: "1h" })).total.calls === 3);
    const { total, failures } = await audit.stats({ range: "1h" });
    expect(total).toMatchObject({ calls: 3, failed: 1, refused: 1 });
    expect(failures.map(({ name, code }) => `${name} ${code}`).toSorted()).toEqual([
      "nothing-of-that-name not_found",
      "pay denied",
    ]);
  });

  it("[joy-05d] shows what the scan of definitions finds as findings, not as warnings", async () => {
    const { hub: make } = await place();
    const hub = await make({ mcpServers: { bad: misbehaving("poisoned") }, guard: { definitions: "warn" } });
    const { findings, warnings } = OverviewSchema.parse(hub.internals.activity.overview());
    expect(findings.length).toBeGreaterThan(0);
    expect(findings[0]).toMatchObject({ server: "bad", kind: "tool" });
    expect(hub.warnings().length).toBeGreaterThan(warnings.length);
    expect(warnings.filter(({ message }) => message.includes("looks like an attack"))).toEqual([]);
    await hub.servers.disconnect("bad");
  });

  it("is there without a store", async () => {
    const { hub: make } = await place();
    expect((await make({}, { store: false })).internals.activity.overview().store).toBe("none");
  });
});

describe("events", () => {
  it("tell of sessions, and of calls that begin and end", async () => {
    const { hub: make } = await place();
    const hub = await make({ tools: { deny: ["pay"] } });
    const told: string[] = [];
    hub.on("session", ({ session, open }) => told.push(`${session.door} ${open ? "opened" : "closed"}`));
    hub.on("call-start", ({ name, callId }) => told.push(`start ${name} ${callId.length}`));
    hub.on("call", ({ name, outcome }) => told.push(`${name} ${outcome}`));
    const session = hub.openSession({ door: "mcp" });
    await hub.call({ session, name: "look" });
    await hub.call({ session, name: "pay" });
    session.close();
    session.close();
    expect(told).toEqual(["mcp opened", "start look 36", "look ok", "pay denied", "mcp closed"]);
  });
});
