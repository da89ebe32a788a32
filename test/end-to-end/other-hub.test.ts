/** Commands and stdio clients at a hub that is not that of their home, what each may do there, and hubs of other versions. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, vi } from "vitest";
import { VERSION } from "../../src/model/version.ts";
import { isBuilt } from "../support/main-program.ts";
import { isMissing } from "../support/skips.ts";
import { everything, misbehaving } from "../support/servers.ts";
import {
  ask,
  childrenOf,
  command,
  configure,
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

const READER = "reader-token-0123456789";
const CALLER = "caller-token-0123456789";
const ADMIN = "admin-token-0123456789";
const AUTH = {
  tokens: [
    { token: READER, user: "ada", role: "quiet", scopes: ["read"] },
    { token: CALLER, user: "bob", scopes: ["read", "call"] },
    { token: ADMIN, user: "ops", scopes: ["read", "call", "admin"] },
  ],
};
const ROLES = { quiet: { tools: { deny: ["e__get-env"] } } };

/** A hub with tokens, and a home that knows nothing of it. */
async function hubElsewhere(): Promise<{ readonly url: string; readonly away: Record<string, string> }> {
  configure({ mcpServers: { e: everything() }, http: { port: 0, auth: AUTH }, roles: ROLES });
  await command(["hub", "start"]);
  const away = join(home, "away");
  mkdirSync(away);
  return { url: onlyHub().url, away: { TOOLCRIB_HOME: away } };
}

describe("[counter-01i] a command with --hub", () => {
  it("runs there with the rights of its token, and its files stay here", async () => {
    const { url, away } = await hubElsewhere();
    writeFileSync(join(home, "text.txt"), "from a file");
    const at = (args: string[], token: string, input = ""): ReturnType<typeof command> =>
      command([...args, "--hub", url], input, { ...away, TOOLCRIB_TOKEN: token });
    await vi.waitFor(async () => {
      const listed = await at(["list", "--json"], CALLER);
      expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ name: "e__echo" }));
    }, WITHIN);
    expect(await at(["call", "e__echo", "message=@text.txt"], CALLER)).toMatchObject({
      code: 0,
      stdout: "Echo: from a file\n",
    });
    expect(await at(["call", "e__echo", "--args", "-"], CALLER, '{"message":"stdin"}')).toMatchObject({
      stdout: "Echo: stdin\n",
    });
    // A file of the hub's machine that was not sent along.
    const notSent = await at(["call", "e__echo", "message=@/etc/hostname-that-is-not-here"], CALLER);
    expect(notSent).toMatchObject({ code: 2 });
    expect(notSent.stderr).toContain("cannot be read");
    const saved = await at(["call", "e__get-tiny-image", "--out", "image.png"], CALLER);
    expect(saved.stderr).toContain(`saved ${join(home, "image.png")}`);
    expect(existsSync(join(home, "image.png"))).toBe(true);
    // An existing file is refused here, before anything is called there.
    expect(await at(["call", "e__get-tiny-image", "--out", "image.png"], CALLER)).toMatchObject({ code: 1 });
    const { entries } = await ask<{ entries: { user: string | null; door: string }[] }>("audit?type=call&limit=1");
    expect(entries).toMatchObject([{ user: "bob", door: "cli" }]);
    expect(readdirSync(join(home, "away"))).not.toContain("hubs");
  });

  it("may do only what the token's scopes allow", async () => {
    const { url, away } = await hubElsewhere();
    const at = (args: string[], token?: string): ReturnType<typeof command> =>
      command([...args, "--hub", url], "", { ...away, ...(token === undefined ? {} : { TOOLCRIB_TOKEN: token }) });
    const ofReader = await Promise.all(
      [["call", "e__echo", "message=x"], ["audit"], ["pins", "list"], ["doctor"], ["policy", "explain", "e__echo"]].map(
        (args) => at(args, READER),
      ),
    );
    expect(ofReader.map(({ code }) => code)).toEqual([3, 3, 3, 3, 3]);
    expect(await at(["status", "--clients"], CALLER)).toMatchObject({ code: 3 });
    expect(await at(["list", "--json"])).toMatchObject({ code: 1, stdout: expect.stringContaining("unauthorized") });
    expect((await at(["list"])).stderr).toContain("Give it with --token or TOOLCRIB_TOKEN.");
    expect(await at(["list", "--role", "other"], READER)).toMatchObject({ code: 3 });
    await vi.waitFor(async () => {
      const listed = await at(["list", "--json"], READER);
      expect(listed.stdout).toContain("e__echo");
      expect(listed.stdout).not.toContain("e__get-env");
    }, WITHIN);
    expect(await at(["audit", "--json"], ADMIN)).toMatchObject({ code: 0 });
  });

  it("is refused where it cannot work, and no token goes out in the clear", async () => {
    const { url, away } = await hubElsewhere();
    const refused = await Promise.all([
      command(["skill", "import", "x", "--hub", url], "", away),
      command(["auth", "login", "e", "--hub", url], "", away),
      command(["add", "x", "--hub", url], "", away),
      command(["list", "--hub", url, "--config", "x.json"], "", away),
      command(["list", "--hub", "http://tools.example.com", "--token", ADMIN], "", away),
    ]);
    expect(refused.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
    expect(refused.slice(0, 3).map(({ stderr }) => /does not work on another hub/.test(stderr))).toEqual([
      true,
      true,
      true,
    ]);
    expect(refused[4]?.stderr).toContain("plain HTTP");
    for (const { stdout, stderr } of refused) expect(stdout + stderr).not.toContain(ADMIN);
  });
});

