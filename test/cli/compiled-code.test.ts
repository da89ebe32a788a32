import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { Script } from "node:vm";
import { afterAll, expect, it } from "vitest";
import { runProgram } from "../support/run-program.ts";

const bin = resolve(import.meta.dirname, "../../bin/toolcrib.js");
const dir = mkdtempSync(join(tmpdir(), "toolcrib-code-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const version = (env: Record<string, string | undefined>) =>
  runProgram(process.execPath, [bin, "--version"], { env: { NODE_COMPILE_CACHE: undefined, ...env } });

it("[speed-05a] keeps compiled code in the user's cache folder for the next start", async () => {
  const { code, stderr } = await version({ HOME: dir, XDG_CACHE_HOME: join(dir, "cache") });
  expect(code, stderr).toBe(0);
  const kept = await readdir(join(dir, "cache", "toolcrib", "code"), { recursive: true });
  expect(kept.length).toBeGreaterThan(1);
  expect(existsSync(join(dir, ".toolcrib"))).toBe(false);
});

it("[speed-05e] keeps the functions that were called too, and makes what does not fit again", async () => {
  const cache = join(dir, "functions");
  const env = { HOME: dir, XDG_CACHE_HOME: cache };
  const kept = async (): Promise<Map<string, Buffer>> => {
    const files = await readdir(join(cache, "toolcrib", "code"), { recursive: true, withFileTypes: true });
    const ours = files.filter(({ name }) => /^cli-main-.*\.cjs$/.test(name));
    return new Map(ours.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name))]));
  };
  expect(await version(env)).toMatchObject({ code: 0 });
  const [[file, compiled] = ["", Buffer.alloc(0)]] = await kept();
  const main = readFileSync(resolve(import.meta.dirname, "../../dist/chunks", basename(file)), "latin1");
  // Of the same text, as Node would keep it: before any of it has run.
  const uncalled = new Script(`(function(exports,require,module,__filename,__dirname){${main}\n})`).createCachedData();
  expect(compiled.length).toBeGreaterThan(uncalled.length * 1.2);

  expect(await version(env)).toMatchObject({ code: 0 });
  expect((await kept()).get(file)).toEqual(compiled);
  const damaged = Buffer.from(compiled);
  damaged.fill(0xff, damaged.length >> 1, (damaged.length >> 1) + 64);
  for (const wrong of ["something else", "", damaged, compiled.subarray(0, compiled.length >> 1)]) {
    writeFileSync(file, wrong);
    expect(await version(env)).toMatchObject({ code: 0, stderr: "" });
    expect((await kept()).get(file)?.length).toBe(compiled.length);
  }

  rmSync(file);
  mkdirSync(file);
  expect(await version(env)).toMatchObject({ code: 0, stderr: "" });
  // Nor does it leave a part of one behind.
  expect((await readdir(dirname(file))).filter((name) => name.startsWith(`${basename(file)}.`))).toEqual([]);
});

it("[speed-05e] reads the files of the start before in one go, and any other when it is needed", async () => {
  const [chunks, folder] = [join(dir, "chunks"), join(dir, "kept")];
  mkdirSync(chunks);
  const write = (name: string, code: string): void => writeFileSync(join(chunks, `${name}.cjs`), code);
  write("main", 'module.exports=[require("./part.cjs").name,`${require("./part.cjs").call}`];');
  write("part", 'exports.name=__filename;exports.call=function called(){return"part"};');
  const compiledCode = resolve(import.meta.dirname, "../../bin/compiled-code.js");
  const program = `require(${JSON.stringify(compiledCode)}).compileOnce(${JSON.stringify(chunks)}, ${JSON.stringify(folder)}, { loadsTheSame: true });
    process.stdout.write(JSON.stringify(require(${JSON.stringify(join(chunks, "main.cjs"))})));`;
  const run = async (): Promise<unknown> => {
    const { code, stdout, stderr } = await runProgram(process.execPath, ["-e", program], {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout);
  };
  const expected = [join(chunks, "part.cjs"), 'function called(){return"part"}'];
  expect(await run()).toEqual(expected);
  expect(await run()).toEqual(expected);
  write("another", 'module.exports="new";');
  write("main", 'module.exports=require("./another.cjs");');
  rmSync(join(chunks, "part.cjs"));
  expect(await run()).toBe("new");
  expect((await readdir(folder)).toSorted()).toEqual(["another.cjs", "main.cjs", "part.cjs"]);
  // Of what has not been needed for a month only its own files go, whatever else is in their folder.
  write("newest", 'module.exports="newest";');
  write("main", 'module.exports=require("./newest.cjs");');
  mkdirSync(join(folder, "a-folder"));
  writeFileSync(join(folder, "notes.txt"), "mine");
  const past = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000);
  for (const name of ["a-folder", "notes.txt", "part.cjs"]) utimesSync(join(folder, name), past, past);
  expect(await run()).toBe("newest");
  const left = ["a-folder", "another.cjs", "main.cjs", "newest.cjs", "notes.txt"];
  expect((await readdir(folder)).toSorted()).toEqual(left);
});

