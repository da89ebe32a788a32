/** A map of limited size that evicts the least recently used entry. For values that can be computed again. */
export class LruMap<Key, Value extends object> {
  readonly #most: number;
  /** In the order of their last use. */
  readonly #entries = new Map<Key, Value>();
  #newest: Key | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    // Moving the newest to the end would change nothing but make V8 allocate a table every few times.
    if (value !== undefined && key !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
      this.#newest = key;
    }
    return value;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#newest = key;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#most) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, value);
  }

  clear(): void {
    this.#entries.clear();
  }
}

/** Deletions after which the map is replaced; more in a larger map, so that copying stays cheap per deletion. */
const RENEW_AFTER = 64;

/**
 * A map for entries that come and go all the time, such as calls in progress.
 *
 * V8 allocates a new table when a map has seen enough deletions, and the old table points to the new one. Once a table is
 * in the old generation of the heap, everything that its successors ever held survives until the next full collection:
 * under load that was every call, with its request and its result. Replacing the map in time breaks that chain.
 */
export class ChurnMap<Key, Value> {
  #entries = new Map<Key, Value>();
  #deleted = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value);
  }

  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false;
    if (++this.#deleted >= RENEW_AFTER && this.#deleted >= this.#entries.size) {
      this.#entries = new Map(this.#entries);
      this.#deleted = 0;
    }
    return true;
  }

  /** In insertion order. If entries are deleted during the iteration, it may still return them. */
  keys(): MapIterator<Key> {
    return this.#entries.keys();
  }

  values(): MapIterator<Value> {
    return this.#entries.values();
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#entries[Symbol.iterator]();
  }
}

/** The same for a set. */
export class ChurnSet<Item> {
  #items = new Set<Item>();
  #deleted = 0;

  get size(): number {
    return this.#items.size;
  }

  has(item: Item): boolean {
    return this.#items.has(item);
  }

  add(item: Item): void {
    this.#items.add(item);
  }

  delete(item: Item): boolean {
    if (!this.#items.delete(item)) return false;
    if (++this.#deleted >= RENEW_AFTER && this.#deleted >= this.#items.size) {
      this.#items = new Set(this.#items);
      this.#deleted = 0;
    }
    return true;
  }

  /** As the map's. */
  [Symbol.iterator](): SetIterator<Item> {
    return this.#items[Symbol.iterator]();
  }
}
