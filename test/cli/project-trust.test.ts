import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { MAIN } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { ClonedFolder, hasScript, isRoot } from "./cloned-folder.ts";
import { fakeStreams } from "./run/fake-terminal.ts";
import { eventually } from "../support/eventually.ts";

vi.setConfig({ testTimeout: 120_000 });

const NOBODY = 65_534;

function hostile(): ClonedFolder {
  const folder = new ClonedFolder();
  folder.furnishHome();
  folder.makeHostile();
  return folder;
}

/** A folder with an honest config of its own. */
function honest(config: object = {}): ClonedFolder {
  const folder = new ClonedFolder();
  folder.furnishHome();
  folder.write("toolcrib.json", { mcpServers: { app: folder.server("build", "drop") }, ...config });
  return folder;
}

describe("[whole-01g] what trust shows of entries that cannot be used", () => {
  it("says so, and of one without a program nothing else", async () => {
    const folder = honest();
    const { command, args } = folder.server("build", "drop");
    folder.write("toolcrib.json", { mcpServers: { text: "npx x", odd: { command, args, disabled: "yes" } } });
    const { stdout } = await folder.run(["trust", "toolcrib.json"]);
    expect(stdout).toContain("  server text: (not started: its entry has an error)\n");
    expect(stdout).toMatch(/ {2}server odd: .*node.* \(not started: its entry has an error\)\n/);
    expect(folder.ran()).toEqual([]);
  });
});

describe("[trust-01b] in a cloned folder", () => {
  it.each([
    [["list"]],
    [["status"]],
    [["doctor"]],
    [["policy", "explain", "own__blocked"]],
    [["pins", "list"]],
    [["pins", "diff"]],
    [["secrets", "check"]],
    [["mcp"]],
    [["acp"]],
    [["run", "hello"]],
    [["call", "own__who"]],
    [["call", "evil__x"]],
    [["read", "file:///x"]],
    [["prompt", "x"]],
    [["skill", "list"]],
    [["audit"]],
    [["auth", "status"]],
    [["export", "compose"]],
    [["backup", "saved.tar.gz"]],
    [["add", "more", "--", "node", "x.mjs"]],
  ])("%j runs nothing of it and says how to trust it", async (args) => {
    const folder = hostile();
    const speaks = args[0] === "mcp" || args[0] === "acp";
    const { stderr, stdout } = speaks ? await folder.run(args) : await folder.runHere(args);
    expect(folder.ran()).toEqual([]);
    // `doctor` has it among its findings.
    expect(stderr + stdout).toContain(`toolcrib trust ${folder.config}`);
    if (args[0] !== "doctor") expect(stdout).not.toContain("toolcrib trust");
  });

  it.each([[["login"]], [["approve"]], [["connect", "cursor"]], [["clients"]], [["schema"]], [["trust", "list"]]])(
    "%j runs nothing of it",
    async (args) => {
      const folder = hostile();
      await folder.runHere(args);
      expect(folder.ran()).toEqual([]);
    },
  );

  it("`serve` runs nothing of it, and does not take it for the hub's config", async () => {
    const folder = hostile();
    const child = spawn(process.execPath, [MAIN, "serve", "--port", "0"], { cwd: folder.dir, env: folder.env });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    try {
      await eventually(() => /ready +own/.test(output));
      expect(errors).toContain(`toolcrib trust ${folder.config}`);
      expect(output).toContain(`${folder.homeConfig} (changes are applied)`);
      expect(output).not.toMatch(/evil|thief/);
      expect(output).toContain(`"--config","${folder.homeConfig}"`);
      expect(folder.ran()).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });

  it("[trust-01i] `connect` gives a client the user's own config by its path, so that no folder matters", async () => {
    const folder = hostile();
    for (const made of [true, false]) {
      if (!made) rmSync(folder.homeConfig);
      expect((await folder.run(["connect", "cursor"])).code).toBe(0);
      const written = JSON.parse(readFileSync(join(folder.home, ".cursor/mcp.json"), "utf8")) as {
        mcpServers: { toolcrib: { command: string; args: string[] } };
      };
      const { command, args } = written.mcpServers.toolcrib;
      expect(args.slice(-3)).toEqual(["mcp", "--config", folder.homeConfig]);
      const started = await runProgram(command, args, { cwd: folder.dir, env: folder.env });
      expect(started).toMatchObject({ code: 0, stderr: expect.not.stringContaining("toolcrib trust") });
    }
    expect(folder.ran()).toEqual([]);
  });

  it("the user's own config and rules are in force", async () => {
    const folder = hostile();
    const { names } = await folder.tools();
    expect(names).toEqual(["own__who"]);
    expect((await folder.runHere(["call", "own__blocked"])).code).toBe(3);
    const answer = await folder.run(["call", "own__who"]);
    expect(answer).toMatchObject({ code: 0, stdout: expect.stringContaining("who answered") });
    expect(folder.ran()).toEqual([]);
  });

  it("with --json the warning is on stderr, and stdout is JSON", async () => {
    const folder = hostile();
    const { stdout, stderr } = await folder.run(["status", "--json"]);
    expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ id: "own" })]);
    expect(stderr).toContain("toolcrib trust");
  });

  it("also from a folder below it, and with a home that has no config at all", async () => {
    const folder = new ClonedFolder();
    folder.makeHostile();
    const below = join(folder.dir, "src", "deep");
    mkdirSync(below, { recursive: true });
    const { names, stderr } = await folder.tools(below);
    expect(names).toEqual([]);
    expect(stderr).toContain(`toolcrib trust ${folder.config}`);
    expect(folder.ran()).toEqual([]);
  });

  it("--config and $TOOLCRIB_CONFIG name a file on purpose: it counts alone, without trust", async () => {
    const folder = honest();
    const byFlag = await folder.run(["list", "--json", "--config", "toolcrib.json"]);
    expect(byFlag.stdout).toContain("app__build");
    expect(byFlag.stdout).not.toContain("own__who");
    expect(byFlag.stderr).toBe("");
  });

  it("a path that a shell or a terminal would act on is quoted in the command", async () => {
    const folder = hostile();
    const odd = join(folder.root, "a $(touch x)\u001b[2J\u202e'b");
    renameSync(folder.dir, odd);
    const { stderr } = await folder.runHere(["list"], { cwd: odd });
    expect(stderr).toContain(String.raw`toolcrib trust '`);
    expect(stderr).toContain(String.raw`$(touch x)\u{001B}[2J\u{202E}'\''b/toolcrib.json'`);
    expect(stderr).not.toMatch(/[\u001b\u202e]/);
  });
});

