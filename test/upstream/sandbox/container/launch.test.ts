/** What an engine is told, without starting one. */
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  containerUser,
  passEnvironment,
  runFlags,
  type RunRequest,
} from "../../../../src/upstream/sandbox/container-sandbox.ts";
import { engineEnvironment, npmEnvironment } from "../../../../src/upstream/sandbox/container-engine.ts";
import { CancellableSingleFlight, npmImageTag, npmLaunch } from "../../../../src/upstream/sandbox/container-image.ts";

function flagsOf(
  more: Partial<Omit<RunRequest, "settings">> & { settings?: Partial<RunRequest["settings"]> } = {},
): string[] {
  const { settings, ...rest } = more;
  return runFlags({
    kind: "podman",
    name: "toolcrib-one-1",
    labels: { "toolcrib.server": "one", "toolcrib.hub": "h", "toolcrib.pid": "7", "toolcrib.home": "x" },
    user: { uid: 1000, gid: 100, keepId: false },
    envFile: undefined,
    envNames: [],
    given: [],
    mounts: [],
    cwd: undefined,
    flags: [],
    ...rest,
    settings: { network: "none", ...settings },
  });
}

/** The word after each occurrence of a flag. */
const after = (flags: readonly string[], name: string): string[] =>
  flags.flatMap((flag, at) => (flag === name ? [flags[at + 1] ?? ""] : []));

describe("flags of run", () => {
  it("[cage-03a] take everything away that was not asked for", () => {
    const flags = flagsOf();
    for (const flag of ["--rm", "--interactive", "--read-only", "--http-proxy=false"]) expect(flags).toContain(flag);
    expect(after(flags, "--network")).toEqual(["none"]);
    expect(after(flags, "--cap-drop")).toEqual(["ALL"]);
    expect(after(flags, "--security-opt")).toEqual(["no-new-privileges"]);
    expect(after(flags, "--user")).toEqual(["1000:100"]);
    expect(after(flags, "--pids-limit")).toEqual(["256"]);
    expect(after(flags, "--pull")).toEqual(["never"]);
    expect(after(flags, "--label")).toContain("toolcrib.server=one");
    expect(flags).not.toContain("--memory");
    // docker has those of its own config file, and takes what is named for given.
    const docker = flagsOf({ kind: "docker", given: ["HTTPS_PROXY"] });
    expect(docker).not.toContain("--http-proxy=false");
    expect(after(docker, "--env")).toEqual(expect.arrayContaining(["HTTP_PROXY=", "http_proxy=", "https_proxy="]));
    expect(after(docker, "--env")).not.toContain("HTTPS_PROXY=");
  });

  it("[cage-03a] give what was asked for, and those of the config last", () => {
    const settings = { network: "host", memory: 1024, cpus: 0.5, pids: 9 } as const;
    const mounts = [
      { path: "/a", source: "/real/a", writable: true },
      { path: "/x,y", source: "/x,y", writable: false },
    ];
    const flags = flagsOf({
      settings,
      mounts,
      cwd: "/a",
      envFile: "/dev/fd/3",
      envNames: ["KEY"],
      user: { uid: 5, gid: 6, keepId: true },
      flags: ["--runtime", "runc"],
    });
    expect(after(flags, "--network")).toEqual(["host"]);
    expect(after(flags, "--memory")).toEqual(["1024b"]);
    expect(after(flags, "--memory-swap")).toEqual(["1024b"]);
    expect(after(flags, "--cpus")).toEqual(["0.5"]);
    expect(after(flags, "--userns")).toEqual(["keep-id"]);
    expect(after(flags, "--workdir")).toEqual(["/a"]);
    expect(after(flags, "--env-file")).toEqual(["/dev/fd/3"]);
    expect(after(flags, "--env")).toEqual(["HOME=/tmp", "KEY"]);
    // A comma is quoted.
    expect(after(flags, "--mount")).toEqual([
      "type=bind,source=/real/a,target=/a",
      'type=bind,"source=/x,y","target=/x,y",readonly',
    ]);
    expect(flags.slice(-2)).toEqual(["--runtime", "runc"]);
  });

  it("[cage-03b] publish a port on loopback, on the engine's own network", () => {
    const flags = flagsOf({ settings: { network: "host", port: 8080 } });
    expect(after(flags, "--publish")).toEqual(["127.0.0.1::8080"]);
    expect(flags).not.toContain("--network");
    expect(flags).not.toContain("--interactive");
  });
});

