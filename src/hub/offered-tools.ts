/** Which tools a session is offered when there are more than `tools.max`. All of them stay callable by name. */
import type { ToolCapability } from "../model/capability.ts";
import type { Session } from "../sessions/session.ts";
import { SEARCH_TOOLS } from "./search-definitions.ts";
import type { ToolSearch } from "./tool-search.ts";
import type { View } from "./view.ts";

export interface OfferedToolsOptions {
  /** The config's `tools.max`; without it all tools are offered. */
  readonly max: number | undefined;
  readonly view: (session: Session) => View;
  readonly search: ToolSearch;
  readonly shows: (session: Session, tool: ToolCapability) => boolean;
}

export class OfferedTools {
  readonly #options: OfferedToolsOptions;
  /** The same list for as long as nothing changes: model providers cache by it. */
  readonly #chosen = new WeakMap<View, readonly ToolCapability[]>();

  constructor(options: OfferedToolsOptions) {
    this.#options = options;
  }

  /**
   * All that the session sees, if they are not too many. Else `max` in all: the three search tools, and of the rest those
   * that fit the query best, or without one a fair choice. In the catalog's order, the search tools last.
   */
  of(session: Session, query?: string): readonly ToolCapability[] {
    const view = this.#options.view(session);
    const { max } = this.#options;
    if (max === undefined || view.tools.length <= max) return view.tools;
    const known = query === undefined ? this.#chosen.get(view) : undefined;
    if (known !== undefined) return known;

    const standIns = SEARCH_TOOLS.filter((tool) => this.#options.shows(session, tool));
    const room = Math.max(0, max - standIns.length);
    const wanted = query === undefined ? [] : this.#options.search.find(session, query, room);
    const ranked = new Set([...wanted, ...inFairOrder(view.tools)]);
    const kept = new Set([...ranked].slice(0, room));
    const offered = Object.freeze([...view.tools.filter((tool) => kept.has(tool)), ...standIns]);
    if (query === undefined) this.#chosen.set(view, offered);
    return offered;
  }
}

/** In-process tools, then one tool of each server in turn: no server's tools crowd out another's. */
function inFairOrder(tools: readonly ToolCapability[]): ToolCapability[] {
  const bySource = Map.groupBy(tools, (tool) => tool.origin.source);
  const local = bySource.get("local") ?? [];
  bySource.delete("local");
  const servers = [...bySource.values()];
  const rounds = Math.max(0, ...servers.map((list) => list.length));
  const turns = Array.from({ length: rounds }, (_, round) => servers.flatMap((list) => list[round] ?? []));
  return [...local, ...turns.flat()];
}
