import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { Session } from "../../../src/sessions/session.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { LinkingServers } from "../../support/linking-server.ts";

const WAIT = { timeout: 60_000, interval: 10 };

const hubs: Hub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close();
});

async function open(place: LinkingServers, config: ConfigInput, options: HubOptions = {}): Promise<Hub> {
  const hub = await createHub(config, { home: join(place.dir, "home"), ...options });
  hubs.push(hub);
  return hub;
}

/** The URIs that a tool linked to, as the session got them. */
async function linked(hub: Hub, session: Session, name: string, ...uris: string[]): Promise<unknown[]> {
  const outcome = await hub.call({ session, name, arguments: { uris } });
  return outcome.result?.content.map((block) => block["uri"]) ?? [outcome];
}

/** What was read, or the code of the error. */
async function read(hub: Hub, session: Session, uri: string): Promise<unknown> {
  const outcome = await hub.read({ session, uri });
  return outcome.ok ? outcome.result.contents[0]?.["text"] : outcome.error.code;
}

describe("[gate-03] a resource that no server lists", () => {
  it("is read, followed and unfollowed at the only server with resources", async () => {
    const place = new LinkingServers();
    const hub = await open(place, {
      mcpServers: {
        only: place.server("only", { has: ["x://unlisted/1"] }, { toolPrefix: "" }),
        other: place.server("other", { hasResources: false }),
      },
    });
    expect(await linked(hub, hub.session, "link", "x://unlisted/1")).toEqual(["x://unlisted/1"]);
    expect(await read(hub, hub.session, "x://unlisted/1")).toBe("only x://unlisted/1");
    // Also in a session that never got the link.
    const another = hub.openSession();
    expect(await read(hub, another, "x://unlisted/1")).toBe("only x://unlisted/1");
    expect(await hub.internals.subscribe(another, { uri: "x://unlisted/1" })).toMatchObject({ ok: true });
    expect(await hub.internals.unsubscribe(another, { uri: "x://unlisted/1" })).toMatchObject({ ok: true });
    expect(place.asked("only").slice(-2)).toEqual([
      "resources/subscribe x://unlisted/1",
      "resources/unsubscribe x://unlisted/1",
    ]);
  });

  it("leaves it to the server to say that there is none", async () => {
    const place = new LinkingServers();
    const hub = await open(place, { mcpServers: { only: place.server("only") } });
    expect(await hub.read({ uri: "x://none" })).toMatchObject({
      ok: false,
      error: { details: { rpc: { code: -32002, message: "only has no x://none", data: { uri: "x://none" } } } },
    });
  });

  it("does not exist where no server has resources", async () => {
    const place = new LinkingServers();
    const hub = await open(place, { mcpServers: { a: place.server("a", { hasResources: false }) } });
    const outcome = await hub.read({ uri: "x://1" });
    expect(outcome).toMatchObject({
      ok: false,
      error: { code: "not_found", message: 'There is no resource "x://1".' },
    });
    expect(place.asked("a")).toEqual([]);
  });

  it("is read from the server that linked to it, by the session that got the link", async () => {
    const place = new LinkingServers();
    const [has, more] = [["x://1"], ["x://1", "x://2"]];
    const hub = await open(place, {
      mcpServers: { a: place.server("a", { has: more }), b: place.server("b", { has }) },
    });
    const [session, another] = [hub.openSession(), hub.openSession()];
    expect(await linked(hub, session, "b__link", "x://1")).toEqual(["x://1"]);
    expect(await hub.call({ session, name: "a__embed", arguments: { uris: ["x://2"] } })).toMatchObject({ ok: true });
    expect(await read(hub, session, "x://1")).toBe("b x://1");
    expect(await read(hub, session, "x://2")).toBe("a x://2");
    expect(await read(hub, another, "x://1")).toBe("not_found");
    // Of two that linked to it the last one is meant.
    await linked(hub, session, "a__link", "x://1");
    expect(await read(hub, session, "x://1")).toBe("a x://1");
  });

  it("is not mixed up with another server's of the same URI", async () => {
    const place = new LinkingServers();
    const hub = await open(place, {
      mcpServers: {
        a: place.server("a", { resources: ["x://shared"], templates: ["t://{id}"], has: ["t://1"] }),
        b: place.server("b", { has: ["x://shared", "t://1", "toolcrib://results/1"] }),
      },
    });
    const { session } = hub;
    const links = await linked(hub, session, "b__link", "x://shared", "t://1", "toolcrib://results/1", "x://free");
    expect(links).toEqual([
      "toolcrib://servers/b/x://shared",
      "toolcrib://servers/b/t://1",
      "toolcrib://servers/b/toolcrib://results/1",
      "x://free",
    ]);
    expect(await read(hub, session, "x://shared")).toBe("a x://shared");
    expect(await read(hub, session, "t://1")).toBe("a t://1");
    for (const uri of ["x://shared", "t://1", "toolcrib://results/1"]) {
      expect(await read(hub, session, `toolcrib://servers/b/${uri}`)).toBe(`b ${uri}`);
    }
    const outcome = await hub.read({ session, uri: "toolcrib://servers/b/x://shared" });
    expect(outcome.result?.contents[0]?.uri).toBe("toolcrib://servers/b/x://shared");
    for (const uri of ["toolcrib://servers/c/x://1", "toolcrib://servers/%62/t://1", "toolcrib://x", "TOOLCRIB://x"]) {
      expect(await read(hub, session, uri)).toBe("not_found");
    }
    expect(await hub.internals.subscribe(session, { uri: "toolcrib://results/1" })).toMatchObject({ ok: false });
  });

  it("keeps the links of tools that run in this process, and of tools run by toolcrib_call", async () => {
    const place = new LinkingServers();
    const registry = new ToolRegistry();
    registry.register({
      name: "mine",
      description: "Links.",
      parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "resource_link", uri: "x://listed", name: "l" }] }),
    });
    const hub = await open(
      place,
      {
        tools: { max: 1 },
        mcpServers: { a: place.server("a", { resources: ["x://listed"] }), b: place.server("b", { has: ["x://1"] }) },
      },
      { registry },
    );
    expect(await linked(hub, hub.session, "mine")).toEqual(["x://listed"]);
    const arguments_ = { name: "b__link", arguments: { uris: ["x://listed", "x://1"] } };
    const outcome = await hub.call({ name: "toolcrib_call", arguments: arguments_ });
    expect(outcome.result?.content.map((block) => block["uri"])).toEqual(["toolcrib://servers/b/x://listed", "x://1"]);
    expect(await read(hub, hub.session, "x://1")).toBe("b x://1");
  });

  it("is followed on at the connection that takes over", async () => {
    const place = new LinkingServers();
    const servers = (label: string): ConfigInput => ({
      mcpServers: { a: place.server("a"), b: place.server(label, { has: ["x://1"] }) },
    });
    const hub = await open(place, servers("old"));
    await linked(hub, hub.session, "b__link", "x://1");
    expect(await hub.internals.subscribe(hub.session, { uri: "x://1" })).toMatchObject({ ok: true });
    await hub.reload(servers("new"));
    await vi.waitFor(() => expect(place.asked("new")).toEqual(["resources/subscribe x://1"]), WAIT);
    expect(place.asked("a")).toEqual([]);
  });
});