describe("the environment of a container", () => {
  const host = { PATH: "/bin", HOME: "/home/anna", LANG: "C" };

  it("[cage-02e] goes through a pipe, or by name where that cannot carry it", () => {
    const carried = passEnvironment({ ...host, TOKEN: "a=b c", EMPTY: "", PEM: "one\ntwo", QUOTED: '"x"' }, host, true);
    expect(carried.file).toBe("LANG=C\nTOKEN=a=b c\nEMPTY=\n");
    expect(carried.byName).toEqual(["PEM", "QUOTED"]);
    expect(carried.launcher).toEqual({ PEM: "one\ntwo", QUOTED: '"x"' });
    expect(carried.names).not.toContain("HOME");
    expect(passEnvironment({ TOKEN: "t" }, host, false)).toMatchObject({ file: "", launcher: { TOKEN: "t" } });
  });

  it("[cage-02e] never changes the engine itself or the shell before it, and says so without the value", () => {
    const shells = ["SHELLOPTS", "BASHOPTS", "BASH_ENV", "ENV", "PS4", "IFS", "CDPATH"];
    for (const name of ["PATH", "LD_PRELOAD", "DOCKER_HOST", "PODMAN_X", "http_proxy", "has space", ...shells]) {
      const carry = (): unknown => passEnvironment({ [name]: "hidden\nvalue" }, host, true);
      expect(carry).toThrow(JSON.stringify(name));
      expect(carry).not.toThrow("hidden");
    }
    expect(passEnvironment({ HOME: "/data" }, host, true)).toMatchObject({ file: "HOME=/data\n", names: ["HOME"] });
    // Without pipes there is no shell.
    expect(passEnvironment({ CDPATH: "x" }, host, false)).toMatchObject({ byName: ["CDPATH"] });
    expect(engineEnvironment({ ...host, GITHUB_TOKEN: "t", XDG_RUNTIME_DIR: "/r" })).toEqual({
      ...host,
      PATH: `${host.PATH}:/usr/sbin:/sbin`,
      XDG_RUNTIME_DIR: "/r",
    });
  });

  it("[cage-03c] of npm has its settings and nothing of other servers, and no way to run a dependency's git", () => {
    const settings = { npm_config_cache: "/c", NPM_TOKEN: "t", NODE_EXTRA_CA_CERTS: "/ca", https_proxy: "p" };
    const wishes = { NPM_CONFIG_GIT: "/x", "npm_config_allow-git": "all", npm_config_ignore_scripts: "false" };
    expect(npmEnvironment({ ...host, ...settings, ...wishes, GITHUB_TOKEN: "t", npm_lifecycle_event: "x" })).toEqual({
      ...host,
      ...settings,
      npm_config_git: "/bin/false",
      npm_config_allow_git: "none",
      npm_config_ignore_scripts: "true",
    });
  });
});

describe("[cage-03c] the npm package of a command", () => {
  const read = (...words: string[]): unknown => npmLaunch("npx", words);

  it.each([
    [["-y", "@a/b@1.2.3", "--x"], { name: "@a/b", version: "1.2.3", bin: undefined, args: ["--x"] }],
    [["b@1.0.0-rc.1"], { name: "b", version: "1.0.0-rc.1", bin: undefined, args: [] }],
    [
      ["--yes", "--package=b@1.2.3", "tool", "-p", "1"],
      { name: "b", version: "1.2.3", bin: "tool", args: ["-p", "1"] },
    ],
    [["-p", "b@1.2.3", "--", "tool"], { name: "b", version: "1.2.3", bin: "tool", args: [] }],
  ])("%j", (words, expected) => expect(read(...words)).toMatchObject(expected));

  it("is beside the npx that was named, and no other program is npm's", () => {
    expect(npmLaunch("/opt/n/npx", ["b@1.2.3"])).toMatchObject({ npm: "/opt/n/npm" });
    expect(npmLaunch("npm", ["exec", "b@1.2.3"])).toMatchObject({ name: "b", npm: "npm" });
    expect(npmLaunch("npm", ["run", "b"])).toBeUndefined();
    expect(npmLaunch("uvx", ["b@1.2.3"])).toBeUndefined();
  });

  it("needs one exact version", () => {
    for (const spec of ["b", "b@latest", "b@^1.2.3", "b@1.2"])
      expect(() => read("-y", spec)).toThrow(/one exact version/);
    expect(() => read("github:a/b")).toThrow(/not a package of a registry/);
    expect(() => read("-c", "rm -rf /")).toThrow(/not understood/);
    for (const name of ["--registry", "@-a/b", "-b"])
      expect(() => read("-p", `${name}@1.2.3`, "b")).toThrow(/not a package of a registry/);
    expect(() => read("-y")).toThrow(/names no program/);
  });

  it("has a tag that changes with all that the image is made of", () => {
    const launch = { name: "@A/b~c", version: "1.2.3+x", bin: undefined, args: [], npm: "npm" };
    const tag = npmImageTag(launch, "base", "x64");
    expect(tag).toMatch(/^localhost\/toolcrib\/npm\/a\/b-c:1\.2\.3-x-[0-9a-f]{12}$/);
    const others = [
      npmImageTag(launch, "other", "x64"),
      npmImageTag(launch, "base", "arm64"),
      npmImageTag({ ...launch, bin: "z" }, "base", "x64"),
    ];
    expect(new Set([tag, ...others]).size).toBe(4);
  });
});

