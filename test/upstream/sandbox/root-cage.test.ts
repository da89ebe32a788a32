/** The bubblewrap cage of a hub that is root, and of one that is not: what holds in one must hold in the other. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bubblewrapSandbox } from "../../../src/upstream/sandbox/bubblewrap-sandbox.ts";
import { readSandbox } from "../../../src/upstream/sandbox/sandbox-settings.ts";
import { missingBubblewrap, pidsWith } from "../../support/bubblewrap.ts";
import { LIBRARY } from "../../support/main-program.ts";
import { isMissing } from "../../support/skips.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SERVER = realpathSync(join(ROOT, "test/fixtures/hostile-server.mjs"));
const HUB = join(import.meta.dirname, "run-hub.ts");
const PACKAGES = join(ROOT, "node_modules/@modelcontextprotocol");
const NOBODY = { uid: 65_534, gid: 65_534 };

const missing =
  missingBubblewrap() ??
  (process.getuid?.() === 0 ? undefined : "needs root") ??
  (isReadableByNobody() ? undefined : "other users cannot read this folder");
isMissing("the cage of a hub that is root", missing);
const HUBS: [who: string, user: { uid: number; gid: number } | undefined][] = [
  ["root", undefined],
  ["nobody", NOBODY],
];
/** Calls by their numbers, which are those of this kind of processor. */
const noCalls = process.arch !== "x64" || !existsSync("/usr/bin/perl");

const noSetpriv = !existsSync("/usr/bin/setpriv");

let dir: string;
let marker: string;
const running: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-root-cage-")));
  chmodSync(dir, 0o755);
  marker = `marker-${process.pid}-${Math.random().toString(36).slice(2)}`;
});
afterEach(async () => {
  for (const stop of running.splice(0)) await stop();
  expect(pidsWith(marker)).toEqual([]);
  rmSync(dir, { recursive: true, force: true });
});

interface Said {
  readonly servers: { readonly id: string; readonly state: string; readonly lastError: string | null }[];
  // Results of tools and errors of the hub.
  readonly answers: { content?: { text: string }[]; structuredContent?: unknown; code?: string; message?: string }[];
}

async function run(
  mcpServers: Record<string, unknown>,
  calls: readonly [tool: string, args: object][],
  user?: typeof NOBODY,
  before: readonly string[] = [],
): Promise<Said> {
  const home = join(dir, "home");
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (user !== undefined) chownSync(home, user.uid, user.gid);
  const words = calls.flatMap(([tool, args]) => [tool, JSON.stringify(args)]);
  const hub = [process.execPath, HUB, LIBRARY, home, JSON.stringify({ mcpServers })];
  const [program = "", ...args] = [...before, ...hub, ...words];
  const child = spawn(program, args, {
    ...user,
    cwd: "/",
    env: { PATH: process.env["PATH"], HOME: home },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  running.push(async () => {
    child.stdin.end();
    await ended;
  });
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended.then(() => ["null"])]);
  return JSON.parse(String(line));
}

function folder(name: string, user?: typeof NOBODY): string {
  const path = join(dir, name);
  mkdirSync(path);
  if (user !== undefined) chownSync(path, user.uid, user.gid);
  return path;
}

function hostile(sandbox: object): Record<string, unknown> {
  return { caged: { command: process.execPath, args: [SERVER, marker], sandbox: { read: [SERVER], ...sandbox } } };
}

function valueOf({ answers }: Said, at = 0): unknown {
  const text = answers[at]?.content?.[0]?.text;
  return text === undefined ? answers[at] : JSON.parse(text);
}

function isReadableByNobody(): boolean {
  const script = `require("node:fs").accessSync(${JSON.stringify(HUB)})`;
  return spawnSync(process.execPath, ["-e", script], { ...NOBODY, cwd: "/" }).status === 0;
}

const fieldsOf = (status: string): Record<string, string> =>
  Object.fromEntries(status.split("\n").flatMap((line) => (line.includes(":") ? [line.split(/:\s*/, 2)] : [])));

