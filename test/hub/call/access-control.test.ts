import { afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { everything, misbehaving } from "../../support/servers.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

async function start(config: ConfigInput, options: HubOptions = {}): Promise<Hub> {
  hub = await createHub(config, options);
  return hub;
}

const names = (hub: Hub, session: Session): string[] => hub.view(session).tools.map((tool) => tool.name);

describe("[guard-04b] roles of the config", () => {
  it("narrow servers and tools, and the rest does not exist for them", async () => {
    const hub = await start({
      mcpServers: { files: misbehaving("ok"), other: misbehaving("ok") },
      roles: { reviewer: { servers: ["files"], tools: { deny: ["*__exit"] } } },
    });
    const reviewer = hub.openSession({ role: "reviewer", owner: false });
    expect(names(hub, reviewer)).toContain("files__echo");
    expect(names(hub, reviewer)).not.toContain("files__exit");
    expect(names(hub, reviewer).some((name) => name.startsWith("other"))).toBe(false);
    expect(await hub.call({ session: reviewer, name: "other__echo", arguments: { text: "x" } })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    });
    expect(names(hub, hub.session)).toContain("other__echo");
  });

  it("have servers of their own, which take the place of the hub's", async () => {
    const hub = await start({
      mcpServers: { github: { ...misbehaving("ok"), env: { WHO: "hub" } } },
      roles: {
        bot: { mcpServers: { github: { ...misbehaving("ok"), env: { WHO: "bot" } }, extra: misbehaving("ok") } },
      },
    });
    const bot = hub.openSession({ role: "bot", owner: false });
    expect(names(hub, bot)).toEqual(expect.arrayContaining(["github__env"]));
    expect(names(hub, bot)).not.toContain("github-bot__env");
    const outcome = await hub.call({ session: bot, name: "github__env" });
    expect(JSON.stringify(outcome)).toContain('\\"WHO\\":\\"bot\\"');
    const guest = hub.openSession({ owner: false });
    expect(names(hub, guest).filter((name) => name.includes("bot"))).toEqual([]);
  });

  it("[guard-01b] cannot regain through a server of their own what the hub denies by name", async () => {
    const hub = await start({
      mcpServers: { github: misbehaving("ok") },
      tools: { deny: ["github__exit"] },
      roles: { bot: { mcpServers: { github: misbehaving("ok") } } },
    });
    const bot = hub.openSession({ role: "bot", owner: false });
    expect(names(hub, bot)).toContain("github__echo");
    expect(names(hub, bot)).not.toContain("github__exit");
  });

  it("[guard-01b] are bound by the rules of the server that theirs replaces", async () => {
    const hub = await start({
      mcpServers: { github: { ...misbehaving("ok"), tools: { deny: ["exit"] } } },
      roles: { bot: { mcpServers: { github: misbehaving("ok") } } },
    });
    const bot = hub.openSession({ role: "bot", owner: false });
    expect(names(hub, bot)).toContain("github__echo");
    expect(names(hub, bot)).not.toContain("github__exit");
  });

  it("[guard-01a] rules on a URI hold for what is read through a template", async () => {
    const hub = await start({ mcpServers: { all: everything() }, tools: { deny: ["demo://resource/dynamic/text/7"] } });
    expect(await hub.read({ uri: "demo://resource/dynamic/text/8" })).toMatchObject({ ok: true });
    expect(await hub.read({ uri: "demo://resource/dynamic/text/7" })).toMatchObject({
      ok: false,
      error: { code: "denied" },
    });
    expect(hub.explain("demo://resource/dynamic/text/7")?.decision.verdict).toBe("deny");
    expect(hub.explain("all__simple-prompt")?.decision.verdict).toBe("allow");
  });

  it("read what was kept for them, whichever servers they may see", async () => {
    const registry = new ToolRegistry();
    hub = await createHub(
      {
        mcpServers: { a: { ...misbehaving("ok"), trust: "trusted" } },
        limits: { inlineBytes: 2000 },
        roles: { r: { servers: ["a"] } },
      },
      { registry },
    );
    const session = hub.openSession({ role: "r", owner: false });
    const big = hub.tools({ for: "anthropic", session }).find((tool) => tool.name === "a__big");
    const cut = String((await big?.execute("1", { bytes: 9000 }))?.content[0]?.["text"]);
    const uri = /toolcrib:\/\/results\/[\w-]+/.exec(cut)?.[0] ?? "";
    expect(await hub.read({ session, uri })).toMatchObject({ ok: true });
  });

  it("a session of a named user is no owner's unless it says so", async () => {
    const hub = await start({});
    expect(hub.openSession({ user: "alice" }).owner).toBe(false);
    expect(hub.openSession({ user: "alice", owner: true }).owner).toBe(true);
    expect(hub.openSession({ role: "" })).toMatchObject({ owner: true });
    expect(names(hub, hub.openSession({ role: "" }))).toEqual([]);
  });

  it("[guard-01c] rules by class are about tools and hide no resources", async () => {
    const hub = await start({ mcpServers: { all: everything() }, tools: { deny: ["destructive"] } });
    expect(hub.view(hub.session).resources.length).toBeGreaterThan(0);
    expect(hub.view(hub.session).prompts.length).toBeGreaterThan(0);
  });

  it("[guard-04c] ownerOnly tools need an owner's session", async () => {
    const registry = new ToolRegistry();
    registry.register({
      name: "reboot",
      description: "Reboots.",
      parameters: { type: "object" },
      ownerOnly: true,
      execute: async () => ({ content: [] }),
    });
    const hub = await start({ roles: { any: {} } }, { registry });
    expect(names(hub, hub.openSession({ role: "any", owner: false }))).toEqual([]);
    expect(names(hub, hub.openSession({ role: "any" }))).toEqual(["reboot"]);
  });

  it("[guard-02] what may not be called is in no list, prompts and resources included, and looks absent to a client", async () => {
    const hub = await start({
      mcpServers: { a: { ...misbehaving("ok"), tags: ["finance"] } },
      tools: { deny: ["tag:finance"] },
    });
    const guest = hub.openSession({ owner: false });
    expect(hub.view(guest)).toMatchObject({ tools: [], resources: [], prompts: [], templates: [] });
    const hidden = await hub.call({ session: guest, name: "a__echo" });
    const absent = await hub.call({ session: guest, name: "a__nope" });
    const shape = (outcome: typeof hidden): unknown =>
      JSON.parse(JSON.stringify(outcome.ok ? null : outcome.error).replaceAll(/a__\w+/g, "NAME"));
    expect(shape(hidden)).toEqual(shape(absent));
    expect(await hub.call({ name: "a__echo" })).toMatchObject({ ok: false, error: { code: "denied" } });
  });
});
