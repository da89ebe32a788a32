/** What an editor of one text format can do, and how a place in a document is named. */

/** A key, or the item of a list whose field `key` equals `is`. */
export type PathStep = string | { readonly key: string; readonly is: string };

export interface SetResult {
  readonly text: string;
  /**
   * The outermost step that had to be made, as an index into the path: its length if the entry was there already, -1 if
   * the text held no document at all.
   */
  readonly madeFrom: number;
}

export interface RemoveOptions {
  /** Containers of the path from this step on go too if nothing else is in them; -1 means the document as well. */
  readonly alsoFrom?: number;
}

/**
 * Changes one entry of a text and leaves every other byte alone. `remove(set(…).text, path, { alsoFrom: madeFrom })`
 * gives back the text that `set` was given, unless `set` replaced a value.
 */
export interface TextEditor {
  readonly format: "jsonc" | "json5" | "yaml" | "toml";
  /** Throws TextSyntaxError. A text that is empty, or holds comments only, is an empty object. */
  parse(text: string): unknown;
  /** An existing value is replaced in place; comments inside it may go. */
  set(text: string, path: readonly PathStep[], value: unknown): SetResult;
  /** The same text if there is no such entry. */
  remove(text: string, path: readonly PathStep[], options?: RemoveOptions): string;
}

/** The part of an editor that knows the format. Gets texts that parse, without byte order mark, and checked paths. */
export interface Surgeon {
  readonly format: TextEditor["format"];
  /** Undefined for a text without a document. */
  read(text: string): unknown;
  set(text: string, path: readonly PathStep[], value: unknown): SetResult;
  remove(text: string, path: readonly PathStep[], alsoFrom: number): string;
}
