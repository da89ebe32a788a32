/** Runs the search tools. `toolcrib_call` adds no way around anything: what it runs takes the whole call path by itself. */
import { nearMatches } from "../../base/near-matches.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { type Subset, ToolIndex } from "../../catalog/search/tool-index.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isForModels } from "../../model/mcp-apps.ts";
import type { CallToolResult } from "../../model/protocol.ts";
import { NO_DEFINITIONS, type Source, type Use, type UseContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { checkArguments } from "../../tools/check-arguments.ts";
import type { Target } from "../call/locate.ts";
import { type NestedCall, nestedCall } from "../call/nested-call.ts";
import {
  CALL_TOOL,
  DEFAULT_RESULTS,
  DESCRIBE_TOOL,
  SEARCH_SOURCE,
  SEARCH_TOOL,
  SEARCH_TOOLS_BY_NAME,
} from "./search-definitions.ts";
import type { View, Views } from "./view.ts";

export interface SearchToolsOptions {
  readonly search: ToolSearch;
  /** Whether they are there for the session: where every list is complete they do not exist. */
  readonly isThere: (session: Session) => boolean;
  readonly views: Views;
  /** The hub's own `call`. */
  readonly call: NestedCall;
}

const MAX_LINE = 160;

export class SearchTools {
  readonly #options: SearchToolsOptions;

  constructor(options: SearchToolsOptions) {
    this.#options = options;
  }

  /** The target of a use of a search tool; undefined for any other. */
  target(session: Session, use: Use): Target | undefined {
    if (use.kind !== "tool") return undefined;
    const capability = SEARCH_TOOLS_BY_NAME.get(use.name);
    if (capability === undefined || !this.#options.isThere(session)) return undefined;
    return { capability, use, source: this.#source(session, capability) };
  }

  #source(session: Session, tool: ToolCapability): Source {
    return {
      id: SEARCH_SOURCE,
      kind: "local",
      definitions: () => NO_DEFINITIONS,
      onChange: () => () => {},
      run: (use, context) => this.#run(session, tool, use.kind === "tool" ? use.arguments : {}, context),
    };
  }

  async #run(session: Session, tool: ToolCapability, given: JsonObject, context: UseContext): Promise<CallToolResult> {
    const args = checkArguments({ name: tool.name, parameters: tool.definition.inputSchema }, given);
    switch (tool.name) {
      case SEARCH_TOOL:
        return this.#search(session, String(args["query"]), Number(args["limit"] ?? DEFAULT_RESULTS));
      case DESCRIBE_TOOL:
        return this.#describe(session, String(args["name"]));
      default:
        return this.#call(session, String(args["name"]), innerArguments(args["arguments"]), context);
    }
  }

  #search(session: Session, query: string, limit: number): CallToolResult {
    const tools = this.#options.search.find(session, query, limit).map((tool) => ({
      name: tool.name,
      description: oneLine(tool.definition.description || tool.definition.title || ""),
    }));
    const lines = tools.map(({ name, description }) => (description === "" ? name : `${name}: ${description}`));
    return {
      content: [{ type: "text", text: lines.length === 0 ? "No tool matches. Try other words." : lines.join("\n") }],
      structuredContent: { tools },
    };
  }

  #describe(session: Session, name: string): CallToolResult {
    const tools = this.#options.views.of(session).tools.filter(({ definition }) => isForModels(definition));
    const tool = tools.find((one) => one.name === name);
    if (tool === undefined) throw unknownTool(name, tools);
    // The public name is the one that can be called.
    const definition = { ...tool.definition, name };
    return { content: [{ type: "text", text: JSON.stringify(definition) }], structuredContent: definition };
  }

  #call(session: Session, name: string, args: JsonObject, context: UseContext): Promise<CallToolResult> {
    if (name.startsWith("toolcrib_")) {
      throw new ToolcribError("invalid_arguments", `${CALL_TOOL} does not run "${name}".`, {
        hint: `Call ${name} itself.`,
      });
    }
    const { tools } = this.#options.views.of(session);
    const tool = tools.find((one) => one.name === name);
    if (tool !== undefined && !isForModels(tool.definition))
      throw unknownTool(
        name,
        tools.filter(({ definition }) => isForModels(definition)),
      );
    return nestedCall(this.#options.call, session, { name, arguments: args }, context);
  }
}

