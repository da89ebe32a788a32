/** Which tools a session is offered when there are more than `max`. All of them stay callable by name. */
import { isLocalSource, type ToolCapability } from "../../model/capability.ts";
import type { Session } from "../../sessions/session.ts";
import type { OfferOptions } from "../call/call-context.ts";
import { SEARCH_TOOLS } from "./search-definitions.ts";
import type { ToolSearch } from "./search-tools.ts";
import type { AccessControl } from "../call/access-control.ts";
import type { View, Views } from "./view.ts";

export interface OfferedToolsOptions {
  /** The config's `tools.max`; without it all tools are offered. */
  readonly max: number | undefined;
  readonly views: Views;
  readonly search: ToolSearch;
  readonly access: AccessControl;
  /** From then on the session can call the search tools. */
  readonly onSearchOffered: (session: Session) => void;
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
  of(session: Session, asked: OfferOptions = {}, view = this.#options.views.of(session)): readonly ToolCapability[] {
    const { without, max = this.#options.max } = asked;
    const tools = without === undefined ? view.tools : view.tools.filter((tool) => !without(tool));
    if (max === undefined || tools.length <= max) return tools;
    const isPlain = [asked.query, asked.max, asked.first, without].every((wish) => wish === undefined);
    const known = isPlain ? this.#chosen.get(view) : undefined;
    if (known !== undefined) return known;

    const standIns = SEARCH_TOOLS.filter((tool) => this.#options.access.shows(session, tool));
    const kept = this.#best(session, tools, Math.max(0, max - standIns.length), asked);
    const offered = Object.freeze([...tools.filter((tool) => kept.has(tool)), ...standIns]);
    if (isPlain) this.#chosen.set(view, offered);
    this.#options.onSearchOffered(session);
    return offered;
  }

  #best(
    session: Session,
    tools: readonly ToolCapability[],
    room: number,
    { query, first = () => false }: OfferOptions,
  ): ReadonlySet<ToolCapability> {
    const listed = new Set(tools);
    // What is left out of the list may be among the best, too.
    const limit = this.#options.views.of(session).tools.length - tools.length + room;
    const found = query === undefined ? [] : this.#options.search.find(session, query, limit);
    const ranked = new Set([...found.filter((tool) => listed.has(tool)), ...roundRobin(tools)]);
    const inTurn = [...ranked].toSorted((a, b) => rankOf(a, first) - rankOf(b, first));
    return new Set(inTurn.slice(0, room));
  }
}

/** Toolcrib's own are few, and other tools are used through them. */
function rankOf(tool: ToolCapability, first: (tool: ToolCapability) => boolean): number {
  if (tool.name.startsWith("toolcrib_")) return 0;
  return first(tool) ? 1 : 2;
}

/** In-process tools, then one tool of each server in turn: no server's tools crowd out another's. */
function roundRobin(tools: readonly ToolCapability[]): ToolCapability[] {
  const local = tools.filter(({ origin }) => isLocalSource(origin.source));
  const others = tools.filter(({ origin }) => !isLocalSource(origin.source));
  const servers = [...Map.groupBy(others, ({ origin }) => origin.source).values()];
  const rounds = Math.max(0, ...servers.map((list) => list.length));
  const turns = Array.from({ length: rounds }, (_, round) => servers.flatMap((list) => list[round] ?? []));
  return [...local, ...turns.flat()];
}