it("[counter-12c] what a command with a token has read counts in the caller's next one, and in no other's", async () => {
  configure({
    mcpServers: { web: misbehaving("ok"), notes: { ...misbehaving("ok"), trust: "trusted" } },
    http: { port: 0, auth: AUTH },
    guard: { pins: "off", taint: "deny" },
  });
  await command(["hub", "start"]);
  const { url } = onlyHub();
  mkdirSync(join(home, "away"));
  const call = (token: string, ...args: string[]): ReturnType<typeof command> =>
    command(["call", ...args, "--hub", url], "", { TOOLCRIB_HOME: join(home, "away"), TOOLCRIB_TOKEN: token });
  await vi.waitFor(async () => expect(await call(CALLER, "notes__change")).toMatchObject({ code: 0 }), WITHIN);
  await vi.waitFor(async () => expect(await call(CALLER, "web__echo", "text=x")).toMatchObject({ code: 0 }), WITHIN);
  const refused = await call(CALLER, "notes__change");
  expect(refused).toMatchObject({ code: 3 });
  expect(refused.stderr).toContain("web__echo");
  expect(await call(ADMIN, "notes__change")).toMatchObject({ code: 0 });
});

describe("[counter-01j] toolcrib mcp --hub", () => {
  it("carries a client to another hub, which comes back for it", async () => {
    const port = await freePort();
    configure({ mcpServers: { e: everything() }, http: { port, auth: AUTH }, roles: ROLES });
    await command(["hub", "start"]);
    const { url, pid } = onlyHub();
    mkdirSync(join(home, "away"));
    const client = await stdioClient(["--hub", url, "--role", "quiet"], {
      env: { TOOLCRIB_HOME: join(home, "away"), TOOLCRIB_TOKEN: CALLER },
    });
    await vi.waitFor(async () => expect(await say(client, "x")).toBe("Echo: x"), WITHIN);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("e__echo");
    expect(names).not.toContain("e__get-env");
    process.kill(pid, "SIGKILL");
    await command(["hub", "start"]);
    expect(onlyHub().url).toBe(url);
    await vi.waitFor(async () => expect(await say(client, "again")).toBe("Echo: again"), WITHIN);
    const { entries } = await ask<{ entries: { user: string | null; client?: object }[] }>("audit?type=call&limit=1");
    expect(entries).toMatchObject([{ user: "bob", client: { name: "client-0" } }]);
  });

  it("speaks the stateless era too, and says why it cannot connect", async () => {
    const { url } = await hubElsewhere();
    const bridge = rawBridge(["--hub", url, "--token", CALLER]);
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "modern", version: "1" },
    };
    const request = (id: number, method: string, params: object): void =>
      void bridge.child.stdin?.write(
        `${JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } })}\n`,
      );
    request(1, "server/discover", {});
    await vi.waitFor(() => expect(bridge.said()).toContain('"id":1'), WITHIN);
    request(2, "tools/call", { name: "e__echo", arguments: { message: "modern" } });
    await vi.waitFor(() => expect(bridge.said()).toContain("Echo: modern"), WITHIN);
    bridge.child.stdin?.end();
    await vi.waitFor(() => expect(bridge.child.exitCode).toBe(0), WITHIN);
    const wrong = rawBridge(["--hub", url, "--token", "wrong-token-0123456789"]);
    let said = "";
    wrong.child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await vi.waitFor(() => expect(wrong.child.exitCode).toBe(1), WITHIN);
    expect(said).toContain("The token is not known to this hub");
    expect(said).not.toContain("wrong-token");
  });
});

