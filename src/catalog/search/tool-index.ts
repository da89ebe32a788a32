/**
 * A ranking of tools for a query: BM25F over name, server, tags, description and parameters.
 *
 * By hand, because a search must cost less than the call it saves. Over 5,000 tools, against one HTTP call on loopback
 * in the same run, a query took 4.7 times as long with minisearch 7 and 3.7 times with SQLite's FTS5; here it takes a
 * fraction of it (`npm run bench`), as weights are finished when the index is built and a query only adds them up.
 */
import { isLocalSource, type ToolCapability } from "../../model/capability.ts";
import { isJsonObject } from "../../model/json.ts";
import { type QueryTerm, readQuery, Vocabulary } from "./search-query.ts";
import { rawWords, readWord } from "./search-words.ts";

interface Hit {
  readonly name: string;
  readonly score: number;
}

interface ToolIndexOptions {
  /** Tags of a source, by its id. */
  readonly tagsOf?: (source: string) => readonly string[];
}

/** Some tools of an index; made by `ToolIndex.subset`. */
export interface Subset {
  readonly flags: Uint8Array;
}

/** Above any sum of weights, so that an exact name comes first. */
const EXACT_PUBLIC_NAME = 2000;
const EXACT_OWN_NAME = 1000;

export class ToolIndex {
  readonly #names: readonly string[];
  readonly #postings: Postings;
  readonly #byPublicName = new Map<string, number[]>();
  readonly #byOwnName = new Map<string, number[]>();
  #vocabulary: Vocabulary | undefined;
  readonly #sheet: ScoreAccumulator;

