/**
 * Many clients of a real hub at once. Nothing that it said yes to may be missing afterwards, whatever else goes on, and what
 * it keeps in memory must not grow with what its clients do.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ToolcribClient } from "../../src/api-client/index.ts";
import { openStore } from "../../src/store/open-store.ts";
import { misbehaving } from "../support/servers.ts";
import { LoadClient } from "./load-client.ts";
import { ServedHub } from "./served-hub.ts";

const SOCKETS = 200;
const SLOW = 4;
const REST = 50;
/** Of each kind of client so many change the hub; all of them call tools. */
const WRITERS = 12;
const CALLS_EACH = 3;
const MEGABYTE = 1024 * 1024;

const entry = { command: "no-such-program", enabled: false };
const config = {
  mcpServers: { one: { ...misbehaving("ok"), trust: "trusted" } },
  guard: { pins: "off" },
  limits: { callsPerMinute: 1_000_000, concurrency: 1000, servers: 500 },
};

let hub: ServedHub;
let sockets: LoadClient[] = [];

beforeAll(async () => {
  // V8 lets the young generation grow with the memory of the machine, here to 128 MB. That says nothing about the hub.
  hub = await ServedHub.start(config, { NODE_OPTIONS: "--max-semi-space-size=16" });
});

afterAll(async () => {
  for (const { socket } of sockets) socket.terminate();
  await hub.remove();
});

/** Adds, changes and calls, and remembers what was acknowledged. */
interface Writer {
  add(id: string): Promise<unknown>;
  rename(id: string, name: string): Promise<unknown>;
  remove(id: string): Promise<unknown>;
}

class Acknowledged {
  /** Name by id. */
  readonly present = new Map<string, string>();
  readonly gone = new Set<string>();

  async write(id: string, writer: Writer): Promise<void> {
    await writer.add(id);
    this.present.set(id, id);
    await writer.rename(id, `${id} renamed`);
    this.present.set(id, `${id} renamed`);
    await writer.add(`${id}-short`);
    await writer.remove(`${id}-short`);
    this.gone.add(`${id}-short`);
  }
}

function overSocket(client: LoadClient): Writer {
  return {
    add: (serverId) => client.command("mcp.addServer", { serverId, config: entry }),
    rename: (serverId, name) => client.command("mcp.updateServer", { serverId, updates: { name } }),
    remove: (serverId) => client.command("mcp.removeServer", { serverId }),
  };
}

function overRest(client: ToolcribClient): Writer {
  return {
    add: (serverId) => client.addServer({ serverId, config: entry }),
    rename: (serverId, name) => client.updateServer({ serverId, updates: { name } }),
    remove: (serverId) => client.removeServer({ serverId }),
  };
}

/** Asks for much and reads nothing. */
function askAndLookAway({ socket }: LoadClient): void {
  socket.pause();
  for (let id = 0; id < 64; id++) {
    socket.send(JSON.stringify({ id, type: "mcp.callTool", toolName: "one__big", args: { bytes: 300_000 } }));
  }
}

describe("[oper-15a] 200 WebSocket and 50 REST clients", () => {
  it("lose no acknowledged command, and memory stays bounded", async () => {
    const { url, token } = hub;
    const client = new ToolcribClient({ url, token });
    sockets = await Promise.all(Array.from({ length: SOCKETS }, () => LoadClient.open(url, token)));
    const [slow, readers] = [sockets.slice(0, SLOW), sockets.slice(SLOW)];
    const rest = Array.from({ length: REST }, () => new ToolcribClient({ url, token }));
    const call = { toolName: "one__echo", args: { text: "hello" } };
    await Promise.all(readers.map((each) => each.command("mcp.callTool", call)));
    const before = await hub.memory();

    const acknowledged = new Acknowledged();
    const work = [
      ...readers.map(async (each, index) => {
        if (index < WRITERS) await acknowledged.write(`socket-${index}`, overSocket(each));
        for (let count = 0; count < CALLS_EACH; count++) await each.command("mcp.callTool", call);
      }),
      ...rest.map(async (each, index) => {
        if (index < WRITERS) await acknowledged.write(`rest-${index}`, overRest(each));
        for (let count = 0; count < CALLS_EACH; count++) {
          expect(await each.callTool(call)).toMatchObject({ content: [{ text: "hello" }] });
        }
        await each.listServers();
      }),
    ];
    for (const each of slow) askAndLookAway(each);
    await Promise.all(work);

    // Whoever reads has everything, in order and once; the last of it is this.
    await client.addServer({ serverId: "last", config: entry });
    const positions = await Promise.all(readers.map((each) => each.command("ping")));
    const seq = Math.min(...positions.map((position) => Number(position["seq"])));
    expect(readers.filter(({ last, disorder }) => last < seq || disorder > 0)).toEqual([]);
    const calls = (readers.length * (CALLS_EACH + 1) + REST * CALLS_EACH) * 2;
    expect(Math.min(...readers.map(({ events }) => events))).toBeGreaterThan(readers.length * CALLS_EACH * 2);
    expect(seq).toBeGreaterThan(calls);

    // Whoever does not read is no longer there.
    await expect
      .poll(async () => (await client.listSessions({ door: "websocket", limit: 1 })).total)
      .toBe(readers.length);

    // What it keeps: garbage of the rush is collected when V8 finds the time.
    const grown = async (): Promise<number> => (await hub.memory()) - before;
    await expect.poll(grown, { interval: 500 }).toBeLessThan(200 * MEGABYTE);

    const listed = new Map<string, string>();
    for await (const server of client.all("listServers")) listed.set(server.id, server.name);
    for (const [id, name] of acknowledged.present) expect(listed.get(id)).toBe(name);
    for (const id of acknowledged.gone) expect(listed.has(id)).toBe(false);
    expect(acknowledged.present.size).toBe(2 * WRITERS);

    await Promise.all(readers.map((each) => each.close()));
    await expect.poll(async () => (await client.listSessions({ door: "websocket" })).total).toBe(0);
    expect(await hub.stop()).toBe(143);
    const store = await openStore({ home: hub.home, create: false });
    const stored = new Map((await store?.servers.list())?.map(({ id, entry: kept }) => [id, kept]));
    await store?.close();
    for (const [id, name] of acknowledged.present) expect(stored.get(id)).toMatchObject({ name });
    for (const id of acknowledged.gone) expect(stored.has(id)).toBe(false);
  }, 60_000);
});
