/** What bubblewrap is told, without starting it. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxEntry } from "../../../src/model/server-spec.ts";
import { bubblewrapSandbox, type BubblewrapHost } from "../../../src/upstream/sandbox/bubblewrap-sandbox.ts";
import {
  readSandbox,
  type SandboxedProgram,
  type SandboxLaunch,
} from "../../../src/upstream/sandbox/sandbox-settings.ts";

let dir: string;
const host: BubblewrapHost = {
  platform: "linux",
  means: (env) => ({
    makeGroup: () => "none in this test",
    systemdRun: undefined,
    systemdControllers: [],
    prlimit: "/usr/bin/prlimit",
    isRoot: false,
    env,
  }),
};

beforeAll(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-bwrap-")));
  for (const folder of [
    "bin",
    "work",
    "out",
    "home/skills/one",
    "home/secrets",
    "npm/bin",
    "npm/lib/node_modules/tool",
    "old",
    "older",
  ]) {
    mkdirSync(join(dir, folder), { recursive: true });
  }
  for (const [path, text] of [
    ["bin/bwrap", "#!/bin/sh\necho '--perms OCTAL --size BYTES'\n"],
    ["old/bwrap", "#!/bin/sh\necho '--perms OCTAL'\n"],
    ["older/bwrap", "#!/bin/sh\necho '--tmpfs DEST'\n"],
    ["bin/server", "#!/bin/sh\n"],
    ["npm/lib/node_modules/tool/cli.js", "#!/usr/bin/env server\n"],
  ] as const) {
    writeFileSync(join(dir, path), text);
    chmodSync(join(dir, path), 0o755);
  }
  symlinkSync("../lib/node_modules/tool/cli.js", join(dir, "npm/bin/tool"));
  symlinkSync(join(dir, "home"), join(dir, "alias"));
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Wish extends Partial<SandboxedProgram> {
  readonly sandbox?: SandboxEntry;
  readonly ownFolder?: string | null;
  readonly on?: BubblewrapHost;
  readonly path?: string;
  /** Further ones of the hub. */
  readonly variables?: NodeJS.ProcessEnv;
}

function prepare(wish: Wish = {}): Promise<SandboxLaunch> {
  const { sandbox = "bubblewrap", on = host, path, ownFolder, variables, ...program } = wish;
  const PATH = path ?? `${join(dir, "bin")}:${join(dir, "npm/bin")}:relative:/usr/bin:/bin:/nowhere/bin`;
  const env = { PATH, HOME: "/home/anna", USER: "anna", HUB_SECRET: "of the hub", ...variables };
  const cage = bubblewrapSandbox(
    { ...readSandbox(sandbox, dir, env), ...(ownFolder === undefined ? {} : { ownFolder }) },
    { home: join(dir, "home"), env, containers: {}, warn: () => {} },
    on,
  );
  const own = { PATH, HOME: "/home/anna", USER: "anna" };
  const asked = {
    serverId: "one",
    command: "server",
    args: ["--port", "1"],
    env: own,
    cwd: undefined,
    baseDir: dir,
    ...program,
  };
  return cage.prepare(asked, new AbortController().signal);
}

/** The options that go through the pipe. */
async function optionsOf(wish: Wish = {}): Promise<string[]> {
  const { fds } = await prepare(wish);
  return Buffer.from(fds?.[0] ?? [])
    .toString()
    .split("\0");
}

/** The words after each occurrence of an option. */
function after(options: readonly string[], name: string, words = 1): string[] {
  return options.flatMap((option, at) => (option === name ? [options.slice(at + 1, at + 1 + words).join(" ")] : []));
}

