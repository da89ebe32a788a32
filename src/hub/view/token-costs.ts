/** The cost of tool definitions for a model that is given them, estimated. */
import type { OutputOf } from "../../contract/operations.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { isForModels } from "../../model/mcp-apps.ts";
import type { ToolDefinition } from "../../model/protocol.ts";
import type { Session } from "../../sessions/session.ts";
import { isSearchTool, SEARCH_TOOLS } from "./search-definitions.ts";

const CHARACTERS_PER_TOKEN = 4;
const MAX_TOOLS = 1000;

/** As providers take it: the name, the description and the schema of the arguments. */
export function definitionTokens(name: string, { description = "", inputSchema }: ToolDefinition): number {
  return Math.ceil(JSON.stringify({ name, description, input_schema: inputSchema }).length / CHARACTERS_PER_TOKEN);
}

type TokenCosts = OutputOf<"getTokenCosts">;
type Cost = TokenCosts["catalog"];

interface SessionTools {
  readonly whole: (session: Session) => readonly ToolCapability[];
  readonly offered: (session: Session) => readonly ToolCapability[];
}

/** Capabilities are immutable, and sessions share them. */
const known = new WeakMap<ToolCapability, number>();

function tokensOf(tool: ToolCapability): number {
  let tokens = known.get(tool);
  if (tokens === undefined) known.set(tool, (tokens = definitionTokens(tool.name, tool.definition)));
  return tokens;
}

function costOf(tools: readonly ToolCapability[]): Cost {
  const given = tools.filter(({ definition }) => isForModels(definition));
  return { tools: given.length, tokens: given.reduce((sum, tool) => sum + tokensOf(tool), 0) };
}

export function tokenCosts(
  catalog: readonly ToolCapability[],
  sessions: readonly Session[],
  { whole, offered }: SessionTools,
): TokenCosts {
  const search = costOf(SEARCH_TOOLS);
  const all = sessions.map((session) => {
    const tools = offered(session);
    return {
      client: session.clientInfo?.name ?? session.door,
      role: session.role ?? null,
      isSearch: tools.some(isSearchTool),
      offered: costOf(tools),
      whole: costOf(whole(session)),
      search,
    };
  });
  const same = Map.groupBy(all, (each) => JSON.stringify(each));
  const clients = [...same.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ ...first, sessions: 1 + more.length }],
  );
  return {
    charactersPerToken: CHARACTERS_PER_TOKEN,
    catalog: costOf(catalog),
    search,
    clients: clients.toSorted((a, b) => b.offered.tokens - a.offered.tokens),
    tools: catalog
      .map((tool) => ({ name: tool.name, server: tool.origin.source, tokens: tokensOf(tool) }))
      .toSorted((a, b) => b.tokens - a.tokens)
      .slice(0, MAX_TOOLS),
  };
}
