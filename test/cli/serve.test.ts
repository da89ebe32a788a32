import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, describe, expect, it } from "vitest";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";
import { misbehaving } from "../support/servers.ts";
import { ask } from "../doors/http/support.ts";
import { eventually } from "../support/eventually.ts";

const running: ChildProcess[] = [];
const places: string[] = [];

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  for (const place of places.splice(0)) rmSync(place, { recursive: true, force: true });
});

/** `toolcrib serve` as a person starts it, in a folder of its own. */
class Served {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-serve-"));
  readonly config = join(this.dir, "toolcrib.json");
  readonly home = join(this.dir, "home");
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";

  constructor(config: object, args: readonly string[] = []) {
    places.push(this.dir);
    this.write(config);
    this.child = spawn(process.execPath, [MAIN, "serve", "--config", this.config, "--port", "0", ...args], {
      env: { PATH: process.env["PATH"], HOME: this.dir, ...PATIENT, TOOLCRIB_HOME: this.home },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.push(this.child);
    this.child.stdout?.on("data", (chunk: Buffer) => (this.stdout += chunk.toString("utf8")));
    this.child.stderr?.on("data", (chunk: Buffer) => (this.stderr += chunk.toString("utf8")));
  }

  write(config: object): void {
    writeFileSync(this.config, JSON.stringify(config));
  }

  async until(what: string | RegExp, where: "stdout" | "stderr" = "stdout"): Promise<string> {
    return eventually(() => {
      const found = typeof what === "string" ? this[where].includes(what) && what : what.exec(this[where])?.[0];
      if ((found === false || found === undefined) && this.child.exitCode !== null)
        throw new Error(`serve ended: ${this.stdout}${this.stderr}`);
      return found;
    }, `${where} with ${what}`);
  }

  async url(): Promise<string> {
    return this.until(/http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/);
  }

  async client(): Promise<Client> {
    const client = new Client({ name: "test", version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(`${await this.url()}/mcp`));
    await client.connect(transport);
    return client;
  }

  /** The lines of its audit log. */
  audit(): string[] {
    const folder = join(this.home, "audit");
    if (!existsSync(folder)) return [];
    const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
    return files.flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    const exited = once(this.child, "exit");
    this.child.kill(signal);
    await exited;
    return this.child.exitCode;
  }
}

async function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const accept = "application/json, text/event-stream";
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept, ...headers },
    body: JSON.stringify(body),
  });
  return answer.text();
}

const MODERN_META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const ok = { mcpServers: { one: misbehaving("ok") } };

describe("[gate-15a] serve", () => {
  it("prints where everything is, what to paste and the state of each server, and is quiet afterwards", async () => {
    const served = new Served({ mcpServers: { one: misbehaving("ok"), gone: { command: "no-such-command-here" } } });
    const url = await served.url();
    await served.until(/ready +one +\d+ tools/);
    await served.until(/failed +gone +.*no-such-command-here/);
    for (const text of [
      `${url}/mcp`,
      `${url}/sse`,
      "claude mcp add --transport http toolcrib",
      '"mcpServers"',
      served.config,
    ]) {
      expect(served.stdout).toContain(text);
    }
    expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ status: expect.any(String) });
    expect(await (await fetch(url)).text()).toContain("/mcp");
    const before = served.stdout + served.stderr;
    const client = await served.client();
    await client.callTool({ name: "one__echo", arguments: { text: "hi" } });
    await client.close();
    expect(served.stdout + served.stderr).toBe(before);
    expect(await served.end("SIGINT")).toBe(130);
  });

  it("prints one object with --json", async () => {
    const served = new Served(ok, ["--json"]);
    await served.until('Consider "guard": "balanced"', "stderr");
    const { mcp, sse, pid } = JSON.parse(served.stdout) as { mcp: string; sse: string; pid: number };
    expect([mcp.endsWith("/mcp"), sse.endsWith("/sse"), pid]).toEqual([true, true, served.child.pid]);
  });

  it("[oper-07b] writes down who logs in, gets a link and logs out", async () => {
    const served = new Served({}, ["--json"]);
    await served.until("}");
    const { mcp } = JSON.parse(served.stdout) as { mcp: string };
    const url = new URL(mcp).origin;
    const [hub] = readHubRecords(served.home);
    const link = await ask(`${url}/api/v1/login-links`, { method: "POST", token: hub?.token ?? "" });
    const login = link.json<{ url: string }>().url;
    const page = { origin: url, "x-toolcrib": "page" };
    const body = JSON.stringify({ code: new URL(login).hash.slice("#login=".length) });
    const answer = await ask(`${url}/api/v1/login`, { method: "POST", headers: page, body });
    const cookie = String(answer.headers["set-cookie"]).split(";")[0] ?? "";
    const headers = { ...page, cookie, "x-toolcrib": answer.json<{ pageKey: string }>().pageKey };
    await ask(`${url}/api/v1/login-links`, { method: "POST", headers });
    const log = await ask(`${url}/api/v1/audit?type=event&order=oldest`, { headers });
    const { entries } = log.json<{ entries: { event: string; details: object }[] }>();
    const [, opened] = entries;
    expect(opened?.details).toEqual({ by: expect.stringMatching(/^page [\w-]{12}$/) });
    expect(entries.map(({ event, details }) => [event, details])).toEqual([
      ["login.link", { by: expect.any(String) }],
      ["login", opened?.details],
      ["login.link", opened?.details],
    ]);
    expect((await ask(`${url}/api/v1/logout`, { method: "POST", headers })).status).toBe(200);
    expect((await ask(`${url}/api/v1/audit`, { headers })).status).toBe(401);
  });

  it.each([
    [["--port", "x"], /--port must be a number/],
    [["--port", "80000"], /^error: --port must be a number from 0 to 65535, not "80000"\.$/m],
    [["--log-level", "loud"], /--log-level must be one of debug, info/],
    [["--log-format", "xml"], /--log-format must be one of pretty, json/],
    [["--host", "0.0.0.0"], /auth/],
  ])("refuses %j", async (args, message) => {
    const served = new Served(ok, args);
    const [code] = (await once(served.child, "exit")) as [number];
    expect(code).not.toBe(0);
    expect(served.stderr).toMatch(message);
    expect(served.stderr).not.toMatch(/\n\s+at /);
  });
});

