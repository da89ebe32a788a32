/** What an install says that was not told to set up servers: all that a person needs to do it, and nothing changed. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerEntryInput } from "../../model/server-spec.ts";
import type { ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { parsePlaceholders } from "../../skills/servers/placeholders.ts";
import { defaultOf, entryOf } from "../../skills/servers/resolve.ts";
import { variablesFor, type InstallPlace } from "./install-place.ts";
import type { PlannedServer } from "./required-servers.ts";

/** `command` is the command line that was given, without `--with-mcp`. */
export function serversNeeded(
  missing: readonly PlannedServer[],
  place: InstallPlace,
  command: readonly string[],
): ToolcribError {
  const described = missing.map((server) => ({ server, entry: exampleEntry(server, place) }));
  const retry = retryCommand(missing, command);
  const parts = described.map(({ server, entry }) => describe(server, entry));
  return new ToolcribError(
    "not_found",
    `MCP servers are needed that ${place.configFile} does not have; nothing was installed.\n${parts.join("\n")}`,
    {
      hint: retry === undefined ? "Add them to the config yourself, then install again." : `Set them up with: ${retry}`,
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

/** With `<NAME>` for what only the person knows. undefined if nobody knows how to start it. */
function exampleEntry({ server, skill }: PlannedServer, place: InstallPlace): ServerEntryInput | undefined {
  const { template } = server;
  if (template === undefined) return undefined;
  const values: Record<string, string> = {};
  for (const { name, sensitive, required, default: fallback } of server.parameters) {
    if (sensitive) values[name] = `secret://env/${name.replaceAll(/[^A-Za-z0-9_]/g, "_")}`;
    else if (required && fallback === undefined) values[name] = `<${name}>`;
  }
  const variables = variablesFor(place, skill.dir);
  try {
    return entryOf(server, values, variables);
  } catch (error) {
    if (!(error instanceof ToolcribError)) throw error;
    // An address or a reference that <NAME> does not fit into: it is shown all the same, because a person fills it in.
    const defaults = server.parameters.map((each) => [each.name, defaultOf(each, variables)] as const);
    return shownEntry(template, { ...Object.fromEntries(defaults), ...values, ...variables });
  }
}

/** As entryOf, but nothing is checked. What has no value is left out. */
function shownEntry(template: ServerTemplate, values: Readonly<Record<string, string | undefined>>): ServerEntryInput {
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
    ...(container === undefined ? {} : { sandbox: { kind: "container", ...container } }),
  };
}

function describe({ id, server, neededBy }: PlannedServer, entry: ServerEntryInput | undefined): string {
  const purpose = server.description ?? "no purpose is given";
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
    return [...lines, `  The skill does not say how it is started: toolcrib add ${id} -- <command …>`].join("\n");
  }
  const json = JSON.stringify({ [id]: entry }, null, 2)
    .split("\n")
    .slice(1, -1);
  return [...lines, `  under "mcpServers":`, ...json.map((line) => `  ${line}`)].join("\n");
}

function parameterText({
  name,
  description,
  required,
  sensitive,
  default: fallback,
  example,
}: ServerParameter): string {
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
  return ["toolcrib", ...command, "--with-mcp", ...set].map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./<>#~-]+$/.test(word) && !/[<>#~]/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}