describe("[gate-09b] rules for a resource that no server lists", () => {
  const unlisted = ["x://open", "x://secret/1"];

  it("hold by URI, in whatever form it is asked for", async () => {
    const place = new LinkingServers();
    const hub = await open(place, {
      tools: { deny: ["x://secret/*"] },
      mcpServers: { a: place.server("a", { has: unlisted, templates: ["t://{+path}"] }) },
    });
    const guest = hub.openSession({ owner: false });
    for (const form of ["", "toolcrib://servers/a/"]) {
      expect(await read(hub, guest, `${form}x://open`)).toBe("a x://open");
      const uri = `${form}x://secret/1`;
      expect(await read(hub, hub.session, uri)).toBe("denied");
      expect(await read(hub, guest, uri)).toBe("not_found");
      expect(await hub.internals.subscribe(guest, { uri })).toMatchObject({ ok: false, error: { code: "not_found" } });
    }
    // Rules on what a template gives are rules on its public form.
    expect(await read(hub, hub.session, "toolcrib://servers/a/t://1")).toBe("not_found");
    expect(place.asked("a").filter((line) => line.includes("secret") || line.includes("t://"))).toEqual([]);
  });

  it("hold by URI for what another server claims, listed or not, and what a template gives", async () => {
    const place = new LinkingServers();
    const uris = ["x://secret/1", "x://secret/2"];
    const hub = await open(place, {
      tools: { deny: ["x://secret/*", "t://secret/*"] },
      mcpServers: {
        a: place.server("a", { resources: uris, templates: ["t://{+path}"] }),
        b: place.server("b", {
          resources: ["x://secret/1"],
          has: [...uris, "t://secret/1"],
          templates: ["t://{+path}"],
        }),
      },
    });
    for (const uri of [...uris, "t://secret/1"]) {
      expect(await read(hub, hub.session, `toolcrib://servers/b/${uri}`)).toBe("denied");
    }
    expect(hub.view(hub.session).resources).toEqual([]);
    expect(place.asked("b")).toEqual([]);
  });

  it("hold by server, role and part of the hub", async () => {
    const place = new LinkingServers();
    const config: ConfigInput = {
      mcpServers: {
        a: place.server("a", { has: unlisted }, { tools: { deny: ["x://secret/*"] }, tags: ["t"] }),
        b: place.server("b", { has: unlisted }, { roles: ["second"] }),
      },
      roles: { first: { servers: ["a"] }, second: {} },
    };
    const hub = await open(place, config);
    const first = hub.openSession({ role: "first", owner: false });
    const second = hub.openSession({ role: "second", owner: false });
    const part = hub.openSession({ owner: true, rules: { servers: ["b"] } });
    const tagged = hub.openSession({ owner: true, rules: { tags: ["t"] } });
    expect(await read(hub, first, "x://open")).toBe("a x://open");
    expect(await read(hub, first, "x://secret/1")).toBe("not_found");
    expect(await read(hub, first, "toolcrib://servers/b/x://open")).toBe("not_found");
    expect(await read(hub, second, "x://open")).toBe("not_found");
    expect(await read(hub, second, "toolcrib://servers/b/x://open")).toBe("b x://open");
    expect(await read(hub, part, "x://open")).toBe("b x://open");
    expect(await read(hub, tagged, "x://open")).toBe("a x://open");
    expect(place.asked("b")).toEqual(["resources/read x://open", "resources/read x://open"]);
  });

  it("ask, and the record says whose it was", async () => {
    const place = new LinkingServers();
    const asked: unknown[] = [];
    const records: CallRecord[] = [];
    const hub = await open(
      place,
      { tools: { ask: ["x://secret/*"] }, mcpServers: { a: place.server("a", { has: unlisted }) } },
      {
        onAsk: ({ name, origin }) => {
          asked.push({ name, origin });
          return "once";
        },
      },
    );
    hub.on("call", (record) => records.push(record));
    expect(await read(hub, hub.session, "x://secret/1")).toBe("a x://secret/1");
    expect(asked).toEqual([{ name: "x://secret/1", origin: { source: "a", name: "x://secret/1" } }]);
    expect(records).toMatchObject([
      { name: "x://secret/1", origin: { source: "a", name: "x://secret/1" }, outcome: "ok" },
    ]);
  });

  it("do not run what another server was asked for meanwhile", async () => {
    const place = new LinkingServers();
    const meanwhile: { happens?: () => void } = {};
    const hub = await open(
      place,
      { tools: { ask: ["x://1"] }, mcpServers: { a: place.server("a", { has: ["x://1"] }), b: place.server("b") } },
      {
        onAsk: () => {
          meanwhile.happens?.();
          return "once";
        },
      },
    );
    await linked(hub, hub.session, "a__link", "x://1");
    meanwhile.happens = () => hub.session.links.add("x://1", "b");
    expect(await read(hub, hub.session, "x://1")).toBe("denied");
    expect(place.asked("b")).toEqual([]);
  });
});
