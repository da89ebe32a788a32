/** A parsed piece of YAML. The places of its values are computed only when they are needed. */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, parseDocument, Schema, type YAMLMap } from "yaml";
import type { JsonObject } from "../../model/json.ts";
import { lineAt } from "./split-frontmatter.ts";

// Made once: the parser would otherwise build the same schema for every file. Known tags would change it, so they are off.
const schema = new Schema({ schema: "core", resolveKnownTags: false });

/** Doubled keys are found by the walk: the parser's own check takes quadratic time. */
const PARSE_OPTIONS = { schema, uniqueKeys: false, prettyErrors: false, logLevel: "silent" } as const;

/** Finding the line of each is not for free. */
const MAX_YAML_PROBLEMS = 100;

export type ValuePath = readonly (string | number)[];

export class YamlText {
  readonly text: string;
  /** The line of the file in which the text begins, from 1. */
  readonly firstLine: number;
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  readonly error: { readonly message: string; readonly line: number } | undefined;
  readonly unknownTag: { readonly line: number } | undefined;
  readonly #document: Document.Parsed | undefined;

  constructor(text: string, firstLine: number) {
    this.text = text;
    this.firstLine = firstLine;
    try {
      this.#document = parseDocument(text, PARSE_OPTIONS);
    } catch (thrown) {
      // Nesting that exhausts the stack, or a fault of the parser: the text cannot be read this way.
      this.error = { message: thrown instanceof Error ? thrown.message : String(thrown), line: firstLine };
      this.problems = [];
      return;
    }
    const [error] = this.#document.errors;
    const [warning] = this.#document.warnings;
    if (error !== undefined) this.error = { message: error.message, line: this.lineOfOffset(error.pos[0]) };
    if (warning !== undefined) this.unknownTag = { line: this.lineOfOffset(warning.pos[0]) };
    const problems: YamlProblem[] = [];
    this.problems = problems;
    const report = (problem: YamlProblem): unknown => problems.length < MAX_YAML_PROBLEMS && problems.push(problem);
    this.value = error === undefined ? new JsonWalk(report).value(this.#document.contents, 0) : undefined;
  }

  lineOfOffset(offset: number): number {
    return this.firstLine + lineAt(this.text, offset) - 1;
  }

  /** The line of a key or list item; of the nearest thing around it if it is not there itself. */
  lineOf(path: ValuePath): number {
    return this.lineOfOffset(this.#find(path).offset);
  }

  /** A scalar as it was written: `1.10` where the value is 1.1. */
  sourceOf(path: ValuePath): string | undefined {
    const { node, whole } = this.#find(path);
    return whole && isScalar(node) ? node.source : undefined;
  }

  /** All of a value as it was written. */
  textOf(path: ValuePath): string | undefined {
    const { node, whole } = this.#find(path);
    const range = whole && (isMap(node) || isSeq(node) || isScalar(node)) ? node.range : undefined;
    return range === undefined || range === null ? undefined : this.text.slice(range[0], range[1]);
  }

  /** The comment that ends the line of a text without quotes, with the space before it. */
  commentAfter(path: ValuePath): string | undefined {
    const { node, whole } = this.#find(path);
    if (!whole || !isScalar(node) || node.type !== "PLAIN" || !node.range) return undefined;
    const end = this.text.indexOf("\n", node.range[1]);
    const rest = this.text.slice(node.range[1], end === -1 ? undefined : end).trimEnd();
    return /^[ \t]*#/.test(rest) ? rest : undefined;
  }

  #find(path: ValuePath): { node: unknown; offset: number; whole: boolean } {
    let node: unknown = this.#document?.contents;
    let offset = offsetOf(node);
    for (const step of path) {
      if (isMap(node)) {
        const pair = node.items.findLast(({ key }) => keyText(key) === String(step));
        if (pair === undefined) return { node, offset, whole: false };
        offset = offsetOf(pair.key);
        node = pair.value;
      } else if (isSeq(node) && typeof step === "number" && step < node.items.length) {
        node = node.items[step];
        offset = offsetOf(node);
      } else return { node, offset, whole: false };
    }
    return { node, offset, whole: true };
  }
}

// The document as plain JSON, in one walk that also finds duplicate keys and limits what aliases expand to.

/** Values that aliases may add to what is written out. An honest file adds a few. */
const MAX_ALIASED_VALUES = 1000;
const MAX_YAML_DEPTH = 64;

interface YamlProblem {
  readonly code: "DUPLICATE_KEY" | "ALIAS_LIMIT" | "TOO_DEEP" | "KEY_IGNORED";
  readonly message: string;
  /** In the YAML text. */
  readonly offset: number;
}

interface Anchored {
  readonly value: unknown;
  /** The number of values in it, itself included. */
  readonly size: number;
}

/** The node's key or value as text in a key's place. */
function keyText(key: unknown): string {
  if (!isScalar(key)) return isAlias(key) ? `*${key.source}` : "?";
  return typeof key.value === "string" ? key.value : (key.source ?? String(key.value));
}

class JsonWalk {
  readonly #found: (problem: YamlProblem) => void;
  readonly #anchors = new Map<string, Anchored>();
  #count = 0;
  #aliased = 0;
  #overLimit = false;

  constructor(found: (problem: YamlProblem) => void) {
    this.#found = found;
  }

  value(node: unknown, depth: number): unknown {
    const before = this.#count;
    this.#count += 1;
    if (isScalar(node)) return this.#anchored(node, before, scalarValue(node.value, node.source));
    if (isAlias(node)) return this.#alias(node.source, offsetOf(node));
    if (depth >= MAX_YAML_DEPTH && (isMap(node) || isSeq(node))) {
      this.#found({
        code: "TOO_DEEP",
        message: `Nested more than ${MAX_YAML_DEPTH} levels deep; ignored.`,
        offset: offsetOf(node),
      });
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
        this.#found({ code: "KEY_IGNORED", message: 'The key "__proto__" is ignored.', offset: offsetOf(key) });
        continue;
      }
      if (Object.hasOwn(result, name)) {
        const message = `"${name.slice(0, 60)}" appears more than once; the last one is used.`;
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
    // Counted into the parent, so that an anchor of aliases has the size that it expands to.
    this.#count += target.size - 1;
    if (this.#aliased <= MAX_ALIASED_VALUES) return target.value;
    this.#count -= target.size - 1;
    if (!this.#overLimit) {
      this.#found({
        code: "ALIAS_LIMIT",
        message: `Aliases expand to more than ${MAX_ALIASED_VALUES} values; the rest is ignored.`,
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

function offsetOf(node: unknown): number {
  return (isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined) ?? 0;
}
