import { describe, expect, it } from "vitest";
import { OverviewSchema } from "../../../src/contract/activity-schemas.ts";
import { misbehaving } from "../../support/servers.ts";
import { place } from "./place.ts";

describe("[oper-09a] the overview", () => {
  it("counts what there is, and shows how the last calls went", async () => {
    const { hub: make, clock } = await place();
    const hub = await make({
      mcpServers: { one: misbehaving("ok"), off: { ...misbehaving("ok"), enabled: false } },
      tools: { deny: ["pay"] },
    });
    const session = hub.openSession({ door: "mcp" });
    await hub.call({ session, name: "look" });
    await hub.call({ session, name: "pay" });
    await hub.call({ session, name: "nothing-of-that-name" });

    const overview = OverviewSchema.parse(hub.internals.activity.overview());
    expect(overview).toMatchObject({
      startedAt: "1970-01-01T00:16:40.000Z",
      store: "sqlite",
      servers: { ready: 1, disabled: 1 },
      tools: hub.view(hub.session).tools.length,
      skills: 0,
      sessions: 2,
      pendingApprovals: 0,
      denials: [{ name: "pay", server: "local", outcome: "denied", callId: expect.any(String) }],
      findings: [],
    });
    expect(overview.minutes.at(-1)).toMatchObject({ calls: 3, failed: 2, p50: 0 });
    await clock.advance(31 * 60_000);
    expect(hub.internals.activity.overview().minutes.every(({ calls }) => calls === 0)).toBe(true);
    expect(hub.internals.activity.overview().denials).toHaveLength(1);
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
