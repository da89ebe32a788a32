import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { inspectSkills } from "../../../src/skills/find/inspect-skills.ts";
import { thisMachine } from "../../../src/skills/needs.ts";
import { writeSkill } from "../../support/skill-folder.ts";

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "toolcrib-inspect-"));
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

it("[speed-08d] keeps what is known of skills, and not their texts", { retry: 2, timeout: 120_000 }, async () => {
  setFlagsFromString("--expose-gc");
  // The flag puts it into contexts that are made from then on.
  const collect = runInNewContext("gc") as () => void;
  const held = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const sentence = "The description is cut out of the text, and long enough to be a part of it in memory. ";
  const textBytes = 200_000;
  const count = 30;
  const machine = thisMachine({});
  const inspected = (batch: string): ReturnType<typeof inspectSkills> => {
    const root = join(place, batch);
    for (let each = 0; each < count; each++) {
      writeSkill(root, `${batch}-${each}`, {
        description: `${sentence}${each}`,
        body: `# ${batch} ${each}\n\n${"Plain words of a long text.\n".repeat(textBytes / 28)}`,
      });
    }
    return inspectSkills(root, machine);
  };
  // Modules and bounded caches are there afterwards.
  const first = await inspected("first");
  const before = held();
  const second = await inspected("second");
  const grown = held() - before;
  for (const { candidates } of [first, second]) {
    expect(candidates).toHaveLength(count);
    expect(candidates.map(({ skill }) => skill.description)).toContain(`${sentence}0`);
  }
  expect(grown).toBeLessThan((count * textBytes) / 4);
});
