/** What reading a skill costs, as a ratio to parsing its frontmatter with `yaml` and nothing else. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { parseSkill, readSkill } from "../src/skills/read/read-skill.ts";
import { cpuInTurns, type Report, type Row, rowOf } from "./bench.ts";
import { syntheticSkill } from "./synthetic-skills.ts";

const CORPUS = resolve(import.meta.dirname, "../test/fixtures/skill-corpus");

/** Without words about odd tags; errors still throw. */
const QUIET = { logLevel: "error" } as const;

export interface SkillsBenchOptions {
  /** How many files at most. */
  readonly files: number;
  readonly rounds: number;
}

interface Sample {
  /** Its folder, for files that are on disk. */
  readonly dir?: string;
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly yaml: string;
}

export async function measureSkills({ files, rounds }: SkillsBenchOptions): Promise<Report> {
  const corpus = sampleCorpus(files);
  const made = Array.from({ length: Math.min(files, 300) }, (_, index) =>
    sampleOf(syntheticSkill(index), `made-${index}`),
  );
  const yamlOf = (samples: readonly Sample[]) => () => samples.forEach(({ yaml }) => parse(yaml, QUIET));
  const parseOf = (samples: readonly Sample[]) => () => samples.forEach(({ bytes, name }) => parseSkill(bytes, name));
  const cases = [
    { name: "made", count: made.length, yaml: yamlOf(made), parse: parseOf(made), read: undefined },
    {
      name: "sample",
      count: corpus.length,
      yaml: yamlOf(corpus),
      parse: parseOf(corpus),
      read: () => readAll(corpus),
    },
  ];
  const rows: Row[] = [];
  for (const { name, count, yaml, parse: parseAll, read } of cases) {
    const times = await cpuInTurns(
      { yaml, parse: parseAll, ...(read === undefined ? {} : { read }) },
      { rounds, warmup: 2, each: count },
    );
    const base = times["yaml"] ?? [];
    rows.push(rowOf(`yaml alone, ${count} ${name} files`, base, base));
    rows.push(rowOf(`SKILL.md to a Skill, ${count} ${name} files`, times["parse"] ?? [], base));
    if (read !== undefined)
      rows.push(rowOf(`the folder on disk to a Skill, ${count} ${name} files`, times["read"] ?? [], base));
  }
  return { title: "CPU per skill", baseline: "yaml parsing its frontmatter", rows };
}

async function readAll(samples: readonly Sample[]): Promise<void> {
  for (const { dir } of samples) if (dir !== undefined) await readSkill(dir);
}

function sampleCorpus(most: number): Sample[] {
  const found = globSync("{standard,dialects}/*/SKILL.md", { cwd: CORPUS }).toSorted();
  const step = Math.max(1, Math.floor(found.length / most));
  return found
    .filter((_, index) => index % step === 0)
    .slice(0, most)
    .map((file) => join(CORPUS, file))
    .map((file) => ({ ...sampleOf(readFileSync(file), basename(dirname(file))), dir: dirname(file) }))
    .filter(isFair);
}

function sampleOf(bytes: Uint8Array, name: string): Sample {
  const yaml = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(new TextDecoder().decode(bytes))?.[1] ?? "";
  return { name, bytes, yaml };
}

/** Files whose frontmatter `yaml` itself can read, so that both do the same job. */
function isFair({ yaml }: Sample): boolean {
  if (yaml === "") return false;
  try {
    parse(yaml, QUIET);
    return true;
  } catch {
    return false;
  }
}

/** By how long it may take. */
export const SKILLS_SIZE = {
  full: { files: 1500, rounds: 30 },
  quick: { files: 400, rounds: 15 },
  smoke: { files: 20, rounds: 3 },
} as const satisfies Readonly<Record<string, SkillsBenchOptions>>;
