import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Hub } from "../../src/hub/hub.ts";
import { WireEntry } from "../../src/sessions/read-session-servers.ts";
import type { Session } from "../../src/sessions/session.ts";
import { PidRecords } from "../../src/upstream/stdio/pid-records.ts";
import { StdioWire } from "../../src/upstream/stdio/stdio-wire.ts";
import { type RunningServer, startEverything } from "../support/everything-http.ts";
import { misbehaving } from "../support/servers.ts";
import { messages, names, ownNames, startHub, textOf, tool } from "./session-bench.ts";

let hub: Hub;
let remote: RunningServer;
const opened: Session[] = [];
beforeAll(async () => {
  const env = { PATH: process.env["PATH"], HUB_SECRET: "the-hub-has-this" };
  [hub, remote] = await Promise.all([startHub({}, { env }), startEverything("streamableHttp")]);
});
afterEach(async () => {
  for (const session of opened.splice(0)) {
    session.close();
    await session.over;
  }
});
afterAll(async () => {
  await hub.close();
  await remote[Symbol.asyncDispose]();
});

type Options = NonNullable<Parameters<Hub["openSession"]>[0]>;
async function open(options: Options): Promise<Session> {
  const session = await hub.openSession({ servers: {}, ...options });
  opened.push(session);
  return session;
}
const guest = { owner: false } satisfies Options;

