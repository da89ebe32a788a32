import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import {
  addServer,
  editPaths,
  findServerLine,
  removeServer,
  setEnabled,
  setOverride,
} from "../../src/config/edit-config.ts";
import { withLock } from "../../src/files/lock-file.ts";
import { writeAtomic } from "../../src/files/write-atomic.ts";
import { FIXTURES, Workplace } from "./support.ts";

const TEXT = `{
  // my servers
  "mcpServers": {
    "a": { "command": "x" }, // the first
  },
}
`;
const EDITOR = join(import.meta.dirname, "edit-many.ts");

function read(file: string): string {
  return readFileSync(file, "utf8");
}

describe("[spine-19c] editing a config file", () => {
  it("adds, disables, enables and removes a server and keeps every comment", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    await addServer(file, "b", { command: "npx", args: ["-y", "pkg"] });
    expect((await place.load({ file })).servers.map(({ id }) => id)).toEqual(["a", "b"]);
    await setEnabled(file, "b", false);
    expect((await place.load({ file })).servers[1]?.enabled).toBe(false);
    await setEnabled(file, "b", true);
    expect((await place.load({ file })).servers[1]?.enabled).toBe(true);
    await removeServer(file, "b");
    expect(read(file)).toBe(TEXT);
    expect(await setEnabled(file, "a", true)).toEqual({ before: TEXT, after: TEXT });
  });

  it("makes a missing file, with its folder, readable by its owner only", async () => {
    const place = new Workplace();
    const file = join(place.dir, "new", "toolcrib.json");
    await addServer(file, "a", { url: "https://h/mcp" });
    expect(read(file)).toBe('{\n  "mcpServers": {\n    "a": {\n      "url": "https://h/mcp"\n    }\n  }\n}\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(place.dir, "new"))).toEqual(["toolcrib.json"]);
  });

  it("shows the result of a dry run and writes nothing", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    const { before, after } = await addServer(file, "b", { command: "y" }, { dryRun: true });
    expect(before).toBe(TEXT);
    expect(after).toContain('"b": {');
    expect(read(file)).toBe(TEXT);
  });

  it("keeps mode, symbolic link, byte order mark and line ends", async () => {
    const place = new Workplace();
    const real = place.write("real/config.json", '\uFEFF{\r\n  "mcpServers": {}\r\n}\r\n');
    chmodSync(real, 0o640);
    const link = join(place.dir, "toolcrib.json");
    symlinkSync("real/config.json", link);
    await addServer(link, "a", { command: "x" });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(statSync(real).mode & 0o777).toBe(0o640);
    expect(read(real)).toBe(
      '\uFEFF{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}\r\n',
    );
  });

  it("edits a file in the Claude shape, with that program's own word for disabled", async () => {
    const place = new Workplace();
    const file = place.write(
      "claude_desktop_config.json",
      '{"globalShortcut":"","mcpServers":{"a":{"command":"x","disabled":false}}}',
    );
    await setEnabled(file, "a", false);
    expect(read(file)).toBe('{"globalShortcut":"","mcpServers":{"a":{"command":"x","disabled":true}}}');
    expect((await place.load({ file })).servers[0]?.enabled).toBe(false);
  });

  it.each([".vscode/mcp.json", "mcp-servers.json", "acp.json"])(
    "refuses %s, which is another program's to edit",
    async (name) => {
      const place = new Workplace();
      const text = read(join(FIXTURES, name));
      const file = place.write(name, text);
      await expect(addServer(file, "n", { command: "x" })).rejects.toMatchObject({ code: "invalid_config" });
      expect(read(file)).toBe(text);
    },
  );

  it("refuses a file that does not parse, and leaves it alone", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", '{ "mcpServers": {');
    await expect(addServer(file, "a", { command: "x" })).rejects.toThrow(/:1:18: syntax error/);
    expect(read(file)).toBe('{ "mcpServers": {');
    expect(readdirSync(place.dir)).toEqual(["toolcrib.json"]);
  });

  it("[whole-01b] enables and disables in the words of the entry, and mends words that contradict each other", async () => {
    const place = new Workplace();
    const entries = { a: { isActive: false }, b: { disabled: true, enabled: true }, c: { disabled: false } };
    const mcpServers = Object.fromEntries(
      Object.entries(entries).map(([id, rest]) => [id, { command: "npx", ...rest }]),
    );
    const file = place.write("toolcrib.json", { mcpServers });
    await setEnabled(file, "a", true);
    await setEnabled(file, "b", true);
    await setEnabled(file, "c", false);
    const { servers } = await place.load({ file });
    expect(servers.map(({ enabled, problem }) => [enabled, problem])).toEqual([
      [true, undefined],
      [true, undefined],
      [false, undefined],
    ]);
    expect(read(file)).not.toMatch(/"c".*"enabled"/s);
  });

  it("[whole-01d] removes an entry that is not an object, and does not enable it", async () => {
    const place = new Workplace();
    const file = place.write(
      "toolcrib.json",
      '{ "mcpServers": { "a": "npx --token hunter22", "b": { "command": "x" } } }',
    );
    await expect(setEnabled(file, "a", true)).rejects.toMatchObject({ code: "conflict" });
    expect((await place.entryProblems({ file })).map(({ message }) => message)).toEqual([
      "found a string; expected an object",
    ]);
    await removeServer(file, "a");
    expect(JSON.parse(read(file))).toEqual({ mcpServers: { b: { command: "x" } } });
  });

  it("[whole-01a] edits a server where it is written: under another name, or below servers", async () => {
    const place = new Workplace();
    const name = "@acme/files";
    const text = JSON.stringify({ servers: { it: { command: "x" } }, mcpServers: { [name]: { command: "y" } } });
    const file = place.write("toolcrib.json", text);
    await setEnabled(file, "acme-files", false);
    await setEnabled(file, name, true);
    await setEnabled(file, "acme-files", false);
    await setEnabled(file, "it", false);
    await editPaths(file, [{ path: ["mcpServers", "acme-files", "tools"], value: { deny: ["drop"] } }]);
    await setOverride(file, ["mcpServers", "it"], "get", { description: "Gets." });
    expect(JSON.parse(read(file))).toEqual({
      servers: { it: { command: "x", enabled: false, overrides: { get: { description: "Gets." } } } },
      mcpServers: { [name]: { command: "y", enabled: false, tools: { deny: ["drop"] } } },
    });
    await expect(addServer(file, "acme-files", { command: "z" })).rejects.toMatchObject({ code: "conflict" });
    await addServer(file, "acme-files", { command: "z" }, { replace: true });
    expect(await findServerLine(file, "acme-files")).toBeGreaterThan(0);
    await removeServer(file, "acme-files");
    await removeServer(file, "it");
    expect(JSON.parse(read(file))).toEqual({ servers: {}, mcpServers: {} });
    const empty = place.write("null/toolcrib.json", '{"mcpServers": null}');
    await expect(removeServer(empty, "it")).rejects.toMatchObject({ code: "not_found" });
  });

  it("refuses an id that is taken, one that is unknown, and an entry that would not load", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    await expect(addServer(file, "a", { command: "y" })).rejects.toMatchObject({ code: "conflict" });
    await expect(removeServer(file, "aa")).rejects.toMatchObject({ code: "not_found", hint: 'Did you mean "a"?' });
    await expect(addServer(file, "-", { command: "y" })).rejects.toMatchObject({ code: "invalid_arguments" });
    await expect(addServer(file, "c", {})).rejects.toThrow(/neither command nor url/);
    await expect(addServer(file, "c", { command: "x", isolation: "user", replicas: 2 })).rejects.toThrow(
      /only a shared/,
    );
    expect(read(file)).toBe(TEXT);
    await addServer(file, "a", { command: "y" }, { replace: true });
    expect(read(file)).toBe(TEXT.replace('{ "command": "x" }', '{ "command": "y" }'));
  });
});

