/**
 * A ranking of tools for a query: BM25F over name, server, tags, description and parameters.
 *
 * By hand, because a search must cost less than the call it saves. Over 5,000 tools, against one HTTP call on loopback
 * in the same run, a query took 4.7 times as long with minisearch 7 and 3.7 times with SQLite's FTS5; here it takes a
 * fraction of it (`npm run bench`), as weights are finished when the index is built and a query only adds them up.
 */
import type { ToolCapability } from "../../model/capability.ts";
import { fieldTexts } from "./fields.ts";
import { buildPostings, type Postings } from "./postings.ts";
import { readQuery } from "./query.ts";
import { ScoreSheet } from "./score-sheet.ts";
import { TopList } from "./top-list.ts";
import { Vocabulary } from "./vocabulary.ts";

export interface Hit {
  readonly name: string;
  readonly score: number;
}

export interface ToolIndexOptions {
  /** Tags of a source, by its id. */
  readonly tagsOf?: (source: string) => readonly string[];
}

/** Some tools of an index; made by `ToolIndex.subset`. */
export interface Subset {
  readonly flags: Uint8Array;
}

/** Above any sum of weights, so that whoever knows a name gets it first. */
const EXACT_PUBLIC_NAME = 2000;
const EXACT_OWN_NAME = 1000;

export class ToolIndex {
  readonly #names: readonly string[];
  readonly #postings: Postings;
  readonly #byPublicName = new Map<string, number[]>();
  readonly #byOwnName = new Map<string, number[]>();
  #vocabulary: Vocabulary | undefined;
  readonly #sheet: ScoreSheet;

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
    this.#sheet = new ScoreSheet(this.#postings, tools.length);
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