describe.skipIf(missing !== undefined).each(HUBS)("in a cage of a hub that is %s, a program", (who, user) => {
  it("[trust-02a] is no root of this machine, and has no way to become one", async () => {
    const said = await run(
      hostile({}),
      [
        ["caged__read", { path: "/proc/self/status" }],
        ["caged__run", { command: "/bin/sh", args: ["-c", "cat /proc/self/status"] }],
      ],
      user,
    );
    const { value } = valueOf(said) as { value: string };
    const inside = fieldsOf(value);
    expect(inside).toMatchObject({ NoNewPrivs: "1", Seccomp: "2" });
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) expect(inside[set]).toBe("0000000000000000");
    const outside = pidsWith(marker).map((pid) => ({
      words: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"),
      status: fieldsOf(readFileSync(`/proc/${pid}/status`, "utf8")),
    }));
    const programs = outside.filter(({ words }) => words[0] === process.execPath && words[1] === SERVER);
    expect(programs.map(({ status }) => [status["Uid"], status["Gid"]])).toEqual([
      ["65534\t65534\t65534\t65534", "65534\t65534\t65534\t65534"],
    ]);
    // bubblewrap's own process in there is root's where the hub is, and has nothing of root's powers.
    const firstOnes = outside.filter(({ status }) => /\s1$/.test(status["NSpid"] ?? ""));
    expect(firstOnes.map(({ status }) => [status["CapEff"], status["NoNewPrivs"]])).toEqual([
      ["0000000000000000", "1"],
    ]);
  }, 30_000);

  it("[trust-02b] opens nothing of the machine's settings for writing", async () => {
    const paths = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/pressure", "/sys"];
    const said = await run(
      hostile({}),
      paths.map((path) => ["caged__openable", { path }]),
      user,
    );
    const found = paths.map((_, at) => valueOf(said, at) as { value: { opened: string[]; tried: number } });
    expect(found.map(({ value }) => value.opened)).toEqual(paths.map(() => []));
    // It did look: they can be read.
    expect(found[0]?.value.tried).toBeGreaterThan(100);
  }, 30_000);

  it("[trust-02c] finds no mount that honours setuid, and devices only in its own /dev", async () => {
    const sandbox = { write: [folder("out", user)], network: "host" };
    const said = await run(hostile(sandbox), [["caged__read", { path: "/proc/self/mountinfo" }]], user);
    const { value } = valueOf(said) as { value: string };
    const mounts = value
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
    expect(mounts.length).toBeGreaterThan(15);
    for (const [, , , , place = "", options = ""] of mounts) {
      expect(options.split(","), place).toContain("nosuid");
      if (!place.startsWith("/dev/")) expect(options.split(","), place).toContain("nodev");
    }
    const writable = mounts.filter((fields) => fields[5]?.startsWith("rw")).map((fields) => fields[4] ?? "");
    const own = ["/proc", "/tmp", "/home/cage", join(dir, "out")];
    expect(writable.filter((place) => !place.startsWith("/dev/")).toSorted()).toEqual(own.toSorted());
  }, 30_000);

  it.skipIf(noCalls)(
    "[trust-02d] makes no namespace and no io_uring",
    async () => {
      const NEW_USER = 0x1000_0000;
      const calls = [
        [272, NEW_USER, 0],
        [272, 0x0002_0000, 0],
        [56, NEW_USER + 17, 0, 0, 0, 0],
        [435, 0, 0],
        [308, 0, NEW_USER],
        [425, 8, 0],
        [426, 0, 0, 0, 0, 0, 0],
        [427, 0, 0, 0, 0],
        // What is honest still works: unshare(CLONE_FILES).
        [272, 0x400, 0],
      ];
      const said = await run(
        hostile({}),
        [
          ["caged__calls", { calls }],
          ["caged__run", { command: "/usr/bin/unshare", args: ["--user", "true"] }],
          ["caged__run", { command: "/bin/sh", args: ["-c", "(echo started | cat)"] }],
        ],
        user,
      );
      const refused = ["error 1", "error 1", "error 1", "error 38", "error 1", "error 1", "error 1", "error 1", "done"];
      expect(valueOf(said)).toEqual({ ok: true, value: refused });
      expect(valueOf(said, 1)).toMatchObject({ value: { status: 1 } });
      expect(valueOf(said, 2)).toMatchObject({ value: { status: 0, stdout: "started\n" } });
    },
    30_000,
  );

  it("[trust-02e] leaves no setuid file, and none of root's, where it may write", async () => {
    const out = folder("out", user);
    const tried: [string, object][] = [["caged__privileged", { folder: out }]];
    if (!noCalls) {
      const path = JSON.stringify(`${out}/plain`);
      const made = JSON.stringify(`${out}/made`);
      // fchmodat2, mknodat of a plain file, openat2 with its mode in memory.
      const calls = [
        [452, -100, path, 0o4755, 0],
        [259, -100, made, 0o104755, 0],
        [437, -100, made, 'pack("QQQ", 0101, 04755, 0)', 24],
      ];
      tried.push(["caged__calls", { calls }]);
    }
    const said = await run(hostile({ write: [out] }), tried, user);
    const refused = { chmod: "EPERM", fchmod: "EPERM", setgid: "EPERM", created: "EPERM", plain: "done" };
    expect(valueOf(said)).toEqual({ ok: true, value: refused });
    if (!noCalls) expect(valueOf(said, 1)).toEqual({ ok: true, value: ["error 1", "error 1", "error 38"] });
    const left = readdirSync(out).map((name) => ({ name, ...stat(join(out, name)) }));
    expect(left.map(({ name }) => name).toSorted()).toEqual(["chmod", "fchmod", "plain", "setgid"]);
    expect(left.filter(({ uid, bits }) => uid === 0 || bits !== 0)).toEqual([]);
  }, 30_000);

  it.each([
    [
      "server-memory",
      "memory__create_entities",
      { entities: [{ name: "one", entityType: "thing", observations: [] }] },
    ],
    ["server-filesystem", "filesystem__write_file", { path: "OUT/memory.json", content: "kept" }],
    ["server-everything", "everything__echo", { message: "hello" }],
  ])(
    "[trust-02f] is %s, works as ever, and keeps what it writes",
    async (name, tool, args) => {
      const out = folder("out", user);
      const file = readdirSync(join(PACKAGES, name, "dist")).includes("index.js")
        ? join(PACKAGES, name, "dist/index.js")
        : "";
      const server = {
        command: process.execPath,
        args: [file, ...(name === "server-filesystem" ? [out] : [])],
        env: { MEMORY_FILE_PATH: join(out, "memory.json") },
        sandbox: { read: [join(ROOT, "node_modules")], write: [out] },
      };
      const wanted = JSON.parse(JSON.stringify(args).replace("OUT", out));
      const said = await run({ [name.replace("server-", "")]: server }, [[tool, wanted]], user);
      expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
      expect(said.answers[0]).not.toMatchObject({ isError: true });
      expect(said.answers[0]?.content?.length).toBeGreaterThan(0);
      if (name === "server-everything") return;
      expect(statSync(join(out, "memory.json"))).toMatchObject({ uid: 65_534, size: expect.any(Number) });
      expect(who === "root" ? statSync(out).uid : NOBODY.uid).toBe(NOBODY.uid);
    },
    30_000,
  );
});

