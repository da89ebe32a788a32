import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { AskRequest } from "../../../src/model/decision.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { misbehaving } from "../../support/servers.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-ask-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let hub: Hub | undefined;
let runs = 0;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
  runs = 0;
});

async function start(config: ConfigInput | string, options: HubOptions = {}): Promise<Hub> {
  const registry = new ToolRegistry();
  for (const name of ["wipe", "read"]) {
    registry.register({
      name,
      description: `Does ${name}.`,
      parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "text", text: `${name} ${++runs}` }] }),
    });
  }
  hub = await createHub(config, { registry, ...options });
  return hub;
}

const ASK = { tools: { ask: ["wipe"] } };

describe("[guard-03a] a call that a rule asks about", () => {
  it("waits for the session's callback, which sees what it is about", async () => {
    const seen: AskRequest[] = [];
    const hub = await start(ASK);
    const session = hub.openSession({
      onAsk: (request) => {
        seen.push(request);
        return "once";
      },
    });
    expect(await hub.call({ session, name: "wipe", arguments: { disk: "c" } })).toMatchObject({ ok: true });
    expect(seen).toMatchObject([
      { name: "wipe", arguments: { disk: "c" }, rule: { list: "ask", pattern: "wipe" }, session: { id: session.id } },
    ]);
    await hub.call({ session, name: "wipe" });
    expect(seen).toHaveLength(2);
    await hub.call({ session, name: "read" });
    expect(seen).toHaveLength(2);
  });

  it("is seen in the list, because it can be used", async () => {
    const hub = await start(ASK);
    expect(hub.view(hub.session).tools.map((tool) => tool.name)).toContain("wipe");
  });

  it.each([undefined, null, false, 0, "NO", "deny", "yes", {}])(
    "is denied by %s, which is no known answer",
    async (answer) => {
      // What a callback without types may give.
      const hub = await start(ASK, { onAsk: () => answer as "no" });
      expect(await hub.call({ name: "wipe" })).toMatchObject({ ok: false, error: { code: "denied" } });
      expect(runs).toBe(0);
    },
  );

  it("runs with the arguments that were shown, whatever the caller does to its object meanwhile", async () => {
    let ran: unknown;
    const registry = new ToolRegistry();
    registry.register({
      name: "pay",
      description: "Pays.",
      parameters: { type: "object" },
      execute: async (_id, params) => ((ran = params), { content: [] }),
    });
    hub = await createHub({ tools: { ask: ["pay"] } }, { registry, onAsk: () => ((args.to = "attacker"), "once") });
    const args = { to: "boss" };
    expect(await hub.call({ name: "pay", arguments: args })).toMatchObject({ ok: true });
    expect(ran).toEqual({ to: "boss" });
  });

  it("is refused if the tool changed while the question was open", async () => {
    const registry = new ToolRegistry();
    const register = (description: string): (() => void) =>
      registry.register({
        name: "pay",
        description,
        parameters: { type: "object" },
        execute: async () => ({ content: [] }),
      });
    const remove = register("Pays.");
    hub = await createHub(
      { tools: { ask: ["pay"] } },
      {
        registry,
        onAsk: async () => {
          remove();
          register("Pays twice.");
          return "once" as const;
        },
      },
    );
    expect(await hub.call({ name: "pay" })).toMatchObject({
      ok: false,
      error: { code: "denied", message: expect.stringContaining("changed") },
    });
  });

  it("[guard-03b] a guest's always lasts for its session only, and is not written down", async () => {
    const file = join(dir, "toolcrib-guest.json");
    writeFileSync(file, JSON.stringify(ASK));
    let asked = 0;
    const hub = await start(file);
    const guest = hub.openSession({ owner: false, onAsk: () => (asked++, "always") });
    await hub.call({ session: guest, name: "wipe" });
    await hub.call({ session: guest, name: "wipe" });
    expect(asked).toBe(1);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(ASK);
    expect(await hub.call({ session: hub.openSession(), name: "wipe" })).toMatchObject({
      ok: false,
      error: { code: "denied" },
    });
  });

  it.each([
    ["no", async () => "no" as const],
    ["a callback that throws", async () => Promise.reject(new Error("window closed"))],
  ])("is denied by %s, and the tool does not run", async (_name, onAsk) => {
    const hub = await start(ASK, { onAsk });
    expect(await hub.call({ name: "wipe" })).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(runs).toBe(0);
  });

  it("[trust-07a] is denied when there is nobody to ask, and the text says who can approve it, not how", async () => {
    const hub = await start(ASK);
    const outcome = await hub.call({ name: "wipe" });
    expect(outcome).toMatchObject({
      ok: false,
      error: {
        code: "denied",
        message: expect.stringContaining("No one is connected who can approve it."),
        hint: expect.stringContaining("A person has to approve it"),
      },
    });
    expect(JSON.stringify(outcome)).not.toMatch(/toolcrib [a-z]|!wipe|ask list/);
  });

  it("is asked once per session after the answer session", async () => {
    let asked = 0;
    const hub = await start(ASK, { onAsk: () => (asked++, "session") });
    await hub.call({ name: "wipe" });
    await hub.call({ name: "wipe" });
    expect(asked).toBe(1);
    await hub.call({ session: hub.openSession(), name: "wipe" });
    expect(asked).toBe(2);
  });

  it("is asked again after the answer session for what has become another under its name", async () => {
    let asked = 0;
    const hub = await start({ tools: { ask: ["mine"] } }, { onAsk: () => (asked++, "session") });
    const session = hub.openSession();
    for (const description of ["Adds a note.", "Deletes everything."]) {
      const parameters = { type: "object" };
      session.own.setTools("own", [{ name: "mine", description, parameters, execute: async () => ({ content: [] }) }]);
      for (let twice = 0; twice < 2; twice++) expect((await hub.call({ session, name: "mine" })).ok).toBe(true);
    }
    expect(asked).toBe(2);
  });

  it("[guard-03b] is never asked again after always, which is written where the rule stands, comments kept", async () => {
    const file = join(dir, "toolcrib.json");
    writeFileSync(file, '{\n  // careful\n  "tools": { "ask": ["wipe"] } // asked\n}\n');
    let asked = 0;
    const first = await start(file, { onAsk: () => (asked++, "always") });
    await first.call({ name: "wipe" });
    await first.call({ session: first.openSession(), name: "wipe" });
    expect(asked).toBe(1);
    expect(readFileSync(file, "utf8")).toBe(
      '{\n  // careful\n  "tools": { "ask": ["wipe", "!=tool:wipe"] } // asked\n}\n',
    );
    await first.close();
    const second = await start(file);
    expect(await second.call({ name: "wipe" })).toMatchObject({ ok: true });
  });

  it("[guard-03b] writes always into a role's own server, where that is whose rule it is", async () => {
    const file = join(dir, "toolcrib-role.json");
    const entry = { ...misbehaving("ok"), tools: { ask: ["change"] } };
    writeFileSync(file, JSON.stringify({ roles: { bot: { mcpServers: { notes: entry } } } }));
    let asked = 0;
    const hub = await start(file, { onAsk: () => (asked++, "always") });
    const bot = hub.openSession({ role: "bot" });
    expect(await hub.call({ session: bot, name: "notes__change" })).toMatchObject({ ok: true });
    expect(await hub.call({ session: hub.openSession({ role: "bot" }), name: "notes__change" })).toMatchObject({
      ok: true,
    });
    expect(asked).toBe(1);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      roles: { bot: { mcpServers: { notes: { tools: { ask: ["change", "!=tool:notes__change"] } } } } },
    });
  });

  it("[guard-03c] is a no when the time is up", async () => {
    const clock = new FakeClock();
    const hub = await start(
      { tools: { ask: ["wipe"], askTimeout: 1000 } },
      { clock, onAsk: () => new Promise(() => {}) },
    );
    const pending = hub.call({ name: "wipe" });
    await expect.poll(() => hub.approvals.pending()).toHaveLength(1);
    await clock.advance(1001);
    expect(await pending).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(hub.approvals.pending()).toEqual([]);
  });

  it("can be answered from outside, and cancelled by the caller", async () => {
    const hub = await start(ASK, { onAsk: () => new Promise(() => {}) });
    const asked: AskRequest[] = [];
    hub.on("ask", (request) => {
      asked.push(request);
      expect(hub.approvals.pending()).toContainEqual(request);
    });
    const first = hub.call({ name: "wipe" });
    await expect.poll(() => asked).toHaveLength(1);
    expect(hub.approvals.answer(asked[0]?.id ?? "", "once")).toBe(true);
    expect(await first).toMatchObject({ ok: true });
    expect(hub.approvals.answer(asked[0]?.id ?? "", "once")).toBe(false);

    const controller = new AbortController();
    const second = hub.call({ name: "wipe", signal: controller.signal });
    await expect.poll(() => hub.approvals.pending()).toHaveLength(1);
    controller.abort();
    expect(await second).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(hub.approvals.pending()).toEqual([]);
  });
});