describe("[counter-03c] with http.auth", () => {
  it("no program of the user is the owner at the hub, through any door", async () => {
    configure({
      mcpServers: { e: everything() },
      http: { port: 0, auth: AUTH },
      roles: ROLES,
      tools: { ask: ["e__get-sum"] },
    });
    await stdioClient(["--role", "quiet"]);
    const { url, token } = onlyHub();
    // Commands that change what others may do are not run there, whatever a process writes to the hub's own connection.
    const { openHubLink } = await import("../../src/cli/bridge/hub-link.ts");
    const started = async (argv: string[], scope: string): Promise<string> => {
      const link = await openHubLink(
        { url, token },
        { version: VERSION },
        { path: "/command", protocol: "toolcrib-command" },
      );
      const tty = { isTTY: true };
      const start = { argv, scope, version: VERSION, cwd: home, env: {}, stdin: tty, stdout: tty, stderr: tty };
      link.write(`${JSON.stringify(start)}\n`);
      let said = "";
      link.on("data", (chunk: Buffer) => (said += chunk.toString())).resume();
      await new Promise((resolve) => link.once("close", resolve));
      return said;
    };
    for (const argv of [
      ["approve", "1234", "--answer", "always"],
      ["trust", "add", "x"],
      ["secrets", "set", "X"],
      ["login"],
      ["add", "x", "--", "sh"],
      ["serve"],
    ]) {
      expect(await started(argv, "read")).toContain("does not run at a hub");
    }
    for (const argv of [["pins", "approve", "--all"], ["audit"], ["doctor"], ["policy", "explain", "e__echo"]]) {
      // What it claims to need does not matter.
      expect(await started(argv, "read")).toMatch(/needs the scope \\?"admin/);
      expect(await started(argv, "admin")).toBe('{"needs":"admin"}\n');
    }
    expect(await started(["list", "--json"], "read")).toContain('{"exit":0}');
    // Nor does it approve its own call with a terminal that it only claims to have.
    const sum = ["call", "e__get-sum", "a=1", "b=2"];
    await vi.waitFor(async () => expect(await started([...sum, "--yes"], "call")).toContain('{"exit":3}'), WITHIN);
    expect(await started(sum, "call")).toContain('{"exit":3}');
    const { sessions } = await ask<{ sessions: { door: string; owner: boolean }[] }>("sessions?state=all");
    const ofPrograms = sessions.filter(({ door }) => door === "cli" || door === "mcp");
    expect(ofPrograms.length).toBeGreaterThan(1);
    expect(ofPrograms.filter(({ owner }) => owner)).toEqual([]);
    // The own connection is for the token of the hub's file, and neither scope nor terminal replaces it.
    const doors = ["/bridge", "/command"].map(async (path) =>
      openHubLink({ url, token: ADMIN }, { version: VERSION }, { path, protocol: `toolcrib-${path.slice(1)}` }),
    );
    await expect(Promise.allSettled(doors)).resolves.toMatchObject([
      { status: "rejected", reason: { code: "denied" } },
      { status: "rejected", reason: { code: "denied" } },
    ]);
    // Answering needs a person at a terminal, or a token with the scope.
    expect(await command(["approve"])).toMatchObject({ code: 3 });
  });

  it("a command that needs more works alone, or with a token at the hub", async () => {
    configure({ mcpServers: { e: everything() }, http: { port: 0, auth: AUTH } });
    await command(["hub", "start"]);
    const [alone, withToken] = await Promise.all([
      command(["auth", "status", "--json"]),
      command(["status", "--clients", "--json", "--token", ADMIN]),
    ]);
    expect(alone).toMatchObject({ code: 0 });
    expect(alone.stderr).toContain("works alone");
    expect(withToken).toMatchObject({ code: 0, stderr: "" });
  });

  it("a client that came before auth was set connects again without the owner's rights", async () => {
    const config = { mcpServers: { e: everything() }, http: { port: 0 } };
    configure(config);
    const client = await stdioClient();
    expect(await say(client, "before")).toBe("Echo: before");
    const owners = async (): Promise<boolean[]> => {
      const { sessions } = await ask<{ sessions: { door: string; owner: boolean }[] }>("sessions?door=mcp");
      return sessions.map(({ owner }) => owner);
    };
    expect(await owners()).toEqual([true]);
    configure({ ...config, http: { port: 0, auth: AUTH } });
    await vi.waitFor(async () => expect(await owners()).toEqual([false]), WITHIN);
    await vi.waitFor(async () => expect(await say(client, "after")).toBe("Echo: after"), WITHIN);
  });
});

describe("[counter-02e] hub.clientEnv", () => {
  it("gives a session's own server the variables of its client, only those named, and never shows one", async () => {
    configure({
      mcpServers: {
        e: { ...everything(), isolation: "session", env: { PROJECT: "${PROJECT:-none}", OTHER: "${OTHER:-none}" } },
      },
      http: { port: 0 },
      hub: { clientEnv: ["PROJECT"] },
    });
    // Otherwise it would have the environment of the client that starts it.
    await command(["hub", "start"]);
    const variables = { PROJECT: "value-of-ada-123456", OTHER: "value-not-named-123456" };
    const [ada, bob] = await Promise.all([stdioClient([], { env: variables }), stdioClient()]);
    const printed = async (client: Client): Promise<object> => {
      const { content } = await client.callTool({ name: "e__get-env" });
      return JSON.parse((content as { text: string }[])[0]?.text ?? "") as object;
    };
    // What a client passed on is masked, as every secret is.
    expect(await printed(ada)).toMatchObject({ PROJECT: "[redacted]", OTHER: "none" });
    expect(await printed(bob)).toMatchObject({ PROJECT: "none", OTHER: "none" });
    const files = readdirSync(home, { recursive: true, encoding: "utf8", withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
    for (const value of Object.values(variables)) expect(files.filter((text) => text.includes(value))).toEqual([]);
  });
});

const NEWER = VERSION.replace(/^\d+/, (major) => String(Number(major) + 1));
const root = join(import.meta.dirname, "..", "..");

/** The package as npm installs it, under another version. */
function install(folder: string, version: string): string {
  mkdirSync(folder, { recursive: true });
  for (const name of ["bin", "dist"]) cpSync(join(root, name), join(folder, name), { recursive: true });
  if (!existsSync(join(folder, "node_modules"))) symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const entry of readdirSync(join(folder, "dist"), { recursive: true, encoding: "utf8", withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !/\.c?js$/.test(entry.name)) continue;
    const text = readFileSync(file, "utf8");
    if (text.includes(VERSION)) writeFileSync(file, text.replaceAll(VERSION, version));
  }
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as object;
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, version }));
  return join(folder, "bin", "toolcrib.js");
}

