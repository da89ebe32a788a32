/** Which nodes would run a server: each says so of itself, because their configs may differ. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { JsonObject } from "../../model/json.ts";

/** All nodes write their facts several times in each lease: enough of a digest to tell specs apart. */
const MARK_LENGTH = 12;

export class WillingNodes {
  readonly #cluster: Cluster;
  /** By whoever would run it here. */
  readonly #own = new Map<object, string>();
  /** Facts are heard anew with each beat, and read by every server. */
  readonly #read = new WeakMap<JsonObject, ReadonlySet<string>>();
  #told = "";
  #telling = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** @param digest Of the spec that this node would run; undefined: it would run none. */
  declare(by: object, digest: string | undefined): void {
    const mark = digest?.slice(0, MARK_LENGTH);
    if (this.#own.get(by) === mark) return;
    if (mark === undefined) this.#own.delete(by);
    else this.#own.set(by, mark);
    if (this.#telling) return;
    this.#telling = true;
    setImmediate(() => this.#tell());
  }

  /** Other living nodes that would run it. */
  willRun(digest: string): string[] {
    return this.#others((runs) => runs?.has(digest.slice(0, MARK_LENGTH)) === true);
  }

  /** The same, and those that have just come and said nothing yet. */
  mayRun(digest: string): string[] {
    return this.#others((runs) => runs?.has(digest.slice(0, MARK_LENGTH)) !== false);
  }

  #others(isOne: (runs: ReadonlySet<string> | undefined) => boolean): string[] {
    const self = this.#cluster.node.id;
    return this.#cluster.nodes().flatMap(({ id, facts }) => (id !== self && isOne(this.#runs(facts)) ? [id] : []));
  }

  #runs(facts: JsonObject): ReadonlySet<string> | undefined {
    const { runs } = facts;
    if (!Array.isArray(runs)) return undefined;
    const known = this.#read.get(facts) ?? new Set(runs.map(String));
    this.#read.set(facts, known);
    return known;
  }

  #tell(): void {
    this.#telling = false;
    const runs = [...new Set(this.#own.values())].toSorted();
    const told = runs.join(" ");
    const isKnown = told === this.#told && this.#cluster.node.facts["runs"] !== undefined;
    this.#told = told;
    if (!isKnown) this.#cluster.setFacts({ ...this.#cluster.node.facts, runs });
  }
}
