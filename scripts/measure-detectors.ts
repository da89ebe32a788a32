/**
 * Measures the guard and writes docs/detectors.md.
 *
 *     node scripts/measure-detectors.ts            on the repo's own texts in test/corpus
 *     node scripts/measure-detectors.ts <folder>   on JSON Lines with text, label, source, kind and lang
 *
 * A folder's sources are divided in two by a hash of their names. The rules were worked on with one half; the figures are
 * those of the other. The texts stay where they are: the page has only figures and the names of sources.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { scanText } from "../src/guard/scan-text.ts";
import { isAtLeast } from "../src/model/finding.ts";

const root = join(import.meta.dirname, "..");
export const REPORT_FILE = join(root, "docs", "detectors.md");

interface Sample {
  readonly text: string;
  readonly isAttack: boolean;
  readonly source: string;
  readonly kind: string;
  readonly lang: string;
}

export interface Rate {
  readonly total: number;
  /** Texts with a finding of at least medium severity. */
  readonly flagged: number;
}

export function ownSamples(): Sample[] {
  const of = (file: string, key: string, isAttack: boolean): Sample[] =>
    rowsOf(join(root, "test", "corpus", file)).map((row) => ({
      text: String(row["text"]),
      isAttack,
      source: "own",
      kind: String(row[key]).replaceAll("_", " "),
      lang: "",
    }));
  return [...of("attacks.jsonl", "kind", true), ...of("benign.jsonl", "category", false)];
}

/** Its direct part holds harmful requests that are no injections beside those that are, and is two thirds of the texts. */
const MIXED_SOURCE = "HackaT104/prompt-injection-detector";

/** True for the half that the rules were worked on with. */
function isWorkedOn(source: string): boolean {
  return Number.parseInt(createHash("sha256").update(source).digest("hex").slice(0, 8), 16) % 2 === 0;
}

function unseenSamples(folder: string): Sample[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".jsonl"))
    .flatMap((file) => rowsOf(join(folder, file)))
    .filter((row) => row["label"] !== "quoting" && !isWorkedOn(String(row["source"])))
    .map(sampleOf);
}

/** By someone who did not know the rules, and never looked at by those who write them: only rates are. */
function blindSamples(): Sample[] {
  return rowsOf(join(root, "test", "corpus", "blind", "held-out.jsonl")).map(sampleOf);
}

function sampleOf(row: Record<string, unknown>): Sample {
  return {
    text: String(row["text"]),
    isAttack: row["label"] === "attack",
    source: String(row["source"]),
    kind: String(row["kind"]).replaceAll("_", " "),
    lang: String(row["lang"]),
  };
}

function rowsOf(file: string): Record<string, unknown>[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, unknown>);
}

export function rates(samples: readonly Sample[], groupOf: (sample: Sample) => string): Map<string, Rate> {
  const found = new Map<string, Rate>();
  for (const sample of samples) {
    const { total, flagged } = found.get(groupOf(sample)) ?? { total: 0, flagged: 0 };
    found.set(groupOf(sample), { total: total + 1, flagged: flagged + (isFlagged(sample) ? 1 : 0) });
  }
  return found;
}

const flags = new WeakMap<Sample, boolean>();

function isFlagged(sample: Sample): boolean {
  let flag = flags.get(sample);
  if (flag === undefined) {
    flag = scanText(sample.text).some(({ severity }) => isAtLeast(severity, "medium"));
    flags.set(sample, flag);
  }
  return flag;
}

/** The sort of an attack, without how it was put into another text. */
function sortOf({ kind }: Sample): string {
  return /^(?:embedded \([^)]*\): )?(bare|direct|indirect)/.exec(kind)?.[1] ?? "other";
}

function table(name: string, found: ReadonlyMap<string, Rate>, least = 1): string {
  const rows = [...found]
    .filter(([, { total }]) => total >= least)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, { total, flagged }]) => `| ${group} | ${total} | ${share(flagged, total)} |`);
  return [`| ${name} | texts | flagged |`, "|---|---:|---:|", ...rows].join("\n");
}

