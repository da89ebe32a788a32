/** `serve` without `http.auth`: who gets in, and what its output gives away. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask, type Answer } from "../doors/http/support.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";
import { misbehaving } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { eventually } from "../support/eventually.ts";

const started: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of started.splice(0)) await stop();
});

interface Serving {
  readonly dir: string;
  readonly url: string;
  stdout(): string;
  stderr(): string;
  until(what: RegExp): Promise<void>;
}

/** @param around Programs and options that the command is started through. */
async function serve(
  config: object,
  args: readonly string[] = [],
  around: (command: readonly string[], dir: string) => readonly string[] = (command) => command,
): Promise<Serving> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-open-"));
  const file = join(dir, "toolcrib.json");
  writeFileSync(file, JSON.stringify(config));
  const command = [process.execPath, MAIN, "serve", "--config", file, "--port", "0", ...args];
  const [program = "", ...rest] = around(command, dir);
  const env = { PATH: process.env["PATH"], HOME: dir, ...PATIENT, TOOLCRIB_HOME: join(dir, "home") };
  const child: ChildProcess = spawn(program, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  started.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(dir, { recursive: true, force: true });
  });
  const until = async (what: RegExp): Promise<void> => {
    await eventually(() => {
      if (what.test(stdout + stderr)) return true;
      if (child.exitCode !== null) throw new Error(`serve ended: ${stdout}${stderr}`);
      return false;
    });
  };
  await until(/http:\/\/127\.0\.0\.1:\d+\/mcp/);
  const url = /http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/.exec(stdout)?.[0] ?? "";
  return { dir, url, stdout: () => stdout, stderr: () => stderr, until };
}

const ok = { mcpServers: { one: misbehaving("ok") } };
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } },
});

function initialize(url: string, headers: Record<string, string>): Promise<Answer> {
  const types = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return ask(`${url}/mcp`, { method: "POST", headers: { ...types, ...headers }, body: INITIALIZE });
}

/** Whether a page of the origin gets a WebSocket. */
async function connects(url: string, origin: string): Promise<boolean> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, ["toolcrib.v1"], { origin });
  const opened = await new Promise<boolean>((done) => {
    socket.once("open", () => done(true));
    socket.once("error", () => done(false));
  });
  socket.terminate();
  return opened;
}

describe("[trust-14a] a hub without auth, asked by a web page", () => {
  it("serves its own page, and none of another localhost port", async () => {
    const { url, until } = await serve(ok);
    await until(/ready +one/);
    const { port } = new URL(url);
    for (const origin of [
      "http://localhost:6274",
      "http://127.0.0.1:3000",
      "http://localhost",
      `http://localhost:${port}`,
      `http://[::1]:${port}`,
      "null",
    ]) {
      const method = { "access-control-request-method": "POST", "access-control-request-headers": "content-type" };
      const preflight = await ask(`${url}/mcp`, { method: "OPTIONS", headers: { origin, ...method } });
      const list = await ask(`${url}/api/v1/mcp/tools`, { headers: { origin } });
      const call = await initialize(url, { origin });
      for (const answer of [preflight, list, call]) {
        expect([origin, answer.status]).toEqual([origin, 403]);
        expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
      }
      expect(list.text).toContain("http.cors");
      expect(await connects(url, origin), origin).toBe(false);
    }
    expect((await ask(`${url}/api/v1/mcp/tools`, { headers: { origin: url } })).text).toContain("one__echo");
    expect(await connects(url, url)).toBe(true);
    // A program that is no browser says no origin.
    expect((await initialize(url, {})).status).toBe(200);
  });

  it("serves the page that `http.cors` names, by its exact origin", async () => {
    const { url } = await serve({ http: { cors: ["http://localhost:6274"] } });
    const allowed = await initialize(url, { origin: "http://localhost:6274" });
    expect([allowed.status, allowed.headers["access-control-allow-origin"]]).toEqual([200, "http://localhost:6274"]);
    expect(await connects(url, "http://localhost:6274")).toBe(true);
    for (const origin of ["http://localhost:6275", "https://localhost:6274", "http://127.0.0.1:6274"]) {
      expect((await initialize(url, { origin })).status, origin).toBe(403);
    }
  });
});

const canMount = spawnSync("bwrap", ["--dev-bind", "/", "/", "true"]).status === 0;

isMissing("a machine with several users", canMount ? undefined : "bubblewrap cannot make mounts here");

describe.skipIf(!canMount || process.getuid === undefined)("[trust-14b] on a machine with several users", () => {
  const withUsers =
    (...lines: string[]) =>
    (command: readonly string[], dir: string): string[] => {
      const file = join(dir, "passwd");
      writeFileSync(file, [readFileSync("/etc/passwd", "utf8").trimEnd(), ...lines, ""].join("\n"));
      return ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--ro-bind", file, "/etc/passwd", "--", ...command];
    };
  const ann = "ann-of-the-test:x:4711:4711:Ann:/home/ann:/bin/bash";

  it("serve says who reaches a hub without auth, with the line that closes it, and that line does", async () => {
    const { stderr, until } = await serve({}, [], withUsers(ann, "daemonlike:x:4712:4712::/:/usr/sbin/nologin"));
    await until(/ann-of-the-test/);
    expect(stderr()).toMatch(/Other users of this machine .*ann-of-the-test.* can use this hub/);
    expect(stderr()).not.toContain("daemonlike");
    const line = /"http": \{.*\}/.exec(stderr())?.[0] ?? "";
    const config = JSON.parse(`{${line.replace("secret://env/TOOLCRIB_TOKEN", "a-token-of-enough-length")}}`) as object;
    const closed = await serve(config, [], withUsers(ann));
    expect((await initialize(closed.url, {})).status).toBe(401);
    expect((await initialize(closed.url, { authorization: "Bearer a-token-of-enough-length" })).status).toBe(200);
    expect(closed.stderr()).not.toContain("Other users");
  });
});

const LINK = /#login=/;

describe("[trust-17a] the login link", () => {
  it("is not in what a log or a program gets; it says how to get one", async () => {
    for (const args of [[], ["--log-format", "json", "--log-level", "debug"], ["--json"]]) {
      const { stdout, stderr, until } = await serve(ok, args);
      await until(args.includes("--json") ? /^\}/m : /ready +one|"server ready"/);
      expect(stdout() + stderr()).not.toMatch(LINK);
      expect(stdout()).toMatch(/toolcrib(?:\.js)? login/);
    }
  });

  const hasTerminal = spawnSync("script", ["-qec", "true", "/dev/null"]).status === 0;

  it.skipIf(!hasTerminal)("is printed on a terminal, also by `npm start`, and opens the page", async () => {
    const onTerminal = (command: readonly string[]): string[] => {
      const line = command.map((word) => `'${word}'`).join(" ");
      return ["script", "-qfec", `exec ${line}`, "/dev/null"];
    };
    const demo = join(import.meta.dirname, "../../demo/start.ts");
    const asDemo = (command: readonly string[]): string[] =>
      onTerminal([process.execPath, demo, "--port", "0", ...command.slice(7)]);
    for (const around of [onTerminal, asDemo]) {
      const { url, stdout, until } = await serve({}, [], around);
      await until(LINK);
      const code = /#login=([\w-]+)/.exec(stdout())?.[1] ?? "";
      const headers = { origin: url, "x-toolcrib": "page" };
      const answer = await ask(`${url}/api/v1/login`, { method: "POST", headers, body: JSON.stringify({ code }) });
      expect(answer.status, answer.text).toBe(200);
    }
  });
});
