/** Real npx against registries on loopback, and against the one that this machine uses. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import type { ServerInfo } from "../../../src/model/server-state.ts";
import { type RegistryOptions, startRegistry } from "../../support/npm-registry.ts";
import { missingBubblewrap } from "../../support/bubblewrap.ts";
import { isMissing } from "../../support/skips.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const PROGRAM = resolve(import.meta.dirname, "../../fixtures/environment-server.mjs");
const MISBEHAVING = resolve(import.meta.dirname, "../../fixtures/misbehaving-server.mjs");
const NAME = "toolcrib-small-server";
const REAL = "@modelcontextprotocol/server-filesystem";

const cleanUps: (() => Promise<void> | void)[] = [];
// Not after each: some run at the same time.
afterAll(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-install-"));
  cleanUps.push(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  return dir;
}

async function registry(options?: RegistryOptions, program: string = PROGRAM): Promise<string> {
  const started = await startRegistry(NAME, "1.2.3", program, options);
  cleanUps.push(() => started.stop());
  return started.url;
}

/** Nothing listens there. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

interface Started {
  readonly hub: Hub;
  readonly info: () => ServerInfo;
  readonly progress: string[];
  readonly ms: number;
  readonly dir: string;
}

/** Connects one server of npx with a home of its own, in which npm has nothing yet. */
async function start(
  env: NodeJS.ProcessEnv,
  entry: ServerEntryInput = {},
  dir: string = folder(),
  when: "now" | "on demand" = "now",
): Promise<Started> {
  const base = { PATH: process.env["PATH"], HOME: dir };
  const small: ServerEntryInput = { command: "npx", args: ["-y", NAME], cwd: dir, restart: false };
  const hub = await createHub(
    { mcpServers: { small: { ...small, ...entry } } },
    { home: join(dir, "crib"), store: false, env: { ...base, ...env }, connect: "none" },
  );
  cleanUps.push(() => hub.close());
  const progress: string[] = [];
  hub.on("server", ({ info }) => {
    if (info.progress !== undefined) progress.push(info.progress);
  });
  const begun = performance.now();
  if (when === "now") await hub.servers.connect("small");
  const info = (): ServerInfo => hub.servers.list()[0] as ServerInfo;
  return { hub, info, progress, ms: performance.now() - begun, dir };
}

const missingNpx = spawnSync("npx", ["--version"]).status === 0 ? undefined : "npx is not installed";
const noNpx = isMissing("npx", missingNpx);

// Mostly they wait for a download.
describe.skipIf(noNpx).concurrent("the first run of a package", () => {
  it("[counter-09a] is shown as progress, and the download does not count against timeout", async () => {
    const url = await registry({ delayMs: 6000 });
    const first = await start({ npm_config_registry: url }, { timeout: 4000 });
    expect(first.info()).toMatchObject({ state: "ready", toolCount: 1 });
    expect(first.info().progress).toBeUndefined();
    expect(first.progress).toEqual([`installing ${NAME} …`]);
    expect(first.ms).toBeGreaterThan(6000);
    // What npm says only for us is not among the server's words.
    expect((await first.hub.servers.get("small"))?.stderr.join("\n")).not.toContain("npm http");
    await first.hub.close();

    const second = await start({ npm_config_registry: url }, { timeout: 20_000 }, first.dir);
    expect(second.info().state).toBe("ready");
    expect(second.progress, "[counter-09c]").toEqual([]);
  });

  it("[counter-09a] so do install scripts", async () => {
    const url = await registry({ scriptMs: 6000 });
    const { info, progress, dir } = await start({ npm_config_registry: url }, { timeout: 4000 });
    expect(info()).toMatchObject({ state: "ready" });
    expect(progress).toEqual([`installing ${NAME} …`]);
    expect(existsSync(join(dir, ".npm/_npx"))).toBe(true);
  });

  it("[counter-09a] a call waits for it", async () => {
    const url = await registry({ delayMs: 5000 });
    const { hub } = await start({ npm_config_registry: url }, { timeout: 4000 }, folder(), "on demand");
    expect(await hub.call({ name: "small__tell", arguments: {} })).toMatchObject({ ok: true });
  });

  it("[counter-09a] a program that does not answer afterwards is late after timeout", async () => {
    const url = await registry({ delayMs: 5000 }, MISBEHAVING);
    const { info, ms } = await start(
      { npm_config_registry: url },
      { args: ["-y", NAME, "never-answers"], timeout: 3000 },
    );
    expect(info()).toMatchObject({ state: "failed" });
    const [, waited] =
      /^The server did not answer: initialize got no answer within (\d+(?:\.\d)?) s\.$/.exec(info().lastError ?? "") ??
      [];
    // The download counts in neither, and the whole timeout was waited after it; a timer may be a moment early.
    expect(Number(waited) * 1000).toBeLessThanOrEqual(ms - 4900);
    expect(ms).toBeGreaterThanOrEqual(7900);
    expect(ms).toBeLessThan(25_000);
  });

  it("[counter-09b] ends at installTimeout, with its own code", async () => {
    const url = await registry({ delayMs: 60_000 });
    const { info, ms } = await start({ npm_config_registry: url }, { installTimeout: 3000 });
    expect(info()).toMatchObject({ state: "failed", problem: "install_timeout" });
    expect(info().lastError).toContain(`npm was still installing ${NAME} after 3 s.`);
    expect(ms).toBeLessThan(20_000);
  });
});

