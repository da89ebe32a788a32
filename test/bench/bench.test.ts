import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GatewayReport } from "../../bench/gateway.bench.ts";
import { missingForCluster } from "../cluster/rig/rig.ts";
import { type Run, runProgram } from "../support/run-program.ts";

const script = resolve(import.meta.dirname, "../../bench/run.ts");
const out = await mkdtemp(join(tmpdir(), "toolcrib-bench-test-"));
afterAll(() => rm(out, { recursive: true, force: true }));

interface Kept extends GatewayReport {
  readonly machine: { readonly cpus: number; readonly node: string };
}

const missing = missingForCluster();
if (missing !== undefined) console.warn(`Not tested here: the hop between nodes: ${missing}.`);

describe("npm run bench", () => {
  let run: Run;
  let kept: Kept;
  beforeAll(async () => {
    run = await runProgram(process.execPath, [script, "gateway", "--smoke", "--no-peers", "--out", out]);
    kept = JSON.parse(await readFile(join(out, "gateway.json"), "utf8"));
  }, 180_000);

  it("[gate-12a] runs every measure for the floor, the relay and Toolcrib", () => {
    expect(run.code, run.stderr).toBe(0);
    const failures = [...kept.figures, ...kept.scale].map((one) => one.failures);
    const absent = missing === undefined ? [] : [{ cluster: missing }];
    expect(failures.filter((one) => Object.keys(one).length > 0)).toEqual(absent);
    const measures = kept.figures.map(({ measure }) => measure);
    for (const upstream of ["stdio", "http"]) {
      expect(measures).toEqual(
        expect.arrayContaining([
          `p50-${upstream}`,
          `p99-${upstream}`,
          `tail-${upstream}`,
          `throughput-${upstream}`,
          `cpu1-${upstream}`,
          `cpu32-${upstream}`,
          `loop-${upstream}`,
        ]),
      );
    }
    expect(measures).toEqual(
      expect.arrayContaining(["list-stdio", "large-prose-stdio", "start-1", "start-2", "memory"]),
    );
    const calls = kept.figures.find(({ measure }) => measure === "p50-stdio");
    expect(calls?.rows.map(({ kind }) => kind)).toEqual(["floor", "relay", "toolcrib", "toolcrib"]);
  });

  it("[speed-04c] puts the p99 of small calls beside large results in relation to the p99 alone", () => {
    const beside = kept.figures.find(({ measure }) => measure === "beside-stdio");
    expect(beside?.rows.map(({ kind }) => kind)).toEqual(["relay", "toolcrib"]);
    expect(kept.aims.map(({ what }) => what)).toContain("p99 of small calls beside 1 MiB results (× alone)");
  });

  it.skipIf(missing !== undefined)("[speed-10a] puts the hop between nodes beside a direct call and one node", () => {
    for (const measure of ["p50-cluster", "throughput-cluster", "cpu32-cluster"]) {
      const rows = kept.figures.find((one) => one.measure === measure)?.rows ?? [];
      expect(rows.map(({ subject }) => subject)).toEqual([
        "direct HTTP",
        "one node, alone",
        "at the node of the server",
        "at another node",
      ]);
      for (const { value } of rows) expect(value.median).toBeGreaterThan(0);
    }
  });

  it("[gate-12a] gives each value with its spread, and its ratio to the floor of the same rounds", () => {
    for (const { measure, rows, floor } of kept.figures) {
      // A short run may cost the floor less processor time than the system can tell.
      const isFloorMeasured = (rows.find(({ subject }) => subject === floor)?.value.low ?? 0) > 0;
      for (const { subject, value, ratio } of rows) {
        expect(value.median).toBeGreaterThanOrEqual(0);
        expect(value.low).toBeLessThanOrEqual(value.high);
        // The bare server has no probe in it.
        if (floor === undefined || measure.startsWith("loop") || (measure.startsWith("cpu") && !isFloorMeasured))
          continue;
        if (subject === floor) expect(ratio?.median).toBe(1);
        else expect(ratio?.median).toBeGreaterThan(0);
      }
    }
    expect(kept.machine.cpus).toBeGreaterThan(0);
    expect(kept.machine.node).toBe(process.versions.node);
  });

  it("[gate-12a] prints tables and says of each aim whether it is met", () => {
    expect(run.stdout).toContain("× direct HTTP");
    expect(kept.aims.map(({ what }) => what)).toContain("idle memory with 10 servers (MB)");
    for (const { got, atMost, atLeast, met } of kept.aims) {
      expect(met).toBe(atMost === undefined ? got >= (atLeast ?? 0) : got <= atMost);
    }
    expect(run.stdout).toMatch(/\| (met|missed) \|/);
    expect(kept.leftOut).toEqual({ peers: "--no-peers" });
  });

  it("[gate-14a] shows calls and memory by sessions, servers and tools", () => {
    expect(kept.scale.map(({ dimension }) => dimension)).toEqual(["sessions", "servers", "tools"]);
    for (const { dimension, rows } of kept.scale) {
      const sizes = rows.map((row) => row[dimension]);
      expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
      expect(rows).toHaveLength(2);
      for (const row of rows) {
        expect(row.callsPerSecond).toBeGreaterThan(0);
        expect(row.rssMb).toBeGreaterThan(10);
      }
    }
  });

  it("[gate-12a] refuses a bench or measure that does not exist", async () => {
    const [bench, measure] = await Promise.all([
      runProgram(process.execPath, [script, "speed"]),
      runProgram(process.execPath, [script, "--only", "speed"]),
    ]);
    expect([bench.code, measure.code]).toEqual([2, 2]);
    expect(bench.stderr).toContain("gateway, hub, search");
    expect(measure.stderr).toContain("calls, list, large");
  });
});
