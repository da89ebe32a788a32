import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { browserCommand } from "../../src/cli/commands/auth.ts";
import { AuthorizationServer, browse } from "../doubles/authorization-server.ts";
import { ProtectedServer } from "../doubles/protected-server.ts";
import { bundled, type Finished, workspace, type Workspace } from "./run-cli.ts";

interface Bench {
  readonly place: Workspace;
  readonly authorization: AuthorizationServer;
  readonly server: ProtectedServer;
  /** Everything that was ever printed. */
  readonly printed: string[];
  run(...args: string[]): Promise<Finished>;
  /** `auth login` with a person at the browser. */
  login(...args: string[]): Promise<Finished>;
}

async function bench(entry: Record<string, unknown> = { auth: { type: "oauth" } }): Promise<Bench> {
  const authorization = await AuthorizationServer.start(systemClock);
  const server = await ProtectedServer.start(authorization);
  const place = workspace();
  onTestFinished(async () => void (await Promise.all([authorization.close(), server.close()])));
  place.configure({ srv: { url: server.url, restart: false, ...entry } });
  const printed: string[] = [];
  const keep = (finished: Finished): Finished => {
    printed.push(finished.stdout, finished.stderr);
    return finished;
  };
  return {
    place,
    authorization,
    server,
    printed,
    run: async (...args) => keep(await place.run(args)),
    login: async (...args) => {
      const { child, finished } = place.start(["auth", "login", "srv", "--no-browser", ...args]);
      let seen = "";
      const look = (chunk: Buffer): void => {
        seen += String(chunk);
        const url = /^ {2}(http\S+\/authorize\S+)\n/m.exec(seen)?.[1];
        if (url === undefined) return;
        seen = "";
        void browse(url);
      };
      child.stdout?.on("data", look);
      child.stderr?.on("data", look);
      return keep(await finished);
    },
  };
}

describe("[guard-11e] toolcrib auth", () => {
  it("logs in, reports the tools, shows the login, is used by call, and logs out; no token is ever printed", async () => {
    const { authorization, printed, run, login, place } = await bench();
    const before = await run("auth", "status");
    expect(before.stdout).toMatch(/srv +- +login_needed/);
    const failed = await run("status");
    expect(failed.stdout).toMatch(/srv +failed .*login needed: toolcrib auth login srv/);

    const loggedIn = await login();
    expect(loggedIn).toMatchObject({ code: 0, stdout: expect.stringContaining("The connection works: 1 tool.") });
    expect(loggedIn.stdout).toContain(`Logged in to srv (${authorization.url}).`);

    const status = (await run("auth", "status", "srv", "--json")).json<Record<string, unknown>[]>();
    expect(status).toEqual([
      expect.objectContaining({ server: "srv", type: "oauth", state: "ok", issuer: authorization.url, renews: true }),
    ]);
    expect(Date.parse(String(status[0]?.["expiresAt"]))).toBeGreaterThan(Date.now());
    expect((await run("auth", "status")).stdout).toMatch(/srv +- +ok +\S+ \(renews automatically\)/);
    expect((await run("call", "srv__whoami")).stdout).toContain("alice");
    const info = (await run("status", "--json")).json<{ auth?: unknown }[]>();
    expect(info[0]?.auth).toMatchObject({ type: "oauth", state: "ok", expiresAt: expect.any(String) });

    const out = await run("auth", "logout", "srv");
    expect(out).toMatchObject({ code: 0, stdout: expect.stringContaining("the tokens were revoked") });
    expect(authorization.revoked).toHaveLength(2);
    expect(readdirSync(join(place.home, "auth"))).toEqual([]);
    expect((await run("auth", "logout", "srv", "--json")).json()).toEqual({
      server: "srv",
      removed: false,
      revoked: "nothing",
    });
    expect((await run("doctor")).stdout).toMatch(/login needed: toolcrib auth login srv/);
    // A code that was redeemed is of no use, and stands in no output either.
    for (const secret of authorization.secrets) expect(printed.join("\n")).not.toContain(secret);
  });

  it("[counter-01n] makes the hub that runs on the config connect with the new login", async () => {
    const { place, login, run } = await bench();
    const { child, finished } = place.start(["serve", "--port", "0"]);
    onTestFinished(async () => {
      child.kill("SIGTERM");
      await finished;
    });
    await vi.waitFor(async () => expect((await run("hub", "--json")).json()).toHaveLength(1), { timeout: 60_000 });
    expect((await run("status", "--json")).json()).toMatchObject([{ id: "srv", state: "failed" }]);
    expect(await login()).toMatchObject({ code: 0, stdout: expect.stringContaining("The connection works: 1 tool.") });
    expect((await run("status", "--json")).json()).toMatchObject([{ id: "srv", state: "ready", toolCount: 1 }]);
    expect((await run("call", "srv__whoami")).stdout).toContain("alice");
  });

  it("prints JSON alone on stdout with --json, and the address on stderr", async () => {
    const { login } = await bench({});
    const { code, stdout, stderr } = await login("--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ server: "srv", state: "ok", toolCount: 1, error: null });
    expect(stderr).toContain("/authorize?");
  });

  it("opens the browser, with the address as one argument", async () => {
    const { place } = await bench();
    const bin = join(place.dir, "bin");
    mkdirSync(bin);
    // Stands in for the desktop's own program, and behaves like a browser whose person agrees.
    const script = `#!${process.execPath}\nlet at = process.argv[2];\nfor (let n = 0; n < 4; n++) { const r = await fetch(at, { redirect: "manual" }); const to = r.headers.get("location"); if (!to) break; at = new URL(to, at).href; }\n`;
    writeFileSync(join(bin, "xdg-open"), script);
    chmodSync(join(bin, "xdg-open"), 0o755);
    const { code, stdout } = await place.run(["auth", "login", "srv"], {
      env: { PATH: `${bin}:${process.env["PATH"] ?? ""}` },
    });
    expect(stdout).toContain("/authorize?");
    expect(stdout).toContain("The connection works: 1 tool.");
    expect(code).toBe(0);
  });

  it("knows the opener of each platform, and uses no shell", () => {
    const address = "https://login.example/authorize?a=1&b=2";
    expect(browserCommand(address, "darwin")).toEqual(["open", address]);
    expect(browserCommand(address, "linux")).toEqual(["xdg-open", address]);
    expect(browserCommand(address, "win32")).toEqual(["rundll32", "url.dll,FileProtocolHandler", address]);
  });

  it("logs users in one by one where each has an account of their own", async () => {
    const { authorization, login, run } = await bench({ auth: { type: "oauth" }, isolation: "user" });
    for (const user of ["alice", "bob"]) {
      authorization.user = user;
      expect(await login("--user", user)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`Logged in to srv as ${user}`),
      });
    }
    const rows = (await run("auth", "status", "--json")).json<{ user: string }[]>();
    expect(rows.map(({ user }) => user)).toEqual(["alice", "bob"]);
    await run("auth", "logout", "srv", "--user", "bob");
    expect((await run("auth", "status", "--json")).json<{ user: string }[]>().map(({ user }) => user)).toEqual([
      "alice",
    ]);
  });

  it("points out in status and doctor a login that ends soon and cannot be renewed", async () => {
    const { authorization, login, run } = await bench();
    authorization.givesRefresh = false;
    await login();
    expect((await run("status")).stdout).toMatch(
      /srv +ready .*the login expires at \S+; renew it with toolcrib auth login srv/,
    );
    const { stdout, code } = await run("doctor");
    expect(stdout).toMatch(/warn +srv +the login expires at/);
    expect(code).toBe(0);
  });

  it("says when the login was refused", async () => {
    const { authorization, login } = await bench();
    authorization.denies = true;
    expect(await login()).toMatchObject({ code: 1, stderr: expect.stringContaining("access_denied") });
  });

  it("refuses what makes no sense", async () => {
    const { place, run } = await bench();
    place.configure({
      files: bundled("memory"),
      key: { url: "https://example.com/mcp", auth: { type: "bearer", token: "${T}" } },
      robot: {
        url: "https://example.com/mcp",
        auth: { type: "client-credentials", clientId: "a", clientSecret: "${T:-x}" },
      },
      srv: { url: "https://example.com/mcp" },
    });
    const cases: [args: string[], code: number, message: RegExp][] = [
      [["login"], 2, /Name the server/],
      [["renew", "srv"], 2, /no command "toolcrib auth renew"/],
      [["login", "nosuch"], 1, /no server "nosuch"/],
      [["login", "files"], 2, /needs no login/],
      [["login", "key"], 2, /bearer in its config/],
      [["login", "robot"], 2, /Toolcrib logs in by itself/],
      [["login", "srv", "--user", "alice"], 2, /All users share one connection/],
      [["status", "nosuch"], 1, /no server "nosuch"/],
    ];
    for (const [args, code, message] of cases) {
      const finished = await place.runHere(["auth", ...args]);
      expect([finished.code, finished.stderr]).toEqual([code, expect.stringMatching(message)]);
    }
    expect((await run("auth", "status")).stdout).toMatch(/robot/);
  });
});