describe.skipIf(noNpx)("a registry that npm cannot use", () => {
  it(
    "[counter-08f] nothing listens: the server fails at once, in npm's words, and may heal",
    { retry: 2 },
    async () => {
      const url = `http://127.0.0.1:${await closedPort()}/`;
      const { info, ms } = await start({ npm_config_registry: url }, { restart: { max: 1, initialDelay: 60_000 } });
      expect(info()).toMatchObject({ state: "restarting", problem: "registry_unreachable" });
      expect(info().lastError).toContain(`npm could not install ${NAME}: it cannot reach its registry.`);
      expect(info().lastError).toContain("ECONNREFUSED");
      expect(info().hint).toContain("HTTPS_PROXY, the proxy, is not set");
      expect(info().hint).toContain("heck npm_config_registry");
      expect(ms).toBeLessThan(9000);
    },
  );

  it("[counter-08f] a proxy that does not answer is named, without its password", { retry: 2 }, async () => {
    const url = await registry();
    const proxy = `http://user:Zebra-Lantern-77@127.0.0.1:${await closedPort()}`;
    const { info, ms, hub } = await start({ npm_config_registry: url, HTTP_PROXY: proxy, http_proxy: proxy });
    expect(info()).toMatchObject({ problem: "registry_unreachable" });
    expect(info().hint).toContain("Check HTTP_PROXY, the proxy");
    expect(ms).toBeLessThan(9000);
    expect(JSON.stringify([info(), await hub.servers.get("small"), hub.warnings()])).not.toContain("Zebra");
  });

  it("[counter-08f] a name that is not there is final", async () => {
    const { info } = await start({ npm_config_registry: await registry() }, { args: ["-y", "toolcrib-no-such-thing"] });
    expect(info()).toMatchObject({ state: "failed", problem: "package_not_found" });
    expect(info().lastError).toContain("E404");
  });

  it("[counter-08f] one that answers 503 gets a second attempt, which is shown", async () => {
    const { info, progress, ms } = await start({ npm_config_registry: await registry({ status: 503 }) });
    expect(progress).toEqual(
      [`installing ${NAME} …`, `installing ${NAME} … (503; it tries again)`].slice(-progress.length),
    );
    expect(info()).toMatchObject({ problem: "registry_unreachable" });
    expect(ms).toBeLessThan(30_000);
  });

  it("[counter-08f] a call that needs the server says the code", async () => {
    const { hub } = await start({ npm_config_registry: `http://127.0.0.1:${await closedPort()}/` });
    const outcome = await hub.call({ name: "small__tell", arguments: {} });
    expect(outcome).toMatchObject({
      error: { code: "server_unavailable", details: { problem: "registry_unreachable" } },
    });
  });
});

const missingOpenssl = spawnSync("openssl", ["version"]).status === 0 ? undefined : "openssl is not installed";