describe("[trust-01c] once it is trusted", () => {
  it("a project config is added to the home's, whose rules hold on", async () => {
    const folder = honest({ tools: { deny: ["app__drop", "!own__blocked"], ask: ["!*"], allow: ["*"] } });
    const trusted = await folder.runHere(["trust", "toolcrib.json"]);
    expect(trusted.stdout).toContain("server app: ");
    const { names, stderr } = await folder.tools();
    expect(names).toEqual(["app__build", "own__who"]);
    expect(stderr).toBe("");
    const explained = await folder.runHere(["policy", "explain", "app__drop"]);
    expect(explained.stdout).toContain(folder.config);
    expect((await folder.runHere(["call", "own__blocked"])).code).toBe(3);
  });

  it("`trust list` and `trust remove` say and change what is trusted; the file is the user's alone", async () => {
    const folder = honest();
    await folder.trust();
    expect(statSync(join(folder.home, "trust.json")).mode & 0o777).toBe(0o600);
    const list = async (): Promise<unknown> => JSON.parse((await folder.runHere(["trust", "list", "--json"])).stdout);
    expect(await list()).toEqual([expect.objectContaining({ file: folder.config, state: "trusted", shared: false })]);
    folder.write("toolcrib.json", { mcpServers: {} });
    expect(await list()).toEqual([expect.objectContaining({ state: "changed" })]);
    expect((await folder.runHere(["trust", "remove"])).code).toBe(0);
    expect(await list()).toEqual([]);
    expect((await folder.runHere(["trust", "remove"])).code).toBe(1);
    expect((await folder.runHere(["trust", "nonsense", "x"])).code).toBe(2);
  });

  it("another server, an import and a plugin that changed ask again", async () => {
    const folder = honest({ import: ["./mcp-servers.json"], plugins: ["./plugin.mjs"] });
    const more = folder.write("mcp-servers.json", { mcpServers: { more: folder.server("list") } });
    const plugin = folder.write("plugin.mjs", "export default () => {};\n");
    await folder.trust();
    expect((await folder.tools()).names).toEqual(["app__build", "app__drop", "more__list", "own__who"]);

    const [command, ...args] = folder.canary("import");
    const honestImport = readFileSync(more, "utf8");
    writeFileSync(more, JSON.stringify({ mcpServers: { more: { command, args } } }));
    expect(await folder.tools()).toMatchObject({
      names: ["own__who"],
      stderr: expect.stringMatching(/changed since it was trusted and was left out.*toolcrib trust/),
    });
    writeFileSync(more, honestImport);
    expect((await folder.tools()).names).toContain("more__list");

    writeFileSync(plugin, `import "node:fs"; export default () => {};\n`);
    expect((await folder.tools()).names).toEqual(["own__who"]);
    writeFileSync(plugin, "export default () => {};\n");

    folder.write("toolcrib.json", { mcpServers: { app: { command, args } } });
    expect((await folder.tools()).names).toEqual(["own__who"]);
    expect(folder.ran()).toEqual([]);
  });

  it("rules that only narrow need no new question, and an exception does", async () => {
    const folder = honest({ tools: { deny: ["nothing"] }, limits: { concurrency: 8 } });
    const app = folder.server("build", "drop");
    await folder.trust();
    folder.write("toolcrib.json", {
      // A comment, another order: nothing else.
      limits: { concurrency: 4 },
      tools: { ask: ["app__build"], deny: ["nothing", "app__drop"] },
      mcpServers: { app },
    });
    expect(await folder.tools()).toEqual({ names: ["app__build", "own__who"], stderr: "" });
    folder.write("toolcrib.json", { mcpServers: { app }, tools: { deny: ["nothing", "!nothing"] } });
    expect((await folder.tools()).names).toEqual(["own__who"]);
    folder.write("toolcrib.json", { mcpServers: { app }, tools: { deny: ["nothing"] }, limits: { concurrency: 9 } });
    expect((await folder.tools()).names).toEqual(["own__who"]);
  });

  it("`add`, `disable` and `remove` keep the trust of a file that had it", async () => {
    const folder = honest();
    await folder.trust();
    expect(
      (await folder.runHere(["add", "more", "--", process.execPath, join(folder.root, "server.mjs"), "x"])).code,
    ).toBe(0);
    expect((await folder.tools()).names).toContain("more__x");
    expect((await folder.runHere(["disable", "app"])).code).toBe(0);
    expect(await folder.tools()).toEqual({ names: ["more__x", "own__who"], stderr: "" });
    expect((await folder.runHere(["remove", "more"])).code).toBe(0);
    expect(await folder.tools()).toEqual({ names: ["own__who"], stderr: "" });
    // What the home has is changed there.
    expect((await folder.runHere(["disable", "own"])).stdout).toContain(`Disabled own in ${folder.homeConfig}`);
    expect(await folder.tools()).toEqual({ names: [], stderr: "" });
  });

  it("`add` in a folder that is not trusted writes into the home's config and says so", async () => {
    const folder = honest();
    const before = readFileSync(folder.config, "utf8");
    const { code, stdout, stderr } = await folder.runHere(["add", "more", "--", process.execPath, "x.mjs"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`Added more in ${folder.homeConfig}`);
    expect(stderr).toContain("is not trusted");
    expect(readFileSync(folder.config, "utf8")).toBe(before);
  });

  it("the project's lock file does not speak for the home's servers", async () => {
    const folder = honest();
    folder.furnishHome({ guard: { pins: "block" } });
    await folder.tools();
    expect(readFileSync(join(folder.home, "toolcrib.lock"), "utf8")).toContain("who");
    await folder.trust();
    await folder.tools();
    const lock = join(folder.dir, "toolcrib.lock");
    expect(readFileSync(lock, "utf8")).toContain("build");
    expect(readFileSync(lock, "utf8")).not.toContain("who");
    expect(readFileSync(join(folder.home, "toolcrib.lock"), "utf8")).not.toContain("build");

    // The definition changed, and the project brings a pin that fits the new one.
    const changed = { ...folder.server("who", "blocked"), env: { SAYS: "other" } };
    folder.write("toolcrib.json", { mcpServers: { own: changed }, guard: { pins: "block" } }, folder.home);
    const elsewhere = new ClonedFolder();
    elsewhere.write("toolcrib.json", { mcpServers: { own: changed } });
    await elsewhere.runHere(["list", "--config", elsewhere.config]);
    writeFileSync(lock, readFileSync(join(elsewhere.dir, "toolcrib.lock")));
    expect((await folder.tools()).names).toEqual(["app__build", "app__drop"]);
  });
});

describe("[trust-01d] a file or folder that others can change", () => {
  it.skipIf(!isRoot)("is refused if it belongs to another user, also when it is trusted", async () => {
    const folder = honest();
    await folder.trust();
    for (const path of [folder.config, folder.dir]) {
      chownSync(path, NOBODY, 0);
      expect(await folder.tools()).toMatchObject({
        names: ["own__who"],
        stderr: expect.stringMatching(/belongs to another user \(uid 65534\).*toolcrib trust --shared/),
      });
      chownSync(path, 0, 0);
    }
    expect((await folder.tools()).names).toContain("app__build");
  });

  it.skipIf(process.platform === "win32")("is refused if every user can write it, until that is accepted", async () => {
    const folder = honest();
    chmodSync(folder.dir, 0o777);
    const refused = await folder.runHere(["trust"]);
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("can be written by every user") });
    await folder.trust("--shared");
    expect(await folder.tools()).toEqual({ names: ["app__build", "app__drop", "own__who"], stderr: "" });
    chmodSync(folder.config, 0o666);
    expect((await folder.tools()).names).toContain("app__build");
    await folder.runHere(["trust", "remove"]);
    chmodSync(folder.dir, 0o755);
    expect((await folder.runHere(["trust"])).code).toBe(3);
  });

  it.skipIf(!isRoot)("is refused if a group that is not the user's own can write it", async () => {
    const folder = honest();
    await folder.trust();
    chmodSync(folder.config, 0o664);
    expect((await folder.tools()).names).toContain("app__build");
    chownSync(folder.config, 0, NOBODY);
    chmodSync(folder.config, 0o664);
    expect((await folder.tools()).stderr).toContain(`can be written by the group ${NOBODY}`);
  });

  it.skipIf(process.platform === "win32")("trust.json trusts nothing once others can write it", async () => {
    const folder = honest();
    await folder.trust();
    chmodSync(join(folder.home, "trust.json"), 0o666);
    const { names, stderr } = await folder.tools();
    expect(names).toEqual(["own__who"]);
    expect(stderr).toContain("trust.json can be written by every user");
    expect((await folder.runHere(["trust"])).code).toBe(1);
  });

  it("a link to a config that is trusted elsewhere is another config", async () => {
    const folder = honest({ mcpServers: { app: { command: process.execPath, args: ["./start.mjs"], cwd: "." } } });
    await folder.trust();
    const other = join(folder.root, "other");
    mkdirSync(other);
    symlinkSync(folder.config, join(other, "toolcrib.json"));
    folder.write("start.mjs", `import { writeFileSync } from "node:fs"; writeFileSync("ran", "");`, other);
    const { names, stderr } = await folder.tools(other);
    expect(names).toEqual(["own__who"]);
    expect(stderr).toContain(`toolcrib trust ${join(other, "toolcrib.json")}`);
    expect(existsSync(join(other, "ran"))).toBe(false);
  });

  it("an import of a pipe or a device keeps no command waiting", async () => {
    const folder = honest();
    await folder.trust();
    folder.write("toolcrib.json", { mcpServers: {}, import: ["/dev/zero", "/dev/stdin"] });
    expect((await folder.tools()).names).toEqual(["own__who"]);
  });
});