it("[speed-05e] imports packages and plugins as from any file, without a word of Node about it", async () => {
  const env = { HOME: dir, XDG_CACHE_HOME: join(dir, "packages"), TOOLCRIB_HOME: join(dir, "home") };
  const plugin = join(import.meta.dirname, "../../demo/shout.mjs");
  const config = join(dir, "toolcrib.json");
  writeFileSync(config, JSON.stringify({ plugins: [plugin] }));
  for (let run = 0; run < 2; run += 1) {
    const { code, stdout, stderr } = await runProgram(process.execPath, [bin, "list", "--config", config], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("shout");
  }
});

it("[speed-05a] starts where there is no folder to keep it in", async () => {
  writeFileSync(join(dir, "file"), "");
  const [without, refused] = await Promise.all([
    version({ HOME: undefined }),
    version({ HOME: join(dir, "file"), XDG_CACHE_HOME: join(dir, "file", "cache") }),
  ]);
  for (const { code, stdout, stderr } of [without, refused]) {
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
    expect(stderr).toBe("");
  }
});

it("[speed-05b] runs no code from the folder of a project", async () => {
  const project = join(dir, "project");
  mkdirSync(project);
  const env = { NODE_COMPILE_CACHE: undefined, HOME: "", XDG_CACHE_HOME: undefined };
  for (const each of [env, { ...env, XDG_CACHE_HOME: "cache" }])
    expect(await runProgram(process.execPath, [bin, "--version"], { env: each, cwd: project })).toMatchObject({
      code: 0,
      stderr: "",
    });
  expect(await readdir(project)).toEqual([]);
});

it.skipIf(process.platform === "win32")("[speed-05b] runs no code from a folder that others write to", async () => {
  const open = join(dir, "open");
  mkdirSync(open);
  for (const [mode, kept] of [
    [0o777, []],
    [0o1777, ["toolcrib"]],
  ] as const) {
    chmodSync(open, mode);
    expect(await version({ HOME: dir, XDG_CACHE_HOME: open })).toMatchObject({ code: 0, stderr: "" });
    expect(await readdir(open)).toEqual(kept);
  }
  // Into the folder itself others may not even add something.
  rmSync(join(open, "toolcrib", "code"), { recursive: true });
  mkdirSync(join(open, "toolcrib", "code"));
  chmodSync(join(open, "toolcrib", "code"), 0o1777);
  expect(await version({ HOME: dir, XDG_CACHE_HOME: open })).toMatchObject({ code: 0, stderr: "" });
  expect(await readdir(join(open, "toolcrib", "code"))).toEqual([]);
  // What others put into it before is not used either.
  chmodSync(join(open, "toolcrib"), 0o777);
  rmSync(join(open, "toolcrib", "code"), { recursive: true });
  expect(await version({ HOME: dir, XDG_CACHE_HOME: open })).toMatchObject({ code: 0, stderr: "" });
  expect(await readdir(join(open, "toolcrib"))).toEqual([]);
});

it.skipIf(process.geteuid?.() !== 0)("[speed-05b] root runs no code from a folder of another user", async () => {
  const theirs = join(dir, "theirs");
  const [home, cache] = [join(theirs, "home"), join(theirs, "cache")];
  mkdirSync(home, { recursive: true });
  mkdirSync(cache);
  chownSync(home, 1234, 1234);
  const runs = [
    { HOME: home, XDG_CACHE_HOME: undefined },
    { HOME: home, XDG_CACHE_HOME: join(home, "own") },
  ];
  for (const env of runs) expect(await version(env)).toMatchObject({ code: 0, stderr: "" });
  expect(await readdir(home)).toEqual([]);
  expect(await version({ HOME: home, XDG_CACHE_HOME: cache })).toMatchObject({ code: 0 });
  expect(await readdir(cache)).toEqual(["toolcrib"]);
});

it.skipIf(process.geteuid?.() !== 0)("[speed-05b] nor does anyone from a folder that a group writes to", async () => {
  const shared = join(dir, "shared");
  mkdirSync(shared);
  for (const [group, kept] of [
    [1234, []],
    [0, ["toolcrib"]],
  ] as const) {
    chownSync(shared, 0, group);
    chmodSync(shared, 0o775);
    expect(await version({ HOME: dir, XDG_CACHE_HOME: shared })).toMatchObject({ code: 0, stderr: "" });
    expect(await readdir(shared)).toEqual(kept);
  }
});
