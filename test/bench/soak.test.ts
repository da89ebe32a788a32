import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { growthOf } from "../../bench/soak/memory-watch.ts";
import { Random } from "../../bench/soak/random.ts";
import { Tally } from "../../bench/soak/tally.ts";
import { runProgram } from "../support/run-program.ts";

const script = resolve(import.meta.dirname, "../../scripts/soak.ts");

describe("npm run soak", () => {
  it("[gate-17b] [gate-11b] ends every request once while servers are killed", { timeout: 180_000 }, async () => {
    const args = ["--seconds", "4", "--clients", "8", "--kill-every", "400", "--seed", "7"];
    const { code, stdout, stderr } = await runProgram(process.execPath, [script, ...args]);
    expect(`${stdout}\n${stderr}`).toContain("soak: passed");
    expect(stdout).toContain("wrong 0, lost 0, hung 0, doubled 0, ran twice 0");
    expect(stdout).toMatch(/answered [1-9]/);
    expect(stdout).toMatch(/ [1-9]\d* kills/);
    expect(code).toBe(0);
  });
});

describe("the count of a soak", () => {
  it("[gate-17b] notices a request that ends twice", () => {
    const tally = new Tally();
    tally.begin("a");
    tally.end("a", "answered");
    expect(tally.bad).toBe(0);
    tally.end("a", "answered");
    expect([tally.of("answered"), tally.of("doubled"), tally.bad]).toEqual([1, 1, 1]);
    expect(tally.examples[0]).toContain("a ended twice");
  });

  it("[gate-17b] notices a request that never ends", () => {
    const tally = new Tally();
    tally.begin("a");
    tally.begin("b");
    tally.end("b", "cancelled");
    expect([tally.open, tally.bad]).toEqual([1, 0]);
    tally.closeOpen();
    expect([tally.open, tally.of("hung"), tally.bad]).toEqual([0, 1, 1]);
  });

  it("[gate-17b] counts errors that belong to a dead server as good, and anything else as bad", () => {
    const tally = new Tally();
    for (const end of ["answered", "unavailable", "timeout", "cancelled", "disconnected"] as const) {
      tally.begin(end);
      tally.end(end, end);
    }
    expect(tally.bad).toBe(0);
    tally.begin("x");
    tally.end("x", "lost", "connection reset");
    expect(tally.examples).toEqual(["lost: x: connection reset"]);
  });
});

describe("the memory of a soak", () => {
  const samples = (mb: (minute: number) => number) =>
    Array.from({ length: 100 }, (_, index) => ({ minutes: index / 10, mb: mb(index / 10) }));

  it("[gate-17b] is flat if it only filled at the beginning", () => {
    const { grownMb } = growthOf(samples((minute) => (minute < 4 ? 80 + minute * 10 : 120)));
    expect(Math.abs(grownMb)).toBeLessThan(0.001);
  });

  it("[gate-17b] is flat if it goes up and down", () => {
    const { mbPerMinute } = growthOf(samples((minute) => 100 + 20 * Math.sin(minute * 20)));
    expect(Math.abs(mbPerMinute)).toBeLessThan(3);
  });

  it("[gate-17b] grows if it leaks", () => {
    const { mbPerMinute, grownMb } = growthOf(samples((minute) => 100 + minute * 12));
    expect(mbPerMinute).toBeCloseTo(12);
    expect(grownMb).toBeGreaterThan(50);
  });
});

it("[gate-17b] takes the same choices again with the same seed", () => {
  const choices = (seed: number): number[] => {
    const random = new Random(seed);
    return Array.from({ length: 50 }, () => random.below(1000));
  };
  expect(choices(7)).toEqual(choices(7));
  expect(choices(7)).not.toEqual(choices(8));
  expect(new Set(choices(7)).size).toBeGreaterThan(30);
});