describe("[trust-01e] at a terminal", () => {
  async function typed(
    folder: ClonedFolder,
    args: readonly string[],
    answer: string,
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    const streams = fakeStreams({ isTTY: true });
    const running = runCommandLine(args, { env: folder.env, cwd: folder.dir, ...streams });
    await eventually(() => streams.written().stderr.includes("ot now: "));
    streams.stdin.write(answer);
    const code = await running;
    await delay(20);
    return { code, ...streams.written() };
  }

  it("the user sees what it would start and is asked; a no leaves it out", async () => {
    const folder = hostile();
    const { stdout, stderr } = await typed(folder, ["list"], "\n");
    expect(stderr).toContain("server evil: ");
    expect(stderr).toContain("plugin (runs inside Toolcrib): ");
    expect(stderr).toContain("program for secrets, leak: ");
    expect(stderr).toContain("with TOKEN=secret://exec/leak/x");
    expect(stderr.match(/ot now: /g)).toHaveLength(1);
    expect(stdout).toContain("own__who");
    expect(folder.ran()).toEqual([]);
  });

  it("hidden characters are shown, and a yes counts from then on", async () => {
    const folder = honest();
    const app = folder.server("build");
    folder.write("toolcrib.json", { mcpServers: { app: { ...app, args: [...app.args, "\u001b[8m\u200bx\u202e"] } } });
    const { stdout, stderr } = await typed(folder, ["list"], "t\n");
    expect(stderr).toContain(String.raw`\u{200B}x\u{202E}`);
    expect(stderr).not.toMatch(/[\u200b\u202e]/);
    expect(stdout).toContain("app__build");
    expect((await folder.tools()).names).toContain("app__build");
  });

  it.each([[["list", "--json"]], [["call", "own__who", "--yes"]]])("%j asks nothing", async (args) => {
    const folder = hostile();
    const streams = fakeStreams({ isTTY: true });
    await runCommandLine(args, { env: folder.env, cwd: folder.dir, ...streams });
    await eventually(() => streams.written().stderr.includes("toolcrib trust"));
    expect(streams.written().stderr).not.toContain("ot now: ");
    expect(folder.ran()).toEqual([]);
  });

  it.skipIf(!hasScript)("on a real one too; `mcp` and `acp` never ask there", async () => {
    const folder = honest();
    const at = (command: string, input: string): Promise<string> => onTerminal(folder, command, input);
    expect(await at("list", "t\n")).toMatch(/server app: [\s\S]*ot now: [\s\S]*app__build/);
    await folder.runHere(["trust", "remove"]);
    expect(await at("mcp", "\u0004")).not.toContain("ot now: ");
  });
});

