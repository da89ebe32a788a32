/** The config's rules as a Policy, and the way back: an answer "always" written where the rule stands. */
import { allowAsked } from "../config/edit-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { AskRequest } from "../model/ask.ts";
import { ToolcribError } from "../model/errors.ts";
import { Policy, type ServerPolicy } from "../policy/decide.ts";

export function policyOf({ config, file, servers }: LoadedConfig): Policy {
  const where = file ?? "the hub's config";
  const replacedFor = new Map<string, string[]>();
  for (const { replaces, roles = [] } of servers) {
    if (replaces !== undefined) replacedFor.set(replaces, [...(replacedFor.get(replaces) ?? []), ...roles]);
  }
  const ofServers = servers.map((spec): [string, ServerPolicy] => [
    spec.id,
    {
      where: `${spec.origin.file} (server ${spec.id})`,
      rules: spec.tools,
      roles: spec.roles,
      replacedFor: replacedFor.get(spec.id),
    },
  ]);
  const ofRoles = Object.entries(config.roles).map(
    ([name, role]) => [name, { where: `${where} (role ${name})`, servers: withOwn(name, role), rules: role.tools }] as const,
  );
  return new Policy({ hub: config.tools, where, servers: new Map(ofServers), roles: new Map(ofRoles) });
}

/** A role's own servers need not stand in its list of servers as well. */
function withOwn(
  name: string,
  { servers, mcpServers = {} }: { servers?: readonly string[] | undefined; mcpServers?: object | undefined },
): string[] | undefined {
  return servers && [...servers, ...Object.keys(mcpServers).map((id) => `${id}@${name}`)];
}

/** Adds an exception to the `ask` list that held the call back. */
export async function rememberAnswer({ file, servers }: LoadedConfig, { name, origin, rule, session }: AskRequest): Promise<void> {
  if (rule.list !== "ask" || rule.level === "session") return;
  const spec = servers.find((server) => server.id === origin.source);
  const isFromFile = rule.level === "server" ? spec?.origin.file === file : true;
  if (file === null || !isFromFile) {
    throw new ToolcribError("conflict", `the rule stands in ${rule.where}, which is not edited`);
  }
  await allowAsked(file, pathOf(rule.level, origin.source, session.role), name);
}

function pathOf(level: string, server: string, role: string | undefined): string[] {
  if (level === "server") return ["mcpServers", server, "tools", "ask"];
  if (level === "role" && role !== undefined) return ["roles", role, "tools", "ask"];
  return ["tools", "ask"];
}
