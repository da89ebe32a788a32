import { describe, expect, it } from "vitest";
import type { McpDoor } from "../../../src/doors/mcp/mcp-door.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { LinkingServers } from "../../support/linking-server.ts";
import { doorOn, guest, LegacyClient, ModernClient } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

const UPDATED = "notifications/resources/updated";

async function legacy(door: McpDoor, origin = {}): Promise<LegacyClient> {
  const client = new LegacyClient(door, { origin });
  await client.initialize();
  return client;
}

/** Follows these with one stream, which ends with the door. */
async function listening(client: ModernClient, ...uris: string[]): Promise<void> {
  void client.request("subscriptions/listen", { notifications: { resourceSubscriptions: uris } });
  await eventually(() => client.noticed("notifications/subscriptions/acknowledged")[0]);
}

const uris = (updates: JsonObject[]): unknown[] => updates.map(({ uri }) => uri);

describe("[gate-03] a resource that is linked to and not listed", () => {
  it("is read and followed by clients of both eras, each at the server whose link it got", async () => {
    const place = new LinkingServers();
    const has = ["x://1"];
    const { door } = await doorOn({ mcpServers: { a: place.server("a", { has }), b: place.server("b", { has }) } });
    const link = { name: "b__link", arguments: { uris: ["x://1"] } };
    const contents = [{ uri: "x://1", text: "b x://1" }];

    const old = await legacy(door, { caller: guest("old") });
    expect(await old.request("resources/read", { uri: "x://1" })).toMatchObject({ error: { code: -32002 } });
    await old.request("tools/call", link);
    expect(await old.request("resources/read", { uri: "x://1" })).toMatchObject({ result: { contents } });
    expect(await old.request("resources/subscribe", { uri: "x://1" })).toMatchObject({ result: {} });

    const modern = new ModernClient(door);
    expect(await modern.request("resources/read", { uri: "x://1" })).toMatchObject({ error: { code: -32602 } });
    await modern.request("tools/call", link);
    expect(await modern.request("resources/read", { uri: "x://1" })).toMatchObject({ result: { contents } });
    await listening(modern, "x://1");
    expect(modern.noticed("notifications/subscriptions/acknowledged")).toMatchObject([
      { notifications: { resourceSubscriptions: ["x://1"] } },
    ]);

    await old.call("b__update", { uris: ["x://1"] });
    for (const client of [old, modern]) {
      expect(await eventually(() => client.noticed(UPDATED)[0])).toMatchObject({ uri: "x://1" });
    }
    expect(place.asked("a")).toEqual([]);
  });

  it("is what the server says it is, where there is but one", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({ mcpServers: { a: place.server("a", {}, { toolPrefix: "" }) } });
    const error = { code: -32002, message: "a has no x://none", data: { uri: "x://none" } };
    const old = await legacy(door);
    for (const method of ["resources/read", "resources/subscribe"]) {
      expect((await old.request(method, { uri: "x://none" })).error).toEqual(error);
    }
    const modern = await new ModernClient(door).request("resources/read", { uri: "x://none" });
    expect(modern?.error).toEqual({ ...error, code: -32602 });
  });

  it("is not found by our own word where no server has resources", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({ mcpServers: { a: place.server("a", { hasResources: false }) } });
    const old = await legacy(door);
    expect(await old.request("resources/read", { uri: "x://1" })).toMatchObject({
      error: { code: -32002, data: { uri: "x://1", code: "not_found" } },
    });
  });
});

