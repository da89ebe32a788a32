/** Which tools a session is offered when there are more than `max`. All of them stay callable by name. */
import { isLocalSource, type ToolCapability } from "../../model/capability.ts";
import { isForModels } from "../../model/mcp-apps.ts";
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
  readonly #modelTools = new WeakMap<View, readonly ToolCapability[]>();
  readonly #pageTools = new WeakMap<View, readonly ToolCapability[]>();

  constructor(options: OfferedToolsOptions) {
    this.#options = options;
  }

  /**
   * All that the session sees, if they are not too many. Else `max` in all: the three search tools, and of the rest those
   * that fit the query best, or without one a fair choice. In the catalog's order, the search tools last.
   */
  of(session: Session, asked: OfferOptions = {}, view = this.#options.views.of(session)): readonly ToolCapability[] {
    const { without, apps = false, max = this.#options.max } = asked;
    const forModels = this.#forModels(view);
    if (apps && forModels !== view.tools) {
      const chosen = new Set(this.of(session, { ...asked, apps: false }, view));
      const ofPages = view.tools.filter(({ definition }) => !isForModels(definition));
      return this.#withPages(view, chosen.size === forModels.length ? view.tools : [...chosen, ...ofPages]);
    }
    const tools = without === undefined ? forModels : forModels.filter((tool) => !without(tool));
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

  /** Without the tools that are only for pages of their server. */
  #forModels(view: View): readonly ToolCapability[] {
    let tools = this.#modelTools.get(view);
    if (tools === undefined) {
      tools = view.tools.every(({ definition }) => isForModels(definition))
        ? view.tools
        : view.tools.filter(({ definition }) => isForModels(definition));
      this.#modelTools.set(view, tools);
    }
    return tools;
  }

  /** The same list for as long as nothing changes. */
  #withPages(view: View, tools: readonly ToolCapability[]): readonly ToolCapability[] {
    const known = this.#pageTools.get(view);
    if (known?.length === tools.length && known.every((tool, index) => tool === tools[index])) return known;
    this.#pageTools.set(view, tools);
    return tools;
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
