/** What becomes of a session's servers and of their names when the client, the hub or the servers change. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Hub } from "../../src/hub/hub.ts";
import type { Session } from "../../src/sessions/session.ts";
import { type FakeServer, startFakeServer } from "../../src/testing/index.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { messages, names, textOf, tool } from "./session-bench.ts";

let hub: Hub;
let one: FakeServer;
let two: FakeServer;
const opened: Session[] = [];
beforeAll(async () => {
  const ask = (_args: object, { elicit }: { elicit(question: object): Promise<object> }) =>
    elicit({ message: "?", requestedSchema: { type: "object", properties: {} } }).then((answer) =>
      JSON.stringify(answer),
    );
  [hub, one, two] = await Promise.all([
    createHub({}, { store: false }),
    startFakeServer({ tools: { who: () => "one", ask } }),
    startFakeServer({ tools: { who: () => "two" } }),
  ]);
});
afterEach(async () => {
  for (const session of opened.splice(0)) {
    session.close();
    await session.over;
  }
});
afterAll(async () => {
  await hub.close();
  await Promise.all([one.close(), two.close()]);
});

type Options = NonNullable<Parameters<Hub["openSession"]>[0]>;
async function open(servers: object, options: Options = {}): Promise<Session> {
  const session = await hub.openSession({ ...options, servers: servers as Record<string, unknown> });
  opened.push(session);
  return session;
}

/** The ids that only the hub knows. */
const HIDDEN = /@[0-9a-f]{8}/;

describe("servers of a session", () => {
  it("keep their ids and names when others come and go, however alike the names are", async () => {
    const [first, second] = [{ url: one.url }, { url: two.url }];
    const session = await open({ 天气: first });
    const kept = { id: session.own.servers()[0]?.id, names: names(hub, session) };
    const steps = [
      { 天气: first, 搜索: second },
      { 搜索: second, 天气: first },
      { 地图: second, 天气: first },
      { 天气: first, 搜索: second, 地图: second },
    ];
    for (const servers of steps) {
      await session.own.mount(servers);
      const listed = session.own.servers();
      expect(listed.map(({ name }) => name)).toEqual(Object.keys(servers));
      expect(new Set(listed.map(({ id }) => id)).size).toBe(listed.length);
      expect(listed.find(({ name }) => name === "天气")?.id).toBe(kept.id);
      expect(names(hub, session)).toEqual(expect.arrayContaining(kept.names));
      const answers = await Promise.all(
        names(hub, session)
          .filter((name) => name.includes("who"))
          .map((name) => textOf(hub, session, name)),
      );
      expect(answers.toSorted()).toEqual(listed.map(({ name }) => (name === "天气" ? "one" : "two")).toSorted());
    }
    await session.own.mount({ "a/b": first, "a-b": second });
    await session.own.mount({ "a-b": second });
    expect(names(hub, session)).toEqual(["a-b__who"]);
    expect(await textOf(hub, session, "a-b__who")).toBe("two");
  });

  it("make way for a server that the hub gets, and tools that were chosen call no other", async () => {
    const session = await open({ x: { url: one.url } });
    const chosen = hub.tools({ session }).find(({ name }) => name === "x__who");
    await hub.reload({ mcpServers: { x: { url: two.url } } });
    expect(names(hub, session)).toEqual(["x__who", "session-x__who", "session-x__ask"]);
    expect(messages(session).at(-1)).toContain('begin with "session-x"');
    expect(await textOf(hub, session, "x__who")).toBe("two");
    expect(await textOf(hub, session, "session-x__who")).toBe("one");
    const result = await chosen?.execute("1", {});
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("no longer that of") }] });
    await hub.reload({});
    expect(names(hub, session)).toEqual(["x__who", "x__ask"]);
    expect(await chosen?.execute("2", {})).toMatchObject({ content: [{ text: expect.stringContaining("one") }] });
  });

  it("that no longer accept their credentials are told of once, until they do again", async () => {
    const session = await open({ far: { url: one.url, headers: { Authorization: "Bearer worn-out-token" } } });
    const told = (): string[] => messages(session).filter((message) => message.includes("credentials"));
    for (const expected of [1, 2]) {
      one.refuseWith(expected === 1 ? 401 : 403);
      for (let call = 0; call < 2; call++) {
        expect(await hub.call({ session, name: "far__who" })).toMatchObject({ ok: false });
      }
      one.refuseWith(undefined);
      expect(told()).toHaveLength(expected);
      await expect.poll(async () => (await hub.call({ session, name: "far__who" })).ok).toBe(true);
    }
    expect(told()).toEqual([expect.stringContaining("answered 401"), expect.stringContaining("answered 403")]);
    expect(messages(session).join("\n")).not.toContain("worn-out-token");
  });

  it("[agent-01g] are forgotten with the session: nothing of the hub listens to it, or is listened to, any more", async () => {
    setFlagsFromString("--expose-gc");
    // The flag puts it into contexts that are made from then on.
    const collect = runInNewContext("gc") as () => void;
    const used = async (): Promise<WeakRef<object>[]> => {
      const session = await hub.openSession({
        servers: { x: { url: one.url, headers: { Authorization: "Bearer of-one-session" } } },
        tools: [tool("mine")],
      });
      expect([await textOf(hub, session, "x__who"), await textOf(hub, session, "mine")]).toEqual(["one", "mine"]);
      session.close();
      await session.over;
      return [new WeakRef(session), new WeakRef(session.own)];
    };
    const refs = await used();
    const left = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      collect();
      return refs.filter((ref) => ref.deref() !== undefined).length;
    };
    await expect.poll(left).toBe(0);
    expect(one.sessions).toBe(0);
  });

  it("may be none, whatever the limit says", async () => {
    const session = await open({ x: { url: one.url } }, { limits: { servers: -1, tools: -1 } });
    expect(session.own.servers()).toEqual([]);
    expect(messages(session)).toEqual(['The server "x" is left out: a session may bring 0 servers.']);
  });
});