/** What a terminal shows of a command. */
async function onTerminal(folder: ClonedFolder, command: string, input: string): Promise<string> {
  const words = [process.execPath, MAIN, command].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", words, "/dev/null"], {
    cwd: folder.dir,
    env: { ...folder.env, TERM: "dumb" },
  });
  let shown = "";
  child.stdout.on("data", (chunk: Buffer) => (shown += chunk.toString()));
  const isAsked = (): boolean => shown.includes("ot now: ") || shown.includes("toolcrib trust");
  try {
    await eventually(isAsked);
    child.stdin.write(input);
    const ended = once(child, "close");
    await Promise.race([ended, delay(20_000, undefined, { ref: false })]);
    return shown;
  } finally {
    child.kill("SIGKILL");
  }
}

describe("[whole-04a] files of clients in a project", () => {
  /** The same servers as four programs write them, and one of its own in each. */
  function withClientFiles(kind: "canary" | "server"): ClonedFolder {
    const folder = new ClonedFolder();
    folder.furnishHome();
    const command = (name: string): { command: string; args: string[] } => {
      const [program = "", ...args] = folder.canary(name);
      return kind === "server" ? folder.server(name) : { command: program, args };
    };
    for (const name of [".cursor", ".vscode", ".continue", ".continue/mcpServers"]) mkdirSync(join(folder.dir, name));
    folder.write(".mcp.json", { mcpServers: { claude: command("claude") } });
    folder.write(".cursor/mcp.json", { mcpServers: { cursor: command("cursor"), claude: command("claude") } });
    folder.write(".vscode/mcp.json", { servers: { code: { type: "stdio", ...command("code") } } });
    const { command: program, args } = command("listed");
    folder.write(
      ".continue/mcpServers/listed.yaml",
      `name: Listed
version: 0.0.1
schema: v1
mcpServers:
  - name: listed
    command: ${JSON.stringify(program)}
    args: ${JSON.stringify(args)}
`,
    );
    folder.write(".continue/mcpServers/single.json", command("single"));
    folder.write(".continue/mcpServers/notes.md", "nothing");
    return folder;
  }
  const NAMES = ["claude__claude", "code__code", "cursor__cursor", "listed__listed", "own__who", "single__single"];

  it("start nothing until the folder is trusted, and doctor, status and list say so", async () => {
    const folder = withClientFiles("canary");
    for (const command of ["doctor", "status", "list"]) {
      const { stdout, stderr } = await folder.runHere([command]);
      expect(stdout + stderr).toContain(`toolcrib trust ${folder.dir}`);
      expect(stdout + stderr).toMatch(/left out: claude, cursor, code, listed, single/);
    }
    expect((await folder.tools(join(folder.dir, ".continue"))).names).toEqual(["own__who"]);
    expect(folder.ran()).toEqual([]);
  });

  it("are added once the folder is trusted; a change of any of them asks again", async () => {
    const folder = withClientFiles("server");
    const trusted = await folder.runHere(["trust", ".cursor/mcp.json"]);
    expect(trusted).toMatchObject({ code: 0, stdout: expect.stringContaining("server single: ") });
    expect(trusted.stdout).toContain(`(from ${join(folder.dir, ".vscode/mcp.json")})`);
    expect(await folder.tools()).toEqual({ names: NAMES, stderr: "" });
    const listed = await folder.runHere(["trust", "list", "--json"]);
    expect(JSON.parse(listed.stdout)).toEqual([expect.objectContaining({ file: folder.dir, state: "trusted" })]);
    expect((await folder.runHere(["doctor"])).stdout).toContain(`${folder.dir} (project, trusted): 5 servers`);

    const [program = "", ...args] = folder.canary("later");
    folder.write(".continue/mcpServers/later.json", { command: program, args });
    expect(await folder.tools()).toMatchObject({
      names: ["own__who"],
      stderr: expect.stringContaining("changed since it was trusted and was left out"),
    });
    expect(folder.ran()).toEqual([]);
    rmSync(join(folder.dir, ".continue/mcpServers/later.json"));
    expect((await folder.tools()).names).toEqual(NAMES);

    // Servers of clients are not Toolcrib's to edit, and new ones go into the user's own config.
    expect(await folder.runHere(["remove", "cursor"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`comes from ${join(folder.dir, ".cursor/mcp.json")}`),
    });
    expect((await folder.runHere(["add", "more", "--", process.execPath, "x.mjs"])).stdout).toContain(
      folder.homeConfig,
    );

    expect((await folder.runHere(["trust", "remove", folder.dir])).code).toBe(0);
    expect((await folder.tools()).names).toEqual(["own__who"]);
  });

  it("belong to the toolcrib.json of their folder, if it has one", async () => {
    const folder = honest();
    folder.write(".mcp.json", { mcpServers: { claude: folder.server("claude"), app: folder.server("other") } });
    await folder.trust();
    const { names, stderr } = await folder.tools();
    expect(names).toEqual(["app__build", "app__drop", "claude__claude", "own__who"]);
    expect(stderr).toContain("app");
    const [command = "", ...args] = folder.canary("import");
    folder.write(".mcp.json", { mcpServers: { claude: { command, args } } });
    expect((await folder.tools()).names).toEqual(["own__who"]);
    expect(folder.ran()).toEqual([]);
  });

  it("are not those in the user's own folder, nor an entry of Toolcrib", async () => {
    const folder = new ClonedFolder();
    folder.furnishHome();
    folder.write(".mcp.json", { mcpServers: { claude: folder.server("claude") } }, folder.home);
    expect(await folder.tools(folder.home)).toEqual({ names: ["own__who"], stderr: "" });
    expect((await folder.runHere(["trust", folder.home])).code).toBe(2);
    expect((await folder.run(["connect", "claude-code", "--scope", "project"])).code).toBe(0);
    expect(existsSync(join(folder.dir, ".mcp.json"))).toBe(true);
    expect(await folder.tools()).toEqual({ names: ["own__who"], stderr: "" });
  });

  it("a hub that is shared by folders says so in the folder that it concerns", async () => {
    const folder = withClientFiles("server");
    const elsewhere = join(folder.root, "elsewhere");
    mkdirSync(elsewhere);
    expect((await folder.run(["hub", "start"], { cwd: elsewhere })).code).toBe(0);
    const status = await folder.runHere(["status"]);
    expect(status.stderr).toContain(`toolcrib trust ${folder.dir}`);
    expect((await folder.runHere(["status"], { cwd: elsewhere })).stderr).toBe("");
    expect((await folder.runHere(["hub", "status", "--json"])).stdout).toContain(folder.homeConfig);
    // A folder that is trusted has a hub of its own, as one with a toolcrib.json has.
    await folder.trust();
    expect((await folder.tools()).names).toEqual(NAMES);
    expect((await folder.tools(elsewhere)).names).toEqual(["own__who"]);
  });

  it.skipIf(process.platform === "win32")("are refused if others can write them", async () => {
    const folder = withClientFiles("server");
    chmodSync(join(folder.dir, ".vscode"), 0o777);
    expect(await folder.runHere(["trust"])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("can be written by every user"),
    });
    chmodSync(join(folder.dir, ".vscode"), 0o755);
    await folder.trust();
    chmodSync(join(folder.dir, ".vscode/mcp.json"), 0o666);
    expect((await folder.tools()).names).toEqual(["own__who"]);
  });
});