/** What the loader, libraries and shells act upon, and what none of them can carry easily. */
const HARD_ENVIRONMENT = {
  LD_BIND_NOW: "1",
  GLIBC_TUNABLES: "glibc.malloc.check=0",
  ENV: "/nowhere/env",
  BASH_ENV: "/nowhere/bash-env",
  PS4: "$(id >&2)",
  IFS: "abcdefgh/",
  PATH: "/nowhere:/usr/bin",
  "BASH_FUNC_test%%": "() { exit 99; }",
  UID: "12",
  SHELLOPTS: "xtrace",
  OPTIND: "none",
  TMOUT: "1",
  QUOTES: `it's "quoted" \\'\\''; exit 9; $(exit 9) \`exit 9\` \\`,
  LINES: "\none\n\n'two'\r\n\tthree\n\n",
  UNICODE: "caf\u00e9 \u6f22\u5b57 \u{1f600} \u0081\u0088\u2026",
  EMPTY: "",
  "a.b-c": "dots 'and' $dashes\n",
  "1 '\"\\${x} #": '"odd" \\c',
  "-u": "an option",
};

function stat(path: string): { uid: number; bits: number } {
  const { uid, mode } = statSync(path);
  return { uid, bits: mode & 0o6000 };
}

describe.skipIf(missing !== undefined)("[trust-02g] the paths of a cage whose hub is root", () => {
  it("may lie below a folder that only root may enter: programs, what npm installed, what is read", async () => {
    const rooted = folder("rooted");
    chmodSync(rooted, 0o700);
    for (const path of ["npm/bin", "npm/lib/node_modules/tool", "notes"]) {
      mkdirSync(join(rooted, path), { recursive: true });
    }
    writeFileSync(
      join(rooted, "npm/lib/node_modules/tool/cli.mjs"),
      `#!${process.execPath}\n${readFileSync(SERVER, "utf8")}`,
      { mode: 0o755 },
    );
    symlinkSync("../lib/node_modules/tool/cli.mjs", join(rooted, "npm/bin/tool"));
    writeFileSync(join(rooted, "notes/one.txt"), "a note");
    const server = {
      command: join(rooted, "npm/bin/tool"),
      args: [marker],
      sandbox: { read: [join(rooted, "notes")] },
    };
    const said = await run({ caged: server }, [
      ["caged__read", { path: join(rooted, "notes/one.txt") }],
      ["caged__list", { path: rooted }],
    ]);
    expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
    expect(valueOf(said)).toEqual({ ok: true, value: "a note" });
    expect(valueOf(said, 1)).toEqual({ ok: true, value: ["notes", "npm"] });
  }, 30_000);

  it("belong to their owner, as whom the program then runs", async () => {
    const out = folder("out", { uid: 54_321, gid: 54_321 });
    chmodSync(out, 0o700);
    const said = await run(hostile({ write: [out] }), [
      ["caged__write", { path: join(out, "made.txt") }],
      ["caged__self", {}],
    ]);
    expect(valueOf(said)).toMatchObject({ ok: true });
    expect(valueOf(said, 1)).toMatchObject({ value: { user: { uid: 54_321, username: "cage" } } });
    expect(statSync(join(out, "made.txt")).uid).toBe(54_321);
  }, 30_000);

  it("are refused with the command that helps, where the program could not use them", async () => {
    const [out, secret] = [folder("out"), folder("secret")];
    writeFileSync(join(out, "of-root.txt"), "");
    chmodSync(secret, 0o700);
    for (const [sandbox, fix] of [
      [{ write: [out] }, `chown -R 65534:65534 ${out}`],
      [{ read: [SERVER, secret] }, `chmod -R o+rX ${secret}`],
    ] as const) {
      const said = await run(hostile(sandbox), [["caged__self", {}]]);
      expect(said.servers).toMatchObject([{ state: "failed", lastError: expect.stringContaining("the user 65534") }]);
      expect(said.servers[0]?.lastError).toContain(fix);
    }
    expect(statSync(out).uid).toBe(0);
    expect(statSync(join(out, "of-root.txt")).uid).toBe(0);
    spawnSync("chown", ["-R", "65534:65534", out]);
    const said = await run(hostile({ write: [out] }), [["caged__write", { path: join(out, "of-root.txt") }]]);
    expect(valueOf(said)).toMatchObject({ ok: true });
  }, 30_000);

  it("may be a skill's own folder, which is the hub's alone otherwise", async () => {
    const skill = join(dir, "home/skills/files/one/1");
    mkdirSync(join(skill, "lib"), { recursive: true, mode: 0o700 });
    writeFileSync(join(skill, "lib/server.mjs"), readFileSync(SERVER), { mode: 0o600 });
    const server = { command: process.execPath, args: ["lib/server.mjs", marker], cwd: skill, sandbox: "bubblewrap" };
    const said = await run({ caged: server }, [["caged__list", { path: skill }]]);
    expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
    expect(valueOf(said)).toEqual({ ok: true, value: ["lib"] });
    for (const closed of ["home", "home/skills", "home/skills/files"]) {
      expect(statSync(join(dir, closed)).mode & 0o077).toBe(0);
    }
  }, 30_000);

  it.skipIf(noSetpriv)(
    "[trust-02a] holds where root may not mount, as in a container without CAP_SYS_ADMIN",
    async () => {
      const out = folder("out");
      const calls: [string, object][] = [
        ["caged__privileged", { folder: out }],
        ["caged__openable", { path: "/proc/sys" }],
        ["caged__read", { path: "/proc/self/status" }],
      ];
      const said = await run(hostile({ write: [out] }), calls, undefined, ["setpriv", "--bounding-set=-sys_admin"]);
      expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
      const left = readdirSync(out).map((name) => stat(join(out, name)));
      expect(left.map(({ uid, bits }) => `${uid} ${bits}`)).toEqual(["65534 0", "65534 0", "65534 0", "65534 0"]);
      expect(valueOf(said, 1)).toMatchObject({ value: { opened: [] } });
      const program = pidsWith(marker).find((pid) =>
        readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(process.execPath + "\0" + SERVER),
      );
      expect(fieldsOf(readFileSync(`/proc/${program}/status`, "utf8"))).toMatchObject({
        Uid: "65534\t65534\t65534\t65534",
        CapEff: "0000000000000000",
        CapBnd: "0000000000000000",
        NoNewPrivs: "1",
        Seccomp: "2",
      });
    },
    30_000,
  );

  it("are never the kernel's settings to change", async () => {
    const said = await run(hostile({ write: ["/sys/kernel"] }), []);
    expect(said.servers).toMatchObject([{ state: "failed", lastError: expect.stringContaining("/sys/kernel") }]);
  }, 30_000);
});

