import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Report } from "../../bench/bench.ts";
import { syntheticSkill } from "../../bench/synthetic-skills.ts";
import { parseSkill } from "../../src/skills/read/read-skill.ts";
import { runProgram } from "../support/run-program.ts";

const script = resolve(import.meta.dirname, "../../bench/run.ts");
const out = await mkdtemp(join(tmpdir(), "toolcrib-bench-skills-"));
afterAll(() => rm(out, { recursive: true, force: true }));

describe("the bench of skills", () => {
  it("[skill-16b] gives the CPU per file as a ratio to yaml parsing its frontmatter", async () => {
    const run = await runProgram(process.execPath, [script, "skills", "--smoke", "--out", out]);
    expect(run.code, run.stderr).toBe(0);
    const report: Report = JSON.parse(await readFile(join(out, "skills.json"), "utf8"));
    expect(report.baseline).toBe("yaml parsing its frontmatter");
    const [base, made] = report.rows;
    expect(base).toMatchObject({ what: "yaml alone, 20 made files", ratio: 1 });
    expect(made?.what).toBe("SKILL.md to a Skill, 20 made files");
    for (const { ratio, p50Us, p95Us } of report.rows) {
      expect(ratio).toBeGreaterThan(0);
      expect(p50Us).toBeGreaterThan(0);
      expect(p95Us).toBeGreaterThanOrEqual(p50Us);
    }
    expect(run.stdout).toContain("× yaml parsing its frontmatter");
  }, 60_000);

  it("[skill-16b] its made files are good skills of several dialects", () => {
    const skills = Array.from({ length: 60 }, (_, index) => parseSkill(syntheticSkill(index), "made"));
    expect(skills.flatMap(({ warnings }) => warnings)).toEqual([]);
    expect(new Set(skills.map(({ dialect }) => dialect)).size).toBe(3);
  });
});