describe("[spine-19c] several at once", () => {
  it("loses no edit of one process", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    await Promise.all(Array.from({ length: 8 }, (_, index) => addServer(file, `s${index}`, { command: "x" })));
    expect((await place.load({ file })).servers).toHaveLength(9);
    expect(read(file)).toContain("// the first");
  });

  it("loses no edit of several processes", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    const run = promisify(execFile);
    await Promise.all(["p", "q", "r"].map((prefix) => run(process.execPath, [EDITOR, file, prefix, "6"])));
    expect((await place.load({ file })).servers).toHaveLength(1 + 3 * 6);
    expect(readdirSync(place.dir)).toEqual(["toolcrib.json"]);
  });

  it("leaves a whole file, and no lock that blocks, when killed in the middle", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    for (const [round, edits] of [1, 3, 6, 9].entries()) {
      const child = fork(EDITOR, [file, `k${round}`, "1000"], {
        execPath: process.execPath,
        execArgv: [],
        stdio: "ignore",
      });
      let seen = 0;
      child.on("message", () => void (++seen === edits && child.kill("SIGKILL")));
      await once(child, "exit");
      const { servers } = await place.load({ file, env: { TOOLCRIB_LIMITS_SERVERS: "100000" } });
      expect(servers.length).toBeGreaterThanOrEqual(edits);
    }
    await addServer(file, "after", { command: "x" });
    expect(read(file)).toContain('"after"');
    expect(readdirSync(place.dir)).not.toContain("toolcrib.json.lock");
  });

  it("does not write over what an editor wrote meanwhile", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", TEXT);
    const written = await writeAtomic(file, "ours", {
      stillWanted: async () => (writeFileSync(file, "theirs"), false),
    });
    expect([written, read(file)]).toEqual([false, "theirs"]);
    expect(readdirSync(place.dir)).toEqual(["toolcrib.json"]);
  });
});

describe("the lock", () => {
  it("of a dead process, or an old one without contents, is taken over", async () => {
    const place = new Workplace();
    const file = place.write("f", "");
    const { pid } = await new Promise<{ pid: number }>((resolve) => {
      const child = execFile(process.execPath, ["-e", ""], () => resolve({ pid: child.pid ?? 0 }));
    });
    const { hostname } = await import("node:os");
    writeFileSync(`${file}.lock`, JSON.stringify({ pid, host: hostname(), token: "t" }));
    expect(await withLock(file, async () => "ran")).toBe("ran");
    writeFileSync(`${file}.lock`, "");
    utimesSync(`${file}.lock`, 1, 1);
    expect(await withLock(file, async () => "ran")).toBe("ran");
    expect(existsSync(`${file}.lock`)).toBe(false);
  });

  it("of a living process is respected", async () => {
    const place = new Workplace();
    const file = place.write("f", "");
    let inside = 0;
    const task = async (): Promise<void> => {
      expect(++inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    };
    await Promise.all([1, 2, 3].map(() => withLock(file, task)));
    await withLock(file, async () => {
      await expect(withLock(file, task, { waitMs: 30 })).rejects.toMatchObject({ code: "conflict" });
    });
  });

  it("is released when the task fails", async () => {
    const place = new Workplace();
    mkdirSync(place.home);
    const file = join(place.home, "f");
    await expect(withLock(file, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(readdirSync(place.home)).toEqual([]);
  });
});