describe("[gate-02b] an update of a part of what is followed", () => {
  it.each(["x://dir/1", "x://dir#1", "x://dir?1", "x://dir/1/2"])("%s reaches clients of both eras", async (part) => {
    const place = new LinkingServers();
    const resources = ["x://dir", "x://other"];
    const { door } = await doorOn({
      mcpServers: { a: place.server("a", { resources, has: [part] }), b: place.server("b") },
    });
    const [old, other, modern] = [
      await legacy(door),
      await legacy(door),
      new ModernClient(door, { caller: guest("m") }),
    ];
    await old.request("resources/subscribe", { uri: "x://dir" });
    await other.request("resources/subscribe", { uri: "x://other" });
    await listening(modern, "x://dir");
    await old.call("a__update", { uris: ["x://dirt/1", part, "x://di", "x://other"] });
    await eventually(() => other.noticed(UPDATED)[0]);
    for (const client of [old, modern]) expect(uris(client.noticed(UPDATED))).toEqual([part]);
    expect(uris(other.noticed(UPDATED))).toEqual(["x://other"]);
    // And what a client is told of it can read.
    const answers = [
      await old.request("resources/read", { uri: part }),
      await modern.request("resources/read", { uri: part }),
    ];
    expect(answers).toMatchObject([{ result: { contents: [{ text: `a ${part}` }] } }, { result: {} }]);
  });

  it("is for those who follow just that, if anybody does", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({ mcpServers: { a: place.server("a", { resources: ["x://dir", "x://dir/1"] }) } });
    const [whole, part] = [await legacy(door), await legacy(door)];
    await whole.request("resources/subscribe", { uri: "x://dir" });
    await part.request("resources/subscribe", { uri: "x://dir/1" });
    await part.call("a__update", { uris: ["x://dir/1", "x://dir/2", "x://dir"] });
    await eventually(() => whole.noticed(UPDATED).length === 2);
    expect(uris(whole.noticed(UPDATED))).toEqual(["x://dir/2", "x://dir"]);
    expect(uris(part.noticed(UPDATED))).toEqual(["x://dir/1"]);
  });

  it("is told only of the server that is followed, in public form", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({
      mcpServers: {
        a: place.server("a", { resources: ["x://dir"] }),
        b: place.server("b", { resources: ["x://dir"] }),
        c: place.server("c", { resources: ["x://dir/claimed"] }),
      },
    });
    const [ofA, ofB] = [await legacy(door), await legacy(door)];
    await ofA.request("resources/subscribe", { uri: "x://dir" });
    await ofB.request("resources/subscribe", { uri: "toolcrib://servers/b/x://dir" });
    await ofA.call("b__update", { uris: ["x://dir/1", "x://dir/claimed"] });
    await ofA.call("a__update", { uris: ["x://dir/2"] });
    await eventually(() => ofA.noticed(UPDATED).length > 0 && ofB.noticed(UPDATED).length === 2);
    expect(uris(ofA.noticed(UPDATED))).toEqual(["x://dir/2"]);
    expect(uris(ofB.noticed(UPDATED))).toEqual(["x://dir/1", "toolcrib://servers/b/x://dir/claimed"]);
  });

  it("is told under the URI that the client follows, where that names the server", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({ mcpServers: { a: place.server("a", { has: ["x://1"] }) } });
    const client = await legacy(door);
    const uri = "toolcrib://servers/a/x://1";
    expect(await client.request("resources/subscribe", { uri })).toMatchObject({ result: {} });
    await client.call("a__update", { uris: ["x://1"] });
    expect(await eventually(() => client.noticed(UPDATED)[0])).toEqual({ uri });
  });

  it("[gate-09b] is not told to who may not read it", async () => {
    const place = new LinkingServers();
    const { door } = await doorOn({
      tools: { deny: ["x://dir/secret"] },
      mcpServers: { a: place.server("a", { resources: ["x://dir"] }) },
    });
    const client = await legacy(door, { caller: guest("g") });
    await client.request("resources/subscribe", { uri: "x://dir" });
    await client.call("a__update", { uris: ["x://dir/secret", "x://dir/1"] });
    await eventually(() => client.noticed(UPDATED)[0]);
    expect(uris(client.noticed(UPDATED))).toEqual(["x://dir/1"]);
  });
});
