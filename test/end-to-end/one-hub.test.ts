/** One hub for all clients of a home: real processes, real stdio and HTTP clients. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it, vi } from "vitest";
import { ToolcribClient } from "../../src/api-client/index.ts";
import { BRIDGE } from "../support/main-program.ts";
import { isAlive } from "../support/processes.ts";
import { isMissing } from "../support/skips.ts";
import { everything } from "../support/servers.ts";
import {
  ask,
  childrenOf,
  clients,
  command,
  configure,
  env,
  freePort,
  home,
  httpClient,
  hubs,
  onlyHub,
  rawBridge,
  say,
  stdioClient,
  useSharedHome,
  WITHIN,
} from "../support/shared-hub.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 });
useSharedHome();

/** What stands before the bridge's own command line; undefined where this machine cannot do it. */
const FALLBACKS: readonly (readonly [string, () => string[] | undefined])[] = [
  [
    "a file is in the place of the folder",
    () => {
      writeFileSync(join(home, "hubs"), "");
      return [];
    },
  ],
  [
    "the home is on a disk that cannot be written to",
    () => usable("a read-only home", ["bwrap", "--dev-bind", "/", "/", "--ro-bind", home, home]),
  ],
  ["there is no loopback", () => usable("a machine without loopback", ["unshare", "-n"])],
];

function usable(what: string, prefix: string[]): string[] | undefined {
  const [program = "", ...args] = prefix;
  const works = spawnSync(program, [...args, "true"]).status === 0;
  return isMissing(what, works ? undefined : `${program} cannot be used.`) ? undefined : prefix;
}

/** As a part of an object, and of the object in it. */
function objectWith({ client, ...rest }: { readonly client: object; readonly calls: number }): unknown {
  return expect.objectContaining({ ...rest, client: expect.objectContaining(client) as unknown });
}

async function endSession(client: Client): Promise<void> {
  const { transport } = client;
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
  await client.close();
}

