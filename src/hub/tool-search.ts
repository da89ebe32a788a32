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
  readonly parts: WeakMap<View, Parts>;
}

/** What a view has of the catalog, and what it has besides: the session's own. */
interface Parts {
  readonly shared: Subset;
  readonly own: { readonly index: ToolIndex; readonly byName: ReadonlyMap<string, ToolCapability> } | undefined;
}

export class ToolSearch {
  readonly #options: ToolSearchOptions;
  #ready: Ready | undefined;

  constructor(options: ToolSearchOptions) {
    this.#options = options;
  }

  /** Best first. Of what only this session has and what others have, each its turn: their scores cannot be compared. */
  find(session: Session, query: string, limit: number): ToolCapability[] {
    const { catalog, view: viewOf } = this.#options;
    const view = viewOf(session);
    const ready = this.#prepare();
    let parts = ready.parts.get(view);
    if (parts === undefined) ready.parts.set(view, (parts = this.#partsOf(view, ready)));
    const { shared, own } = parts;
    const found = ready.index.search(query, limit, shared).flatMap(({ name }) => catalog.find(name) ?? []);
    if (own === undefined) return found;
    const ofSession = own.index.search(query, limit).flatMap(({ name }) => own.byName.get(name) ?? []);
    return inTurns(ofSession, found).slice(0, limit);
  }

  #partsOf({ tools }: View, ready: Ready): Parts {
    const inCatalog = new Set(ready.tools);
    const own = tools.filter((tool) => !inCatalog.has(tool));
    const shared = ready.index.subset(own.length === 0 ? tools : tools.filter((tool) => inCatalog.has(tool)));
    if (own.length === 0) return { shared, own: undefined };
    const byName = new Map(own.map((tool) => [tool.name, tool]));
    return { shared, own: { index: new ToolIndex(own, { tagsOf: this.#options.tagsOf }), byName } };
  }

  /**
   * One index for all sessions, made when first needed and again only after the tools changed. What a session may not
   * see is left out of its results; that it counts for how rare a word is can move what is left by a place or two.
   */
  #prepare(): Ready {
    const { catalog, tagsOf } = this.#options;
    const { tools } = catalog.snapshot();
    if (this.#ready?.tools !== tools) {
      this.#ready = { tools, index: new ToolIndex(tools, { tagsOf }), parts: new WeakMap() };
    }
    return this.#ready;
  }
}

function inTurns<Item>(first: readonly Item[], second: readonly Item[]): Item[] {
  const rounds = Array.from({ length: Math.max(first.length, second.length) }, (_, round) => round);
  return rounds.flatMap((round) => [first.slice(round, round + 1), second.slice(round, round + 1)].flat());
}
