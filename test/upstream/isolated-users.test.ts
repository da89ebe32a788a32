import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import { userSecretFile } from "../../src/secrets/providers/local.ts";
import { Secrets } from "../../src/secrets/secrets.ts";
import type { Session } from "../../src/sessions/session.ts";
import type { ConnectionDeps, OpenWire } from "../../src/upstream/connection-deps.ts";
import { IsolatedConnections } from "../../src/upstream/isolated-connections.ts";
import { oauthBench, type OAuthBench } from "../secrets/oauth/bench.ts";
import { contextOf, depsOf, sessionOf, specOf } from "../support/connection-bench.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { FakeWire, legacyHandlers } from "../support/fake-wire.ts";

const HOUR = 3600_000;
const use = { kind: "tool", name: "echo", arguments: {} } as const;
const echo = { name: "echo", inputSchema: { type: "object" } };

/** A hub on the bench's home, and users who are logged in. */
async function hubWith(bench: OAuthBench, users: readonly string[]): Promise<Hub> {
  for (const user of users) await logIn(bench, user);
  const hub = await createHub(
    {
      mcpServers: { srv: { url: bench.server.url, auth: { type: "oauth" }, isolation: "user", restart: false } },
      limits: { callsPerMinute: 10_000, concurrency: 1000 },
    },
    { home: join(bench.dir, ".."), clock: bench.clock },
  );
  onTestFinished(() => hub.close());
  return hub;
}

async function logIn(bench: OAuthBench, user: string): Promise<void> {
  bench.authorization.user = user;
  await bench.login({ key: { ...bench.key, user } });
}

async function sessionFor(hub: Hub, user: string): Promise<Session> {
  const session = hub.openSession({ user, owner: false });
  await expect.poll(() => hub.view(session).tools.length).toBe(1);
  return session;
}

async function whoami(hub: Hub, session: Session, n = 0): Promise<string> {
  const outcome = await hub.call({ session, name: "srv__whoami", arguments: { n } });
  if (!outcome.ok) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
  return String(outcome.result.content[0]?.["text"]);
}