  constructor(tools: readonly ToolCapability[], options: ToolIndexOptions = {}) {
    const tags = new Map<string, readonly string[]>();
    const tagsOf = (source: string): readonly string[] => {
      let known = tags.get(source);
      if (known === undefined) tags.set(source, (known = options.tagsOf?.(source) ?? []));
      return known;
    };
    this.#names = tools.map((tool) => tool.name);
    this.#postings = buildPostings(tools.map((tool) => fieldTexts(tool, tagsOf(tool.origin.source))));
    for (const [position, tool] of tools.entries()) {
      addTo(this.#byPublicName, fold(tool.name), position);
      addTo(this.#byOwnName, fold(tool.origin.name), position);
    }
    this.#sheet = new ScoreAccumulator(this.#postings, tools.length);
  }

  get size(): number {
    return this.#names.length;
  }

  /** Best first; equals in the order in which the tools were given. Tools that have nothing of the query are left out. */
  search(query: string, limit: number, among?: Subset): Hit[] {
    const { termIds, rarity } = this.#postings;
    const vocabulary = (): Vocabulary => (this.#vocabulary ??= new Vocabulary(termIds.keys()));
    const sheet = this.#sheet;
    for (const wanted of readQuery(query, { termIds, rarity, vocabulary })) sheet.add(wanted);
    sheet.weighCoverage();
    const folded = fold(query);
    for (const tool of this.#byPublicName.get(folded) ?? []) sheet.raise(tool, EXACT_PUBLIC_NAME);
    for (const tool of this.#byOwnName.get(folded) ?? []) sheet.raise(tool, EXACT_OWN_NAME);

    const top = new TopList(limit);
    sheet.drain((tool, score) => {
      if (among === undefined || among.flags[tool] === 1) top.offer(tool, score);
    });
    return top.entries().map(({ item, score }) => ({ name: this.#names[item] ?? "", score }));
  }

  /** For searching among some of the tools; keep it as long as they are the same. */
  subset(tools: readonly ToolCapability[]): Subset {
    const names = new Set(tools.map((tool) => tool.name));
    return { flags: Uint8Array.from(this.#names, (name) => (names.has(name) ? 1 : 0)) };
  }
}

/** Without case and separators, so that `files.readFile` and `files__read_file` are one name. */
function fold(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
}

function addTo(map: Map<string, number[]>, key: string, position: number): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [position]);
  else known.push(position);
}

/**
 * The searched parts of a tool and how much each counts. `evenness` is BM25's b: how much a long field is held against its
 * words. Names are weighed apart from prose, each with its own rarity of words: "list" is in the prose of most tools, and
 * still tells `list_issues` from `get_issue`.
 */
const FIELDS = [
  { name: "name", group: "label", weight: 3, evenness: 0.5 },
  { name: "server", group: "label", weight: 1, evenness: 0 },
  { name: "tags", group: "prose", weight: 2, evenness: 0.3 },
  { name: "description", group: "prose", weight: 2, evenness: 0.6 },
  { name: "parameterNames", group: "prose", weight: 1, evenness: 0.6 },
  { name: "parameterTexts", group: "prose", weight: 0.5, evenness: 0.6 },
] as const satisfies readonly { name: string; group: Group; weight: number; evenness: number }[];

type Group = "label" | "prose";

/** The weight of each group. */
const GROUP_WEIGHTS: Readonly<Record<Group, number>> = { label: 1, prose: 0.6 };

const FIELD_COUNT = FIELDS.length;

/** A server decides what it sends; what it takes to index it must not be its choice. */
const MAX_TEXT = 4000;
const MAX_PARAMETERS = 200;
const MAX_DEPTH = 4;
const MAX_CHOICES = 20;

/** The texts of a tool, for each of FIELDS. */
type FieldTexts = readonly (readonly string[])[];

function fieldTexts(tool: ToolCapability, tags: readonly string[]): FieldTexts {
  const { definition, origin, name } = tool;
  const parameters = new ParameterTexts();
  parameters.read(definition.inputSchema, 0);
  return [
    [origin.name, cut(definition.title ?? "")],
    // The public name contains the prefix that people know the server by; for in-process tools there is no server.
    isLocalSource(origin.source) ? [] : [origin.source, name],
    tags,
    [cut(definition.description ?? "")],
    parameters.names,
    parameters.texts,
  ];
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text;
}

class ParameterTexts {
  readonly names: string[] = [];
  readonly texts: string[] = [];
  #room = MAX_TEXT * 2;

  read(schema: unknown, depth: number): void {
    if (!isJsonObject(schema) || depth > MAX_DEPTH) return;
    if (depth > 0 && typeof schema["description"] === "string") this.texts.push(this.#short(schema["description"]));
    if (Array.isArray(schema["enum"])) {
      const choices = schema["enum"].slice(0, MAX_CHOICES).filter((choice) => typeof choice === "string");
      this.texts.push(...choices.map((choice) => this.#short(choice)));
    }
    if (isJsonObject(schema["properties"])) {
      for (const [name, property] of Object.entries(schema["properties"])) {
        if (this.names.length >= MAX_PARAMETERS) return;
        this.names.push(this.#short(name));
        this.read(property, depth + 1);
      }
    }
    this.read(schema["items"], depth + 1);
  }

  /** As much of a text as there is room for beside the others. */
  #short(text: string): string {
    const short = text.length > this.#room ? text.slice(0, this.#room) : text;
    this.#room -= short.length;
    return short;
  }
}

/** All terms of all tools one after the other, as numbers; field f of tool i ends at `ends[i * FIELD_COUNT + f]`. */
interface TermStream {
  readonly termIds: ReadonlyMap<string, number>;
  readonly terms: readonly number[];
  readonly ends: readonly number[];
}

function readTerms(toolTexts: Iterable<FieldTexts>): TermStream {
  const termIds = new Map<string, number>();
  const terms: number[] = [];
  const ends: number[] = [];
  const idOf = (term: string): number => {
    let id = termIds.get(term);
    if (id === undefined) termIds.set(term, (id = termIds.size));
    return id;
  };
  // Tools share most of their words and many of their texts, so each is taken apart once.
  const knownWords = new Map<string, readonly number[]>();
  const idsOfWord = (raw: string): readonly number[] => {
    let ids = knownWords.get(raw);
    if (ids === undefined) {
      const { parts, whole } = readWord(raw);
      ids = (whole === undefined ? parts : [...parts, whole]).map(idOf);
      knownWords.set(raw, ids);
    }
    return ids;
  };
  const knownTexts = new Map<string, readonly number[]>();
  for (const fields of toolTexts) {
    for (let field = 0; field < FIELD_COUNT; field += 1) {
      for (const text of fields[field] ?? []) {
        let ids = knownTexts.get(text);
        if (ids === undefined) knownTexts.set(text, (ids = rawWords(text).flatMap(idsOfWord)));
        for (let i = 0; i < ids.length; i += 1) terms.push(ids[i] ?? 0);
      }
      ends.push(terms.length);
    }
  }
  return { termIds, terms, ends };
}

/** BM25's k1: how soon more of the same word stops to count. */
const SATURATION = 1.2;

interface Postings {
  readonly termIds: ReadonlyMap<string, number>;
  /** Postings of term t are from `starts[t]` to `starts[t + 1]`, in the order of the tools. */
  readonly starts: Uint32Array;
  readonly tools: Uint32Array;
  readonly weights: Float32Array;
  /** How rare each term is, in names or in prose, wherever it is rarer. */
  readonly rarity: Float32Array;
}

/**
 * Turns texts into posting lists: for every term the tools that have it, each with its final BM25F weight. `?? 0` after an
 * element that always exists satisfies the compiler; a helper function for it would be shared by arrays of all types,
 * which V8 reads several times more slowly.
 * @param toolTexts The texts of the fields of each tool.
 */
function buildPostings(toolTexts: Iterable<FieldTexts>): Postings {
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

/** How much a tool loses that has next to nothing of what the query asks for. */
const COVERAGE_SHARE = 0.6;

/** Adds up scores over posting lists. Its arrays are allocated once and reused, so that a query allocates almost nothing. */
class ScoreAccumulator {
  readonly #postings: Postings;
  readonly #scores: Float64Array;
  /** How much of the query each tool covers. */
  readonly #coverage: Float64Array;
  /** All 0 but while a wanted thing is added. */
  readonly #best: Float64Array;
  readonly #having: Uint32Array;
  readonly #touched: Uint32Array;
  #touchedCount = 0;
  #whole = 0;

  constructor(postings: Postings, toolCount: number) {
    this.#postings = postings;
    this.#scores = new Float64Array(toolCount);
    this.#coverage = new Float64Array(toolCount);
    this.#best = new Float64Array(toolCount);
    this.#having = new Uint32Array(toolCount);
    this.#touched = new Uint32Array(toolCount);
  }

  /** Gives each tool the best that it has of one wanted thing. */
  add({ terms }: QueryTerm): void {
    const { starts, tools, weights, rarity } = this.#postings;
    const best = this.#best;
    const having = this.#having;
    let count = 0;
    let worth = 0;
    for (const { id, weight } of terms) {
      worth = Math.max(worth, weight * (rarity[id] ?? 0));
      const end = starts[id + 1] ?? 0;
      for (let i = starts[id] ?? 0; i < end; i += 1) {
        const tool = tools[i] ?? 0;
        const gain = weight * (weights[i] ?? 0);
        const before = best[tool] ?? 0;
        if (before === 0) having[count++] = tool;
        if (gain > before) best[tool] = gain;
      }
    }
    this.#whole += worth;
    const coverage = this.#coverage;
    for (let i = 0; i < count; i += 1) {
      const tool = having[i] ?? 0;
      this.raise(tool, best[tool] ?? 0);
      coverage[tool] = (coverage[tool] ?? 0) + worth;
      best[tool] = 0;
    }
  }

  raise(tool: number, by: number): void {
    const before = this.#scores[tool] ?? 0;
    if (before === 0) this.#touched[this.#touchedCount++] = tool;
    this.#scores[tool] = before + by;
  }

  /** Favours tools that have more of the query; for after the last wanted thing. */
  weighCoverage(): void {
    const [scores, coverage, touched] = [this.#scores, this.#coverage, this.#touched];
    for (let i = 0; i < this.#touchedCount; i += 1) {
      const tool = touched[i] ?? 0;
      const covered = (coverage[tool] ?? 0) / this.#whole;
      scores[tool] = (scores[tool] ?? 0) * (1 - COVERAGE_SHARE + COVERAGE_SHARE * covered);
    }
  }

  /** Hands out every tool that has a score, and is empty again. */
  drain(take: (tool: number, score: number) => void): void {
    const [scores, coverage, touched] = [this.#scores, this.#coverage, this.#touched];
    for (let i = 0; i < this.#touchedCount; i += 1) {
      const tool = touched[i] ?? 0;
      take(tool, scores[tool] ?? 0);
      scores[tool] = 0;
      coverage[tool] = 0;
    }
    this.#touchedCount = 0;
    this.#whole = 0;
  }
}

interface Scored {
  readonly item: number;
  readonly score: number;
}

/** The best few of many, without sorting the many. */
class TopList {
  readonly #limit: number;
  /** Best first; equals by item number. */
  readonly #entries: Scored[] = [];

  constructor(limit: number) {
    this.#limit = Math.max(0, Math.floor(limit));
  }

  offer(item: number, score: number): void {
    const entries = this.#entries;
    if (entries.length >= this.#limit) {
      const last = entries.at(-1);
      if (last === undefined || !comesBefore(item, score, last)) return;
      entries.pop();
    }
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = entries[middle];
      if (entry !== undefined && comesBefore(item, score, entry)) high = middle;
      else low = middle + 1;
    }
    entries.splice(low, 0, { item, score });
  }

  entries(): readonly Scored[] {
    return this.#entries;
  }
}

function comesBefore(item: number, score: number, other: Scored): boolean {
  return score > other.score || (score === other.score && item < other.item);
}