describe("the SDK", () => {
  /** Prints the url of every module that was loaded, at the end, on stderr. */
  const TRACER = `
import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
process.on("exit", () => process.stderr.write(urls.join("\\n")));
`;
  const SDK = /node_modules\/@modelcontextprotocol\/client\//;

  it("[guard-11a] is loaded only where a token must be got", async () => {
    const { place, authorization } = await bench();
    const nodeArgs = ["--import", place.write("tracer.mjs", TRACER)];
    authorization.addClient("robot", "robot-secret");
    place.configure({ memory: bundled("memory") });
    expect((await place.run(["list"], { nodeArgs })).stderr).not.toMatch(SDK);
    expect((await place.run(["auth", "status"], { nodeArgs })).stderr).not.toMatch(SDK);
  });

  it("[guard-11a] is seen by the same trace where one is", async () => {
    const { place, authorization, server } = await bench();
    const nodeArgs = ["--import", place.write("tracer.mjs", TRACER)];
    authorization.addClient("robot", "robot-secret");
    const auth = { type: "client-credentials", clientId: "robot", clientSecret: "${ROBOT}" };
    place.configure({ srv: { url: server.url, auth } });
    const { stdout, stderr } = await place.run(["call", "srv__whoami"], { nodeArgs, env: { ROBOT: "robot-secret" } });
    expect(stdout).toContain("robot");
    expect(stderr).toMatch(SDK);
    expect(stdout + stderr).not.toContain("robot-secret");
  });
});

it("warns of a client secret that stands in the config, and does not show it", async () => {
  const place = workspace();
  const auth = { type: "client-credentials", clientId: "robot", clientSecret: "written-out-secret" };
  place.configure({ srv: { url: "https://example.com/mcp", auth } });
  const { stderr } = await place.runHere(["auth", "status"]);
  expect(stderr).toMatch(/mcpServers\.srv\.auth\.clientSecret.*plain text/);
  expect(stderr).not.toContain("written-out-secret");
});
