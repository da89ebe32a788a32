/** What `doctor` says of tools that reach for those of another server. */
import { listedTool } from "../../guard/definitions/listed-tool.ts";
import { describeShadowing, findShadowing, type Shadowing } from "../../guard/definitions/shadowing.ts";
import { isAtLeast } from "../../model/finding.ts";
import type { RunningHub } from "../running-hub.ts";
import type { Check } from "./machine-checks.ts";

const MOST_NAMED = 5;

/** The slight cases only, one line for each two servers: of the serious ones the hub warns itself. */
export function shadowingChecks({ hub }: RunningHub): Check[] {
  if (hub.config.config.guard.definitions === "ignore") return [];
  const tools = hub.view(hub.session).tools.map(listedTool);
  const slight = findShadowing(tools).filter(({ severity }) => !isAtLeast(severity, "medium"));
  return [
    ...Map.groupBy(slight, ({ kind, tool, target }) => JSON.stringify([kind, tool.server, target.server])).values(),
  ].flatMap((group) => checkOf(group));
}

function checkOf(group: readonly Shadowing[]): Check[] {
  const [first] = group;
  if (first === undefined) return [];
  const { kind, tool, target } = first;
  const names = group
    .slice(0, MOST_NAMED)
    .map((each) => (each.tool.name === each.target.name ? each.tool.name : `${each.tool.name} (${each.target.name})`));
  const more = group.length > names.length ? ` and ${group.length - names.length} more` : "";
  const what = kind === "mention" ? "tools speak of tools" : "tools are called like, or almost like, tools";
  const many = `${group.length} ${what} of the server ${target.server}: ${names.join(", ")}${more}`;
  return [
    {
      area: "server",
      server: tool.server,
      status: "warn",
      message: group.length === 1 ? describeShadowing(first) : many,
      hint: "Harmless between servers that you know; a server that you do not know may want to be taken for another.",
      details: { shadowing: group },
    },
  ];
}