describe("a client that brings", () => {
  it("[agent-01f] programs has them run only if it may run commands", async () => {
    const servers = { prog: { ...misbehaving("ok"), env: { WHO: "x" } } };
    for (const [options, isRun] of [
      [guest, false],
      [{ ...guest, mayRunCommands: true }, true],
      [{ user: "ann" }, false],
      [{}, true],
      [{ mayRunCommands: false }, false],
    ] as const) {
      const session = await open({ ...options, servers });
      expect(session.own.servers(), JSON.stringify(options)).toHaveLength(isRun ? 1 : 0);
      expect(ownNames(hub, session).includes("prog__echo")).toBe(isRun);
      if (!isRun) expect(messages(session)).toEqual([expect.stringContaining("may not start programs")]);
    }
  });

  it("[agent-01e] addresses reaches this machine with a warning if it may run commands, and nothing private", async () => {
    const warned: string[] = [];
    hub.on("warning", ({ message }) => warned.push(message));
    const session = await open({
      ...guest,
      mayRunCommands: true,
      servers: [
        { type: "http", name: "near", url: remote.url, headers: [] },
        { type: "http", name: "private", url: "https://10.0.0.1/mcp" },
        { type: "sse", name: "metadata", url: "http://169.254.169.254/sse" },
        { type: "http", name: "plain", url: "http://1.1.1.1/mcp" },
        { type: "http", name: "mapped", url: "https://[::ffff:172.16.0.1]/mcp" },
      ],
    });
    expect(ownNames(hub, session)).toContain("near__echo");
    expect(await textOf(hub, session, "near__echo", { message: "hi" })).toContain("hi");
    const said = (server: string): string[] =>
      session.own.notices().flatMap((notice) => (notice.server === server ? [notice.message] : []));
    expect(said("near")).toEqual([]);
    expect(warned).toEqual([expect.stringContaining("the machine that Toolcrib runs on")]);
    expect(said("private")).toEqual([expect.stringContaining("10.0.0.1 is a private address")]);
    expect(said("metadata")).toEqual([expect.stringContaining("machine's credentials")]);
    expect(said("plain")).toEqual([expect.stringContaining("must be https")]);
    expect(said("mapped")).toEqual([expect.stringContaining("is a private address")]);
    expect(session.own.servers().map(({ state }) => state)).toEqual(["ready", ...Array(4).fill("failed")]);
  });

  it("[trust-05a] references is refused that server, unless it is the program itself", async () => {
    const prog = { ...misbehaving("ok"), env: { GOT: "${HUB_SECRET}", ALSO: "secret://env/HUB_SECRET" } };
    const servers = { prog, good: misbehaving("ok") };
    for (const options of [{ ...guest, mayRunCommands: true }, { door: "acp" }, { owner: true, door: "rest" }]) {
      const client = await open({ ...options, servers });
      expect(client.own.servers()).toMatchObject([{ name: "good" }]);
      expect(messages(client)).toEqual([expect.stringContaining("env.GOT contains the reference ${HUB_SECRET}")]);
      expect(client.own.leftOut()).toEqual([{ name: "prog", reason: "its entry contains a reference" }]);
    }
    const program = await open({ servers: { prog: { ...misbehaving("ok"), env: { GOT: "is ${HUB_SECRET}" } } } });
    expect(messages(program)).toEqual([]);
    // Known as a secret by its name, it is masked on the way out.
    expect(await textOf(hub, program, "prog__env")).toMatch(/"GOT":"is (?!\$)/);
  });

  it("[trust-05b] a literal ${ has it sent, written as in the config", async () => {
    const servers = { prog: { ...misbehaving("ok"), env: { GOT: "$${HUB_SECRET}" } } };
    const client = await open({ ...guest, mayRunCommands: true, servers });
    expect(await textOf(hub, client, "prog__env")).toContain('"GOT":"${HUB_SECRET}"');
  });

  it("secrets has them masked in its own calls, and blots out nothing for others", async () => {
    const secret = "everyday-word-of-others";
    const servers = { prog: { ...misbehaving("ok"), env: { API_TOKEN: secret } } };
    const session = await open({ ...guest, mayRunCommands: true, servers });
    const other = await open({});
    expect(await textOf(hub, session, "prog__echo", { text: secret })).not.toContain(secret);
    expect(await textOf(hub, other, "files__echo", { text: secret })).toContain(secret);
    const refused = await hub.call({ session, name: "prog__refuse", arguments: { text: `no ${secret}` } });
    expect(refused).toMatchObject({ ok: false });
    expect(JSON.stringify(refused)).not.toContain(secret);
  });

  it("a wire of its own has the server behind it", async () => {
    const { command = "", args = [] } = misbehaving("ok");
    const pids = new PidRecords(join(tmpdir(), "toolcrib-tunnel"), null);
    let wires = 0;
    const entry = new WireEntry("tunnel", () => {
      wires += 1;
      return new StdioWire({ serverId: "tunnel", command, args, env: {}, pids, mask: (text) => text });
    });
    const session = await open({ ...guest, servers: [entry] });
    expect(await textOf(hub, session, "tunnel__echo", { text: "through" })).toContain("through");
    await session.own.mount([entry]);
    expect(wires).toBe(1);
  });
});

describe("resources of a session's server", () => {
  it("are read by the session only, and keep clear of the hub's", async () => {
    const session = await open({ ...guest, mayRunCommands: true, servers: { near: { url: remote.url } } });
    const uri = hub.view(session).resources.find(({ origin }) => origin.source.startsWith("near@"))?.name ?? "";
    expect(await hub.read({ session, uri })).toMatchObject({ ok: true });
    expect(await hub.read({ session: await open({}), uri })).toMatchObject({ ok: false, error: { code: "not_found" } });
    const both = await startHub({ mcpServers: { near: { url: remote.url } } });
    const twin = await both.openSession({ servers: { near: { url: remote.url } } });
    const shared = both.view(both.session).resources.map(({ name }) => name);
    const own = both.view(twin).resources.filter(({ origin }) => origin.source.startsWith("near@"));
    expect(both.view(twin).resources.map(({ name }) => name)).toEqual(expect.arrayContaining(shared));
    expect(own.length).toBeGreaterThan(0);
    expect(own.every(({ name }) => name.startsWith("toolcrib://servers/near%40"))).toBe(true);
    expect(await both.read({ session: twin, uri: own[0]?.name ?? "" })).toMatchObject({ ok: true });
    expect(await both.read({ uri: own[0]?.name ?? "" })).toMatchObject({ ok: false });
    await both.close();
  });
});

describe("a yes for always", () => {
  it("is one for the session where the session brought the tool, or the rule", async () => {
    const answers: string[] = [];
    const onAsk = (): "always" => (answers.push("always"), "always");
    const rules = { ask: ["mine", "here"] };
    const session = await open({ tools: [tool("mine")], onAsk, rules });
    for (const name of ["mine", "here", "mine", "here"]) expect(await textOf(hub, session, name)).toBe(name);
    expect(answers).toHaveLength(2);
    const next = await open({ tools: [tool("mine", "another")], onAsk: () => "no", rules });
    for (const name of ["mine", "here"]) {
      expect(await hub.call({ session: next, name })).toMatchObject({ ok: false, error: { code: "denied" } });
    }
  });
});

describe("narrowing a session", () => {
  it("lets every set of rules hold, and nothing of one widen another", async () => {
    const session = await open({ tools: [tool("mine"), tool("yours")], rules: { allow: ["mine", "yours", "here"] } });
    expect(names(hub, session).toSorted()).toEqual(["here", "mine", "yours"]);
    const rules = Object.freeze({ allow: ["mine", "here", "files__*"], deny: ["here"] });
    session.narrow("skill", rules);
    expect(names(hub, session)).toEqual(["mine"]);
    session.narrow("mode", { ask: ["mine"] });
    expect(hub.explain("mine", session)?.decision).toMatchObject({ verdict: "ask" });
    const before = session.viewKey;
    session.narrow("mode", undefined);
    session.narrow("skill", undefined);
    expect(names(hub, session).toSorted()).toEqual(["here", "mine", "yours"]);
    expect(session.viewKey).not.toBe(before);
  });

  it("gives sessions that are narrowed in the same way the same view", async () => {
    const [first, second] = [await open({}), await open({})];
    for (const session of [first, second]) {
      session.narrow("a", { deny: ["here"] });
      session.narrow("b", { deny: ["files__fail"] });
    }
    expect(first.viewKey).toBe(second.viewKey);
    expect(hub.view(first)).toBe(hub.view(second));
    first.narrow("a", undefined);
    expect(first.rules).toEqual({ deny: ["files__fail"] });
  });
});