function share(part: number, total: number): string {
  return total === 0 ? "" : `${((100 * part) / total).toFixed(1)} %`;
}

export function ownSection(): string {
  const samples = ownSamples();
  const attacks = samples.filter(({ isAttack }) => isAttack);
  const honest = samples.filter(({ isAttack }) => !isAttack);
  return `${table(
    "all",
    rates(samples, ({ isAttack }) => (isAttack ? "attacks" : "honest texts made to look like attacks")),
  )}

${table(
  "attacks by kind",
  rates(attacks, ({ kind }) => kind),
)}

${table(
  "honest texts by kind",
  rates(honest, ({ kind }) => kind),
)}

${table(
  "texts by someone who did not know the rules, kept apart",
  rates(blindSamples(), ({ isAttack, lang }) => `${isAttack ? "attacks" : "honest texts"}, ${lang}`),
)}`;
}

function unseenSection(folder: string): string {
  const samples = unseenSamples(folder);
  const attacks = samples.filter(({ isAttack }) => isAttack);
  const honest = samples.filter(({ isAttack }) => !isAttack);
  const sorts: readonly (readonly [string, (sample: Sample) => boolean])[] = [
    [
      "indirect: attacks written into what a tool returns",
      (sample) => sample.isAttack && sortOf(sample) === "indirect",
    ],
    ["direct: a user who attacks the model", (sample) => sample.isAttack && sortOf(sample) === "direct"],
    ["bare: an order without any mark of an attack", (sample) => sample.isAttack && sortOf(sample) === "bare"],
    ["marked: indirect and direct", (sample) => sample.isAttack && sortOf(sample) !== "bare"],
    [
      `marked, without ${MIXED_SOURCE}`,
      (sample) => sample.isAttack && sortOf(sample) !== "bare" && sample.source !== MIXED_SOURCE,
    ],
    ["all attacks", (sample) => sample.isAttack],
    ["honest texts", (sample) => !sample.isAttack],
  ];
  const overview = new Map(
    sorts.map(([name, has]) => [
      name,
      [...rates(samples.filter(has), () => "").values()][0] ?? { total: 0, flagged: 0 },
    ]),
  );
  const marked = rates(
    attacks.filter((sample) => sortOf(sample) !== "bare"),
    ({ source }) => source,
  );
  const shares = [...marked.values()].map(({ total, flagged }) => flagged / total);
  const average = shares.reduce((sum, each) => sum + each, 0) / shares.length;
  return `${table("sources that were not worked on", overview)}

With each of the ${shares.length} sources of marked attacks counted once, whatever its size: ${share(average, 1)} found.

${table(
  "attacks by source",
  rates(attacks, (sample) => `${sample.source}, ${sortOf(sample)}`),
)}

${table(
  "attacks by language, from 50 texts on",
  rates(
    attacks.filter((sample) => sortOf(sample) !== "bare"),
    ({ lang }) => lang,
  ),
  50,
)}

${table(
  "honest texts by source",
  rates(honest, ({ source }) => source),
)}

${table(
  "honest texts by language, from 50 texts on",
  rates(honest, ({ lang }) => lang),
  50,
)}`;
}

/** The part of the page between two marks. */
export function withSection(page: string, name: "own" | "unseen", section: string): string {
  const [start, end] = [`<!-- ${name}: made by scripts/measure-detectors.ts -->`, `<!-- end of ${name} -->`];
  return `${page.slice(0, page.indexOf(start) + start.length)}\n\n${section}\n\n${page.slice(page.indexOf(end))}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2];
  const page = readFileSync(REPORT_FILE, "utf8");
  const next =
    folder === undefined ? withSection(page, "own", ownSection()) : withSection(page, "unseen", unseenSection(folder));
  writeFileSync(REPORT_FILE, next);
}
