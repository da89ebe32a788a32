import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runProgram } from "../support/run-program.ts";

const root = join(import.meta.dirname, "..", "..");
const reporter = join(root, "test", "support", "closing-line.ts");
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "toolcrib-closing-line-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function closingLine(
  files: Readonly<Record<string, string>>,
): Promise<{ line: string | undefined; before: string | undefined; code: number | null }> {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "--root", folder, "--globals", "--reporter=default", `--reporter=${reporter}`];
  const { stdout, code } = await runProgram(process.execPath, args, { cwd: folder });
  const lines = stdout.trimEnd().split("\n");
  return { line: lines.at(-1), before: lines.at(-2), code };
}

it("counts what passed and what was skipped, after the summary", async () => {
  const files = { "a.test.mjs": 'it("1", () => {}); it("2", () => {}); it.skip("3", () => {}); it.todo("4");' };
  expect(await closingLine(files)).toMatchObject({ line: "2 passed, 0 failed, 2 skipped", code: 0 });
});

it("counts a failing test, a file that cannot be loaded and an error outside every test as failed", async () => {
  const files = {
    "a.test.mjs": 'it("1", () => {}); it("2", () => { throw new Error("no"); });',
    "b.test.mjs": 'throw new Error("not loaded");',
    "c.test.mjs":
      'it("1", async () => { void Promise.reject(new Error("lost")); await new Promise((r) => setTimeout(r, 50)); });',
  };
  expect(await closingLine(files)).toMatchObject({ line: "2 passed, 3 failed, 0 skipped", code: 1 });
});

it("names a test that passed only when it was run again", async () => {
  const files = {
    "a.test.mjs":
      'let runs = 0; it("is flaky", { retry: 1 }, () => { runs += 1; if (runs === 1) throw new Error("no"); });',
  };
  const end = await closingLine(files);
  expect(end).toMatchObject({ line: "1 passed, 0 failed, 0 skipped", code: 0 });
  expect(end.before).toBe("Failed at first, passed when run again: a.test.mjs > is flaky");
});

it("fails for a requirement whose tests were all skipped, unless its file printed the reason", async () => {
  // Put together here, because the test of the requirements reads titles in this file too.
  const id = (number: number): string => `[demo-0${number}]`;
  const skipped = `it.skip("${id(1)} needs a part", () => {}); it("other", () => {});`;
  const proven = `it("${id(2)} works", () => {});`;
  const files = { "a.test.mjs": skipped, "b.test.mjs": `${proven} it.skip("${id(2)} elsewhere", () => {});` };
  expect(await closingLine(files)).toMatchObject({ line: "2 passed, 1 failed, 2 skipped", code: 1 });
  files["a.test.mjs"] = `console.warn("Not tested here: demo: no such program"); ${skipped}`;
  expect(await closingLine(files)).toMatchObject({ line: "2 passed, 0 failed, 2 skipped", code: 0 });
});