/** Log messages that a client gets. */
function messagesOf(client: Client): string[] {
  const messages: string[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    messages.push(String(params.data));
  });
  return messages;
}

describe.skipIf(isMissing("hubs of other versions", isBuilt() ? undefined : "dist is not built from these sources"))(
  "a hub of another version",
  () => {
    it("[counter-01l] the package is upgraded while it runs: the hub restarts as the new version, and nothing is lost", async () => {
      const port = await freePort();
      configure({ mcpServers: { e: everything() }, http: { port }, hub: { idleMinutes: 0.1 } });
      const folder = join(home, "package");
      const program = install(folder, VERSION);
      const client = await stdioClient([], { program });
      const messages = messagesOf(client);
      const web = await httpClient(onlyHub().url);
      expect(await Promise.all([say(client, "old"), say(web, "old")])).toEqual(["Echo: old", "Echo: old"]);
      const old = onlyHub();
      expect(old.version).toBe(VERSION);
      const slow = client.callTool({
        name: "e__trigger-long-running-operation",
        arguments: { duration: 4, steps: 2 },
      });
      install(folder, NEWER);
      // The call in progress ends first, with its result.
      expect(JSON.stringify((await slow).content)).toContain("completed");
      await vi.waitFor(() => expect(hubs()).toMatchObject([{ version: NEWER }]), WITHIN);
      await vi.waitFor(async () => expect(await say(client, "new")).toBe("Echo: new"), WITHIN);
      const next = onlyHub();
      expect([next.pid === old.pid, next.url]).toEqual([false, old.url]);
      expect(childrenOf(next.pid)).toHaveLength(1);
      await vi.waitFor(() => expect(messages.join(" ")).toContain(`its hub is version ${NEWER}`), WITHIN);
      const fresh = await httpClient(next.url);
      expect(await say(fresh, "web")).toBe("Echo: web");
    });

    it("[counter-01k] the version of a newer client takes the hub's place, and an older client is told and goes on", async () => {
      configure({ mcpServers: { e: everything() }, http: { port: 0 } });
      const older = await stdioClient();
      const messages = messagesOf(older);
      expect(await say(older, "x")).toBe("Echo: x");
      const { pid } = onlyHub();
      const program = install(join(home, "newer"), NEWER);
      const newer = await stdioClient([], { program });
      await vi.waitFor(() => expect(hubs()).toMatchObject([{ version: NEWER }]), WITHIN);
      expect(onlyHub().pid).not.toBe(pid);
      await vi.waitFor(
        async () => expect(await Promise.all([say(older, "o"), say(newer, "n")])).toEqual(["Echo: o", "Echo: n"]),
        WITHIN,
      );
      expect(hubs()).toHaveLength(1);
      expect(messages.join(" ")).toContain(`This client uses Toolcrib ${VERSION}, and its hub is version ${NEWER}.`);
      const said = await command(["list"]);
      expect(said.stderr).toContain(`The hub that runs is version ${NEWER}`);
    });
  },
);
