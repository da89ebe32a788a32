/**
 * Which of many rules may apply to a call. Most name a value that no reading of the argument begins or ends with: they are passed
 * over without being tested, so that a hundred rules cost little more than one. What is left is tested as ever.
 */
import type { JsonObject } from "../model/json.ts";
import { type ArgumentReader, type FilePlace, foldKey, type ValueHint } from "./argument-values.ts";
import { type CallFacts, callHash, type Conditions } from "./rule-conditions.ts";

/** With fewer rules the index costs more than it saves. */
const WORTH_AN_INDEX = 8;

interface Indexed {
  readonly conditions: Conditions | undefined;
}

interface PlacedIndex<E> {
  readonly groups: readonly HintGroup[];
  /** Positions of entries for one call only, by its hash. */
  readonly calls: ReadonlyMap<string | undefined, readonly number[]>;
  /** Whether an entry has to be tested for every call, by its position. */
  readonly isAlways: readonly boolean[];
  readonly always: readonly E[];
}

export class PatternIndex<E extends Indexed> {
  readonly #entries: readonly E[];
  /** `~` and relative patterns mean other files at another place. */
  readonly #placed = new WeakMap<FilePlace, PlacedIndex<E>>();

  private constructor(entries: readonly E[]) {
    this.#entries = entries;
  }

  /** Undefined where there is little to gain. */
  static of<E extends Indexed>(entries: readonly E[]): PatternIndex<E> | undefined {
    const conditional = entries.filter(({ conditions }) => conditions !== undefined);
    return conditional.length < WORTH_AN_INDEX ? undefined : new PatternIndex(entries);
  }

  /** The entries that may hold, in their order. The conditions of every other one do not, beyond doubt. */
  candidates({ arguments: args, reader }: CallFacts): readonly E[] {
    if (args === undefined) return this.#entries;
    let index = this.#placed.get(reader.place);
    if (index === undefined) this.#placed.set(reader.place, (index = this.#at(reader.place)));
    const { groups, calls, isAlways, always } = index;
    const exact = calls.size === 0 ? undefined : calls.get(reader.hashOf(args, callHash));
    let found = exact && new Set(exact);
    for (const group of groups) found = group.find(args, reader, found);
    if (found === undefined) return always;
    return this.#entries.filter((_, position) => isAlways[position] === true || found.has(position));
  }

  #at(place: FilePlace): PlacedIndex<E> {
    const groups = new Map<string, HintGroup>();
    const calls = new Map<string | undefined, readonly number[]>();
    const isAlways = this.#entries.map(({ conditions }, position) => {
      const screen = conditions?.screen(place);
      if (screen === undefined) return true;
      if ("callHash" in screen) {
        calls.set(screen.callHash, [...(calls.get(screen.callHash) ?? []), position]);
        return false;
      }
      for (const hint of screen.hints) {
        const name = JSON.stringify([screen.key, hint.of, hint.isEnd]);
        let group = groups.get(name);
        if (group === undefined) groups.set(name, (group = new HintGroup(screen.key, hint)));
        group.add(hint, position);
      }
      return false;
    });
    for (const group of groups.values()) group.sort();
    const always = this.#entries.filter((_, position) => isAlways[position]);
    return { groups: [...groups.values()], calls, isAlways, always };
  }
}

interface IndexedText {
  readonly text: string;
  readonly positions: number[];
  /** The longest other one that this one begins with. */
  parent: IndexedText | undefined;
}

/** The hints of one kind for one argument. */
class HintGroup {
  readonly #key: string;
  readonly #folded: string;
  readonly #of: ValueHint["of"];
  readonly #isEnd: boolean;
  readonly #folders = new Set<string>();
  readonly #positions = new Set<number>();
  readonly #byText = new Map<string, IndexedText>();
  #sorted: readonly IndexedText[] = [];

  constructor(key: string, { of, isEnd }: ValueHint) {
    this.#key = key;
    this.#folded = foldKey(key);
    this.#of = of;
    this.#isEnd = isEnd;
  }

  add({ text, folder }: ValueHint, position: number): void {
    const written = this.#isEnd ? reversed(text) : text;
    const known = this.#byText.get(written);
    if (known === undefined) this.#byText.set(written, { text: written, positions: [position], parent: undefined });
    else known.positions.push(position);
    this.#positions.add(position);
    if (folder !== undefined) this.#folders.add(folder);
  }

  sort(): void {
    this.#sorted = [...this.#byText.values()].toSorted((a, b) => (a.text < b.text ? -1 : 1));
    let before: IndexedText | undefined;
    for (const each of this.#sorted) {
      while (before !== undefined && !each.text.startsWith(before.text)) before = before.parent;
      each.parent = before;
      before = each;
    }
  }

  /** Adds the positions of the entries that may hold. */
  find(args: Readonly<JsonObject>, reader: ArgumentReader, found: Set<number> | undefined): Set<number> | undefined {
    const value = Object.hasOwn(args, this.#key) ? args[this.#key] : undefined;
    const isText = typeof value === "string" && value !== "";
    // Beside a key that a server may take for this one, the value is not all that counts.
    const isAlone = isText && reader.twins(args, this.#key, this.#folded).length === 0;
    const readings = isAlone ? reader.readings(this.#of, value) : undefined;
    if (readings === undefined || !this.#isSettled(reader)) return new Set([...(found ?? []), ...this.#positions]);
    let all = found;
    for (const reading of readings) {
      const text = this.#isEnd ? reversed(reading) : reading;
      let each = this.#lastUpTo(text);
      while (each !== undefined) {
        if (text.startsWith(each.text)) for (const position of each.positions) (all ??= new Set()).add(position);
        each = each.parent;
      }
    }
    return all;
  }

  /** Whether the folders of all patterns are where their names say. */
  #isSettled(reader: ArgumentReader): boolean {
    if (!reader.followsLinks) return true;
    for (const folder of this.#folders) if (reader.real(folder) !== folder) return false;
    return true;
  }

  /** The last that sorts before the text or with it. Whatever the text begins with, this one begins with, too. */
  #lastUpTo(text: string): IndexedText | undefined {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const each = this.#sorted[middle];
      if (each !== undefined && each.text <= text) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low - 1];
  }
}

function reversed(text: string): string {
  let result = "";
  for (let at = text.length - 1; at >= 0; at -= 1) result += text.charAt(at);
  return result;
}
