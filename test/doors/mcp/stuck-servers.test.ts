import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { eventually } from "../../support/eventually.ts";
import { misbehaving } from "../../support/servers.ts";
import { type Answer, doorOn, LegacyClient, ModernClient } from "./door-bench.ts";

const CHANGING = resolve(import.meta.dirname, "../../fixtures/changing-server.mjs");
const STUCK = misbehaving("never-answers");

const tool = (name: string): object => ({ name, description: `Does ${name}.`, inputSchema: { type: "object" } });

function place(): { home: string; changing: (offer: object, more?: ServerEntryInput) => ServerEntryInput } {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-stuck-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "offer.json");
  return {
    home: join(dir, "home"),
    changing: (offer, more = {}) => {
      writeFileSync(file, JSON.stringify(offer));
      return { command: process.execPath, args: [CHANGING, file], restart: false, ...more };
    },
  };
}

function names(answer: Answer | null, kind: string): string[] {
  const list = answer?.result?.[kind];
  return Array.isArray(list) ? list.map(({ name }: JsonObject) => String(name)) : [];
}

function stateOf(hub: Hub, id: string): string | undefined {
  return hub.servers.list().find((server) => server.id === id)?.state;
}

async function seenBefore(config: ConfigInput, home: string): Promise<void> {
  const { hub } = await doorOn({ store: "sqlite", ...config }, { home, wait: true });
  await hub.close();
}

describe("a server that is stuck at the start", () => {
  it("[whole-28a] does not keep a client from the others, in the legacy era", async () => {
    const { changing, home } = place();
    const mcpServers = { stuck: STUCK, fine: changing({ tools: [tool("go")], prompts: [{ name: "ask" }] }) };
    const { hub, door } = await doorOn({ mcpServers }, { home, wait: false });
    const client = new LegacyClient(door);
    await client.initialize();
    const [tools, prompts, resources] = await Promise.all([
      client.request("tools/list"),
      client.request("prompts/list"),
      client.request("resources/list"),
    ]);
    expect(stateOf(hub, "stuck")).toBe("connecting");
    expect(names(tools, "tools")).toEqual(["fine__go"]);
    expect(names(prompts, "prompts")).toEqual(["fine__ask"]);
    expect(resources.result?.["resources"]).toEqual([]);
  });

  it("[whole-28a] does not in the modern era, whose list is then not to be cached", async () => {
    const { changing, home } = place();
    const mcpServers = { stuck: STUCK, fine: changing({ tools: [tool("go")] }) };
    const { hub, door } = await doorOn({ mcpServers }, { home, wait: false });
    const answer = await new ModernClient(door).request("tools/list");
    expect(stateOf(hub, "stuck")).toBe("connecting");
    expect(names(answer, "tools")).toEqual(["fine__go"]);
    expect(answer?.result?.["ttlMs"]).toBe(0);
  });

  it("[whole-28h] is waited for once, not by the handshake and by each kind of list", async () => {
    const { changing, home } = place();
    const mcpServers = { stuck: STUCK, fine: changing({ tools: [tool("go")], prompts: [{ name: "ask" }] }) };
    const clock = new FakeClock();
    const { hub, door } = await doorOn({ mcpServers }, { home, wait: false, clock }, { clock });
    await eventually(() => stateOf(hub, "fine") === "ready");
    const client = new LegacyClient(door);
    let isOpen = false;
    const opened = client.initialize().finally(() => (isOpen = true));
    await clock.advance(700);
    expect(isOpen).toBe(false);
    await clock.advance(50);
    await opened;
    const atOnce = async (request: Promise<Answer | null>): Promise<Answer | null> => {
      await clock.advance(0);
      return request;
    };
    expect(names(await atOnce(client.request("tools/list")), "tools")).toEqual(["fine__go"]);
    expect(names(await atOnce(client.request("prompts/list")), "prompts")).toEqual(["fine__ask"]);
    expect((await atOnce(client.request("resources/list")))?.result?.["resources"]).toEqual([]);
    const other = new ModernClient(door);
    const discovered = other.request("server/discover");
    await clock.advance(750);
    await discovered;
    expect(names(await atOnce(other.request("tools/list")), "tools")).toEqual(["fine__go"]);
    expect(names(await atOnce(other.request("prompts/list")), "prompts")).toEqual(["fine__ask"]);
    expect(stateOf(hub, "stuck")).toBe("connecting");
  });

  it("[whole-28b] is announced by list_changed when it comes after all", async () => {
    const { changing, home } = place();
    const mcpServers = { fine: changing({ tools: [tool("go")] }), late: misbehaving("slow-start", "2500") };
    const { hub, door } = await doorOn({ mcpServers }, { home, wait: false });
    await eventually(() => stateOf(hub, "fine") === "ready");
    const client = new LegacyClient(door);
    await client.initialize();
    const first = names(await client.request("tools/list"), "tools");
    expect(first).toEqual(stateOf(hub, "late") === "connecting" ? ["fine__go"] : expect.anything());
    await eventually(() => stateOf(hub, "late") === "ready");
    if (first.length === 1) await eventually(() => client.noticed("notifications/tools/list_changed").length > 0);
    expect(names(await client.request("tools/list"), "tools")).toContain("late__echo");
  });
});

describe("[whole-28c] a server that ran before", () => {
  it("is listed as it was while it starts, and a call waits for it", async () => {
    const { changing, home } = place();
    const slow = changing({ tools: [tool("who")], instructions: "Call who first." });
    const mcpServers = { known: slow };
    await seenBefore({ mcpServers }, home);
    const { hub, door } = await doorOn({ store: "sqlite", mcpServers }, { home, wait: false });
    expect(stateOf(hub, "known")).toBe("connecting");
    expect(hub.view(hub.session).tools.map(({ name }) => name)).toEqual(["known__who"]);
    const client = new LegacyClient(door);
    const { instructions } = await client.initialize();
    expect(instructions).toBe("Call who first.");
    expect(await client.call("known__who")).toMatchObject({ result: { content: [{ type: "text" }] } });
    expect(stateOf(hub, "known")).toBe("ready");
  });

  it("with other tools by now is announced by list_changed", async () => {
    const { changing, home } = place();
    const mcpServers = { known: changing({ tools: [tool("old")] }) };
    await seenBefore({ mcpServers }, home);
    changing({ tools: [tool("new")] });
    const { hub } = await doorOn({ store: "sqlite", mcpServers }, { home, wait: false });
    const seen: string[][] = [hub.view(hub.session).tools.map(({ name }) => name)];
    hub.on("catalog", () => seen.push(hub.view(hub.session).tools.map(({ name }) => name)));
    await eventually(() => stateOf(hub, "known") === "ready");
    expect(seen[0]).toEqual(["known__old"]);
    expect(seen.at(-1)).toEqual(["known__new"]);
  });

  it("and does not come up is no longer listed, nor with another command", async () => {
    const { changing, home } = place();
    const entry = changing({ tools: [tool("old")] });
    await seenBefore({ mcpServers: { known: entry } }, home);
    rmSync(String(entry.args?.[1]));
    const { hub } = await doorOn({ store: "sqlite", mcpServers: { known: entry } }, { home, wait: false });
    await eventually(() => stateOf(hub, "known") === "failed");
    expect(hub.view(hub.session).tools).toEqual([]);
    const other = { known: { ...STUCK } };
    const next = await doorOn({ store: "sqlite", mcpServers: other }, { home, wait: false });
    expect(next.hub.view(next.hub.session).tools).toEqual([]);
  });
});
