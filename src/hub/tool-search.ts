/** Search over what a session may see. */
import type { Catalog } from "../catalog/catalog.ts";
import { type Subset, ToolIndex } from "../catalog/search/tool-index.ts";
import type { ToolCapability } from "../model/capability.ts";
import type { Session } from "../sessions/session.ts";
import type { View } from "./view.ts";

export interface ToolSearchOptions {
  readonly catalog: Catalog;
  readonly view: (session: Session) => View;
  readonly tagsOf: (source: string) => readonly string[];
}

interface Ready {
  readonly tools: readonly ToolCapability[];
  readonly index: ToolIndex;
  readonly subsets: WeakMap<View, Subset>;
}

export class ToolSearch {
  readonly #options: ToolSearchOptions;
  #ready: Ready | undefined;

  constructor(options: ToolSearchOptions) {
    this.#options = options;
  }

  /** Best first. */
  find(session: Session, query: string, limit: number): ToolCapability[] {
    const { catalog, view: viewOf } = this.#options;
    const view = viewOf(session);
    const { index, subsets } = this.#prepare();
    let subset = subsets.get(view);
    if (subset === undefined) subsets.set(view, (subset = index.subset(view.tools)));
    return index.search(query, limit, subset).flatMap(({ name }) => catalog.find(name) ?? []);
  }

  /**
   * One index for all sessions, made when first needed and again only after the tools changed. What a session may not
   * see is left out of its results; that it counts for how rare a word is can move what is left by a place or two.
   */
  #prepare(): Ready {
    const { catalog, tagsOf } = this.#options;
    const { tools } = catalog.snapshot();
    if (this.#ready?.tools !== tools) {
      this.#ready = { tools, index: new ToolIndex(tools, { tagsOf }), subsets: new WeakMap() };
    }
    return this.#ready;
  }
}
