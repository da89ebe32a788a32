import { afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { misbehaving } from "../../support/servers.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

async function start(
  guard: ConfigInput["guard"],
  options: HubOptions = {},
  entry: Partial<ServerEntryInput> = {},
): Promise<Hub> {
  hub = await createHub(
    {
      mcpServers: { web: { ...misbehaving("ok"), ...entry }, notes: { ...misbehaving("ok"), trust: "trusted" } },
      guard,
    },
    options,
  );
  return hub;
}

const echo = { arguments: { text: "x" } };

describe("[guard-17a] a session that has read untrusted open-world content", () => {
  it("may no longer use risky tools, and the decision says which call tainted it", async () => {
    const hub = await start({ taint: "deny" });
    expect(await hub.call({ name: "notes__change" })).toMatchObject({ ok: true });
    expect(hub.session.taint).toBeNull();
    const first = await hub.call({ name: "web__echo", ...echo });
    expect(first.ok).toBe(true);
    expect(hub.session.taint).toMatchObject({ name: "web__echo", callId: first.callId });

    const risky = await hub.call({ name: "notes__change" });
    expect(risky).toMatchObject({
      ok: false,
      error: { code: "denied", details: { rule: { level: "taint", pattern: "destructive" } } },
    });
    expect(risky.ok ? "" : risky.error.message).toContain("web__echo");
    expect(hub.explain("notes__change")?.decision.verdict).toBe("deny");

    const fresh = hub.openSession();
    expect(await hub.call({ session: fresh, name: "notes__change" })).toMatchObject({ ok: true });
  });

  it("is asked, once per session if that is the answer", async () => {
    let asked = 0;
    const hub = await start({ taint: "ask" }, { onAsk: () => (asked++, "session") });
    await hub.call({ name: "web__echo", ...echo });
    expect(await hub.call({ name: "notes__change" })).toMatchObject({ ok: true });
    expect(await hub.call({ name: "notes__change" })).toMatchObject({ ok: true });
    expect(asked).toBe(1);
  });

  it("is asked although the tool itself was granted for the session before", async () => {
    const reasons: string[] = [];
    const registry = new ToolRegistry();
    hub = await createHub(
      {
        mcpServers: { web: misbehaving("ok"), notes: { ...misbehaving("ok"), trust: "trusted" } },
        tools: { ask: ["notes__change"] },
        guard: { taint: "ask" },
      },
      { registry, onAsk: ({ rule }) => (reasons.push(rule.list), "session") },
    );
    await hub.call({ name: "notes__change" });
    await hub.call({ name: "web__echo", ...echo });
    await hub.call({ name: "notes__change" });
    await hub.call({ name: "notes__change" });
    expect(reasons).toEqual(["ask", "taint"]);
  });

  it("still uses what the config says is harmless", async () => {
    const hub = await start({ taint: "deny", classes: { destructive: ["!notes__*"], sendsOut: ["!notes__*"] } });
    await hub.call({ name: "web__echo", ...echo });
    expect(await hub.call({ name: "notes__change" })).toMatchObject({ ok: true });
    expect(await hub.call({ name: "web__change" })).toMatchObject({
      ok: false,
      error: { code: "denied" },
    });
  });

  it("is not tainted by trusted servers or by tools of a closed world, and nothing happens when it is off", async () => {
    const trusted = await start({ taint: "deny" }, {}, { trust: "trusted" });
    await trusted.call({ name: "web__echo", ...echo });
    expect(trusted.session.taint).toBeNull();
    await trusted.close();

    const closed = await start({ taint: "deny", classes: { openWorld: ["!web__*"] } });
    await closed.call({ name: "web__echo", ...echo });
    expect(closed.session.taint).toBeNull();
    await closed.close();

    const off = await start({ taint: "off" });
    await off.call({ name: "web__echo", ...echo });
    expect(await off.call({ name: "notes__change" })).toMatchObject({ ok: true });
  });
});
