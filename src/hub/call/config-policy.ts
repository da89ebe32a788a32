/** The config's rules as a Policy, and the way back: an answer "always" written where the rule stands. */
import type { ConfigDocument } from "../../config/config-document.ts";
import { addAskException } from "../../config/edit-config.ts";
import { cleanCharacters, NamePattern } from "../../catalog/naming.ts";
import type { Capability } from "../../model/capability.ts";
import type { AskRequest, Rule } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { Policy, type ServerPolicy } from "../../policy/decide.ts";

export function buildPolicy({ config, file, servers, project }: LoadedConfig): Policy {
  const where = file ?? "the hub's config";
  const replacedFor = new Map<string, string[]>();
  for (const { replaces, roles = [] } of servers) {
    if (replaces !== undefined) replacedFor.set(replaces, [...(replacedFor.get(replaces) ?? []), ...roles]);
  }
  const whereOf = (spec: ServerSpec): string => `${spec.origin.file} (server ${spec.id})`;
  const ofServers = servers.map((spec): [string, ServerPolicy] => [
    spec.id,
    {
      where: whereOf(spec),
      replaced: replacedRules(servers, spec, whereOf),
      rules: spec.tools,
      roles: spec.roles,
      tags: spec.tags,
      replaces: spec.replaces,
      replacedFor: replacedFor.get(spec.id),
    },
  ]);
  const whereOfRole = (name: string): string => (project?.roles.includes(name) === true ? project.file : where);
  const ofRoles = Object.entries(config.roles).map(
    ([name, role]) =>
      [
        name,
        {
          where: `${whereOfRole(name)} (role ${name})`,
          servers: withOwnServers(name, role),
          skills: role.skills,
          rules: role.tools,
        },
      ] as const,
  );
  return new Policy({
    ...{ hub: config.tools, where, servers: new Map(ofServers), roles: new Map(ofRoles) },
    project: project && { rules: project.rules, where: project.file },
  });
}

function replacedRules(
  servers: readonly ServerSpec[],
  { replaces }: ServerSpec,
  whereOf: (spec: ServerSpec) => string,
): ServerPolicy["replaced"] {
  const base = replaces === undefined ? undefined : servers.find((spec) => spec.id === replaces);
  return base?.tools && { rules: base.tools, where: whereOf(base) };
}

/** A role's own servers need not be in its list of servers as well. */
function withOwnServers(
  name: string,
  { servers, mcpServers = {} }: { servers?: readonly string[] | undefined; mcpServers?: object | undefined },
): string[] | undefined {
  return servers && [...servers, ...Object.keys(mcpServers).map((id) => `${id}@${name}`)];
}

/** Adds an exception to every `ask` list that held the call back. */
export async function rememberAnswer(config: LoadedConfig, request: AskRequest, exception: string): Promise<void> {
  for (const rule of request.rules) await writeException(config, request, rule, exception);
}

async function writeException(
  { file, servers, project }: LoadedConfig,
  { origin, session }: AskRequest,
  rule: Rule,
  exception: string,
): Promise<void> {
  if (rule.list !== "ask" || rule.level === "session") return;
  const spec = servers.find((server) => server.id === origin.source);
  const isFromFile =
    rule.level === "server"
      ? spec?.origin.file === file
      : // A project config is trusted as it is: an answer in it would have to be trusted again.
        rule.level !== "project" && !(rule.level === "role" && project?.roles.includes(session.role ?? "") === true);
  if (file === null || !isFromFile) {
    throw new ToolcribError("conflict", `the rule stands in ${rule.where}, which is not edited`);
  }
  await addAskException(file, [...configPathOf(rule.level, spec, session.role), "tools", "ask"], exception);
}

/** Where in the file the rules of a level are. */
function configPathOf(level: string, spec: ServerSpec | undefined, role: string | undefined): string[] {
  if (level === "server" && spec !== undefined) {
    const [owner] = spec.roles ?? [];
    const isRoles = spec.replaces !== undefined && owner !== undefined;
    return isRoles ? ["roles", owner, "mcpServers", spec.replaces ?? spec.id] : ["mcpServers", spec.id];
  }
  return level === "role" && role !== undefined ? ["roles", role] : [];
}

/** The public name that a tool of a role's own server would have at the server whose place it takes. */
export function replacedToolNames({
  config,
  servers,
}: LoadedConfig): (source: string, originName: string) => string | undefined {
  const prefixOf = ({ replaces, toolPrefix }: ServerSpec): string | undefined => {
    const replaced = servers.find(({ id }) => id === replaces);
    return replaced === undefined ? toolPrefix : replaced.toolPrefix;
  };
  const patterns = new Map(
    servers.flatMap((spec) =>
      spec.replaces === undefined
        ? []
        : [[spec.id, new NamePattern(config.tools.naming, spec.replaces, prefixOf(spec))] as const],
    ),
  );
  return (source, originName) => {
    const pattern = patterns.get(source);
    return pattern && cleanCharacters(pattern.render(originName));
  };
}

/** The place of a rule for a person: the line of the file if it is in there. */
export function placeOf(
  { level, list, pattern, where }: Rule,
  { origin }: Capability,
  role: string | undefined,
  { config, document }: { readonly config: LoadedConfig; readonly document: ConfigDocument | undefined },
): Pick<Rule, "level" | "list" | "pattern" | "where"> {
  const rule = { level, list, pattern, where };
  const spec = config.servers.find(({ id }) => id === origin.source);
  const isOfProject = role !== undefined && config.project?.roles.includes(role) === true;
  const isInFile =
    level === "hub" || (level === "role" && !isOfProject) || (level === "server" && spec?.origin.file === config.file);
  if (document === undefined || !isInFile) return rule;
  const line = ruleLine(document, configPathOf(level, spec, role), rule);
  return line === 0 ? rule : { ...rule, where: `${document.file}:${line}` };
}

function ruleLine(
  document: ConfigDocument,
  path: readonly string[],
  { list, pattern }: Pick<Rule, "list" | "pattern">,
): number {
  const place = { severity: "warning", code: "place", message: "" } as const;
  const at = [...path, "tools"];
  let value: unknown = document.value;
  for (const key of at) value = isJsonObject(value) ? value[key] : undefined;
  const rules = isJsonObject(value) ? value : {};
  const entries = Array.isArray(rules[list]) ? rules[list] : [];
  const index = entries.indexOf(pattern);
  if (index !== -1) return document.report([...at, list, index], place).line;
  const conditional = Array.isArray(rules["rules"]) ? rules["rules"] : [];
  const found = conditional.findIndex((rule) => isJsonObject(rule) && rule[list] === pattern);
  if (found !== -1) return document.report([...at, "rules", found], place).line;
  if (Object.hasOwn(rules, list)) return document.report([...at, list], { ...place, atKey: true }).line;
  // Lists beside the rules, such as `servers` of a role.
  let owner: unknown = document.value;
  for (const key of path) owner = isJsonObject(owner) ? owner[key] : undefined;
  const isThere = path.length > 0 && isJsonObject(owner) && Object.hasOwn(owner, list);
  return isThere ? document.report([...path, list], { ...place, atKey: true }).line : 0;
}
