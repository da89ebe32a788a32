/** A hostile server in a bubblewrap cage, through the whole hub. What it is denied, it gets without a cage. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { missingBubblewrap, missingControlGroups, pidsWith } from "../../support/bubblewrap.ts";
import { isMissing } from "../../support/skips.ts";

const missing = missingBubblewrap();
isMissing("a hostile server in a cage", missing);
const noGroups = missing ?? (await missingControlGroups());
isMissing("the limits of a caged server", noGroups);

const SERVER = realpathSync(join(import.meta.dirname, "../../fixtures/hostile-server.mjs"));
const SECRET = "tell-nobody-of-this";
const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-hostile-")));
const key = join(dir, "user/.ssh/id_rsa");
const shown = join(dir, "shown");
const out = join(dir, "out");
const home = join(dir, "home");
const listener: Server = createServer((socket) => socket.end());
let hub: Hub;
let port = 0;

interface Attempt {
  readonly ok: boolean;
  readonly value?: unknown;
  readonly error?: string;
}

async function attempt(server: string, tool: string, args: Record<string, unknown> = {}): Promise<Attempt> {
  const outcome = await hub.call({ name: `${server}__${tool}`, arguments: args });
  if (!outcome.ok) return { ok: false, error: outcome.error.message };
  const [block] = outcome.result.content;
  return JSON.parse(block?.type === "text" ? String(block["text"]) : "{}");
}

beforeAll(async () => {
  if (missing !== undefined) return;
  for (const path of [dirname(key), shown, out, home]) mkdirSync(path, { recursive: true });
  writeFileSync(key, "a private key");
  writeFileSync(join(shown, "page.txt"), "a page");
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
  const sandbox = { read: [SERVER, shown], write: [out] };
  const server = (more: Pick<ServerEntryInput, "sandbox">): ServerEntryInput => {
    return { command: process.execPath, args: [SERVER, `marker-${process.pid}`], env: { TOKEN: SECRET }, ...more };
  };
  const mcpServers = {
    caged: server({ sandbox }),
    online: server({ sandbox: { ...sandbox, network: "host" } }),
    free: server({ sandbox: "none" }),
    ...(noGroups === undefined
      ? { bounded: server({ sandbox: { ...sandbox, memory: "200m", cpus: 0.5, pids: 40 } }) }
      : {}),
  };
  const env = { HOME: join(dir, "user"), PATH: process.env["PATH"] ?? "", HUB_PRIVATE: "of the hub" };
  hub = await createHub({ mcpServers }, { home, env, store: false });
}, 30_000);

afterAll(async () => {
  await hub?.close();
  listener.close();
  rmSync(dir, { recursive: true, force: true });
});

describe.skipIf(missing !== undefined)("a hostile server in a bubblewrap cage", () => {
  it("is connected like any other", () => {
    expect(hub.servers.list().map(({ id, state, lastError }) => [id, state, lastError])).toEqual(
      hub.servers.list().map(({ id }) => [id, "ready", null]),
    );
  });

  it("[cage-02a] reads no keys, no secrets of the hub, nothing that was not named", async () => {
    expect(await attempt("free", "read", { path: key })).toEqual({ ok: true, value: "a private key" });
    for (const path of [
      key,
      join(dir, "user"),
      home,
      "/root",
      "/etc/shadow",
      "/etc/ssl/private",
      "/home",
      "/sys",
      "/run/user",
    ]) {
      const { ok, value } = await attempt("caged", path === key ? "read" : "list", { path });
      // Folders on the way to what was named are there, and empty but for that.
      const named = [SERVER, realpathSync(process.execPath), "/home/cage"];
      const inside = named
        .filter((file) => file.startsWith(`${path}/`))
        .map((file) => file.split("/")[path.split("/").length]);
      expect(ok ? value : [], path).toEqual([...new Set(inside)].toSorted());
    }
    expect(await attempt("caged", "list", { path: dir })).toEqual({ ok: true, value: ["out", "shown"] });
    expect(await attempt("caged", "read", { path: join(shown, "page.txt") })).toEqual({ ok: true, value: "a page" });
  });

  it("[cage-02a] writes only where it may", async () => {
    for (const path of [
      key,
      join(shown, "page.txt"),
      SERVER,
      process.execPath,
      "/etc/passwd",
      "/usr/bin/x",
      "/x",
      "/dev/x",
    ]) {
      expect(await attempt("caged", "write", { path }), path).toMatchObject({ ok: false });
    }
    expect(readFileSync(key, "utf8")).toBe("a private key");
    expect(await attempt("caged", "write", { path: join(out, "made.txt") })).toMatchObject({ ok: true });
    expect(readFileSync(join(out, "made.txt"), "utf8")).toContain("hostile");
  });

  it("[cage-02a] has a home and a /tmp of its own", async () => {
    const name = `toolcrib-private-${process.pid}`;
    for (const path of [`/tmp/${name}`, `/home/cage/${name}`]) {
      expect(await attempt("caged", "write", { path })).toMatchObject({ ok: true });
      expect(existsSync(path)).toBe(false);
      expect(await attempt("online", "read", { path })).toMatchObject({ ok: false, error: "ENOENT" });
    }
  });

  it("[cage-02b] has no network unless asked", async () => {
    expect(await attempt("online", "connect", { port })).toEqual({ ok: true, value: "connected" });
    expect(await attempt("caged", "connect", { port })).toMatchObject({ ok: false });
    expect(await attempt("caged", "connect", { port: 53, host: "1.1.1.1" })).toMatchObject({
      ok: false,
      error: "ENETUNREACH",
    });
  });

  it("[cage-02b] sees its own environment, and no more than it needs", async () => {
    const { value } = await attempt("caged", "environment");
    expect(value).toMatchObject({ TOKEN: expect.any(String), HOME: "/home/cage", USER: "cage", TMPDIR: "/tmp" });
    const names = Object.keys(value ?? {}).filter(
      (name) => !/^(?:TOKEN|HOME|USER|LOGNAME|SHELL|TMPDIR|PATH|PWD)$/.test(name),
    );
    expect(names).toEqual([]);
    expect(JSON.stringify(value)).not.toContain(join(dir, "user"));
  });

  it("[cage-02b] sees no other process, and can signal none", async () => {
    const { value } = await attempt("caged", "processes");
    const seen = JSON.stringify(value);
    expect(Array.isArray(value) && value.length).toBe(2);
    expect(seen).not.toContain("of the hub");
    expect(await attempt("caged", "signal", { pid: process.pid })).toMatchObject({ ok: false, error: "ESRCH" });
    expect(JSON.stringify(await attempt("free", "processes"))).toContain(`"pid":"${process.pid}"`);
  });

  it("[cage-02b] has no privileges, and no descriptors of ours", async () => {
    const { value } = await attempt("caged", "self");
    expect(value).toMatchObject({
      hostname: "cage",
      cwd: "/home/cage",
      // Of a root hub it is another user on this machine; of any other the same one, under another number.
      user: { username: "cage", uid: process.getuid?.() === 0 ? 65_534 : 1000 },
      privileges: ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"],
    });
    // Without a terminal it can type nothing into ours.
    expect(await attempt("caged", "read", { path: "/dev/tty" })).toMatchObject({ ok: false, error: "ENXIO" });
    const { descriptors } = value as { descriptors: string[] };
    expect(descriptors.filter((each) => each.startsWith("/") && each !== "/dev/null")).toEqual([]);
  });

  it.skipIf(!existsSync("/usr/bin/perl"))("[cage-02b] reaches no keyring of the kernel", async () => {
    expect(await attempt("caged", "keyring")).toEqual({ ok: true, value: "error 1" });
  });

  it("[cage-02e] has its secrets in no command line", async () => {
    expect(await attempt("caged", "environment")).toMatchObject({ ok: true });
    const pids = pidsWith(`marker-${process.pid}`);
    expect(pids.length).toBeGreaterThan(6);
    expect(pidsWith(SECRET)).toEqual([]);
    expect(pids.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("bwrap")).length).toBeGreaterThan(
      0,
    );
  });
});

describe.skipIf(noGroups !== undefined)("[cage-02d] the limits of a caged server", () => {
  it("bound its processes", async () => {
    expect(await attempt("caged", "multiply", { count: 60 })).toMatchObject({ value: { started: 60, failed: 0 } });
    const { value } = await attempt("bounded", "multiply", { count: 60 });
    const { started, failed } = value as { started: number; failed: number };
    expect(started).toBeLessThan(40);
    expect(started + failed).toBe(60);
  });

  it("bound its processors", async () => {
    const { value, error } = await attempt("bounded", "burn", { milliseconds: 600, processes: 2 });
    expect(error).toBeUndefined();
    // Half a processor, with room for the period that is under way at either end; without a limit it is near 1200.
    expect(value).toBeLessThan(500);
  });

  it("bound its memory, and the reason says so", async () => {
    const lost = new Promise<string>((resolve) => {
      hub.on("server", ({ info }) => {
        if (info.id === "bounded" && info.lastError !== null) resolve(info.lastError);
      });
    });
    expect(await attempt("bounded", "hoard", { megabytes: 800 })).toMatchObject({ ok: false });
    expect(await lost).toContain("more memory than its sandbox allows (209715200 bytes)");
    expect(await attempt("caged", "hoard", { megabytes: 320 })).toMatchObject({ ok: true });
  });
});