describe("a bubblewrap launch", () => {
  it("[cage-02e] has the command in its command line, and all else in a pipe", async () => {
    const launch = await prepare({
      env: { PATH: join(dir, "bin"), TOKEN: "s3cret" },
      sandbox: { write: ["out"], network: "none" },
    });
    expect(launch.command).toBe(join(dir, "bin/bwrap"));
    expect(launch.args).toEqual(["--args", "3", "--", join(dir, "bin/server"), "--port", "1"]);
    expect(launch.env).toEqual({ PATH: "/usr/bin:/bin" });
    const text = Buffer.from(launch.fds?.[0] ?? []).toString();
    expect(text).toContain("--setenv\0TOKEN\0s3cret\0");
    expect(text).not.toContain("of the hub");
  });

  it("[cage-02a] takes no text that would end an option, and does not show it", async () => {
    const options = "a\0--bind\0/root\0/root";
    const PATH = join(dir, "bin");
    const wishes: Wish[] = [
      { env: { PATH, TOKEN: options } },
      { env: { PATH, [options]: "x" } },
      { args: [options] },
      { command: options },
      { cwd: options },
    ];
    for (const wish of wishes) {
      const error: unknown = await prepare(wish).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "invalid_config", message: expect.stringContaining("NUL") });
      expect(String(error)).not.toContain("--bind");
    }
  });

  it("[cage-02b] gives up every namespace, capability and variable", async () => {
    const options = await optionsOf();
    for (const name of ["--unshare-all", "--unshare-user", "--die-with-parent", "--clearenv"]) {
      expect(options).toContain(name);
    }
    expect(after(options, "--cap-drop")).toEqual(["ALL"]);
    expect(options).not.toContain("--share-net");
    expect(options).not.toContain("/etc/resolv.conf");
  });

  it("[cage-02b] shares the network only when asked", async () => {
    const options = await optionsOf({ sandbox: { network: "host" } });
    expect(options).toContain("--share-net");
    expect(options).toContain("/etc/resolv.conf");
  });

  it("[cage-02a] lets in the program, its folder and the named paths, each as it was named", async () => {
    const sandbox: SandboxEntry = { read: ["work", "out/inner"], write: ["out"], network: "none" };
    mkdirSync(join(dir, "out/inner"), { recursive: true });
    const options = await optionsOf({ sandbox, cwd: join(dir, "work") });
    expect(after(options, "--bind")).toEqual([join(dir, "out")]);
    const named = after(options, "--ro-bind").filter((path) => path.startsWith(dir));
    expect(named.toSorted()).toEqual(["bin/server", "out/inner", "work"].map((path) => join(dir, path)));
    // What is closer to a file is mounted later and so decides.
    expect(options.indexOf(join(dir, "out/inner"))).toBeGreaterThan(options.indexOf(join(dir, "out")));
    expect(after(options, "--chdir")).toEqual([join(dir, "work")]);
  });

  it("[cage-02a] lets write in a working folder that lies in what may be written", async () => {
    mkdirSync(join(dir, "out/inner"), { recursive: true });
    const options = await optionsOf({ sandbox: { write: ["out"], network: "none" }, cwd: join(dir, "out/inner") });
    expect(after(options, "--bind")).toEqual([join(dir, "out")]);
    expect(after(options, "--ro-bind")).not.toContain(join(dir, "out/inner"));
  });

  it("lets in what npm installed with a program, and who runs it", async () => {
    const options = await optionsOf({ command: "tool" });
    const named = after(options, "--ro-bind").filter((path) => path.startsWith(dir));
    expect(named).toContain(join(dir, "npm/bin"));
    expect(named).toContain(join(dir, "npm/lib/node_modules"));
    expect(named).toContain(join(dir, "bin/server"));
    expect(named).not.toContain(join(dir, "npm"));
    expect(named).not.toContain(join(dir, "bin"));
  });

  it("[cage-02b] tells nothing of the user, and keeps what the spec names", async () => {
    const PATH = `${join(dir, "bin")}:/usr/bin`;
    const own = await optionsOf({
      env: { PATH: "/opt/own:/usr/bin", HOME: "/elsewhere", USER: "anna", LANG: "C" },
      command: join(dir, "bin/server"),
    });
    expect(after(own, "--setenv", 2)).toEqual(
      expect.arrayContaining(["PATH /opt/own:/usr/bin", "HOME /elsewhere", "USER cage", "LANG C"]),
    );
    const plain = await optionsOf({
      path: `${PATH}:/nowhere/bin`,
      env: { PATH: `${PATH}:/nowhere/bin`, HOME: "/home/anna" },
    });
    expect(after(plain, "--setenv", 2)).toEqual(
      expect.arrayContaining([`PATH ${PATH}:/usr/local/bin:/bin`, "HOME /home/cage", "SHELL /bin/sh"]),
    );
    expect(plain.join(" ")).not.toContain("anna");
  });

  it("[cage-02d] bounds processes inside, for a user who is not root", async () => {
    const { args } = await prepare({ sandbox: { pids: 20, network: "none" } });
    expect(args.slice(2)).toEqual([
      "--",
      "/usr/bin/prlimit",
      "--nproc=21",
      "--",
      join(dir, "bin/server"),
      "--port",
      "1",
    ]);
  });
});