describe("one hub on a home", () => {
  it("[counter-01a] two stdio clients and an HTTP client share it, and each server is one process", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    const hub = onlyHub();
    const web = await httpClient(hub.url);
    expect(await Promise.all([say(one, "a"), say(two, "b"), say(web, "c")])).toEqual(["Echo: a", "Echo: b", "Echo: c"]);
    expect(childrenOf(hub.pid)).toHaveLength(1);
  });

  it("[counter-04a] each call is attributed to the client that made it", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    await say(one, "a");
    await say(two, "b");
    await say(two, "c");
    const callsOf = async (client: string): Promise<number> => {
      const { entries } = await ask<{ entries: { client?: object }[] }>(`audit?type=call&client=${client}`);
      for (const entry of entries) expect(entry.client).toEqual({ name: client, version: "1" });
      return entries.length;
    };
    await vi.waitFor(
      async () => expect([await callsOf("client-0"), await callsOf("client-1")]).toEqual([1, 2]),
      WITHIN,
    );
    const { sessions } = await ask<{
      sessions: { client: { name: string; pid?: number; transport?: string } | null }[];
    }>("sessions");
    const ours = sessions
      .flatMap(({ client }) => (client?.transport === "stdio" ? [client] : []))
      .toSorted((a, b) => a.name.localeCompare(b.name));
    expect(ours).toMatchObject([
      { name: "client-0", version: "1", transport: "stdio", cwd: home },
      { name: "client-1", version: "1", transport: "stdio", cwd: home },
    ]);
    expect(new Set(ours.map(({ pid }) => pid)).size).toBe(2);
  });

  it("[counter-01g] commands run at the hub, and see what its clients see", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, tools: { deny: ["e__get-env"] } });
    await stdioClient();
    const { pid } = onlyHub();
    await vi.waitFor(() => expect(childrenOf(pid)).toHaveLength(1), WITHIN);
    const run = command;
    const [listed, called, piped, status, unknown, refused, explained] = await Promise.all([
      run(["list", "--json"]),
      run(["call", "e__echo", "message=hello"]),
      run(["call", "e__echo", "--args", "-", "--json"], '{"message":"ä from stdin"}'),
      run(["status", "--json"]),
      run(["call", "e__nothing"]),
      run(["call", "e__get-env"]),
      run(["policy", "explain", "e__get-env", "--json"]),
    ]);
    expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ name: "e__echo", server: "e" }));
    expect(called).toMatchObject({ code: 0, stdout: "Echo: hello\n" });
    expect(JSON.parse(piped.stdout)).toMatchObject({ content: [{ text: "Echo: ä from stdin" }] });
    expect(JSON.parse(status.stdout)).toMatchObject([{ id: "e", state: "ready" }]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain("e__nothing");
    expect([refused.code, JSON.parse(explained.stdout)]).toMatchObject([3, { decision: { verdict: "deny" } }]);
    // No second process of the server was started, and the hub has the sessions.
    expect(childrenOf(pid)).toHaveLength(1);
    const sessionsOfCommands = async (): Promise<number> =>
      (await ask<{ total: number }>("sessions?state=all&door=cli")).total;
    expect(await sessionsOfCommands()).toBe(7);
    const alone = await run(["call", "e__echo", "message=alone", "--standalone"]);
    expect(alone).toMatchObject({ code: 0, stdout: "Echo: alone\n" });
    expect(await sessionsOfCommands()).toBe(7);
    onlyHub();
  });

  it("[whole-28a] list at the hub names a server that is stuck, and shows the others", async () => {
    const stuck = { command: process.execPath, args: ["--eval", "process.stdin.resume()"] };
    configure({ mcpServers: { stuck, e: everything() }, http: { port: 0 } });
    // It waits in vain for the one that is stuck, and the other is there before.
    const client = await stdioClient([], { env: { TOOLCRIB_LIMITS_LIST_WAIT_MS: "500" } });
    await vi.waitFor(async () => expect(await say(client, "ready")).toBe("Echo: ready"), WITHIN);
    const { stdout, stderr } = await command(["list"]);
    expect(stdout).toContain("e__echo");
    expect(stderr).toContain("not connected: stuck: it is connecting\n");
  });

  it("[whole-01f] a mistake in a config that is saved while it runs is logged, and told by doctor until it is corrected", async () => {
    const servers = { e: everything() };
    configure({ mcpServers: servers, http: { port: 0 } });
    await stdioClient();
    const doctor = async (): Promise<string> => (await command(["doctor"])).stdout;
    expect(await doctor()).not.toContain("limts");
    const wrong = { type: "websocket", url: "http://127.0.0.1:1/mcp" };
    configure({ mcpServers: { ...servers, wrong }, http: { port: 0 }, limts: {} });
    await vi.waitFor(async () => expect(await doctor()).toContain('unknown key "limts" is ignored'), WITHIN);
    const log = (await command(["hub", "logs"])).stdout.replaceAll("\\", "");
    expect(log).toContain('unknown key "limts" is ignored');
    expect(log).toContain('mcpServers.wrong.type: found "websocket"');
    configure({ mcpServers: servers, http: { port: 0 } });
    await vi.waitFor(async () => expect(await doctor()).not.toMatch(/limts|websocket/), WITHIN);
  });

  it("[whole-06b] list at the hub says what it leaves out, too", async () => {
    const script = join(home, "script.json");
    writeFileSync(script, JSON.stringify({ tools: [{ name: "plain", inputSchema: {} }, { description: "nameless" }] }));
    const server = join(import.meta.dirname, "../fixtures/scripted-server.mjs");
    configure({ mcpServers: { odd: { command: process.execPath, args: [server, script] } }, http: { port: 0 } });
    await stdioClient();
    const { stdout, stderr } = await command(["list", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([{ name: "odd__plain", inputSchema: { type: "object" } }]);
    expect(stderr).toContain("odd: tools/list contains 1 entry without a name, which is left out.");
  });

  it("[counter-01h] doctor, pins, audit, skills and logins run at the hub too", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, guard: { pins: "warn" } });
    const client = await stdioClient();
    expect(await say(client, "x")).toBe("Echo: x");
    const { pid } = onlyHub();
    const [doctor, pins, diff, skills, logins] = await Promise.all([
      command(["doctor", "--json"]),
      command(["pins", "list", "--json"]),
      command(["pins", "diff", "e__echo", "--json"]),
      command(["skill", "list", "--json"]),
      command(["auth", "status", "--json"]),
    ]);
    const { ok, checks } = JSON.parse(doctor.stdout) as { ok: boolean; checks: { area: string; message: string }[] };
    expect(ok).toBe(true);
    expect(checks).toContainEqual(expect.objectContaining({ area: "hub", message: expect.stringContaining(`${pid}`) }));
    expect(JSON.parse(pins.stdout)).toContainEqual(expect.objectContaining({ server: "e", tool: "echo" }));
    expect([diff.stdout, skills.stdout, logins.stdout].map((text) => JSON.parse(text) as unknown)).toEqual([
      [],
      [],
      [],
    ]);
    const audit = await command(["audit", "--client", "client-0", "--json"]);
    expect(JSON.parse(audit.stdout)).toMatchObject([{ name: "e__echo", client: { name: "client-0" } }]);
    expect(await command(["audit", "verify"])).toMatchObject({ code: 0 });
    expect(childrenOf(pid)).toHaveLength(1);
  });

  it("[counter-04d] status shows the clients that are connected, and --clients only them", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const client = await stdioClient();
    const { url } = onlyHub();
    const web = await httpClient(url, undefined, "a web client");
    await Promise.all([say(client, "a"), say(web, "b")]);
    const listed = async (): Promise<unknown> => JSON.parse((await command(["status", "--clients", "--json"])).stdout);
    const both = [
      { client: { name: "client-0", transport: "stdio", cwd: home }, calls: 1 },
      // The process at the other end of the connection is this one.
      { client: { name: "a web client", transport: "http", pid: process.pid }, calls: 1 },
    ];
    await vi.waitFor(
      async () => expect(await listed()).toEqual(expect.arrayContaining(both.map((each) => objectWith(each)))),
      WITHIN,
    );
    const shown = await command(["status"]);
    expect(shown.stdout).toMatch(/^ID +STATE[^]*CLIENT +BY[^]*client-0 1 +stdio/);
    expect(JSON.parse((await command(["status", "--json"])).stdout)).toMatchObject([{ id: "e", state: "ready" }]);
  });

  it("[counter-04c] calls over REST and a WebSocket have the name of their program", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    await command(["hub", "start"]);
    const { url, token } = onlyHub();
    const [reports, panel] = ["reports/1.2", "panel/3"].map((name) => new ToolcribClient({ url, token, name }));
    const call = { toolName: "e__echo", args: { message: "x" } };
    await vi.waitFor(async () => expect(await reports?.call("callTool", call)).toBeDefined(), WITHIN);
    await panel?.call("callTool", call);
    const live = panel?.live();
    await live?.command("mcp.callTool", call);
    const callersOf = async (client: string): Promise<unknown[]> => {
      const { entries } = await ask<{ entries: { client?: object; door: string }[] }>(
        `audit?type=call&client=${client}`,
      );
      return entries.map(({ client: named, door }) => ({ named, door })).toSorted((a, b) => (a.door < b.door ? -1 : 1));
    };
    const named = { name: "panel", version: "3" };
    await vi.waitFor(async () => {
      expect(await callersOf("reports")).toContainEqual({ named: { name: "reports", version: "1.2" }, door: "rest" });
      // The session is shared by programs with one token, and so bears the first one's name: each call has its own.
      expect(await callersOf("panel")).toEqual([
        { named, door: "rest" },
        { named, door: "websocket" },
      ]);
    }, WITHIN);
    live?.close();
  });

  it("[counter-01m] hub stop ends it over its own connection, after calls in progress", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    await command(["hub", "start"]);
    const { pid, url, token } = onlyHub();
    const refused = await fetch(`${url}/command`, { method: "DELETE" });
    expect(refused.status).toBe(403);
    const ended = fetch(`${url}/command`, { method: "DELETE", headers: { authorization: `Bearer ${token}` } });
    expect((await ended).status).toBe(202);
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), WITHIN);
    expect(hubs()).toEqual([]);
    await command(["hub", "start"]);
    const second = onlyHub().pid;
    const stopped = await command(["hub", "stop"]);
    expect(stopped.stdout).toContain(`${second}`);
    expect(isAlive(second)).toBe(false);
  });

  it("[counter-01o] a client with a role or a view that the config does not have sees nothing, and is told why", async () => {
    const roles = { reviewer: { servers: ["e"] } };
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, roles });
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "typo", version: "1" } };
    for (const [args, why] of [
      [
        ["--role", "revewer"],
        'The config has no role "revewer", so this session sees nothing. Did you mean "reviewer"?',
      ],
      [["--role", "revewer", "--standalone"], 'has no role "revewer"'],
      [["--view", "small"], 'The config has no view "small"'],
    ] as const) {
      const { child, said } = rawBridge(args);
      let stderr = "";
      child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
      const send = (message: object): void =>
        void child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      send({ id: 1, method: "initialize", params });
      await vi.waitFor(() => expect(said()).toContain('"id":1'), WITHIN);
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/list" });
      await vi.waitFor(() => expect(said()).toContain('"id":2'), WITHIN);
      const [opened, listed] = said()
        .split("\n")
        .filter((line) => line.includes('"result"'))
        .map((line) => (JSON.parse(line) as { result: { instructions?: string; tools?: unknown[] } }).result);
      expect(opened?.instructions).toContain(why);
      expect(listed?.tools).toEqual([]);
      await vi.waitFor(() => expect(stderr).toContain(why), WITHIN);
      child.stdin?.end();
    }
  });

  it("[counter-01b] twenty that start at the same moment make one hub", async () => {
    configure({ mcpServers: {}, http: { port: 0 } });
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "many", version: "1" } };
    const all = Array.from({ length: 20 }, () => {
      const bridge = rawBridge();
      bridge.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
      return bridge;
    });
    await vi.waitFor(() => expect(all.filter(({ said }) => said().includes('"result"'))).toHaveLength(20), {
      ...WITHIN,
      timeout: 110_000,
    });
    onlyHub();
    expect(readdirSync(join(home, "hubs")).filter((name) => name.endsWith(".log"))).toHaveLength(1);
  });

  it("[counter-01c] killed under load, it comes back for all its clients", async () => {
    const port = await freePort();
    configure({ mcpServers: { e: everything() }, http: { port }, limits: { callsPerMinute: 100_000 } });
    const [one, two] = await Promise.all([stdioClient(), stdioClient()]);
    const first = onlyHub();
    const outcomes: string[] = [];
    const ended = new AbortController();
    const load = [one, two].map(async (client) => {
      while (!ended.signal.aborted) {
        await say(client, "x").then(
          (text) => outcomes.push(text),
          (error: unknown) => outcomes.push(String(error)),
        );
      }
    });
    // An HTTP client opens its own session again.
    let web = await httpClient(first.url);
    const ofWeb: string[] = [];
    const webLoad = (async () => {
      while (!ended.signal.aborted) {
        try {
          ofWeb.push(await say(web, "w"));
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 50));
          web = await httpClient(first.url).catch(() => web);
        }
      }
    })();
    await vi.waitFor(() => expect(Math.min(outcomes.length, ofWeb.length)).toBeGreaterThan(20), WITHIN);
    process.kill(first.pid, "SIGKILL");
    await vi.waitFor(() => expect(hubs().map(({ pid }) => pid)).not.toEqual([]), WITHIN);
    const [before, webBefore] = [outcomes.length, ofWeb.length];
    await vi.waitFor(() => expect(outcomes.length).toBeGreaterThan(before + 50), WITHIN);
    await vi.waitFor(() => expect(ofWeb.length).toBeGreaterThan(webBefore + 20), WITHIN);
    ended.abort();
    await Promise.all([...load, webLoad]);
    const failed = outcomes.filter((text) => text !== "Echo: x");
    const interrupted = failed.filter((text) => text.includes("may have run"));
    // Each client had one call in progress. On a busy machine the next hub answers before its server has started.
    expect(interrupted.length).toBeLessThanOrEqual(2);
    expect(failed.filter((text) => !/may have run|connect|no tool/i.test(text))).toEqual([]);
    expect(await Promise.all([say(one, "a"), say(two, "b")])).toEqual(["Echo: a", "Echo: b"]);
    expect(await say(web, "c")).toBe("Echo: c");
    expect(onlyHub().pid).not.toBe(first.pid);
  });

  it("[guard-20h] what a client has read is known to the next hub, after a crash and after a restart", async () => {
    configure({
      mcpServers: { e: everything() },
      http: { port: 0 },
      guard: { taint: "deny", classes: { openWorld: ["e__echo"], sendsOut: ["e__get-sum"] } },
    });
    const [reader, other] = await Promise.all([stdioClient(), stdioClient()]);
    const sum = (client: Client): Promise<string> =>
      client.callTool({ name: "e__get-sum", arguments: { a: 1, b: 2 } }).then(
        (result) => JSON.stringify(result.content),
        (error: unknown) => String(error),
      );
    expect(await sum(reader)).toContain("is 3");
    expect(await say(reader, "from a stranger")).toBe("Echo: from a stranger");
    expect(await sum(reader)).not.toContain("is 3");
    for (const end of [
      (pid: number) => process.kill(pid, "SIGKILL"),
      async () => expect((await command(["hub", "restart"])).code).toBe(0),
    ]) {
      const { pid } = onlyHub();
      await end(pid);
      await vi.waitFor(() => expect(onlyHub().pid).not.toBe(pid), WITHIN);
      // Who has read nothing is not affected.
      await vi.waitFor(async () => expect(await sum(other)).toContain("is 3"), WITHIN);
      await vi.waitFor(async () => expect(await sum(reader)).toMatch(/e__echo|stranger|anyone/), WITHIN);
    }
  });

  it("[counter-01d] it ends by itself when its last client has left, and leaves no process behind", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0 }, hub: { idleMinutes: 0.02 } });
    const [client, other] = await Promise.all([stdioClient(), stdioClient()]);
    const { pid, url } = onlyHub();
    const web = await httpClient(url);
    await vi.waitFor(() => expect(childrenOf(pid)).toHaveLength(1), WITHIN);
    const started = [pid, ...childrenOf(pid)];
    // It does not end while a client is there.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(await say(client, "still")).toBe("Echo: still");
    await Promise.all([client.close(), other.close(), endSession(web)]);
    await vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), WITHIN);
    expect(hubs()).toEqual([]);
  });

  it.each(FALLBACKS)("[counter-01e] a client gets its own hub, and a warning: %s", async (_name, wrap) => {
    const prefix = wrap();
    if (prefix === undefined) return;
    configure({ mcpServers: { e: everything() }, http: { port: 0 } });
    const [program, ...args] = [...prefix, process.execPath, BRIDGE, "mcp"];
    const transport = new StdioClientTransport({ command: program, args, env, cwd: home, stderr: "pipe" });
    let said = "";
    transport.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const client = new Client({ name: "alone", version: "1" });
    clients.push(client);
    await client.connect(transport);
    expect(await say(client, "alone")).toBe("Echo: alone");
    expect(said).toContain("a hub of its own");
  });

  it("[counter-01f] a project's config has a hub of its own, and so has a named one", async () => {
    configure({ mcpServers: {}, http: { port: 0 } });
    const other = join(home, "..", `${home.split("/").at(-1)}-named.json`);
    writeFileSync(
      other,
      JSON.stringify({ mcpServers: { e: everything() }, http: { port: 0 }, guard: { pins: "off" } }),
    );
    try {
      await stdioClient();
      const named = await stdioClient(["--config", other]);
      expect(await say(named, "n")).toBe("Echo: n");
      expect(hubs()).toHaveLength(2);
    } finally {
      rmSync(other);
    }
  });

  it("[counter-03a] with http.auth a stdio client has not the owner's rights, and --role narrows it", async () => {
    mkdirSync(join(home, "files"));
    configure({
      mcpServers: { e: everything() },
      http: { port: 0, auth: { tokens: [{ token: "a-token-of-sixteen-characters" }] } },
      roles: { quiet: { tools: { deny: ["e__*"] } } },
    });
    const [plain, quiet] = await Promise.all([stdioClient(), stdioClient(["--role", "quiet"])]);
    expect(await say(plain, "x")).toBe("Echo: x");
    expect((await quiet.listTools()).tools.filter(({ name }) => name.startsWith("e__"))).toEqual([]);
    const { sessions } = await ask<{ sessions: { door: string; role: string | null; owner: boolean }[] }>("sessions");
    const ours = sessions.filter(({ door }) => door === "mcp");
    expect(ours.map(({ role }) => role)).toEqual(expect.arrayContaining([null, "quiet"]));
    expect(ours.map(({ owner }) => owner)).toEqual([false, false]);
  });
});
