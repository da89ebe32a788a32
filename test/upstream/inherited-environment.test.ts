/** What a program gets of the hub's environment, and where its secrets do not show. */
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { ConfigInput } from "../../src/model/config.ts";
import { certificateMounts } from "../../src/upstream/sandbox/named-mounts.ts";
import { missingBubblewrap } from "../support/bubblewrap.ts";
import { isMissing } from "../support/skips.ts";

const SERVER = resolve(import.meta.dirname, "../fixtures/environment-server.mjs");
const PASSWORD = "Quiet-Harbor-4711";
const PROXY = `http://me:${PASSWORD}@proxy.test:3128`;

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function folder(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-inherit-")));
  chmodSync(dir, 0o755);
  cleanUps.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function open(config: ConfigInput, env: NodeJS.ProcessEnv): Promise<Hub> {
  const base = { PATH: process.env["PATH"], HOME: process.env["HOME"] };
  const hub = await createHub(config, { home: join(folder(), "crib"), store: false, env: { ...base, ...env } });
  cleanUps.push(() => hub.close());
  return hub;
}

interface Told {
  readonly env: Record<string, string>;
  readonly digests: Record<string, string>;
}

async function ask(hub: Hub, server: string): Promise<Told> {
  const outcome = await hub.call({ name: `${server}__tell`, arguments: {} });
  if (!outcome.ok) throw new Error(JSON.stringify([outcome.error, hub.servers.list()]));
  return JSON.parse(String(outcome.result.content[0]?.["text"])) as Told;
}

const digest = (value: string): string => createHash("sha256").update(value).digest("hex").slice(0, 12);
const server = { command: process.execPath, args: [SERVER] };

describe("what programs get", () => {
  it("[counter-08a] [counter-08b] by default, with `env.inherit`, and with a server's own", async () => {
    const env = { HTTPS_PROXY: "http://proxy.test:1", NODE_EXTRA_CA_CERTS: "/ca.pem", SECRET: "s", JAVA_HOME: "/j" };
    const servers = {
      usual: server,
      none: { ...server, inherit: [] },
      own: { ...server, inherit: ["JAVA_HOME"] },
      set: { ...server, env: { https_proxy: "http://other.test:1" } },
    };
    const namesOf = async (hub: Hub, id: string): Promise<string[]> =>
      Object.keys((await ask(hub, id)).env).filter((name) => /proxy|CA_CERTS|SECRET|JAVA/i.test(name));
    const hub = await open({ mcpServers: servers }, env);
    expect(await namesOf(hub, "usual")).toEqual(["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"]);
    expect(await namesOf(hub, "none")).toEqual([]);
    expect(await namesOf(hub, "own")).toEqual(["JAVA_HOME"]);
    expect(await namesOf(hub, "set")).toEqual(["NODE_EXTRA_CA_CERTS", "https_proxy"]);
    const without = await open({ mcpServers: servers, env: { inherit: [] } }, env);
    expect(await namesOf(without, "usual")).toEqual([]);
    expect(await namesOf(without, "own")).toEqual(["JAVA_HOME"]);
  });

  it("[counter-08d] a password in a proxy reaches the program, and no one sees it", async () => {
    const shouting = `console.error("via " + process.env.HTTPS_PROXY); process.exit(3)`;
    const hub = await open(
      { mcpServers: { a: server, loud: { command: process.execPath, args: ["-e", shouting], restart: false } } },
      { HTTPS_PROXY: PROXY, UV_INDEX_URL: `https://u:${PASSWORD}x@index.test/simple` },
    );
    const told = await ask(hub, "a");
    expect(told.digests["HTTPS_PROXY"]).toBe(digest(PROXY));
    const shown = [told, hub.servers.list(), await hub.servers.get("a"), await hub.servers.get("loud"), hub.warnings()];
    expect(JSON.stringify(shown)).not.toContain(PASSWORD);
    expect(JSON.stringify(hub.servers.list())).toContain("proxy.test");
  });
});

describe("[counter-08c] certificate files in a cage", () => {
  const options = { isVisible: () => false, asOther: false, mountable: "all", home: "/nonexistent/crib" } as const;

  it("are let in one by one; a variable whose file cannot be is left out", () => {
    const dir = folder();
    const file = join(dir, "ca.pem");
    writeFileSync(file, "");
    mkdirSync(join(dir, "certs"));
    const env = {
      A: "1",
      NODE_EXTRA_CA_CERTS: file,
      SSL_CERT_FILE: join(dir, "missing.pem"),
      SSL_CERT_DIR: join(dir, "certs"),
      NPM_CONFIG_CAFILE: file,
    };
    const inherited = Object.keys(env).slice(1);
    const mount = (path: string): object => ({ path, source: path, writable: false });
    expect(certificateMounts({ env, inherited }, options)).toEqual({
      mounts: [mount(file), mount(join(dir, "certs"))],
      env: { A: "1", NODE_EXTRA_CA_CERTS: file, SSL_CERT_DIR: join(dir, "certs"), NPM_CONFIG_CAFILE: file },
    });
    const files = certificateMounts({ env, inherited }, { ...options, mountable: "files" });
    expect(files.mounts).toEqual([mount(file)]);
    expect(certificateMounts({ env, inherited }, { ...options, mountable: "none" })).toEqual({
      mounts: [],
      env: { A: "1" },
    });
    // What the spec itself names is as it says.
    expect(certificateMounts({ env, inherited: [] }, options)).toEqual({ mounts: [], env });
  });

  it("never your home, Toolcrib's folder, or what another user could not read", () => {
    const dir = folder();
    const secret = join(dir, "ca.pem");
    writeFileSync(secret, "", { mode: 0o600 });
    const seen = (path: string, more: object = {}): number =>
      certificateMounts({ env: { SSL_CERT_DIR: path }, inherited: ["SSL_CERT_DIR"] }, { ...options, ...more }).mounts
        .length;
    expect(seen("/")).toBe(0);
    expect(seen(homedir())).toBe(0);
    expect(seen(dir, { home: dir })).toBe(0);
    expect(seen(secret, { home: dir })).toBe(0);
    expect(seen("relative")).toBe(0);
    expect(seen(secret)).toBe(1);
    expect(seen(secret, { asOther: true })).toBe(0);
  });

  it.skipIf(isMissing("bubblewrap", missingBubblewrap()))("of a cage with network, and nothing without", async () => {
    const dir = folder();
    const file = join(dir, "ca.pem");
    writeFileSync(file, "");
    const env = { HTTPS_PROXY: PROXY, NODE_EXTRA_CA_CERTS: file, npm_config_userconfig: "/home/me/.npmrc" };
    const caged = (network: "none" | "host"): object => ({ ...server, sandbox: { read: [SERVER], network } });
    const hub = await open({ mcpServers: { out: caged("host"), in: caged("none") } }, env);
    const out = (await ask(hub, "out")).env;
    expect(out).toMatchObject({ NODE_EXTRA_CA_CERTS: file, HTTPS_PROXY: expect.stringContaining("proxy.test") });
    expect(out).not.toHaveProperty("npm_config_userconfig");
    expect(Object.keys((await ask(hub, "in")).env)).not.toEqual(expect.arrayContaining(["HTTPS_PROXY"]));
  });
});