describe("[guard-11f] isolation: user", () => {
  it("runs each user's calls with that user's account, also all at once", async () => {
    const bench = await oauthBench();
    const hub = await hubWith(bench, ["alice", "bob"]);
    const [alice, bob] = [await sessionFor(hub, "alice"), await sessionFor(hub, "bob")];
    const calls = Array.from({ length: 60 }, async (_, n) => {
      const [session, user] = n % 2 === 0 ? [alice, "alice"] : [bob, "bob"];
      return [await whoami(hub, session, n), `${user} {"n":${n}}`];
    });
    for (const [got, wanted] of await Promise.all(calls)) expect(got).toBe(wanted);
    expect(hub.servers.list()[0]).toMatchObject({ state: "ready", users: { connections: 2, connected: 2 } });
  });

  it("keeps accounts apart through refreshes, refused tokens and reconnects", async () => {
    const bench = await oauthBench();
    const hub = await hubWith(bench, ["alice", "bob"]);
    const [alice, bob] = [await sessionFor(hub, "alice"), await sessionFor(hub, "bob")];
    const all = async (): Promise<void> => {
      const got = await Promise.all(
        Array.from({ length: 40 }, async (_, n) => [n % 2, await whoami(hub, n % 2 === 0 ? alice : bob, n)] as const),
      );
      for (const [who, text] of got) expect(text).toContain(who === 0 ? "alice" : "bob");
    };
    await all();
    bench.clock.shift(2 * HOUR);
    bench.authorization.tokenDelayMs = 20;
    await all();
    bench.authorization.accessTokens.clear();
    await all();
    await hub.servers.disconnect("srv");
    expect(hub.servers.list()[0]).toMatchObject({ state: "idle", users: { connections: 0 } });
    // Nothing is listed while it is disconnected; the next session of a user brings the list back.
    await sessionFor(hub, "bob");
    await all();
    // One refresh each, per time that the token was of no use.
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(4);
    expect(bench.authorization.reuses).toBe(0);
    for (const { user, token } of bench.server.seen) {
      if (user !== "-") expect(bench.authorization.accessTokens.get(token)?.user ?? user).toBe(user);
    }
  });

  it("uses nobody's account for a user who has none", async () => {
    const bench = await oauthBench();
    const hub = await hubWith(bench, ["alice"]);
    await sessionFor(hub, "alice");
    const carol = hub.openSession({ user: "carol", owner: false });
    const before = bench.server.seen.length;
    const outcome = await hub.call({ session: carol, name: "srv__whoami" });
    expect(outcome).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("toolcrib auth login srv --user carol") },
    });
    expect(bench.server.seen.slice(before).filter(({ user }) => user !== "-")).toEqual([]);
    // Once she has logged in, her next call works, with her own.
    await logIn(bench, "carol");
    expect(await whoami(hub, carol)).toContain("carol");
  });

  it("gives a session without a user nothing, not even the owner's account", async () => {
    const bench = await oauthBench();
    bench.authorization.user = "owner";
    await bench.login();
    const hub = await hubWith(bench, ["alice"]);
    expect(hub.servers.list()[0]).toMatchObject({ state: "ready", auth: { state: "ok" } });
    expect(await whoami(hub, hub.session)).toContain("owner");
    for (const options of [{}, { owner: false }, { user: "" }]) {
      const outcome = await hub.call({ session: hub.openSession(options), name: "srv__whoami" });
      expect(outcome).toMatchObject({
        ok: false,
        error: { code: "unauthorized", hint: "Open the session with `user`." },
      });
    }
    expect(await whoami(hub, await sessionFor(hub, "alice"))).toContain("alice");
    expect(bench.server.seen.filter(({ method, user }) => method === "tools/call" && user === "owner")).toHaveLength(1);
  });

  it("connects a user through the hub, and tells how that went", async () => {
    const bench = await oauthBench();
    const hub = await hubWith(bench, ["alice"]);
    expect(await hub.servers.connect("srv", { user: "alice" })).toMatchObject({ state: "ready", toolCount: 1 });
    expect(await hub.servers.connect("srv", { user: "dave" })).toMatchObject({
      state: "failed",
      auth: { state: "login_needed" },
    });
  });

  it("gives each user's program that user's own secrets, and none to the owner's", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-users-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    for (const user of ["alice", "bob"]) {
      const file = userSecretFile(home, user, "TOKEN");
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `token of ${user}`, { mode: 0o600 });
    }
    const clock = new FakeClock();
    const openWire: OpenWire = (_kind, _spec, { env }) =>
      new FakeWire(
        "stdio",
        legacyHandlers({
          tools: [echo],
          handlers: { "tools/call": () => ({ content: [{ type: "text", text: env["TOKEN"] }] }) },
        }),
      );
    const spec = specOf({ command: "fake", isolation: "user", env: { TOKEN: "secret://user/TOKEN" }, restart: false });
    const secrets = new Secrets({ env: {}, home, clock });
    const connections = new IsolatedConnections(spec, depsOf(clock, { openWire, secrets }));
    onTestFinished(() => connections.close());
    await connections.connect();
    expect(connections.info()).toMatchObject({
      state: "failed",
      lastError: expect.stringContaining("secret://user/TOKEN"),
    });
    const run = (user: string) => connections.run(use, contextOf({ session: sessionOf(`s-${user}`, { user }) }));
    const got = await Promise.all(["alice", "bob", "alice", "bob"].map(run));
    expect(got.map((result) => JSON.stringify(result).replace(/.*token of (\w+).*/, "$1"))).toEqual([
      "alice",
      "bob",
      "alice",
      "bob",
    ]);
    await expect(run("carol")).rejects.toThrow(/not set for the user "carol"/);
  });
});

describe("[guard-11f] the life of a user's connection", () => {
  function users(): { clock: FakeClock; connections: IsolatedConnections; open: () => number } {
    const clock = new FakeClock();
    const wires: FakeWire[] = [];
    const openWire: OpenWire = () => {
      const wire = new FakeWire(
        "stdio",
        legacyHandlers({ tools: [echo], handlers: { "tools/call": () => ({ content: [] }) } }),
      );
      wires.push(wire);
      return wire;
    };
    const connections = new IsolatedConnections(
      specOf({ command: "fake", isolation: "user" }),
      depsOf(clock, { openWire }),
    );
    onTestFinished(() => connections.close());
    return { clock, connections, open: () => wires.filter((wire) => !wire.closed).length };
  }

  it("begins at the first call and ends when nothing was called for long", async () => {
    const { clock, connections, open } = users();
    expect(open()).toBe(0);
    await connections.run(use, contextOf({ session: sessionOf("s1", { user: "alice" }) }));
    expect(open()).toBe(1);
    await clock.advance(29 * 60_000);
    expect(open()).toBe(1);
    await clock.advance(2 * 60_000);
    expect(open()).toBe(0);
    expect(connections.definitions().tools).not.toEqual([]);
    await connections.run(use, contextOf({ session: sessionOf("s1", { user: "alice" }) }));
    expect(open()).toBe(1);
  });

  it("ends soon after the user's last session, and stays for another one", async () => {
    const { clock, connections, open } = users();
    for (const id of ["s1", "s2"]) await connections.run(use, contextOf({ session: sessionOf(id, { user: "alice" }) }));
    connections.endSession("s1");
    await clock.advance(120_000);
    expect(open()).toBe(1);
    connections.endSession("s2");
    await clock.advance(120_000);
    expect(open()).toBe(0);
    expect(connections.info().users).toEqual({ connections: 0, connected: 0 });
  });

  it("is one for all sessions of a user", async () => {
    const { connections, open } = users();
    const run = (id: string, user: string) => connections.run(use, contextOf({ session: sessionOf(id, { user }) }));
    await Promise.all([run("s1", "alice"), run("s2", "alice"), run("s3", "bob")]);
    expect(open()).toBe(2);
  });
});

