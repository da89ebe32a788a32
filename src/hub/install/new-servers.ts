/** Config entries for the servers that an install adds: built from templates and values, checked, or described to the user. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerEntryInput, ServerSpec } from "../../model/server-spec.ts";
import type { ServerParameter, ServerTemplate, SkillFinding } from "../../model/skill.ts";
import { keychainReference } from "../../secrets/secret-storage.ts";
import { skillId } from "../../skills/registry/skill-id.ts";
import { parsePlaceholders } from "../../skills/servers/placeholders.ts";
import { isSameServer } from "../../skills/servers/match-servers.ts";
import { resolveDefault, resolveServerEntry } from "../../skills/servers/server-entry.ts";
import { type InstallContext, templateVariables } from "./install-context.ts";
import { secretName } from "./install-secrets.ts";
import { type Installed, recordOf } from "./installed-skills.ts";
import type { PlannedSkill } from "./plan-install.ts";
import type { ParameterValues, PlannedServer } from "./required-servers.ts";
import { scanServerEntry } from "./scan-server-entry.ts";
import { skillHome } from "./skill-folders.ts";

export interface NewServer {
  readonly planned: PlannedServer;
  readonly entry: ServerEntryInput;
  /** Whether it runs from the skill's own files. */
  readonly usesSkillFiles: boolean;
}

export interface ResolvedServers {
  readonly added: readonly NewServer[];
  /** Id in the config of each server that is needed, in their order. */
  readonly ids: ReadonlyMap<PlannedServer, string>;
}

/** @param valuesOf Sensitive values are references. */
export function resolveServers(
  servers: readonly PlannedServer[],
  place: InstallContext,
  valuesOf: (server: PlannedServer) => Readonly<Record<string, string>>,
): ResolvedServers {
  const added: NewServer[] = [];
  const ids = new Map<PlannedServer, string>();
  for (const planned of servers) {
    if (planned.configured !== undefined) {
      ids.set(planned, planned.id);
      continue;
    }
    const home = skillHome(place.home, planned.skill);
    const { name, dialect } = planned.skill;
    const made = resolveServerEntry(planned.server, valuesOf(planned), templateVariables(place, home));
    // Written down in the entry itself, because it decides about the sandbox from the first start on, and in every copy.
    const entry = made.url === undefined ? { ...made, skill: skillId(name, dialect) } : made;
    // Two skills may need the same server under different names.
    const same =
      place.config.servers.find((spec) => isSameServer(entryOfSpec(spec), entry))?.id ??
      added.find((each) => isSameServer(each.entry, entry))?.planned.id;
    ids.set(planned, same ?? planned.id);
    // As written in a JSON string, where backslashes are doubled.
    const usesSkillFiles = JSON.stringify(entry).includes(JSON.stringify(home).slice(1, -1));
    if (same === undefined) added.push({ planned, entry, usesSkillFiles });
  }
  return { added, ids };
}

function entryOfSpec({ command, args, env, cwd, url, headers, auth, sandbox }: ServerSpec): ServerEntryInput {
  return { command, args, env, cwd, url, headers, auth, sandbox };
}

/** By name of the skill: the copy that its servers run from, where they do or did before. */
export function skillHomes(
  skills: readonly PlannedSkill[],
  { added }: ResolvedServers,
  home: string,
  before: Installed,
): ReadonlyMap<string, string> {
  const using = skills.filter(
    ({ id, skill }) =>
      added.some(({ planned, usesSkillFiles }) => usesSkillFiles && planned.skill === skill) ||
      recordOf(before, id)?.home !== undefined,
  );
  return new Map(using.map(({ skill }) => [skill.name, skillHome(home, skill)]));
}

/** The values with references in place of sensitive ones, which are not stored yet. */
export function previewValues(
  server: PlannedServer,
  values: ParameterValues,
  referenceFor: (parameter: string) => string,
): Record<string, string> {
  const own = { ...values.get(server.id) };
  for (const { name, sensitive } of server.server.parameters) {
    if (sensitive && own[name] !== undefined) own[name] = referenceFor(name);
  }
  return own;
}

export interface CheckedEntry {
  readonly id: string;
  /** With references in the place of secrets. */
  readonly entry: ServerEntryInput;
  readonly findings: readonly SkillFinding[];
}

/** Throws `blocked` for an entry that must not be started, unless it is forced. */
export function checkNewEntries(
  servers: readonly PlannedServer[],
  place: InstallContext,
  { values, force }: { readonly values: ParameterValues; readonly force: boolean },
): CheckedEntry[] {
  const { added } = resolveServers(servers, place, (server) =>
    previewValues(server, values, (parameter) => keychainReference(secretName(server.id, parameter))),
  );
  const checked = added.map(({ planned: { id }, entry }) => ({ id, entry, findings: scanServerEntry(id, entry) }));
  const refused = checked.flatMap(({ findings }) => findings.filter(({ severity }) => severity === "refuse"));
  if (refused.length === 0 || force) return checked;
  throw new ToolcribError(
    "blocked",
    `The server that the skill would start is refused:\n${refused.map((finding) => `  ${renderEntryFinding(finding)}`).join("\n")}`,
    {
      hint: "Nothing was installed. If you know what it does and want it anyway, use --force.",
      details: { findings: refused },
    },
  );
}

export function renderEntryFinding({ file, code, message, excerpt }: SkillFinding): string {
  return `${file}: ${code}: ${message}${excerpt === undefined ? "" : ` (${excerpt})`}`;
}

/**
 * The error of an install without `--with-mcp` that needs servers. It has everything that is needed to set them up.
 * @param command The command line without `--with-mcp`.
 */
