/** How a run in a cage ends: in order, by its time limit, with the hub, or found by the next one. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SandboxEntry } from "../../../src/model/server-spec.ts";
import { openSandbox } from "../../../src/upstream/sandbox/open-sandbox.ts";
import { readSandbox } from "../../../src/upstream/sandbox/sandbox-settings.ts";
import { PidRecords } from "../../../src/upstream/stdio/pid-records.ts";
import { StdioWire } from "../../../src/upstream/stdio/stdio-wire.ts";
import { missingBubblewrap, pidsWith } from "../../support/bubblewrap.ts";
import { isMissing } from "../../support/skips.ts";

const missing = missingBubblewrap();
isMissing("the end of a caged server", missing);

const SERVER = realpathSync(join(import.meta.dirname, "../../fixtures/hostile-server.mjs"));
const HUB = join(import.meta.dirname, "caged-hub.ts");
const LEFT_OPEN = 40;
const NOBODY = { uid: 65_534, gid: 65_534 };
const noOther = missing ?? missingOther();
isMissing("a cage as another user", noOther);

let dir: string;
let marker: string;
let wires: StdioWire[];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-ends-")));
  marker = `marker-${process.pid}-${Math.random().toString(36).slice(2)}`;
  wires = [];
});
afterEach(async () => {
  await Promise.all(wires.map((wire) => wire.close()));
  rmSync(dir, { recursive: true, force: true });
});

function wireOf(
  sandbox: Exclude<SandboxEntry, string>,
  args: readonly string[],
  pids = new PidRecords(join(dir, "run")),
): StdioWire {
  const env = { PATH: process.env["PATH"] ?? "" };
  const settings = readSandbox({ read: [SERVER], ...sandbox }, dir, env);
  const deps = { home: join(dir, "home"), env, containers: {} };
  const wire = new StdioWire({
    mask: (text) => text,
    serverId: "caged",
    command: process.execPath,
    args: [SERVER, ...args, marker],
    env,
    pids,
    closeGraceMs: 1000,
    sandbox: { settings, baseDir: dir, open: (warn) => openSandbox(settings, { ...deps, warn }) },
  });
  wires.push(wire);
  return wire;
}

async function open(wire: StdioWire): Promise<StdioWire> {
  await wire.open(new AbortController().signal);
  await call(wire, "outlive", { marker });
  await expect.poll(() => pidsWith(marker).length).toBeGreaterThan(3);
  return wire;
}

function call(wire: StdioWire, name: string, args: object): Promise<unknown> {
  const answered = new Promise((resolve) => wire.listen({ message: ({ message }) => resolve(message) }));
  void wire.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: { ...args } } });
  return answered;
}

async function startHub(
  sandbox: object,
  calls: readonly string[],
  user?: { uid: number; gid: number },
): Promise<HubProcess> {
  const home = join(dir, "home");
  const leftOpen = openSync(SERVER, "r");
  const child = spawn(process.execPath, [HUB, home, marker, JSON.stringify(sandbox), ...calls], {
    ...user,
    cwd: "/",
    env: { PATH: process.env["PATH"], HOME: dir },
    // One that a shell left open, beyond those that Node keeps to itself.
    stdio: ["ignore", "pipe", "inherit", ...Array<"ignore">(LEFT_OPEN - 3).fill("ignore"), leftOpen],
  });
  closeSync(leftOpen);
  const [line] = await Promise.race([
    once(createInterface(child.stdout ?? process.stdin), "line"),
    once(child, "exit").then(() => ["null"]),
  ]);
  return { said: JSON.parse(String(line)), kill: () => child.kill("SIGKILL"), ended: once(child, "exit") };
}

interface HubProcess {
  readonly said: { readonly state: string; readonly error: string | null; readonly answers: readonly unknown[] } | null;
  kill(): void;
  readonly ended: Promise<unknown>;
}

/** Why a hub cannot be run as nobody here, or undefined. */
function missingOther(): string | undefined {
  if (process.getuid?.() !== 0) return "that takes root";
  const script = `require("node:fs").accessSync(${JSON.stringify(HUB)})`;
  const { status } = spawnSync(process.execPath, ["-e", script], { ...NOBODY, cwd: "/" });
  return status === 0 ? undefined : `nobody may not read ${HUB}`;
}

