/** Adds up scores over posting lists. Its arrays are made once and reused, so that a query allocates next to nothing. */
import type { Postings } from "./postings.ts";
import type { Wanted } from "./query.ts";

/** How much a tool loses that has next to nothing of what the query asks for. */
const COVERAGE_SHARE = 0.6;

export class ScoreSheet {
  readonly #postings: Postings;
  readonly #scores: Float64Array;
  /** What a tool has of the query, whatever it counts there. */
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
  add({ terms }: Wanted): void {
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
