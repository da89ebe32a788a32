/** Masks secrets in text that is shown, logged or recorded: known values in all their forms, and what looks like a token. */
import { KnownValues } from "./known-values.ts";
import { MASK } from "./mask.ts";
import { secretParts } from "./secret-parts.ts";
import { maskTokens } from "./token-shapes.ts";

/** Values under this length are not masked: they would blot out ordinary text and protect nothing. */
const SHORTEST = 4;
/** In what tools return a mask changes data, so only what cannot be an everyday word is masked there. */
const SHORTEST_IN_CONTENT = 8;
/** Nothing that people or programs write nests deeper; what does is masked whole rather than walked. */
const DEEPEST = 256;
const REMEMBERED_LENGTH = 100;
const MOST_REMEMBERED = 500;

export class Redactor {
  readonly #known = new KnownValues(SHORTEST);
  readonly #credentials = new KnownValues(SHORTEST_IN_CONTENT);
  /** What short texts became, until there is another value: names of tools stand in every record. */
  readonly #remembered = new Map<string, string>();

  /** A value to mask in messages: it may be a secret. */
  add(value: string): void {
    for (const part of secretParts(value)) this.#known.add(part.value, part.open);
    this.#remembered.clear();
  }

  /** A value that is a secret for certain: masked in messages and in what tools return. */
  addCredential(value: string): void {
    this.add(value);
    for (const part of secretParts(value)) this.#credentials.add(part.value, part.open);
  }

  /** For messages, logs, events and records. */
  readonly mask = (text: string): string => {
    if (text.length > REMEMBERED_LENGTH) return this.#masked(text);
    let masked = this.#remembered.get(text);
    if (masked === undefined) {
      masked = this.#masked(text);
      if (this.#remembered.size >= MOST_REMEMBERED) this.#remembered.clear();
      this.#remembered.set(text, masked);
    }
    return masked;
  };

  #masked(text: string): string {
    return maskTokens(this.#known.maskCut(this.#known.mask(text)));
  }

  /** `mask` for every string of a value, such as the details of an error. The value itself if there is nothing to mask. */
  readonly maskAll = <Value>(value: Value): Value => walk(value, this.mask);

  /**
   * For what tools return: known credentials only, so that a text which merely talks of tokens stays as it is. The value
   * itself if there is nothing to mask.
   */
  readonly maskContent = <Value>(value: Value): Value =>
    this.#credentials.empty ? value : walk(value, (text) => this.#credentials.mask(text));
}

/** Copies only what changes. */
function walk<Value>(value: Value, mask: (text: string) => string): Value {
  // Each branch gives back the kind of value that it was given.
  return maskIn(value, mask, 0) as Value;
}

function maskIn(value: unknown, mask: (text: string) => string, depth: number): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > DEEPEST) return MASK;
  if (Array.isArray(value)) {
    let list: unknown[] | undefined;
    for (let index = 0; index < value.length; index += 1) {
      const masked = maskIn(value[index], mask, depth + 1);
      if (masked !== value[index]) (list ??= [...value])[index] = masked;
    }
    return list ?? value;
  }
  let changed = false;
  const entries = Object.entries(value);
  for (const entry of entries) {
    const [key, each] = entry;
    entry[0] = mask(key);
    entry[1] = maskIn(each, mask, depth + 1);
    changed ||= entry[0] !== key || entry[1] !== each;
  }
  return changed ? Object.fromEntries(entries) : value;
}