describe.skipIf(isMissing("certificates of our own", missingNpx ?? missingOpenssl))(
  "a registry with its own CA",
  () => {
    let tls: { key: string; cert: string; file: string };
    beforeAll(() => {
      const dir = mkdtempSync(join(tmpdir(), "toolcrib-ca-"));
      const [key, file] = [join(dir, "key.pem"), join(dir, "ca.pem")];
      const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
      const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", file];
      execFileSync("openssl", [...args, ...subject], { stdio: "ignore" });
      tls = { key: readFileSync(key, "utf8"), cert: readFileSync(file, "utf8"), file };
      return () => rmSync(dir, { recursive: true, force: true });
    });

    // The machine's own settings file of npm may name authorities, which then count instead.
    const settings = { npm_config_globalconfig: "/nonexistent/npmrc" };

    it("[counter-08f] fails at once and says what is missing; waiting would not help", async () => {
      const url = await registry({ tls });
      const { info, ms } = await start({ ...settings, npm_config_registry: url });
      expect(info()).toMatchObject({ state: "failed", problem: "registry_certificate" });
      expect(info().lastError).toMatch(/does not accept the certificate of its registry\. It says:\n.*SELF_SIGNED/);
      expect(info().hint).toContain("NODE_EXTRA_CA_CERTS, the file of your certificate authorities, is not set");
      expect(ms).toBeLessThan(9000);
    });

    it("[counter-08f] says so if `inherit` keeps the setting back", async () => {
      const url = await registry({ tls });
      const env = { ...settings, NODE_EXTRA_CA_CERTS: tls.file };
      const entry = { inherit: ["npm_config_globalconfig"], env: { npm_config_registry: url } };
      const { info } = await start(env, entry);
      expect(info().problem).toBe("registry_certificate");
      expect(info().hint).toContain("NODE_EXTRA_CA_CERTS is set for Toolcrib, and `inherit` does not pass it on");
    });

    it.each(["NODE_EXTRA_CA_CERTS", "npm_config_cafile", "NPM_CONFIG_CAFILE"])(
      "[counter-08a] works with %s of the environment",
      async (name) => {
        const url = await registry({ tls });
        const { info } = await start({ ...settings, npm_config_registry: url, [name]: tls.file });
        expect(info()).toMatchObject({ state: "ready" });
      },
    );

    it.skipIf(isMissing("bubblewrap", missingBubblewrap()))(
      "[counter-08c] works in a bubblewrap sandbox with a network, where the file is not otherwise to be seen",
      async () => {
        const url = await registry({ tls, delayMs: 4000 });
        const sandbox = { kind: "bubblewrap", network: "host" } as const;
        const env = { npm_config_registry: url, NODE_EXTRA_CA_CERTS: tls.file };
        execFileSync("chmod", ["-R", "a+rX", join(tls.file, "..")]);
        const entry = { sandbox, cwd: undefined, timeout: 10_000, env: settings };
        const { info, progress } = await start(env, entry);
        expect(info().lastError).toBeNull();
        expect(info()).toMatchObject({ state: "ready" });
        expect(progress).toEqual([`installing ${NAME} …`]);
      },
    );
  },
);

/** Of this machine's npm, whatever its settings are. */
function missingPackage(): string | undefined {
  if (missingNpx !== undefined) return missingNpx;
  const tried = spawnSync("npm", ["view", REAL, "version", "--fetch-retries=0"], { timeout: 30_000, encoding: "utf8" });
  return tried.status === 0 ? undefined : "npm does not reach a registry here";
}

describe.skipIf(isMissing("the npm registry", missingPackage()))("the registry that this machine uses", () => {
  it("[counter-09e] the first example of the README works, with the download as progress", async () => {
    const dir = folder();
    const settings = readableSettings();
    const { info, progress } = await start(
      { ...process.env, HOME: dir, ...settings },
      { args: ["-y", REAL, dir], installTimeout: 100_000 },
      dir,
    );
    expect(info().lastError).toBeNull();
    expect(info()).toMatchObject({ state: "ready" });
    expect(info().toolCount).toBeGreaterThan(5);
    expect(progress[0]).toBe(`installing ${REAL} …`);
  });
});

/** npm's settings of the user, although HOME is another folder. */
function readableSettings(): NodeJS.ProcessEnv {
  const file = join(process.env["HOME"] ?? "", ".npmrc");
  return existsSync(file) ? { npm_config_userconfig: file } : {};
}