describe("[cage-03a] the user in a container", () => {
  let file: string;
  const [root, anna] = [
    { uid: 0, gid: 0 },
    { uid: 1000, gid: 100 },
  ];
  beforeAll(() => {
    file = join(mkdtempSync(join(tmpdir(), "toolcrib-user-")), "file");
    writeFileSync(file, "");
  });
  afterAll(() => rmSync(join(file, ".."), { recursive: true }));

  it("is the hub's own, or nobody where that is root", () => {
    expect(containerUser({ kind: "podman", rootless: true }, [], anna)).toEqual({ ...anna, keepId: true });
    expect(containerUser({ kind: "docker", rootless: false }, [], anna)).toEqual({ ...anna, keepId: false });
    expect(containerUser({ kind: "docker", rootless: true }, [], anna)).toMatchObject({ uid: 65_534 });
    expect(containerUser({ kind: "podman", rootless: false }, [], root)).toMatchObject({ uid: 65_534 });
  });

  it("is the owner of files that nobody else can work on", () => {
    const owner = process.getuid?.() ?? 0;
    chmodSync(file, 0o644);
    expect(containerUser({ kind: "podman", rootless: false }, [{ source: file, writable: false }], root)).toMatchObject(
      {
        uid: 65_534,
      },
    );
    expect(containerUser({ kind: "podman", rootless: false }, [{ source: file, writable: true }], root)).toMatchObject({
      uid: owner,
    });
    chmodSync(file, 0o600);
    expect(containerUser({ kind: "podman", rootless: false }, [{ source: file, writable: false }], root)).toMatchObject(
      {
        uid: owner,
      },
    );
    expect(containerUser({ kind: "docker", rootless: true }, [{ source: file, writable: true }], anna)).toMatchObject({
      uid: 0,
    });
  });
});

describe("shared work", () => {
  it("is done once, and goes on when one who waits for it leaves", async () => {
    const work = new CancellableSingleFlight();
    const { promise, resolve } = Promise.withResolvers<void>();
    let runs = 0;
    const run = async (): Promise<void> => {
      runs++;
      await promise;
    };
    const leaving = new AbortController();
    const left = work.join("image", run, leaving.signal);
    const staying = work.join("image", run, new AbortController().signal);
    leaving.abort();
    await expect(left).rejects.toMatchObject({ code: "cancelled" });
    resolve();
    await staying;
    expect(runs).toBe(1);
    await work.join("image", run, new AbortController().signal);
    expect(runs).toBe(2);
  });

  it("is ended by the last who leaves, who waits for that; who comes then starts anew", async () => {
    const work = new CancellableSingleFlight();
    const told: string[] = [];
    const run = async (signal: AbortSignal): Promise<void> => {
      told.push("begun");
      await once(signal, "abort");
      await delay(20);
      told.push("cleaned up");
    };
    const [one, two] = [new AbortController(), new AbortController()];
    const waiting = [one, two].map(({ signal }) => work.join("image", run, signal).catch(() => told.push("left")));
    one.abort();
    await delay(5);
    expect(told).toEqual(["begun", "left"]);
    two.abort();
    await delay(5);
    const third = new AbortController();
    const anew = work.join("image", run, third.signal).catch(() => {});
    await Promise.all(waiting);
    expect(told).toEqual(["begun", "left", "begun", "cleaned up", "left"]);
    third.abort();
    await anew;
  });
});
