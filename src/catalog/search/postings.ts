/**
 * From texts to posting lists: for every term the tools that have it, each with its finished BM25F weight.
 * `?? 0` after an element that is there by construction is for the compiler; a function for it would be shared by arrays
 * of all types, which V8 reads several times more slowly.
 */
import { FIELD_COUNT, FIELDS, type FieldTexts, GROUP_WEIGHTS } from "./fields.ts";
import { readTerms, type TermStream } from "./term-stream.ts";

/** BM25's k1: how soon more of the same word stops to count. */
const SATURATION = 1.2;

export interface Postings {
  readonly termIds: ReadonlyMap<string, number>;
  /** Postings of term t stand from `starts[t]` to `starts[t + 1]`, in the order of the tools. */
  readonly starts: Uint32Array;
  readonly tools: Uint32Array;
  readonly weights: Float32Array;
  /** How rare each term is, in names or in prose, wherever it is rarer. */
  readonly rarity: Float32Array;
}

/** @param toolTexts For each tool the texts of its fields. */
export function buildPostings(toolTexts: Iterable<FieldTexts>): Postings {
  const stream = readTerms(toolTexts);
  const found = countTerms(stream);
  const termCount = stream.termIds.size;
  const labelRarity = rarityOf(found.labelHaving, found.toolCount);
  const proseRarity = rarityOf(found.proseHaving, found.toolCount);

  const starts = new Uint32Array(termCount + 1);
  for (const term of found.terms) starts[term + 1] = (starts[term + 1] ?? 0) + 1;
  for (let term = 0; term < termCount; term += 1) starts[term + 1] = (starts[term + 1] ?? 0) + (starts[term] ?? 0);

  const next = starts.slice();
  const tools = new Uint32Array(found.terms.length);
  const weights = new Float32Array(found.terms.length);
  for (let i = 0; i < found.terms.length; i += 1) {
    const term = found.terms[i] ?? 0;
    const place = next[term] ?? 0;
    next[term] = place + 1;
    tools[place] = found.tools[i] ?? 0;
    weights[place] =
      GROUP_WEIGHTS.label * (labelRarity[term] ?? 0) * saturated(found.inLabel[i] ?? 0) +
      GROUP_WEIGHTS.prose * (proseRarity[term] ?? 0) * saturated(found.inProse[i] ?? 0);
  }
  const rarity = labelRarity.map((value, term) =>
    Math.max(
      (found.labelHaving[term] ?? 0) > 0 ? value : 0,
      (found.proseHaving[term] ?? 0) > 0 ? (proseRarity[term] ?? 0) : 0,
    ),
  );
  return { termIds: stream.termIds, starts, tools, weights, rarity };
}

function saturated(count: number): number {
  return (count * (SATURATION + 1)) / (SATURATION + count);
}

function rarityOf(having: Uint32Array, toolCount: number): Float32Array {
  return Float32Array.from(having, (count) => Math.log(1 + (toolCount - count + 0.5) / (count + 0.5)));
}

/** Side by side in lists: in this tool this term counts so much in the label, so much in the prose. */
interface TermCounts {
  readonly toolCount: number;
  readonly tools: readonly number[];
  readonly terms: readonly number[];
  readonly inLabel: readonly number[];
  readonly inProse: readonly number[];
  /** For each term, how many tools have it there. */
  readonly labelHaving: Uint32Array;
  readonly proseHaving: Uint32Array;
}

/** Adds up the occurrences of a term in a tool over the fields of a group: the F of BM25F. */
function countTerms({ termIds, terms: stream, ends }: TermStream): TermCounts {
  const toolCount = ends.length / FIELD_COUNT;
  const averages = averageLengths(ends, toolCount);
  const [tools, terms, inLabel, inProse]: [number[], number[], number[], number[]] = [[], [], [], []];
  const labelHaving = new Uint32Array(termIds.size);
  const proseHaving = new Uint32Array(termIds.size);
  const label = new Float64Array(termIds.size);
  const prose = new Float64Array(termIds.size);
  let position = 0;
  for (let tool = 0; tool < toolCount; tool += 1) {
    const first = terms.length;
    for (let field = 0; field < FIELD_COUNT; field += 1) {
      const { weight, evenness, group } = FIELDS[field] ?? FIELDS[0];
      const end = ends[tool * FIELD_COUNT + field] ?? 0;
      const length = (end - position) / (averages[field] ?? 1);
      const share = weight / (1 - evenness + evenness * length);
      const sum = group === "label" ? label : prose;
      for (; position < end; position += 1) {
        const term = stream[position] ?? 0;
        if ((label[term] ?? 0) === 0 && (prose[term] ?? 0) === 0) terms.push(term);
        sum[term] = (sum[term] ?? 0) + share;
      }
    }
    for (let i = first; i < terms.length; i += 1) {
      const term = terms[i] ?? 0;
      tools.push(tool);
      inLabel.push(label[term] ?? 0);
      inProse.push(prose[term] ?? 0);
      if ((label[term] ?? 0) > 0) labelHaving[term] = (labelHaving[term] ?? 0) + 1;
      if ((prose[term] ?? 0) > 0) proseHaving[term] = (proseHaving[term] ?? 0) + 1;
      label[term] = 0;
      prose[term] = 0;
    }
  }
  return { toolCount, tools, terms, inLabel, inProse, labelHaving, proseHaving };
}

function averageLengths(ends: readonly number[], toolCount: number): number[] {
  const totals = FIELDS.map(() => 0);
  for (let i = 0; i < ends.length; i += 1) {
    const field = i % FIELD_COUNT;
    totals[field] = (totals[field] ?? 0) + (ends[i] ?? 0) - (i === 0 ? 0 : (ends[i - 1] ?? 0));
  }
  // Where no tool has the field there is nothing to divide either.
  return totals.map((total) => Math.max(total / Math.max(toolCount, 1), 1e-9));
}
