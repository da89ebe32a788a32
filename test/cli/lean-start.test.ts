/** What it does is done to the whole process, so each case has a process of its own. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runProgram } from "../support/run-program.ts";

const lean = join(import.meta.dirname, "..", "..", "src", "cli", "lean-start.ts");

const PRELUDE = `
  import v8 from "node:v8";
  import { setTimeout as sleep } from "node:timers/promises";
  import { startLean, noteRequest, tidyUp } from ${JSON.stringify(lean)};
  const kept = [];
  const makeGarbage = () => {
    for (let round = 0; round < 300_000; round += 1) { kept.push({ round }); if (kept.length > 50_000) kept.length = 0; }
  };
  const young = () => v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
`;

async function measure(program: string): Promise<number[]> {
  const run = await runProgram(process.execPath, ["--input-type=module", "--eval", PRELUDE + program]);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  return run.stdout.trim().split(" ").map(Number);
}

describe("[gate-14a] a process that mostly waits", () => {
  it("keeps its young generation small until there is load", async () => {
    const [idle = 0, few = 0, loaded = 0] = await measure(`
      startLean();
      makeGarbage();
      const idle = young();
      for (let request = 0; request < 50; request += 1) noteRequest();
      makeGarbage();
      const few = young();
      for (let request = 0; request < 50; request += 1) noteRequest();
      for (let round = 0; round < 20; round += 1) makeGarbage();
      console.log(idle, few, young());`);
    expect(few).toBeLessThan(idle * 1.5);
    expect(loaded).toBeGreaterThan(idle * 2);
  });

  it("clears up once after the start", async () => {
    const [before = 0, after = Infinity] = await measure(`
      startLean();
      let large = Array.from({ length: 300_000 }, (_, index) => ({ index }));
      const used = () => v8.getHeapStatistics().used_heap_size;
      const before = used();
      large = undefined;
      tidyUp();
      for (let look = 0; look < 500 && used() > before / 2; look += 1) await sleep(20);
      console.log(before, used());`);
    expect(after).toBeLessThan(before / 2);
  });

  it("does none of it unasked", async () => {
    const [before = 0, after = 0] = await measure(`
      const before = young();
      tidyUp();
      noteRequest();
      for (let round = 0; round < 20; round += 1) makeGarbage();
      console.log(before, young());`);
    expect(after).toBeGreaterThan(before);
  });
});
