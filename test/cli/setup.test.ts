/** `toolcrib` on a new machine: what it offers, what it does, and that one command undoes it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { VERSION } from "../../src/model/version.ts";
import { eventually } from "../support/eventually.ts";
import { giveFile, PLAIN_SECRET, TEXTS, textOf } from "./client-files.ts";
import { fakeStreams } from "./run/fake-terminal.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";

/** Runs a command line at a terminal, where each prompt gets the next answer. */
async function typing(
  place: Workspace,
  argv: readonly string[],
  answers: readonly (readonly [prompt: string, answer: string])[] = [],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const streams = fakeStreams({ isTTY: true });
  const ended = runCommandLine(argv, { ...streams, env: { ...place.env(), NO_COLOR: "1" }, cwd: place.dir });
  for (const [prompt, answer] of answers) {
    await eventually(() => streams.written().stderr.includes(prompt), prompt);
    streams.stdin.write(`${answer}\n`);
  }
  return { code: await ended, ...streams.written() };
}

/** Every file of the home, with its text. */
function filesOf(place: Workspace): Record<string, string> {
  const entries = readdirSync(place.home, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(paths.toSorted().map((path) => [path, readFileSync(path, "utf8")]));
}

const IMPORT = "Import 4 servers? [Y/n]";
const CONNECT = "Add Toolcrib to 3 clients? [Y/n]";

/** Two clients that both call another server `memory`, and one with nothing. */
function newMachine(): Workspace {
  const place = workspace();
  giveFile(place, "cursor");
  giveFile(place, "claude-desktop");
  giveFile(place, "codex", '[mcp_servers.memory]\ncommand = "npx"\nargs = ["-y", "another"]\n');
  return place;
}

describe("[joy-12a] toolcrib on a new machine", () => {
  it("imports the servers of clients and connects them, and one command undoes all of it", async () => {
    const place = newMachine();
    const before = filesOf(place);
    const { code, stdout, stderr } = await typing(
      place,
      [],
      [
        [IMPORT, ""],
        [CONNECT, "y"],
      ],
    );
    expect(code).toBe(0);
    expect(stdout).toContain(`Toolcrib ${VERSION} has no config yet.`);
    expect(stdout).toMatch(/^Cursor +github, docs$/m);
    expect(stdout).toContain("toolcrib setup --undo");
    expect(`${stdout}${stderr}`).not.toContain(PLAIN_SECRET);
    const config = JSON.parse(textOf(join(place.home, "toolcrib.json"))) as {
      mcpServers: Record<string, { args?: string[] }>;
    };
    expect(Object.keys(config.mcpServers).toSorted()).toEqual(["docs", "github", "memory", "memory-2"]);
    const packages = ["memory", "memory-2"].map((id) => config.mcpServers[id]?.args?.[1]).toSorted();
    expect(packages).toEqual(["another", "mem"]);
    const clients = (await place.runHere(["clients", "--json"])).json<{ id: string; connected: boolean }[]>();
    expect(
      clients
        .filter(({ connected }) => connected)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(["claude-desktop", "codex", "cursor"]);

    const undone = await place.runHere(["setup", "--undo"]);
    expect([undone.code, undone.stderr]).toEqual([0, ""]);
    expect(filesOf(place)).toEqual(before);
    expect((await place.runHere(["setup", "--undo"])).stderr).toContain("nothing to undo");
  });

  it("does only what was agreed to", async () => {
    const place = newMachine();
    const before = filesOf(place);
    const declined = await typing(
      place,
      [],
      [
        [IMPORT, "n"],
        [CONNECT, "no"],
      ],
    );
    expect([declined.code, filesOf(place)]).toEqual([0, before]);
    expect(declined.stderr).toContain("Nothing was changed");
    await typing(
      place,
      [],
      [
        [IMPORT, "y"],
        [CONNECT, "n"],
      ],
    );
    expect(existsSync(join(place.home, "toolcrib.json"))).toBe(true);
    expect(textOf(join(place.home, ".cursor/mcp.json"))).toBe(TEXTS.cursor);
  });

  it("undo keeps what was edited since, and a config that was there before keeps its bytes", async () => {
    const place = newMachine();
    const text = '{\n  // mine\n  "mcpServers": { "own": { "command": "x" } }\n}\n';
    writeFileSync(join(place.home, "toolcrib.json"), text);
    expect((await place.runHere(["setup", "--yes"])).code).toBe(0);
    expect((await place.runHere(["setup", "--undo"])).code).toBe(0);
    expect(textOf(join(place.home, "toolcrib.json"))).toBe(text);

    expect((await place.runHere(["setup", "--yes"])).code).toBe(0);
    const file = join(place.home, "toolcrib.json");
    writeFileSync(file, textOf(file).replace('"another"', '"another@2"'));
    const undone = await place.runHere(["setup", "--undo", "--json"]);
    expect(undone.json<{ kept: string[] }>().kept).toHaveLength(1);
    const left = JSON.parse(textOf(file).replace("// mine", "")) as { mcpServers: object };
    expect(Object.keys(left.mcpServers)).toEqual(["own", expect.stringMatching(/^memory/)]);
  });

  it("a second run adds what is new, and undo still takes back both", async () => {
    const place = newMachine();
    await place.runHere(["setup", "--yes"]);
    mkdirSync(join(place.home, ".config/Code/User"), { recursive: true });
    const vscode = giveFile(place, "vscode", '{ "servers": { "late": { "command": "late" } } }\n');
    const second = await place.runHere(["setup", "--yes", "--json"]);
    expect(second.json()).toMatchObject({ servers: ["late"], clients: ["vscode"] });
    await place.runHere(["setup", "--undo"]);
    expect(existsSync(join(place.home, "toolcrib.json"))).toBe(false);
    expect(textOf(vscode)).toBe('{ "servers": { "late": { "command": "late" } } }\n');
  });
});

describe("[joy-12b] without a terminal", () => {
  it("toolcrib prints the help and changes nothing; setup says what it would do", async () => {
    const place = newMachine();
    const before = filesOf(place);
    const bare = await place.run([]);
    expect([bare.code, bare.stdout]).toEqual([2, ""]);
    expect(bare.stderr).toContain("Usage: toolcrib");
    const setup = await place.run(["setup"]);
    expect(setup.code).toBe(0);
    expect(setup.stdout).toMatch(/^To import into .*toolcrib\.json: (?:\w[\w-]*, ){3}\w[\w-]*$/m);
    expect(setup.stderr).toContain("Nothing was changed");
    const json = (await place.run(["setup", "--json"])).json<{ servers: string[]; dryRun: boolean }>();
    expect([json.servers.length, json.dryRun]).toEqual([4, true]);
    expect(filesOf(place)).toEqual(before);
  });

  it("--yes does it without asking", async () => {
    const place = newMachine();
    const { code, stdout } = await place.run(["--yes"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Imported 4 servers");
    expect(textOf(join(place.home, ".cursor/mcp.json"))).toContain("toolcrib.js");
  });

  it("a client whose file cannot be read is left alone", async () => {
    const place = workspace();
    const broken = giveFile(place, "cursor", "{ nonsense");
    giveFile(place, "claude-desktop");
    const { code, stderr } = await place.runHere(["setup", "--yes"]);
    expect(code).toBe(0);
    expect(stderr).toContain(broken);
    expect(textOf(broken)).toBe("{ nonsense");
    expect(textOf(join(place.home, "toolcrib.json"))).toContain("memory");
  });
});

describe("[joy-12c] toolcrib with a config", () => {
  it("shows what there is and what to do next, and starts no server", async () => {
    const place = newMachine();
    const mark = join(place.dir, "started");
    const marking = place.write(
      "marking.mjs",
      `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, "");`,
    );
    place.configure({
      one: { command: process.execPath, args: [marking] },
      two: { ...misbehaving("ok"), enabled: false },
    });
    const { code, stdout } = await typing(place, []);
    expect(code).toBe(0);
    expect(stdout).toContain(`${place.configFile}: 2 servers, 1 of them disabled`);
    expect(stdout).toContain("not running");
    for (const command of ["toolcrib status", "toolcrib list", "toolcrib connect ", "toolcrib --help"]) {
      expect(stdout).toContain(`  ${command}`);
    }
    expect(existsSync(mark)).toBe(false);
    // An untrusted project's config may be all that there is.
    expect(existsSync(join(place.home, "toolcrib.json"))).toBe(false);
  });
});
