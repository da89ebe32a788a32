import { describe, expect, it } from "vitest";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { isAlive } from "../../support/processes.ts";
import { type Answer, doorOn, guest, LegacyClient, ModernClient, OWNER } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

/** A server with a memory: it counts its calls, and after `ask` it asks when no call is under way any more. */
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
let count = 0;
const answers = [];
const tools = { count: () => ({}), ask: () => {
  setTimeout(() => send({ id: "q", method: "elicitation/create",
    params: { message: "who?", requestedSchema: { type: "object", properties: {} } } }), 30);
  return {};
} };
const calls = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }),
  "tools/list": () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })) }),
  "tools/call": ({ name }) => {
    count++;
    tools[name]();
    return { content: [], structuredContent: { pid: process.pid, count, answers } };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {}, result, error } = JSON.parse(line);
  if (method === undefined) answers.push(result ?? error);
  else if (id !== undefined) send({ id, result: calls[method]?.(params) ?? {} });
}).on("close", () => process.exit());
`;

const server: ServerEntryInput = { command: process.execPath, args: ["-e", SERVER], isolation: "session" };

interface Seen {
  readonly pid: number;
  readonly count: number;
  readonly answers: readonly unknown[];
}

/** The fixture's own answer. */
const seenIn = (answer: Answer | null): Seen => answer?.result?.["structuredContent"] as Seen;

describe("[cage-05] a program with isolation session", () => {
  it("runs once for each session, whatever kind of client it has, and ends with it", async () => {
    const { hub, door } = await doorOn({ mcpServers: { s: server } });
    const [ann, bob] = [new LegacyClient(door), new LegacyClient(door, { origin: { caller: guest("bob") } })];
    for (const client of [ann, bob]) await client.initialize();
    const modern = new ModernClient(door, { caller: { ...OWNER, key: "eve" } });
    const name = "s__count";
    const first = [
      seenIn(await ann.call(name)),
      seenIn(await bob.call(name)),
      seenIn(await modern.request("tools/call", { name, arguments: {} })),
    ];
    const second = [
      seenIn(await ann.call(name)),
      seenIn(await bob.call(name)),
      seenIn(await modern.request("tools/call", { name, arguments: {} })),
    ];
    const pids = first.map(({ pid }) => pid);
    expect(new Set(pids).size).toBe(3);
    expect(second.map(({ pid }) => pid)).toEqual(pids);
    expect([...first, ...second].map(({ count }) => count)).toEqual([1, 1, 1, 2, 2, 2]);
    expect(hub.servers.list()[0]).toMatchObject({ state: "ready", sessions: { connections: 3, connected: 3 } });

    ann.session.close();
    await eventually(() => !isAlive(pids[0] ?? 0));
    expect(pids.map(isAlive)).toEqual([false, true, true]);
    expect(seenIn(await bob.call(name)).count).toBe(3);
    await hub.close();
    expect(pids.map(isAlive)).toEqual([false, false, false]);
  });

  it("asks the client of its session, also when no call is in flight and others are there", async () => {
    const { door } = await doorOn({ mcpServers: { s: server } });
    const asked: string[] = [];
    const client = async (who: string): Promise<LegacyClient> => {
      const made = new LegacyClient(door, {
        origin: { caller: guest(who) },
        serve: () => {
          asked.push(who);
          return { action: "accept", content: { who } };
        },
      });
      await made.initialize({ elicitation: {} });
      return made;
    };
    const clients = [await client("ann"), await client("bob")];
    for (const each of clients) await each.call("s__ask");
    await eventually(() => asked.length === 2);
    expect(asked.toSorted()).toEqual(["ann", "bob"]);
    for (const [index, who] of ["ann", "bob"].entries()) {
      const answers = async (): Promise<unknown> => seenIn((await clients[index]?.call("s__count")) ?? null).answers;
      await expect.poll(answers).toEqual([{ action: "accept", content: { who } }]);
    }
  });
});
