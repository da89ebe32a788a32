/** One piece of YAML text, parsed; where its values stand can be asked for later, at no cost for files that nobody asks about. */
import { type Document, isMap, isScalar, isSeq, parseDocument, Schema } from "yaml";
import { lineAt } from "./decode.ts";
import { keyText, offsetOf, type Surprise, toJson } from "./yaml-json.ts";

// Made once: the parser would otherwise build the same schema for every file. Known tags would change it, so they are off.
const schema = new Schema({ schema: "core", resolveKnownTags: false });

/** Doubled keys are found by the walk: the parser's own check takes quadratic time. */
const OPTIONS = { schema, uniqueKeys: false, prettyErrors: false, logLevel: "silent" } as const;

/** Finding the line of each is not for free. */
const MOST_SURPRISES = 100;

export type Path = readonly (string | number)[];

export class YamlText {
  readonly text: string;
  /** The line of the file in which the text begins, from 1. */
  readonly firstLine: number;
  readonly value: unknown;
  readonly surprises: readonly Surprise[];
  /** What the parser objected to; undefined if nothing. */
  readonly error: { readonly message: string; readonly line: number } | undefined;
  readonly unknownTag: { readonly line: number } | undefined;
  readonly #document: Document.Parsed | undefined;

  constructor(text: string, firstLine: number) {
    this.text = text;
    this.firstLine = firstLine;
    try {
      this.#document = parseDocument(text, OPTIONS);
    } catch (thrown) {
      // Nesting that exhausts the stack, or a fault of the parser: the text cannot be read this way.
      this.error = { message: thrown instanceof Error ? thrown.message : String(thrown), line: firstLine };
      this.surprises = [];
      return;
    }
    const [error] = this.#document.errors;
    const [warning] = this.#document.warnings;
    if (error !== undefined) this.error = { message: error.message, line: this.lineOfOffset(error.pos[0]) };
    if (warning !== undefined) this.unknownTag = { line: this.lineOfOffset(warning.pos[0]) };
    const surprises: Surprise[] = [];
    this.surprises = surprises;
    const tell = (surprise: Surprise): unknown => surprises.length < MOST_SURPRISES && surprises.push(surprise);
    this.value = error === undefined ? toJson(this.#document, tell) : undefined;
  }

  lineOfOffset(offset: number): number {
    return this.firstLine + lineAt(this.text, offset) - 1;
  }

  /** The line of a key or list item; of the nearest thing around it if it is not there itself. */
  lineOf(path: Path): number {
    return this.lineOfOffset(this.#find(path).offset);
  }

  /** A scalar as it was written: `1.10` where the value is 1.1. */
  sourceOf(path: Path): string | undefined {
    const { node, whole } = this.#find(path);
    return whole && isScalar(node) ? node.source : undefined;
  }

  /** All of a value as it was written. */
  textOf(path: Path): string | undefined {
    const { node, whole } = this.#find(path);
    const range = whole && (isMap(node) || isSeq(node) || isScalar(node)) ? node.range : undefined;
    return range === undefined || range === null ? undefined : this.text.slice(range[0], range[1]);
  }

  #find(path: Path): { node: unknown; offset: number; whole: boolean } {
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
