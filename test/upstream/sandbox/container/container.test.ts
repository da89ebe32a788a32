/** Servers in real containers. What they may do is tried from inside, by a server that wants more. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { chooseContainers } from "../../../../src/hub/skills/auto-start.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { ConfigSchema } from "../../../../src/model/config.ts";
import { ToolcribError } from "../../../../src/model/errors.ts";
import type { ServerEntryInput } from "../../../../src/model/server-spec.ts";
import type { RequiredServer } from "../../../../src/model/skill.ts";
import { resolveServerEntry } from "../../../../src/skills/servers/server-entry.ts";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import { isPublishedPort } from "../../../../src/upstream/sandbox/container-http-wire.ts";
import { containerSandbox } from "../../../../src/upstream/sandbox/container-sandbox.ts";
import { reapLeftContainers } from "../../../../src/upstream/sandbox/live-containers.ts";
import { readSandbox } from "../../../../src/upstream/sandbox/sandbox-settings.ts";
import { Connection } from "../../../../src/upstream/connection.ts";
import { contextOf, depsOf, specOf } from "../../../support/connection-bench.ts";
import { missingPodman, startEngine, type TestEngine } from "../../../support/containers.ts";
import { startRegistry } from "../../../support/npm-registry.ts";
import { isMissing } from "../../../support/skips.ts";
import { eventually } from "../../../support/eventually.ts";

const missing = missingPodman();
isMissing("containers", missing);

const fixtures = resolve(import.meta.dirname, "../../../fixtures");
const hostile = join(fixtures, "hostile-server.mjs");
const httpServer = join(fixtures, "http-server.mjs");

interface Answer {
  readonly ok: boolean;
  readonly value?: unknown;
  readonly error?: string;
}

describe.skipIf(missing !== undefined)("a server in a container", () => {
  let engine: TestEngine;
  let dir: string;
  let home: string;
  const open: Connection[] = [];
  const warnings: string[] = [];

  beforeAll(() => {
    engine = startEngine();
    dir = mkdtempSync(join(tmpdir(), "toolcrib-container-"));
    home = join(dir, "home");
    mkdirSync(home);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((connection) => connection.close()));
    expect(engine.named("toolcrib.server")).toEqual([]);
    for (const folder of ["run/containers", "run/images"].map((path) => join(home, path)))
      expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([]);
    warnings.length = 0;
  });
  afterAll(() => {
    engine.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  function connectionTo(entry: ServerEntryInput, id = "Caged one", containers = engine.containers): Connection {
    const deps = depsOf(systemClock, { sandboxes: { home, containers: () => containers } });
    const connection = new Connection({ ...specOf({ restart: false, ...entry }), id }, deps);
    connection.on("warning", (text) => warnings.push(text));
    open.push(connection);
    return connection;
  }

  async function ready(entry: ServerEntryInput, id?: string): Promise<Connection> {
    const connection = connectionTo(entry, id);
    await connection.connect();
    expect(connection.info().lastError).toBeNull();
    expect(connection.state.kind).toBe("ready");
    return connection;
  }

  async function failure(entry: ServerEntryInput): Promise<string> {
    const connection = connectionTo(entry);
    await connection.connect().catch(() => {});
    expect(connection.state.kind).toBe("failed");
    return connection.info().lastError ?? "";
  }

  async function attempt(server: Connection, name: string, args: Record<string, unknown> = {}): Promise<Answer> {
    const result = await server.run({ kind: "tool", name, arguments: args }, contextOf());
    // What the fixtures answer.
    const [block] = result["content"] as { text: string }[];
    return JSON.parse(block?.text ?? "") as Answer;
  }

  const caged = (sandbox: object = {}, env: Record<string, string> = {}): ServerEntryInput => ({
    command: "node",
    args: [hostile],
    env,
    sandbox: { image: engine.base, read: [hostile], network: "none", ...sandbox },
  });

  const http = (mode: string, network: "host" | "none" = "host"): ServerEntryInput => ({
    command: "node",
    args: [httpServer, "8080", mode],
    env: { TOKEN: "tok-http" },
    sandbox: { image: engine.base, read: [httpServer], network, port: 8080, path: "/any" },
  });

  it("[cage-03a] [cage-03d] has no powers, no network and nothing of ours, and is named and labelled", async () => {
    const secret = "tok-3f9a7c";
    const several = 'line one\nline "two"';
    const server = await ready(caged({ memory: 256 * 1024 ** 2, pids: 40 }, { TOKEN: secret, KEY_TEXT: several }));

    expect(await attempt(server, "write", { path: "/usr/new" })).toEqual({ ok: false, error: "EROFS" });
    expect(await attempt(server, "write", { path: hostile })).toMatchObject({ ok: false });
    expect(await attempt(server, "write", { path: "/tmp/own" })).toMatchObject({ ok: true });
    expect(await attempt(server, "read", { path: "/etc/shadow" })).toEqual({ ok: false, error: "ENOENT" });
    expect(await attempt(server, "connect", { host: "1.1.1.1", port: 443 })).toEqual({
      ok: false,
      error: "ENETUNREACH",
    });
    const { value: status } = await attempt(server, "read", { path: "/proc/self/status" });
    expect(String(status)).toMatch(/^CapEff:\t0+$/m);
    expect(String(status)).toMatch(/^CapBnd:\t0+$/m);
    expect(String(status)).toMatch(/^NoNewPrivs:\t1$/m);
    expect(String(status)).not.toMatch(/^Uid:\t0\t/m);

    const { value: environment } = await attempt(server, "environment");
    expect(environment).toMatchObject({ TOKEN: secret, KEY_TEXT: several, HOME: "/tmp", PATH: "/usr/local/bin:/bin" });
    expect(Object.keys(Object(environment)).filter((name) => /VITEST|TOOLCRIB|USER|SHELL|proxy/i.test(name))).toEqual(
      [],
    );
    expect(commandLines()).toContain("toolcrib-caged-one-");
    expect(commandLines()).not.toContain(secret);
    expect(commandLines()).not.toContain("line one");

    const [name = ""] = engine.named("toolcrib.server=Caged one");
    expect(name).toMatch(/^toolcrib-caged-one-[0-9a-f]{10}$/);
    const labels = engine.run("inspect", "--format", "{{json .Config.Labels}}", name);
    expect(JSON.parse(labels)).toMatchObject({ "toolcrib.pid": String(process.pid), "toolcrib.server": "Caged one" });
    const limits = engine.run("inspect", "--format", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}", name);
    expect(limits.trim()).toBe("268435456 40");
    await expect(attempt(server, "hoard", { megabytes: 600 })).rejects.toBeInstanceOf(ToolcribError);
    await expect.poll(() => server.info().lastError).toContain("more memory than its sandbox allows");
  });

  it("[cage-01b] [cage-03a] says why it cannot be run, and what to do", async () => {
    expect(await failure({ ...caged(), command: "no-such-program" })).toMatch(/could not be started in the image/);
    expect(await failure({ command: "python3", args: ["x.py"], sandbox: "container" })).toMatch(/No image is known/);
    expect(await failure(caged({ read: [join(dir, "absent")] }))).toContain("does not exist");
    expect(await failure(caged({ read: [home] }))).toContain("Toolcrib's own folder");
    // What Node itself says would show the text.
    const odd = { ...engine.containers, flags: ["--env=X=hidden\0"] };
    const unstartable = connectionTo({ ...http("400") }, "odd", odd);
    await unstartable.connect();
    expect(unstartable.info().lastError).toContain("null character");
    expect(unstartable.info().lastError).not.toContain("hidden");
  });

  it("[cage-03b] [trust-04b] serves HTTP on a port of loopback, once it answers, for nobody but its hub", async () => {
    const server = await ready(http("400"), "web");
    expect(server.info().transport).toBe("http");
    expect(await attempt(server, "environment")).toMatchObject({ TOKEN: "tok-http" });
    const [name = ""] = engine.named("toolcrib.server=web");
    const published = engine.run("port", name).trim();
    expect(published).toMatch(/^8080\/tcp -> 127\.0\.0\.1:\d+$/);
    await using hub = await createHub({}, { home });
    const url = `http://${published.replace(/^.* /, "")}/any`;
    const session = await hub.openSession({ door: "acp", servers: { direct: { url } } });
    expect(session.own.servers()).toMatchObject([{ lastError: expect.stringContaining("belongs to Toolcrib itself") }]);
    expect(commandLines()).not.toContain("tok-http");

    expect(await failure(http("crash"))).toMatch(/ended with code 3.*the database is not there/s);
    expect(await failure(http("0", "none"))).toMatch(/only by a container with a network/);
    await attempt(server, "exit");
    await eventually(() => server.state.kind !== "ready");
    expect(server.info().lastError).toContain("the container ended with code 5");
    expect(isPublishedPort(Number(new URL(url).port))).toBe(false);
  });

  it("[cage-03c] [cage-03e] makes an image for an npm package once, with the user's own npm settings; a skill's runs as it says", async () => {
    const registry = await startRegistry("small-server", "1.2.3", hostile);
    writeFileSync(
      join(dir, "npmrc"),
      `registry=${registry.url}\n//${new URL(registry.url).host}/:_authToken=tok-npm\n`,
    );
    vi.stubEnv("npm_config_userconfig", join(dir, "npmrc"));
    try {
      const command = { command: "npx", args: ["-y", "small-server@1.2.3", "--mode", "x"] };
      const other = containerSandbox(readSandbox({ kind: "container", network: "none" }, dir, {}), {
        ...{ home, env: process.env, containers: engine.containers },
        warn: (text) => warnings.push(text),
      });
      const program = { ...command, serverId: "two", env: {}, cwd: undefined, baseDir: dir };
      const [one] = await Promise.all([
        ready({ ...command, sandbox: { kind: "container", network: "none" } }, "one"),
        other.makeReady(program, new AbortController().signal),
      ]);
      expect(registry.downloads()).toBe(1);
      expect(registry.tokens).toContain("Bearer tok-npm");
      expect(warnings.filter((text) => text.includes("An image is being made for small-server@1.2.3"))).toHaveLength(1);
      const folder = "/opt/toolcrib/node_modules/small-server";
      const { value } = await attempt(one, "self");
      expect(value).toMatchObject({ argv: [expect.any(String), `${folder}/hostile-server.mjs`, "--mode", "x"] });
      // Neither what an install script would have left, nor settings of npm.
      const files = await attempt(one, "list", { path: folder });
      expect(files.value).toEqual(expect.arrayContaining(["hostile-server.mjs", "package.json"]));
      expect(files.value).toHaveLength(2);
      const made = engine.run("images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "label=toolcrib.package");
      expect(made.trim()).toMatch(/^localhost\/toolcrib\/npm\/small-server:1\.2\.3-[0-9a-f]{12}$/);
      expect(engine.run("image", "inspect", made.trim())).not.toContain("tok-npm");

      const skilled = await ready(await skillEntry(made.trim(), { TEAM: "blue" }), "tickets");
      expect(await attempt(skilled, "environment")).toMatchObject({ value: { TEAM: "blue" } });
    } finally {
      vi.unstubAllEnvs();
      registry.stop();
    }
  });

  /** Of a server that a skill offers with `docker`. */
  async function skillEntry(image: string, values: Record<string, string>): Promise<ServerEntryInput> {
    const parameters = Object.keys(values).map((name) => ({ name, required: true, sensitive: false }));
    const needed: RequiredServer = { name: "tickets", parameters, docker: { image } };
    const config = ConfigSchema.parse({ containers: engine.containers });
    const choose = await chooseContainers([needed], { config }, process.env);
    const variables = { CWD: dir, WORKSPACE: dir, HOME: dir, SKILL_DIR: dir };
    return resolveServerEntry(choose(needed).server, values, variables);
  }

  it("[cage-03a] [cage-03d] writes as the owner of its folder, and is removed however its hub ends", async () => {
    const work = join(dir, "work");
    mkdirSync(work);
    chmodSync(work, 0o700);
    const kept = await ready(caged({ write: [work] }), "of another hub");
    expect(await attempt(kept, "write", { path: join(work, "note") })).toMatchObject({ ok: true });
    expect(statSync(join(work, "note")).uid).toBe(statSync(work).uid);
    expect(await attempt(kept, "list", { path: dir })).not.toMatchObject({ value: expect.arrayContaining(["home"]) });
    const startHub = async (way: string): Promise<ReturnType<typeof spawn>> => {
      const script = join(import.meta.dirname, "caged-hub.ts");
      const args = [script, home, JSON.stringify(engine.containers), engine.base, hostile, way];
      const hub = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      await once(hub.stdout, "data");
      return hub;
    };
    const [leaving, killed] = await Promise.all(["exit", "wait"].map(startHub));
    if (leaving === undefined || killed === undefined) return expect.fail("no hub was started");
    if (leaving.exitCode === null) await once(leaving, "exit");
    expect(engine.named("toolcrib.server=left over")).toHaveLength(1);

    const ended = once(killed, "exit");
    killed.kill("SIGKILL");
    await ended;
    expect(engine.named("toolcrib.server=left over")).toHaveLength(1);
    // A hub of another home has no business with it.
    const elsewhere = join(dir, "elsewhere");
    mkdirSync(elsewhere);
    const told: string[] = [];
    const warn = (text: string): void => void told.push(text);
    await reapLeftContainers(elsewhere, { env: process.env, warn });
    expect(engine.named("toolcrib.server=left over")).toHaveLength(1);

    await reapLeftContainers(home, { env: process.env, warn });
    expect(told).toEqual(['A container of "left over" was left over from a hub that died; it was removed.']);
    expect(engine.named("toolcrib.server")).toHaveLength(1);
    expect(await attempt(kept, "environment")).toMatchObject({ ok: true });
    // Nothing is left to look for, so no engine is needed.
    await reapLeftContainers(home, { env: { PATH: "/nowhere" }, warn });
    expect(told).toHaveLength(1);
  });
});

/** Of all processes that can be seen. */
function commandLines(): string {
  const lines = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    });
  return lines.join("\n");
}