describe("[cage-01b] a bubblewrap cage that cannot be made", () => {
  it("is refused on another system, with the alternative", async () => {
    await expect(prepare({ on: { ...host, platform: "darwin" } })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("only there on Linux, and this is darwin"),
      hint: expect.stringContaining('"container"'),
    });
  });

  it("is refused where bubblewrap is missing, with what to install", async () => {
    await expect(prepare({ path: "/nowhere" })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("not installed"),
      hint: expect.stringContaining("apt install bubblewrap"),
    });
  });

  it("is refused where bubblewrap is too old, and does without sizes where it knows none", async () => {
    await expect(prepare({ path: join(dir, "older") })).rejects.toMatchObject({
      code: "invalid_config",
      hint: expect.stringContaining("0.5 or later"),
    });
    expect(await optionsOf({ path: join(dir, "old"), command: join(dir, "bin/server") })).not.toContain("--size");
    expect(after(await optionsOf(), "--size")).toContain(String(1024 ** 3));
  });

  it("says which program is missing", async () => {
    await expect(prepare({ command: "no-such-server" })).rejects.toMatchObject({
      code: "server_unavailable",
      message: "command not found: no-such-server",
    });
  });

  it.each(["memory", "cpus"])("is refused where %s cannot be bounded", async (key) => {
    await expect(prepare({ sandbox: { [key]: 1, network: "none" } })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(`\`${key}\``),
      hint: expect.stringContaining('"container"'),
    });
  });
});

