/** Who hears what a server says of its own accord: the client that it works for, or those whom it concerns. */
import { describe, expect, it } from "vitest";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { doorOn, guest, LegacyClient, ModernClient } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

/** A legacy server on stdio that logs at three levels while it works, and tells of an update and of news after that. */
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const calls = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, logging: {}, resources: { subscribe: true } },
    serverInfo: { name: "s", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "chat", inputSchema: { type: "object" } }] }),
  "tools/call": () => {
    for (const level of ["debug", "info", "error"]) send({ method: "notifications/message", params: { level, data: level } });
    setImmediate(() => send({ method: "notifications/custom/news", params: {} }));
    return { content: [] };
  },
  "resources/list": () => ({ resources: [{ uri: "x://1", name: "r" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id !== undefined) send({ id, result: calls[method]?.(params) ?? {} });
}).on("close", () => process.exit());
`;

const server = (more: Partial<ServerEntryInput> = {}): ServerEntryInput => ({
  command: process.execPath,
  args: ["-e", SERVER],
  ...more,
});

const LOG = "notifications/message";
const NEWS = "notifications/custom/news";

describe("log messages of a legacy server on stdio", () => {
  it("[gate-02c] go to the modern client that called, as loud as it asked for, and to nobody else", async () => {
    const { door } = await doorOn({ mcpServers: { s: server() } });
    const bystander = new LegacyClient(door, { origin: { caller: guest("bob") } });
    await bystander.initialize();
    await bystander.request("logging/setLevel", { level: "debug" });
    const caller = new ModernClient(door, { caller: guest("eve") });
    const meta = { "io.modelcontextprotocol/logLevel": "info" };
    await caller.request("tools/call", { name: "s__chat", arguments: {} }, { meta });
    expect(caller.noticed(LOG).map(({ data }) => data)).toEqual(["info", "error"]);
    await eventually(() => bystander.noticed(NEWS)[0]);
    expect(bystander.noticed(LOG)).toEqual([]);
  });

  it("[gate-02c] go to the legacy client that called, at the level that it set", async () => {
    const { door } = await doorOn({ mcpServers: { s: server() } });
    const [caller, bystander] = [new LegacyClient(door), new LegacyClient(door)];
    for (const client of [caller, bystander]) {
      await client.initialize();
      await client.request("logging/setLevel", { level: "error" });
    }
    await caller.call("s__chat");
    expect(caller.noticed(LOG).map(({ data }) => data)).toEqual(["error"]);
    await eventually(() => bystander.noticed(NEWS)[0]);
    expect(bystander.noticed(LOG)).toEqual([]);
  });
});

describe("what a server says on the connection of the hub's owner", () => {
  it("[gate-09a] reaches the owner's sessions, and no other user's", async () => {
    const { hub, door } = await doorOn({ mcpServers: { s: server({ isolation: "user" }) } });
    const [owner, bob] = [new LegacyClient(door), new LegacyClient(door, { origin: { caller: guest("bob") } })];
    for (const client of [owner, bob]) {
      await client.initialize();
      await client.request("logging/setLevel", { level: "debug" });
    }
    // The program's own call: nobody else takes the log messages of it.
    expect(await hub.call({ name: "s__chat" })).toMatchObject({ ok: true });
    await eventually(() => owner.noticed(NEWS)[0]);
    expect(owner.noticed(LOG).map(({ data }) => data)).toEqual(["debug", "info", "error"]);
    expect(bob.notices).toEqual([]);
    // What is said to Bob is for him alone.
    await bob.call("s__chat");
    await eventually(() => bob.noticed(NEWS)[0]);
    expect(bob.noticed(LOG)).toHaveLength(3);
    expect([owner.noticed(NEWS).length, owner.noticed(LOG).length]).toEqual([1, 3]);
  });
});
