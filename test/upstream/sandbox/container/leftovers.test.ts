/** What making an image and a hub's end leave behind, with programs that stand in for npm and podman. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { reapOrphans } from "../../../../src/hub/create/build-servers.ts";
import type { SandboxEntry } from "../../../../src/model/server-spec.ts";
import { containerSandbox } from "../../../../src/upstream/sandbox/container-sandbox.ts";
import { containerEngine } from "../../../../src/upstream/sandbox/container-engine.ts";
import { readNotes, reapLeftContainers, writeNote } from "../../../../src/upstream/sandbox/live-containers.ts";
import { makeNpmImage } from "../../../../src/upstream/sandbox/container-image.ts";
import { readSandbox } from "../../../../src/upstream/sandbox/sandbox-settings.ts";
import { PidRecords } from "../../../../src/upstream/stdio/pid-records.ts";
import { isAlive } from "../../../support/processes.ts";

const PODMAN = JSON.stringify({ Client: { Version: "4.3.1", APIVersion: "4.3.1", OsArch: "linux/amd64" } });

describe.skipIf(process.platform === "win32")("what a container leaves", () => {
  let dir: string;
  let home: string;
  beforeEach(() => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-leftovers-")));
    home = join(dir, "home");
    mkdirSync(home);
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  function program(name: string, script: string): string {
    const path = join(dir, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** It has no images, and the container `c0ffee` once the file `made` is there; it writes down what it removes. */
  function engineProgram(name: string): string {
    const list = `[ "$1" = ps ] && [ -e ${dir}/made ] && echo c0ffee`;
    const rest = `[ "$1" = image ] && echo "no such image" >&2 && exit 1\n[ "$1" = pull ] && echo "not there" >&2 && exit 1\n[ "$1" = rm ] && echo ${name} >> ${dir}/removed\nexit 0`;
    return program(name, `[ "$1" = version ] && echo '${PODMAN}'\n${list}\n${rest}`);
  }

  /** Says who it is and what it has, starts a child, and goes on and on. */
  const endlessNpm = (): string =>
    program(
      "npm",
      `env > ${dir}/env; echo "$@" > ${dir}/args; sleep 600 & echo "$$ $!" > ${home}/npm.new; mv ${home}/npm.new ${home}/npm; wait`,
    );
  const npmPids = (): number[] => readFileSync(join(home, "npm"), "utf8").split(" ").map(Number);
  const folders = (): string[] => (existsSync(join(home, "run/images")) ? readdirSync(join(home, "run/images")) : []);
  const records = (): string[] => readdirSync(join(home, "run")).filter((name) => name.endsWith(".json"));

  async function make(npm: string, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
    const engine = await containerEngine({ program: engineProgram("podman") }, process.env);
    const launch = { name: "p", version: "1.2.3", bin: undefined, args: [], npm };
    const deps = { home, env, containers: {}, warn: () => {} };
    await makeNpmImage({ launch, image: "localhost/p:1", base: "b", engine, deps, serverId: "p", signal });
  }

  it("[cage-03c] is no image if nobody waits for it: npm and its folder go, and npm had nothing of ours", async () => {
    const leaving = new AbortController();
    const made = make(endlessNpm(), { ...process.env, OTHER_TOKEN: "hidden" }, leaving.signal);
    made.catch(() => {});
    await expect.poll(() => existsSync(join(home, "npm"))).toBe(true);
    expect(folders()).toEqual([expect.stringMatching(`^${process.pid}-`)]);
    expect(records()).toHaveLength(1);
    leaving.abort();
    await expect(made).rejects.toMatchObject({ code: "cancelled" });
    expect(npmPids().map(isAlive)).toEqual([false, false]);
    expect(folders()).toEqual([]);
    expect(records()).toEqual([]);
    expect(readFileSync(join(dir, "env"), "utf8")).not.toContain("OTHER_TOKEN");
    expect(readFileSync(join(dir, "args"), "utf8")).toMatch(/ --ignore-scripts .* -- p@1\.2\.3\n$/);
  });

  it("[cage-03c] is nothing of a dependency from git, which npm would let run programs here", async () => {
    program("git", `touch ${dir}/git-ran; exit 1`);
    const versions = { "1.2.3": { name: "p", version: "1.2.3", dependencies: { d: "git+file:///nowhere/d" } } };
    const registry = createServer((_request, response) => {
      response.setHeader("content-type", "application/json");
      const tarball = `${url}p.tgz`;
      const dist = { tarball, shasum: "0".repeat(40) };
      response.end(JSON.stringify({ name: "p", versions: { "1.2.3": { ...versions["1.2.3"], dist } } }));
    }).listen(0, "127.0.0.1");
    await once(registry, "listening");
    // A TCP server's address.
    const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    const settings = { npm_config_registry: url, npm_config_cache: join(dir, "cache"), npm_config_fetch_retries: "0" };
    try {
      const env = { ...process.env, PATH: `${dir}:${process.env["PATH"] ?? ""}`, ...settings };
      await expect(make("npm", env, new AbortController().signal)).rejects.toThrow(/npm could not install p@1\.2\.3/);
      expect(existsSync(join(dir, "git-ran"))).toBe(false);
    } finally {
      registry.closeAllConnections();
      registry.close();
    }
  });

  it("[cage-01b] is the engine's own reason if an image cannot be had", async () => {
    const containers = { program: engineProgram("podman") };
    const cage = containerSandbox(readSandbox({ image: "i", network: "none" }, dir, {}), {
      home,
      env: process.env,
      containers,
      warn: () => {},
    });
    const started = { serverId: "s", command: "node", args: [], env: {}, cwd: undefined, baseDir: dir };
    const fetching = cage.makeReady(started, new AbortController().signal);
    await expect(fetching).rejects.toThrow("The image i could not be fetched: not there");
  });

  it("[cage-03d] of a hub that was killed goes with the next start: processes first, then containers", async () => {
    // As `podman run` does: it has made its container by the time it ends.
    const starter = program("starter", `trap 'touch ${dir}/made; exit' TERM\nwhile :; do sleep 0.05; done`);
    const engines = [engineProgram("podman"), engineProgram("podman-2")];
    const script = join(import.meta.dirname, "dying-hub.ts");
    const hub = spawn(process.execPath, [script, home, endlessNpm(), starter, ...engines], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(hub.stdout, "data");
    const ended = once(hub, "exit");
    hub.kill("SIGKILL");
    await ended;
    expect(npmPids().map(isAlive)).toEqual([true, true]);
    expect(folders()).toHaveLength(1);

    const warnings: string[] = [];
    const pids = new PidRecords(join(home, "run"));
    await reapOrphans(pids, { home, env: process.env, warn: (text) => void warnings.push(text) });
    expect(npmPids().map(isAlive)).toEqual([false, false]);
    expect(folders()).toEqual([]);
    expect(readFileSync(join(dir, "removed"), "utf8")).toBe("podman\npodman-2\n");
    expect(readNotes(home)).toEqual([]);
    expect(warnings.filter((text) => text.startsWith("A container of"))).toHaveLength(2);
  });

  it("[cage-03d] of another boot is kept for a month, for it may be another machine's", async () => {
    const elsewhere = { pid: 7, startTime: "1", place: "elsewhere", programs: ["/nowhere/podman"] };
    for (const id of ["0".repeat(16), "1".repeat(16)]) writeNote(home, { ...elsewhere, id });
    const old = new Date(Date.now() - 31 * 24 * 3600 * 1000);
    utimesSync(join(home, "run/containers", `${"0".repeat(16)}.json`), old, old);
    for (const name of ["1-00000000-00000000", "1-00000000-11111111"])
      mkdirSync(join(home, "run/images", name), { recursive: true });
    utimesSync(join(home, "run/images/1-00000000-00000000"), old, old);
    await reapLeftContainers(home, { env: process.env, warn: expect.fail });
    expect(readNotes(home).map(({ id }) => id)).toEqual(["1".repeat(16)]);
    expect(folders()).toEqual(["1-00000000-11111111"]);
  });

  it("[cage-03a] is not let in: a link where it may write, a folder that nobody chose, a NUL", async () => {
    const refusal = async (entry: SandboxEntry, more: object, ownFolder?: string | null): Promise<string> => {
      const settings = { ...readSandbox(entry, dir, {}), ...(ownFolder === undefined ? {} : { ownFolder }) };
      const deps = { home, env: { PATH: "/nowhere" }, containers: {}, warn: () => {} };
      const plain = { serverId: "s", command: "node", args: [], env: {}, cwd: undefined, baseDir: dir };
      const cage = containerSandbox(settings, deps);
      const { signal } = new AbortController();
      const [one, other] = [cage.makeReady, cage.prepare].map((step) => step({ ...plain, ...more }, signal));
      await expect(other).rejects.toMatchObject({ code: expect.any(String) });
      // Without an engine anything else fails with "No container can be run".
      return await Promise.resolve(one).then(
        () => "",
        (error: unknown) => String(error),
      );
    };
    for (const folder of ["proj", "secret", "skill"]) mkdirSync(join(dir, folder));
    symlinkSync(join(dir, "secret"), join(dir, "proj/sub"));
    const image = { image: "i", network: "none" } as const;
    expect(await refusal({ ...image, write: ["proj"], read: ["proj/sub"] }, {})).toContain("is a link");
    expect(await refusal(image, { cwd: join(dir, "secret") }, join(dir, "skill"))).toContain("its own folder is");
    expect(await refusal(image, { cwd: join(dir, "skill") }, join(dir, "skill"))).toContain("No container can be run");
    const hidden = await refusal(image, { env: { TOKEN: "hidden\0x" } });
    expect(hidden).toContain("env.TOKEN");
    expect(hidden).not.toContain("hidden");
  });
});