describe("[guard-11f] what a server says to a user", () => {
  const handlers = {
    "tools/call": () => ({ content: [] }),
    "resources/list": () => ({ resources: [] }),
    "resources/templates/list": () => ({ resourceTemplates: [] }),
    "resources/subscribe": () => ({}),
  };
  const capabilities = { tools: {}, resources: { subscribe: true } };

  /** The n-th connection is the n-th wire. */
  function users(more: Partial<ConnectionDeps> = {}) {
    const wires: FakeWire[] = [];
    const openWire: OpenWire = () => {
      const wire = new FakeWire("stdio", legacyHandlers({ tools: [echo], capabilities, handlers }));
      wires.push(wire);
      return wire;
    };
    const clock = new FakeClock();
    const deps = Object.defineProperties(
      depsOf(clock, { openWire, hubSession: sessionOf("hub") }),
      Object.getOwnPropertyDescriptors(more),
    );
    const connections = new IsolatedConnections(specOf({ command: "fake", isolation: "user", restart: false }), deps);
    onTestFinished(() => connections.close());
    return { clock, connections, wires };
  }

  it("names the user, and null for the owner of the hub", async () => {
    const { connections, wires } = users();
    const heard: unknown[] = [];
    connections.on("log", ({ user, message }) => heard.push([user, message.data]));
    connections.on("notice", ({ user, method }) => heard.push([user, method]));
    connections.on("resource-updated", ({ user, uri }) => heard.push([user, uri]));
    await connections.connect();
    await connections.connectUser?.("ann");
    for (const wire of wires) {
      wire.notify("notifications/message", { level: "info", data: "hi" });
      wire.notify("notifications/x-news");
      wire.notify("notifications/resources/updated", { uri: "x://1" });
    }
    expect(heard).toEqual([
      [null, "hi"],
      [null, "notifications/x-news"],
      [null, "x://1"],
      ["ann", "hi"],
      ["ann", "notifications/x-news"],
      ["ann", "x://1"],
    ]);
  });

  it("is followed again on that user's own connection", async () => {
    const { clock, connections, wires } = users();
    await connections.connect();
    connections.resume(sessionOf("hub"), ["x://own"]);
    connections.resume(sessionOf("s1", { user: "ann" }), ["x://ann"]);
    connections.resume(sessionOf("s2"), ["x://nobody"]);
    await settle();
    expect(wires.map((wire) => wire.params("resources/subscribe"))).toEqual([{ uri: "x://own" }, { uri: "x://ann" }]);
    // Who waits for news is not idle.
    await clock.advance(HOUR);
    expect(wires.map(({ closed }) => closed)).toEqual([false, false]);
  });

  it("goes on by what holds when the user connects, whenever the log level was last set", async () => {
    const [graces, levels]: [unknown[], unknown[]] = [[], []];
    let graceMs = 1000;
    const { connections } = users({
      get graceMs() {
        return graceMs;
      },
      openWire: (_kind, _spec, _resolved, deps) => {
        graces.push(deps.graceMs);
        levels.push(deps.logLevel);
        return new FakeWire("stdio", legacyHandlers({ tools: [echo], capabilities, handlers }));
      },
    });
    await connections.connectUser?.("ann");
    await connections.setLogLevel("error");
    graceMs = 5000;
    await connections.connectUser?.("bob");
    expect([graces, levels]).toEqual([
      [1000, 5000],
      [undefined, "error"],
    ]);
  });
});