describe("[gate-15b] the log", () => {
  it("is one JSON object per line with --log-format json, from --log-level on", async () => {
    const served = new Served(ok, ["--log-format", "json", "--log-level", "debug"]);
    const client = await served.client();
    await served.until('"message":"server ready"', "stderr");
    await client.callTool({ name: "one__echo", arguments: { text: "hi" } });
    await served.until('"message":"call"', "stderr");
    const lines = served.stderr.trim().split("\n");
    const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records).toContainEqual(expect.objectContaining({ message: "server ready", server: "one" }));
    expect(records.find(({ message }) => message === "call")).toMatchObject({
      level: "debug",
      tool: "one__echo",
      outcome: "ok",
      door: "mcp",
    });
    await client.close();
  });
});

describe("[gate-07b] SIGHUP", () => {
  it("takes the config up, as an edit of the file does", async () => {
    const served = new Served(ok);
    const client = await served.client();
    const names = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);
    expect((await names()).some((name) => name.startsWith("two__"))).toBe(false);
    served.write({ mcpServers: { one: misbehaving("ok"), two: misbehaving("ok") } });
    served.child.kill("SIGHUP");
    await eventually(async () => (await names()).some((name) => name.startsWith("two__")));
    served.write({ mcpServers: { two: misbehaving("ok") } });
    await eventually(async () => !(await names()).some((name) => name.startsWith("one__")));
    served.write({ mcpServers: { two: { nonsense: true } } });
    await served.until(/config/i, "stderr");
    expect((await names()).some((name) => name.startsWith("two__"))).toBe(true);
    await client.close();
  });
});

describe("[gate-11a] shutdown", () => {
  it("lets calls finish, leaves no child and no hub file, and exits as the signal says", async () => {
    const served = new Served(ok);
    const client = await served.client();
    const { content } = (await client.callTool({ name: "one__pids", arguments: {} })) as {
      content: { text: string }[];
    };
    const pids = (content[0]?.text.match(/\d+/g) ?? []).map(Number);
    expect(pids.length).toBeGreaterThan(0);
    expect(readdirSync(join(served.home, "hubs"))).toHaveLength(1);
    const slow = client.callTool({ name: "one__slow", arguments: { ms: 700 } });
    await eventually(() => served.audit().some((line) => line.includes('"one__slow"')), "the call");
    const code = await served.end("SIGTERM");
    expect(code).toBe(143);
    expect(JSON.stringify(await slow)).toContain("content");
    expect(readdirSync(join(served.home, "hubs"))).toEqual([]);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
    const lines = served.audit().filter((line) => line.includes('"one__slow"'));
    expect(lines.filter((line) => line.includes('"outcome":"ok"'))).toHaveLength(1);
  });

  it("[whole-39b] tells the callers of calls that it cuts off, in every protocol, that they may have run", async () => {
    const served = new Served({ ...ok, http: { limits: { shutdownMs: 500 } } });
    const url = await served.url();
    const client = await served.client();
    const slow = { arguments: { ms: 60_000 } };
    const legacy = client.callTool({ name: "one__slow", ...slow }).catch(String);
    const rest = post(`${url}/api/v1/mcp/tools/one__slow/call`, slow);
    const modern = post(
      `${url}/mcp`,
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "one__slow", ...slow, _meta: MODERN_META } },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "one__slow" },
    );
    await eventually(() => served.audit().filter((line) => line.includes('"one__slow"')).length === 3, "three calls");
    await served.end("SIGTERM");
    for (const answer of await Promise.all([legacy, rest, modern])) {
      expect(answer).toContain("Toolcrib stopped before the call had ended. Whether the call ran is not known.");
      expect(answer).toContain("See what it did before you call again.");
    }
  });
});