function innerArguments(given: unknown): JsonObject {
  if (isJsonObject(given)) return given;
  if (typeof given !== "string" || given === "") return {};
  try {
    const parsed: unknown = JSON.parse(given);
    if (isJsonObject(parsed)) return parsed;
  } catch {
    // Said below.
  }
  throw new ToolcribError(
    "invalid_arguments",
    `The arguments for ${CALL_TOOL} to pass on are text that is not a JSON object.`,
    {
      hint: "Send them as an object.",
    },
  );
}

function unknownTool(name: string, tools: readonly ToolCapability[]): ToolcribError {
  const near = nearMatches(
    name,
    tools.map((tool) => tool.name),
  );
  return new ToolcribError("not_found", `There is no tool "${name}".`, {
    hint: near.length === 0 ? `${SEARCH_TOOL} finds tools by what they do.` : `Did you mean ${near.join(", ")}?`,
    ...(near.length === 0 ? {} : { details: { nearMatches: near } }),
  });
}

/** The first sentence, or as much of it as fits a line. */
function oneLine(description: string): string {
  const text = description
    .slice(0, MAX_LINE * 8)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const sentence = /^.*?[.!?](?= [\p{Lu}\p{N}"'([])/u.exec(text)?.[0] ?? text;
  if (sentence.length <= MAX_LINE) return sentence;
  return `${sentence
    .slice(0, MAX_LINE - 1)
    .replace(/\s+\S*$/, "")
    .toWellFormed()}…`;
}

interface ToolSearchOptions {
  readonly catalog: Catalog;
  readonly views: Views;
  readonly tagsOf: (source: string) => readonly string[];
}

interface SearchState {
  readonly tools: readonly ToolCapability[];
  readonly index: ToolIndex;
  readonly parts: WeakMap<View, SearchParts>;
}

/** The tools of a view that are in the catalog, and those besides: the session's own. */
interface SearchParts {
  readonly shared: Subset;
  readonly own: { readonly index: ToolIndex; readonly byName: ReadonlyMap<string, ToolCapability> } | undefined;
}

/** Search over what a session may see. */
export class ToolSearch {
  readonly #options: ToolSearchOptions;
  #ready: SearchState | undefined;

  constructor(options: ToolSearchOptions) {
    this.#options = options;
  }

  /** Best first. Of what only this session has and what others have, each its turn: their scores cannot be compared. */
  find(session: Session, query: string, limit: number): ToolCapability[] {
    const { catalog, views } = this.#options;
    const view = views.of(session);
    const ready = this.#prepare();
    let parts = ready.parts.get(view);
    if (parts === undefined) ready.parts.set(view, (parts = this.#partsOf(view, ready)));
    const { shared, own } = parts;
    const found = ready.index.search(query, limit, shared).flatMap(({ name }) => catalog.find(name) ?? []);
    if (own === undefined) return found;
    const ofSession = own.index.search(query, limit).flatMap(({ name }) => own.byName.get(name) ?? []);
    return interleave(ofSession, found).slice(0, limit);
  }

  #partsOf(view: View, ready: SearchState): SearchParts {
    const tools = view.tools.filter(({ definition }) => isForModels(definition));
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
  #prepare(): SearchState {
    const { catalog, tagsOf } = this.#options;
    const { tools } = catalog.snapshot();
    if (this.#ready?.tools !== tools) {
      this.#ready = { tools, index: new ToolIndex(tools, { tagsOf }), parts: new WeakMap() };
    }
    return this.#ready;
  }
}

function interleave<Item>(first: readonly Item[], second: readonly Item[]): Item[] {
  const rounds = Array.from({ length: Math.max(first.length, second.length) }, (_, round) => round);
  return rounds.flatMap((round) => [first.slice(round, round + 1), second.slice(round, round + 1)].flat());
}
