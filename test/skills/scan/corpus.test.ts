/** Real skills. Known malware was taken out of the corpus, not all of it: what is refused here was looked at by eye. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { describe, expect, it } from "vitest";
import type { SkillSeverity } from "../../../src/model/skill.ts";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";
import { scanSkill, worstSeverity } from "../../../src/skills/scan/scan-skill.ts";

const CORPUS = join(import.meta.dirname, "../../../../shared/corpus/skills");
const present = existsSync(CORPUS);
if (!present) console.log(`The scan of real skills is skipped: there is no ${CORPUS}.`);

/** Left over from a campaign that had users install a stealer from sites with the name of the agent's maker. */
const KNOWN_MALICIOUS = new Set([
  "google-drivezqx",
  "perplexityt9d",
  "ytwatchervideo",
  "copywritings",
  "smart-memorycn",
]);

describe.skipIf(!present)("real skills", () => {
  it(
    "[skill-09b] [skill-09c] refuses fewer than one in a hundred, and is silent about most",
    { timeout: 300_000 },
    async () => {
      const counts: Record<SkillSeverity | "nothing", number> = { nothing: 0, note: 0, warn: 0, refuse: 0 };
      const refused: string[] = [];
      let total = 0;
      for (const file of globSync(`${CORPUS.split(sep).join("/")}/*/*/SKILL.md`)) {
        const name = basename(dirname(file));
        const bytes = readFileSync(file);
        let skill;
        try {
          skill = { ...parseSkill(bytes, name), dir: dirname(file) };
        } catch {
          continue;
        }
        total += 1;
        const severity = worstSeverity(await scanSkill(skill));
        counts[severity ?? "nothing"] += 1;
        if (severity === "refuse") refused.push(name);
      }
      console.log(`Scanned ${total} real skills: ${JSON.stringify(counts)}.`);
      expect(total).toBeGreaterThan(1_000);
      expect(refused.filter((name) => !KNOWN_MALICIOUS.has(name))).toEqual([]);
      expect(counts.refuse / total).toBeLessThan(0.01);
      expect(counts.warn / total).toBeLessThan(0.04);
      expect(counts.nothing / total).toBeGreaterThan(0.94);
    },
  );
});
