import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { withTables } from "../../scripts/doc-tables.ts";
import { type Example, examplesIn } from "./markdown-examples.ts";
import { type RanExamples, runExamples } from "./run-examples.ts";
import { isAsShown } from "./shown-output.ts";

const docs = join(import.meta.dirname, "..", "..", "docs");
const DOCUMENTS = ["operator.md", "api.md"].map((name) => {
  return { name, examples: examplesIn(readFileSync(join(docs, name), "utf8")) };
});

const missing = ["bash", "curl"].filter((program) => spawnSync(program, ["--version"]).error !== undefined);
if (missing.length > 0) console.warn(`The examples of docs/ are not run: ${missing.join(" and ")} is not here.`);

/** All of them at the same time, each with a hub of its own. */
const runs = new Map<string, Promise<RanExamples>>();

beforeAll(async () => {
  if (missing.length > 0) return;
  for (const { name, examples } of DOCUMENTS) runs.set(name, runExamples(examples));
  await Promise.all(runs.values());
}, 120_000);

describe.each(DOCUMENTS)("docs/$name", ({ name, examples }) => {
  it("[oper-15b] says of every block whether it is run", () => {
    const unmarked = examples.filter(({ mark }) => mark.kind === "unknown").map(({ line }) => line);
    expect(unmarked).toEqual([]);
    const homeless = examples.filter(({ mark }, index) => mark.kind === "prints" && !isRun(examples[index - 1]));
    expect(homeless).toEqual([]);
    expect(examples.filter(isRun).length).toBeGreaterThan(5);
  });

  for (const [index, example] of examples.entries()) {
    if (!isRun(example)) continue;
    const next = examples[index + 1];
    it.skipIf(missing.length > 0)(`[oper-15b] line ${example.line}: ${example.text.split("\n", 1)[0]}`, async () => {
      const examplesRan = await runs.get(name);
      const ran = examplesRan?.ran.get(example.line);
      expect(ran, "an example before it failed").toBeDefined();
      expect(ran?.ended, ran?.stderr).toBe(true);
      if (next?.mark.kind !== "prints" || examplesRan === undefined) return;
      const [printed, shown] = [ran?.stdout ?? "", examplesRan.shown(next.text)];
      if (!isAsShown(shown, printed)) expect(`${printed}${ran?.stderr}`).toBe(shown);
    });
  }
});

function isRun(example: Example | undefined): boolean {
  return example?.mark.kind === "run" || example?.mark.kind === "hub";
}

it("[oper-15b] the tables of docs/api.md are those of the contract", () => {
  const document = readFileSync(join(docs, "api.md"), "utf8");
  expect(document.match(/<!-- table: /g)).toHaveLength(4);
  expect(document, "`npm run generate` writes them").toBe(withTables(document));
});

it("[oper-15b] a block without a mark, or with one that nobody knows, is found", () => {
  const kinds = examplesIn("```sh\nls\n```\n<!-- runs -->\n```sh\nls\n```\n<!-- run -->\n```sh\nls\n```\n").map(
    ({ mark }) => mark.kind,
  );
  expect(kinds).toEqual(["unknown", "unknown", "run"]);
});

describe("what is shown", () => {
  it.each([
    ['{ "a": 1, … }', '{"a":1,"b":[2]}\n', true],
    ['{ "a": 1, … }', '{"a":2,"b":[2]}\n', false],
    ['{ "text": "two words" }', '{"text":"twowords"}', false],
    ["ok: … lines", "ok: 12 lines\n", true],
    ["ok", "ok\nand more\n", false],
    ["(a|b)", "a", false],
  ])("%s against %s", (shown, printed, expected) => {
    expect(isAsShown(shown, printed)).toBe(expected);
  });
});
