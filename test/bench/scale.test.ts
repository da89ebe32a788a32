import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MEASURES, parseOptions } from "../../bench/scale/options.ts";
import type { ScaleReport } from "../../bench/scale/print.ts";
import { missingForCluster } from "../cluster/rig/rig.ts";
import { type Run, runProgram } from "../support/run-program.ts";

const script = resolve(import.meta.dirname, "../../bench/scale/run.ts");
const out = await mkdtemp(join(tmpdir(), "toolcrib-scale-test-"));
afterAll(() => rm(out, { recursive: true, force: true }));

const missing = missingForCluster();
if (missing !== undefined) console.warn(`The scale bench is not run: ${missing}.`);

describe.skipIf(missing !== undefined)("npm run bench:scale", () => {
  let run: Run;
  let kept: ScaleReport;
  beforeAll(async () => {
    run = await runProgram(process.execPath, [script, "--smoke", "--out", out]);
    kept = JSON.parse(await readFile(join(out, "scale.json"), "utf8"));
  }, 400_000);

  it("[scale-11a] runs every measure", () => {
    expect(kept.failures, run.stderr).toEqual({});
    expect(run.code, run.stderr).toBe(0);
    expect(Object.keys(kept)).toEqual(expect.arrayContaining([...MEASURES]));
  });

  it("[scale-11a] compares one node with three as ratios", () => {
    const rows = kept.nodes?.rows ?? [];
    expect(rows.map(({ upstream, nodes }) => `${upstream} ${nodes}`)).toEqual(
      ["stdio", "http"].flatMap((upstream) => [1, 1, 3].map((nodes) => `${upstream} ${nodes}`)),
    );
    for (const { callsPerSecond, ratio, nodes, what } of rows) {
      expect(callsPerSecond).toBeGreaterThan(0);
      if (what.includes("alone")) expect([nodes, ratio.median]).toEqual([1, 1]);
      else expect(ratio.median).toBeGreaterThan(0);
    }
  });

  it("[scale-11a] counts during a failover, and measures sessions, processes and a catalog", () => {
    expect(kept.failover?.map(({ fault, lost, doubled }) => [fault, lost, doubled])).toEqual([
      ["stop", 0, 0],
      ["kill", 0, 0],
    ]);
    expect(kept.sessions?.map(({ points }) => points.map(({ count }) => count))).toEqual([
      [10, 60],
      [10, 60],
    ]);
    expect(kept.processes?.serverMb).toBeGreaterThan(1);
    expect(kept.catalog?.serverMb).toBeUndefined();
    expect(kept.catalog?.searchMs.p50).toBeGreaterThan(0);
    expect(run.stdout).toContain("100 tools");
  });
});

describe("its options", () => {
  it("[scale-11a] name measures that exist", () => {
    expect(parseOptions(["--only", "catalog,nodes", "--smoke"], "here")).toEqual({
      measures: ["nodes", "catalog"],
      extent: "smoke",
      out: "here",
    });
    expect(parseOptions(["--only", "speed"], "here")).toHaveProperty("problem", expect.stringContaining("speed"));
    expect(parseOptions(["--fast"], "here")).toHaveProperty("problem", expect.stringContaining("--smoke"));
  });
});
