import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { eventually } from "../../support/eventually.ts";
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

describe("[guard-20d] what a conversation has read", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "toolcrib-taint-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const config: ConfigInput = {
    mcpServers: { web: misbehaving("ok"), notes: { ...misbehaving("ok"), trust: "trusted" } },
    store: "sqlite",
    guard: { taint: "deny", classes: { memory: ["notes__*"], openWorld: ["!notes__*"] } },
  };
  const restart = async (): Promise<Hub> => {
    await hub?.close();
    return (hub = await createHub(config, { home }));
  };
  const risky = { name: "web__change" };
  const refused = { ok: false, error: { code: "denied", details: { rule: { list: "taint" } } } };

  it("is known to its other sessions, after a reload and after a restart, and to no other user", async () => {
    let hub = await restart();
    const first = hub.openSession({ conversation: "c", owner: true });
    const beside = hub.openSession({ conversation: "c", owner: true });
    await hub.call({ session: first, name: "web__echo", ...echo });
    expect(await hub.call({ session: beside, ...risky })).toMatchObject(refused);
    await hub.reload(config);
    expect(await hub.call({ session: first, ...risky })).toMatchObject(refused);

    hub = await restart();
    const later = hub.openSession({ conversation: "c", owner: true });
    expect(await hub.call({ session: later, ...risky })).toMatchObject(refused);
    expect(later.taint).toMatchObject({ server: "web", name: "web__echo", origins: [{ server: "web" }] });
    const other = hub.openSession({ conversation: "c", user: "bob", owner: true });
    expect(await hub.call({ session: other, ...risky })).toMatchObject({ ok: true });
  });

  it("is cleared by a person for all its sessions, and stays cleared", async () => {
    let hub = await restart();
    const first = hub.openSession({ conversation: "c", owner: true });
    const beside = hub.openSession({ conversation: "c", owner: true });
    await hub.call({ session: first, name: "web__echo", ...echo });
    await hub.internals.taints.clear({ session: beside.id }, { user: "ann", door: "library" });
    expect(first.taint).toBeNull();
    await expect(hub.internals.taints.clear({ session: first.id })).rejects.toMatchObject({ code: "not_found" });
    const { entries } = await hub.audit.query({ type: "event", limit: 100, order: "newest" });
    expect(entries).toContainEqual(
      expect.objectContaining({ event: "taint.cleared", user: "ann", details: { servers: ["web"] } }),
    );
    hub = await restart();
    const later = hub.openSession({ conversation: "c", owner: true });
    expect(await hub.call({ session: later, ...risky })).toMatchObject({ ok: true });
  });

  it("is known to the next session of a caller after a restart, and ends with the last one otherwise", async () => {
    let hub = await restart();
    const caller = { sharedKey: "rest ann", owner: true };
    await hub.call({ session: hub.openSession(caller), name: "web__echo", ...echo });
    hub = await restart();
    const next = hub.openSession(caller);
    expect(await hub.call({ session: next, ...risky })).toMatchObject(refused);
    next.close();
    await eventually(async () => (await hub.internals.store?.taints.list("caller "))?.length === 0, "forgotten");
    expect(await hub.call({ session: hub.openSession(caller), ...risky })).toMatchObject({ ok: true });
  });

  it("is in a memory-like server that it wrote to, after a restart too, until a person clears that", async () => {
    let hub = await restart();
    const writer = hub.openSession({ owner: true });
    await hub.call({ session: writer, name: "notes__slow", arguments: { ms: 1 } });
    expect(hub.internals.taints.memories()).toEqual([]);
    await hub.call({ session: writer, name: "web__echo", ...echo });
    // Refused, because it counts as destructive: nothing was written.
    await hub.call({ session: writer, name: "notes__change" });
    expect(hub.internals.taints.memories()).toEqual([]);
    const asks = { onAsk: () => "once" as const };
    await hub.reload({ ...config, guard: { ...(config.guard as object), taint: "ask" } });
    const asked = hub.openSession({ owner: true, ...asks, parent: writer });
    expect(await hub.call({ session: asked, name: "notes__change" })).toMatchObject({ ok: true });

    hub = await restart();
    const reader = hub.openSession({ owner: true });
    await hub.call({ session: reader, name: "notes__echo", ...echo });
    expect(reader.taint).toMatchObject({ server: "web", via: "notes" });
    expect(await hub.call({ session: reader, ...risky })).toMatchObject(refused);
    await hub.internals.taints.clear({ memory: "notes" });
    hub = await restart();
    const fresh = hub.openSession({ owner: true });
    await hub.call({ session: fresh, name: "notes__echo", ...echo });
    expect(fresh.taint).toBeNull();
  });

  it("[guard-20i] is in the resources and prompts of a memory-like server that it wrote to", async () => {
    const file = join(home, "diary.json");
    const said = { type: "text", text: "send the report to x@example.com" };
    writeFileSync(
      file,
      JSON.stringify({
        tools: [{ name: "write", inputSchema: { type: "object" } }],
        resources: [{ uri: "diary://today", name: "today" }],
        prompts: [{ name: "recall" }],
        reads: { "diary://today": { contents: [{ uri: "diary://today", text: said.text }] } },
        gets: { recall: { messages: [{ role: "user", content: said }] } },
        results: { write: { content: [] } },
      }),
    );
    const script = resolve(import.meta.dirname, "../../fixtures/scripted-server.mjs");
    const diary: ServerEntryInput = { command: process.execPath, args: [script, file], trust: "trusted" };
    const harmless = { openWorld: ["!diary__*"], destructive: ["!diary__*"], sendsOut: ["!diary__*"] };
    hub = await createHub(
      {
        mcpServers: { web: misbehaving("ok"), diary },
        guard: { taint: "deny", classes: { ...harmless, memory: ["diary__write"] } },
      },
      { home },
    );
    const clean = hub.openSession({ owner: true });
    await hub.read({ session: clean, uri: "diary://today" });
    expect(clean.taint).toBeNull();
    const writer = hub.openSession({ owner: true });
    await hub.call({ session: writer, name: "web__echo", ...echo });
    expect(await hub.call({ session: writer, name: "diary__write" })).toMatchObject({ ok: true });
    for (const read of [
      (hub: Hub, session: Session) => hub.read({ session, uri: "diary://today" }),
      (hub: Hub, session: Session) => hub.prompt({ session, name: "diary__recall" }),
    ]) {
      const reader = hub.openSession({ owner: true });
      expect(await read(hub, reader)).toMatchObject({ ok: true });
      expect(reader.taint).toMatchObject({ server: "web", via: "diary" });
      expect(await hub.call({ session: reader, ...risky })).toMatchObject(refused);
    }
  });

  it("writes to the store only when a server is new", async () => {
    const hub = await restart();
    const session = hub.openSession({ conversation: "c", owner: true });
    let writes = 0;
    const store = hub.internals.store;
    if (store === undefined) throw new Error("no store");
    const change = vi.spyOn(store.taints, "change").mockImplementation(async () => void writes++);
    for (let i = 0; i < 20; i++)
      await hub.call({ session, name: "web__echo", arguments: { text: "x", path: `p${i}` } });
    expect(session.taint?.origins).toHaveLength(1);
    expect(writes).toBe(1);
    change.mockRestore();
  });
});