describe("[cage-02a] paths that are never let in", () => {
  it.each([
    ["the home itself", "home"],
    ["a folder around it", "."],
    ["everything", "/"],
    ["secrets in it", "home/secrets"],
    ["a link to it", "alias"],
    ["all skills", "home/skills"],
  ])("%s", async (_what, path) => {
    for (const key of ["read", "write"]) {
      await expect(prepare({ sandbox: { [key]: [path], network: "none" } })).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining(`sandbox.${key}`),
      });
    }
  });

  it("for writing, the code that the command keeps compiled, also before it is there", async () => {
    mkdirSync(join(dir, "cache/uv"), { recursive: true });
    symlinkSync(join(dir, "cache"), join(dir, "cached"));
    const cached = (write: string, variable = "XDG_CACHE_HOME"): Promise<string[]> =>
      optionsOf({ sandbox: { write: [write], network: "none" }, variables: { [variable]: join(dir, "cached") } });
    for (const write of ["cache", "cached", "cache/toolcrib", "cache/toolcrib/code"]) {
      mkdirSync(join(dir, write), { recursive: true });
      for (const variable of ["XDG_CACHE_HOME", "LOCALAPPDATA"]) {
        await expect(cached(write, variable)).rejects.toMatchObject({
          code: "invalid_config",
          message: expect.stringContaining("code that Toolcrib runs"),
        });
      }
    }
    expect(after(await cached("cache/uv"), "--bind")).toEqual([join(dir, "cache/uv")]);
    const sandbox: SandboxEntry = { read: ["cache"], network: "none" };
    await expect(prepare({ sandbox, variables: { XDG_CACHE_HOME: join(dir, "cache") } })).resolves.toBeDefined();
  });

  it("but the folder of a skill, from which its server runs", async () => {
    expect(after(await optionsOf({ cwd: join(dir, "home/skills/one") }), "--chdir")).toEqual([
      join(dir, "home/skills/one"),
    ]);
    await expect(prepare({ cwd: dir })).rejects.toMatchObject({ message: expect.stringContaining("`cwd`") });
  });

  it("what an earlier run made a link to elsewhere", async () => {
    symlinkSync(join(dir, "work"), join(dir, "out/trap"));
    const sandbox: SandboxEntry = { read: ["out/trap"], write: ["out"], network: "none" };
    await expect(prepare({ sandbox })).rejects.toMatchObject({ message: expect.stringContaining("is a link") });
    await expect(prepare({ sandbox: { ...sandbox, write: [] } })).resolves.toBeDefined();
    // Under another name, and with the link on the way.
    symlinkSync(join(dir, "out"), join(dir, "outer"));
    for (const read of ["out/trap", "outer/trap", "out/trap/sub"]) {
      mkdirSync(join(dir, "work/sub"), { recursive: true });
      const aliased: SandboxEntry = { read: [read], write: ["outer"], network: "none" };
      await expect(prepare({ sandbox: aliased })).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining(`${join(dir, "out/trap")} is a link`),
      });
    }
    // A link of the operator's own is followed, and what it leads to is mounted as it was checked.
    const options = await optionsOf({ sandbox: { write: ["outer"], network: "none" } });
    expect(after(options, "--bind", 2)).toEqual([`${join(dir, "out")} ${join(dir, "outer")}`]);
  });

  it("a working folder that whoever wrote the server chose, and not the operator", async () => {
    const own = join(dir, "home/skills/one");
    symlinkSync(join(dir, "work"), join(own, "way-out"));
    for (const [cwd, ownFolder] of [
      [join(dir, "work"), own],
      [join(own, "way-out"), own],
      [own, null],
    ] as const) {
      await expect(prepare({ cwd, ownFolder })).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining("`cwd`"),
        hint: expect.stringContaining("sandbox.read"),
      });
    }
    expect(after(await optionsOf({ cwd: own, ownFolder: own }), "--ro-bind")).toContain(own);
    const named: SandboxEntry = { read: ["work"], network: "none" };
    await expect(prepare({ cwd: join(dir, "work"), ownFolder: own, sandbox: named })).resolves.toBeDefined();
  });

  it("what a program that may change its own command names there", async () => {
    mkdirSync(join(dir, "out/bin"), { recursive: true });
    writeFileSync(join(dir, "out/bin/script"), `#!${join(dir, "npm/bin/tool")}\n`, { mode: 0o755 });
    symlinkSync(join(dir, "npm/bin/tool"), join(dir, "out/bin/link"));
    const sandbox: SandboxEntry = { write: ["out"], network: "none" };
    for (const command of ["out/bin/script", "out/bin/link"]) {
      const options = await optionsOf({ command: join(dir, command), sandbox });
      expect(options.join(" ")).not.toContain(join(dir, "npm"));
    }
    expect((await optionsOf({ command: join(dir, "out/bin/script") })).join(" ")).toContain(join(dir, "npm/bin"));
  });

  it("processes of the machine, and what is not there", async () => {
    await expect(prepare({ sandbox: { read: ["/proc/self"], network: "none" } })).rejects.toMatchObject({
      code: "invalid_config",
    });
    await expect(prepare({ sandbox: { write: ["none/such"], network: "none" } })).rejects.toMatchObject({
      message: `\`sandbox.write\` names ${join(dir, "none/such")}, which does not exist.`,
    });
  });
});