describe
  .skipIf(missing !== undefined)
  .each([
    ...HUBS.map(([who, user]) => [who, user, []] as const),
    ...(noSetpriv
      ? []
      : [["root without CAP_SYS_ADMIN", undefined, ["setpriv", "--bounding-set=-sys_admin"]] as const]),
  ])("[trust-02h] the environment of a program in a cage of a hub that is %s", (_, user, before) => {
  const caged = (env: object, sandbox: object = {}, command = process.execPath): Record<string, unknown> => ({
    caged: { command, args: [SERVER, marker], env, sandbox: { read: [SERVER], ...sandbox } },
  });

  it("has the loader do nothing as root: neither trace, nor preload, nor load from a folder of its own", async () => {
    const out = folder("out", NOBODY);
    // So that root's traces would be seen: it may write there as well.
    chmodSync(out, 0o777);
    // The loader ends a program that needs these, which are what setpriv and shells are linked with.
    for (const library of ["libcap-ng.so.0", "libcap.so.2", "libtinfo.so.6"]) writeFileSync(join(out, library), "evil");
    const env = {
      LD_LIBRARY_PATH: out,
      LD_DEBUG: "files",
      LD_DEBUG_OUTPUT: join(out, "trace"),
      LD_PRELOAD: "/nowhere/evil.so",
      LD_AUDIT: "/nowhere/audit.so",
    };
    const said = await run(caged(env, { write: [out] }), [["caged__environment", {}]], user, before);
    expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
    expect(valueOf(said)).toMatchObject({ value: env });
    const traces = readdirSync(out).filter((name) => name.startsWith("trace."));
    // The program's own; musl has no such traces.
    expect(traces.length).toBeLessThan(3);
    expect(traces.map((name) => statSync(join(out, name)).uid)).toEqual(traces.map(() => NOBODY.uid));
  }, 30_000);

  it("reaches the program whole, whatever its names and values", async () => {
    const said = await run(
      caged(HARD_ENVIRONMENT),
      [
        ["caged__environment", {}],
        ["caged__self", {}],
      ],
      user,
      before,
    );
    expect(said.servers).toMatchObject([{ state: "ready", lastError: null }]);
    const { value } = valueOf(said) as { value: Record<string, string> };
    expect(value).toMatchObject(HARD_ENVIRONMENT);
    expect(Object.keys(value).filter((name) => name.startsWith("toolcrib"))).toEqual([]);
    const { value: self } = valueOf(said, 1) as { value: { descriptors: string[] } };
    expect(self.descriptors.filter((target) => target.startsWith("socket")).length).toBe(3);
  }, 30_000);

  it("reaches a program whose path looks like a variable", async () => {
    const bin = folder("a=b");
    symlinkSync(process.execPath, join(bin, "node"));
    const said = await run(caged({ "a.b": "c" }, {}, join(bin, "node")), [["caged__environment", {}]], user, before);
    expect(valueOf(said)).toMatchObject({ value: { "a.b": "c" } });
  }, 30_000);

  it("may be large", async () => {
    const env = { LARGE: "x'y\n".repeat(10_000), "large.too": "z".repeat(40_000) };
    const said = await run(caged(env), [["caged__environment", {}]], user, before);
    expect(valueOf(said)).toMatchObject({ value: env });
  }, 30_000);
});

it.skipIf(missing !== undefined)(
  "[trust-02h] values are in no command line, and not among bubblewrap's options",
  async () => {
    const deps = { home: join(dir, "home"), env: { PATH: process.env["PATH"] }, containers: {}, warn: () => {} };
    const cage = bubblewrapSandbox(readSandbox("bubblewrap", "/", {}), deps);
    const env = { PATH: "/usr/bin", ONE: "the-secret", "odd.one": "the-secret" };
    const program = { serverId: "one", command: "/bin/true", args: [], env, cwd: undefined, baseDir: "/" };
    const { command, args, env: ofLauncher, fds = [] } = await cage.prepare(program, new AbortController().signal);
    expect(JSON.stringify([command, args, ofLauncher])).not.toContain("the-secret");
    expect(fds.map((each) => Buffer.from(each).includes("the-secret")).slice(0, 3)).toEqual([false, true, false]);
  },
);
