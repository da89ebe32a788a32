import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
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