describe("what people and models read of a session's server", () => {
  it("[whole-36c] that it is on this machine is in the hub's log, not among the notices", async () => {
    const warned: string[] = [];
    const stop = hub.on("warning", ({ message }) => warned.push(message));
    const session = await open({ near: { url: one.url } });
    await session.own.settled();
    stop();
    expect(warned).toEqual([
      'The server "near" of a session is at 127.0.0.1, which is the machine that Toolcrib runs on.',
    ]);
    expect(messages(session)).toEqual([]);
  });

  it("has the name that the client gave it", async () => {
    const asked: string[] = [];
    const session = await open(
      { "my notes": { url: one.url }, dead: { url: "http://127.0.0.1:9/mcp" }, bad: {} },
      {
        onElicit: async (_question, { server }) => {
          asked.push(server);
          return { action: "accept", content: {} };
        },
      },
    );
    const prefix = names(hub, session).find((name) => name.endsWith("__ask")) ?? "";
    const marked = await hub.call({ session, name: prefix, audience: "agent" });
    expect(asked).toEqual(["my notes"]);
    expect(JSON.stringify(marked.result?.content)).toContain('server=\\"my_notes\\"');
    const failed = [await hub.call({ session, name: "dead__x" })];
    one.refuseWith(503);
    failed.push(await hub.call({ session, name: prefix }));
    one.refuseWith(undefined);
    expect(failed).toMatchObject([
      {
        error: { code: "server_unavailable", message: expect.stringContaining('"dead"'), details: { server: "dead" } },
      },
      { error: { message: expect.stringContaining('"my notes"') } },
    ]);
    const told = JSON.stringify([marked, failed, session.own.notices(), hub.tools({ session })]);
    expect(told).not.toMatch(HIDDEN);
    expect(session.own.servers()[0]?.id).toMatch(HIDDEN);
  });

  it("says to guests, too, why their own server is not there", async () => {
    const session = await open({ mine: { url: "http://127.0.0.1:9/mcp" } }, { owner: false });
    expect(await hub.call({ session, name: "mine__x" })).toMatchObject({
      error: { code: "server_unavailable", message: expect.stringMatching(/"mine" is not connected: .+/) },
    });
  });
});
