import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { build } from "../../scripts/bootstrap/build.mjs";
import { type Run, runProgram } from "../support/run-program.ts";

const root = join(import.meta.dirname, "..", "..");
/** Of this run alone, so that what it leaves behind is seen and nothing else. */
const temporary = mkdtempSync(join(tmpdir(), "toolcrib-demo-test-"));
let demo: Run;

beforeAll(async () => {
  expect(await build({ root, nodePath: process.execPath, say: () => {} })).toBe(0);
  demo = await runProgram(process.execPath, [join("demo", "run.ts")], {
    cwd: root,
    env: { TMPDIR: temporary },
  });
});

afterAll(() => rmSync(temporary, { recursive: true, force: true }));

it("[spine-02b] runs to its end on the three bundled servers", () => {
  expect(demo).toMatchObject({ code: 0, stderr: "" });
  for (const server of ["everything", "files", "memory"])
    expect(demo.stdout).toMatch(new RegExp(`^  ${server} +ready +\\d+ tools$`, "m"));
});

it("[spine-02b] shows results of every server, of an in-process tool, and progress", () => {
  for (const line of [
    "42",
    "Written through Toolcrib.",
    "wrote the first program",
    "A FUNCTION OF THIS PROGRAM",
    "… 4 of 4",
  ]) {
    expect(demo.stdout).toContain(line);
  }
});

it("[spine-02b] shows a denied call and an unknown name with what was meant", () => {
  expect(demo.stdout).toMatch(/> files__move_file .*\n    denied: /);
  expect(demo.stdout).toMatch(/> everything__get-summ .*\n    not_found: .*everything__get-sum\b/);
});

it.skipIf(!existsSync("/proc/self/environ"))("[spine-02b] leaves no process and no file behind", () => {
  expect(readdirSync(temporary)).toEqual([]);
  const running = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && tracesOf(pid).includes(temporary));
  expect(running).toEqual([]);
});

/** Command line and environment of a process; nothing for one that has ended or belongs to somebody else. */
function tracesOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8") + readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}