describe.skipIf(missing !== undefined)("the end of a caged server", () => {
  it("[cage-02c] takes everything with it that it started, stubborn or not", async () => {
    const wire = await open(wireOf({ network: "none" }, ["stubborn"]));
    await wire.close();
    expect(pidsWith(marker)).toEqual([]);
    expect(existsSync(join(dir, "run")) ? readdirSync(join(dir, "run")) : []).toEqual([]);
  });

  it("[cage-02c] is asked for first, so that it can put things in order", async () => {
    const out = join(dir, "out");
    mkdirSync(out);
    const wire = await open(wireOf({ write: [out], network: "none" }, ["orderly", join(out, "order.txt")]));
    await wire.close();
    expect(readFileSync(join(out, "order.txt"), "utf8")).toBe("put in order");
    expect(pidsWith(marker)).toEqual([]);
  });

  it("[cage-02d] comes when its time is up, with the reason", async () => {
    const wire = wireOf({ network: "none", timeout: 400 }, []);
    const lost = new Promise<Error>((resolve) => wire.listen({ lost: resolve }));
    await wire.open(new AbortController().signal);
    expect(await lost).toMatchObject({
      code: "server_unavailable",
      message: "was ended because it had run for 400 ms, as long as its sandbox allows",
    });
    await wire.close();
    expect(pidsWith(marker)).toEqual([]);
  });

  it("[cage-01b] before it began says what the cage lacks", async () => {
    const broken = new StdioWire({
      mask: (text) => text,
      serverId: "broken",
      command: process.execPath,
      args: [join(dir, "not-named.mjs")],
      env: { PATH: process.env["PATH"] ?? "" },
      pids: new PidRecords(join(dir, "run")),
      sandbox: {
        settings: {},
        baseDir: dir,
        open: (warn) =>
          openSandbox(readSandbox("bubblewrap", dir, {}), {
            home: join(dir, "home"),
            env: process.env,
            containers: {},
            warn,
          }),
      },
    });
    wires.push(broken);
    writeFileSync(join(dir, "not-named.mjs"), "");
    const why = new Promise<Error>((resolve) => broken.listen({ lost: resolve }));
    await broken.open(new AbortController().signal);
    expect(await why).toMatchObject({
      message: expect.stringContaining("MODULE_NOT_FOUND"),
      hint: expect.stringContaining("`sandbox` names"),
    });
  });

  it("[cage-02b] [cage-02c] comes with that of the hub, even by SIGKILL; what the hub was left open is not passed on", async () => {
    const hub = await startHub({ network: "none" }, ["outlive", JSON.stringify({ marker }), "self", "{}"]);
    expect(hub.said).toMatchObject({ state: "ready", answers: [{ ok: true }, { ok: true }] });
    const { value } = (hub.said?.answers[1] ?? {}) as { value: { descriptors: string[] } };
    expect(value.descriptors).not.toContain(SERVER);
    await expect.poll(() => pidsWith(marker).length).toBeGreaterThan(4);
    hub.kill();
    await hub.ended;
    await expect.poll(() => pidsWith(marker)).toEqual([]);
  }, 20_000);

  it("[cage-02c] is brought about by the next hub, should one ever be left over", async () => {
    await open(wireOf({ network: "none" }, ["stubborn"]));
    const run = join(dir, "run");
    const [name = ""] = readdirSync(run);
    const record = JSON.parse(readFileSync(join(run, name), "utf8"));
    writeFileSync(join(run, "1.json"), JSON.stringify({ ...record, owner: { pid: 4_194_305, startTime: "1" } }), {
      mode: 0o600,
    });
    rmSync(join(run, name));
    expect(await new PidRecords(run).reapOrphans()).toMatchObject([{ serverId: "caged", gone: true }]);
    expect(pidsWith(marker)).toEqual([]);
  });

  it.skipIf(noOther !== undefined)(
    "[cage-02d] and its processes are bounded for a user who is not root, too",
    async () => {
      chmodSync(dir, 0o755);
      chownSync(dir, NOBODY.uid, NOBODY.gid);
      const hub = await startHub({ network: "none", pids: 40 }, ["self", "{}", "multiply", '{"count":60}'], NOBODY);
      hub.kill();
      await hub.ended;
      expect(hub.said).toMatchObject({
        state: "ready",
        answers: [{ value: { user: { username: "cage" } } }, { ok: true }],
      });
      const { value } = (hub.said?.answers[1] ?? {}) as { value: { started: number; failed: number } };
      expect(value.started).toBeLessThan(40);
      expect(value.started).toBeGreaterThan(5);
      expect(value.started + value.failed).toBe(60);
      await expect.poll(() => pidsWith(marker)).toEqual([]);
    },
    20_000,
  );
});