export function serversNeededError(
  missing: readonly PlannedServer[],
  place: InstallContext,
  command: readonly string[],
): ToolcribError {
  const described = missing.map((server) => ({ server, entry: exampleEntry(server, place) }));
  const retry = retryCommand(missing, command);
  const parts = described.map(({ server, entry }) => describeServer(server, entry));
  return new ToolcribError(
    "not_found",
    `The skill needs MCP servers that ${place.configFile} does not have. Nothing was installed.\n${parts.join("\n")}`,
    {
      hint: retry === undefined ? "Add them to the config, then install again." : `Set them up with: ${retry}`,
      details: {
        command: retry,
        servers: described.map(({ server: { id, server, neededBy }, entry }) => ({
          id,
          name: server.name,
          neededBy,
          description: server.description,
          package: server.package,
          parameters: server.parameters,
          docker: server.docker,
          entry,
        })),
      },
    },
  );
}

/** With `<NAME>` for what only the user knows. Undefined if the skill does not say how to start it. */
function exampleEntry({ server, skill }: PlannedServer, place: InstallContext): ServerEntryInput | undefined {
  const { template } = server;
  if (template === undefined) return undefined;
  const values: Record<string, string> = {};
  for (const { name, sensitive, required, default: fallback } of server.parameters) {
    if (sensitive) values[name] = `secret://env/${name.replaceAll(/[^A-Za-z0-9_]/g, "_")}`;
    else if (required && fallback === undefined) values[name] = `<${name}>`;
  }
  const variables = templateVariables(place, skill.dir);
  try {
    return resolveServerEntry(server, values, variables);
  } catch (error) {
    if (!(error instanceof ToolcribError)) throw error;
    // <NAME> does not fit into an address or a reference. It is shown anyway, because the user replaces it.
    const defaults = server.parameters.map((each) => [each.name, resolveDefault(each, variables)] as const);
    return uncheckedEntry(template, { ...Object.fromEntries(defaults), ...values, ...variables });
  }
}

/** Like `resolveServerEntry`, without checks. Parts without a value are left out. */
function uncheckedEntry(
  template: ServerTemplate,
  values: Readonly<Record<string, string | undefined>>,
): ServerEntryInput {
  const fill = (text: string): string | undefined => {
    const parts = parsePlaceholders(text).map((part) => (typeof part === "string" ? part : values[part.name]));
    if (parts.length === 1) return parts[0];
    const texts = parts.filter((part) => part !== undefined);
    if (texts.length < parts.length) return undefined;
    return texts.map((part) => (part.startsWith("secret://") ? `\${${part}}` : part)).join("");
  };
  const all = (texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(texts).flatMap(([name, text]) => {
        const value = fill(text);
        return value === undefined ? [] : [[name, value]];
      }),
    );
  const { command, args, env, cwd, url, headers, transport, container } = template;
  return {
    ...(command === undefined ? {} : { command: fill(command) }),
    ...(args === undefined ? {} : { args: args.map(fill).filter((arg) => arg !== undefined) }),
    ...(env === undefined ? {} : { env: all(env) }),
    ...(cwd === undefined ? {} : { cwd: fill(cwd) }),
    ...(url === undefined ? {} : { url: fill(url) }),
    ...(headers === undefined ? {} : { headers: all(headers) }),
    ...(transport === "http" || transport === "sse" ? { transport } : {}),
    ...(container === undefined
      ? {}
      : { sandbox: { kind: "container", ...container, write: container.write?.map((path) => fill(path) ?? path) } }),
  };
}

function describeServer({ id, server, neededBy }: PlannedServer, entry: ServerEntryInput | undefined): string {
  const purpose = server.description ?? "no description";
  const lines = [
    "",
    `${server.name}: ${purpose}`,
    `  needed by   ${neededBy.join(", ")}`,
    ...(server.package === undefined ? [] : [`  package     ${server.package}`]),
    ...server.parameters.map(
      (parameter, index) => `  ${index === 0 ? "parameters  " : "            "}${parameterText(parameter)}`,
    ),
    ...(server.docker === undefined ? [] : [`  docker      ${server.docker.image}`]),
  ];
  if (entry === undefined) {
    return [...lines, `  The skill does not say how to start it: toolcrib add ${id} -- <command …>`].join("\n");
  }
  const json = JSON.stringify({ [id]: entry }, null, 2)
    .split("\n")
    .slice(1, -1);
  return [...lines, `  under "mcpServers":`, ...json.map((line) => `  ${line}`)].join("\n");
}

function parameterText(parameter: ServerParameter): string {
  const { name, description, required, sensitive, default: fallback, example } = parameter;
  const marks = [
    required ? "required" : "optional",
    ...(sensitive ? ["sensitive"] : []),
    ...(fallback === undefined ? [] : [`default ${fallback}`]),
    ...(example === undefined ? [] : [`for example ${example}`]),
  ];
  return `${name} (${marks.join(", ")})${description === undefined ? "" : `: ${description}`}`;
}

/** undefined where one of them cannot be set up this way. */
function retryCommand(missing: readonly PlannedServer[], command: readonly string[]): string | undefined {
  if (missing.some(({ server }) => server.template === undefined)) return undefined;
  const wanted = missing.flatMap(({ server }) =>
    server.parameters.filter(
      ({ required, sensitive, default: fallback }) => required && !sensitive && fallback === undefined,
    ),
  );
  const set = [...new Set(wanted.map(({ name }) => name))].flatMap((name) => ["--set", `${name}=<${name}>`]);
  return ["toolcrib", ...command, "--with-mcp", ...set].map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./<>#~-]+$/.test(word) && !/[<>#~]/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}
