/** A YAML document as plain JSON: one walk that also finds doubled keys and keeps aliases from growing without bound. */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from "yaml";
import type { JsonObject } from "../../model/json.ts";

/** Values that aliases may add to what is written out. An honest file adds a few. */
const MOST_ALIASED = 1000;
const DEEPEST = 64;

export interface Surprise {
  readonly code: "DUPLICATE_KEY" | "ALIAS_LIMIT" | "TOO_DEEP" | "KEY_IGNORED";
  readonly message: string;
  /** In the YAML text. */
  readonly offset: number;
}

interface Anchored {
  readonly value: unknown;
  /** How many values it holds, itself included. */
  readonly size: number;
}

export function toJson(document: Document.Parsed, found: (surprise: Surprise) => void): unknown {
  return new Walk(found).value(document.contents, 0);
}

/** The node's key or value as text in a key's place. */
export function keyText(key: unknown): string {
  if (!isScalar(key)) return isAlias(key) ? `*${key.source}` : "?";
  return typeof key.value === "string" ? key.value : (key.source ?? String(key.value));
}

class Walk {
  readonly #found: (surprise: Surprise) => void;
  readonly #anchors = new Map<string, Anchored>();
  #count = 0;
  #aliased = 0;
  #overLimit = false;

  constructor(found: (surprise: Surprise) => void) {
    this.#found = found;
  }

  value(node: unknown, depth: number): unknown {
    const before = this.#count;
    this.#count += 1;
    if (isScalar(node)) return this.#anchored(node, before, scalarValue(node.value, node.source));
    if (isAlias(node)) return this.#alias(node.source, offsetOf(node));
    if (depth >= DEEPEST && (isMap(node) || isSeq(node))) {
      this.#found({ code: "TOO_DEEP", message: `Nested more than ${DEEPEST} deep: left out.`, offset: offsetOf(node) });
      return null;
    }
    if (isMap(node)) return this.#anchored(node, before, this.#map(node, depth));
    if (isSeq(node)) {
      return this.#anchored(
        node,
        before,
        node.items.map((item) => this.value(item, depth + 1)),
      );
    }
    return null;
  }

  #map(map: YAMLMap, depth: number): JsonObject {
    const result: JsonObject = {};
    for (const { key, value } of map.items) {
      const name = keyText(key);
      if (name === "__proto__") {
        this.#found({ code: "KEY_IGNORED", message: 'The key "__proto__" is left out.', offset: offsetOf(key) });
        continue;
      }
      if (Object.hasOwn(result, name)) {
        const message = `"${name.slice(0, 60)}" is there more than once; the last one counts.`;
        this.#found({ code: "DUPLICATE_KEY", message, offset: offsetOf(key) });
      }
      result[name] = this.value(value, depth + 1);
    }
    return result;
  }

  #anchored(node: Node, before: number, value: unknown): unknown {
    if ("anchor" in node && node.anchor !== undefined) {
      this.#anchors.set(node.anchor, { value, size: this.#count - before });
    }
    return value;
  }

  /** An alias to what is still being read, its own parent, finds nothing: a loop ends here. */
  #alias(name: string, offset: number): unknown {
    const target = this.#anchors.get(name);
    if (target === undefined) return null;
    this.#aliased += target.size;
    // Counted into whatever holds the alias, so that an anchor of aliases weighs what it expands to.
    this.#count += target.size - 1;
    if (this.#aliased <= MOST_ALIASED) return target.value;
    this.#count -= target.size - 1;
    if (!this.#overLimit) {
      this.#found({
        code: "ALIAS_LIMIT",
        message: `Aliases stand for more than ${MOST_ALIASED} values; the rest is left out.`,
        offset,
      });
    }
    this.#overLimit = true;
    return null;
  }
}

/** JSON has no infinities and no bigints; those stay as they were written. */
function scalarValue(value: unknown, source: string | undefined): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return source ?? String(value);
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return value;
  return source ?? (JSON.stringify(value) || null);
}

export function offsetOf(node: unknown): number {
  return (isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined) ?? 0;
}
