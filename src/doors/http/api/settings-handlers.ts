/** Operations on the config, policy explanations and client snippets. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { type AgentClient, type ClientEnvironment, namedInEntry } from "../../../clients/agent-client.ts";
import { type ConfigDocument, formatPath, renderDiagnostic } from "../../../config/config-document.ts";
import { detectDialect, parseConfigText } from "../../../config/dialects.ts";
import { localClientEnvironment, toolcribHome } from "../../../config/find-config.ts";
import { limitsFromEnv, limitVariable } from "../../../config/read-config.ts";
import type {
  ChangedClient,
  ClientSnippet,
  ConfigValueSchema,
  ConfigView,
  Explanation as ExplanationView,
} from "../../../contract/settings-schemas.ts";
import type { TextEditor } from "../../../files/edit/text-editor.ts";
import type { connectClient } from "../../../hub/clients/connect-client.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { Caller } from "../../../model/caller.ts";
import type { Decision, Rule } from "../../../model/decision.ts";
import { GUARD_PROFILES } from "../../../model/config.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { listTokens } from "../../../hub/activity/token-uses.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { LoadedConfig } from "../../../model/loaded-config.ts";
import type { Explanation } from "../../../policy/decide.ts";
import { isPlainText, isCredentialName } from "../../../secrets/credential-names.ts";
import { MASK } from "../../../secrets/mask.ts";
import { Session } from "../../../sessions/session.ts";
import { missingScope } from "../http-access.ts";
import { type ApiParts, type DeepReadonly, handlersOf, type OperationContext } from "./operation-handler.ts";

/** Servers are listed one by one with their details; tokens are never shown. */
const HIDDEN_KEYS = [/^mcpServers$/, /^roles\..*\.mcpServers$/, /^http\.auth\.tokens$/];
const configHandlers = handlersOf({
  async getConfig(_input, _context, parts) {
    const { hub } = parts;
    const { config } = hub;
    const [values, servers] = await Promise.all([configValues(config, parts), serverValues(hub)]);
    const tokens = config.config.http.auth?.tokens ?? [];
    return {
      file: config.file,
      // The others are watched, but do not exist yet.
      files: config.files.filter((file) => existsSync(file)),
      values: [...servers, ...values],
      warnings: config.warnings.map(renderDiagnostic),
      tokens: tokens.map(({ user = null, role = null, scopes }) => ({ user, role, scopes })),
      // Also those that only servers name.
      roles: [...new Set([...Object.keys(config.config.roles), ...config.servers.flatMap(({ roles = [] }) => roles)])],
    };
  },
});

const changeHandlers = handlersOf({
  async changeConfig({ changes, save, etag }, _context, { hub }) {
    const config = await hub.internals.changes();
    if (!save) return config.preview(changes);
    if (etag !== undefined) return config.write(changes, etag);
    throw new ToolcribError("invalid_arguments", "etag is missing.", {
      hint: "Ask without `save` first, look at the diff, and send its `etag`.",
    });
  },

  listRoles(_input, _context, { hub }) {
    const { config, servers, project } = hub.config;
    const names = new Set([...Object.keys(config.roles), ...servers.flatMap(({ roles = [] }) => roles)]);
    const listed = [...names].map((role) => {
      const { mcpServers: _own, ...settings } = Object.hasOwn(config.roles, role) ? (config.roles[role] ?? {}) : {};
      const ofRole = servers.filter(({ roles }) => roles?.includes(role)).map(({ id }) => id);
      return { role, settings, servers: ofRole, editable: project?.roles.includes(role) !== true };
    });
    return { roles: listed };
  },

  async listTokens(_input, _context, { hub }) {
    return { tokens: await listTokens(hub.config, hub.internals.store) };
  },
});

type Value = DeepReadonly<ConfigView["values"][number]>;

async function serverValues(hub: Hub): Promise<Value[]> {
  const document = await readDocument(hub.config);
  const values = hub.servers.list().map(async ({ id }): Promise<Value[]> => {
    const detail = await hub.servers.get(id);
    if (detail === undefined) return [];
    const { config: value, from, origin } = detail;
    const key = `mcpServers.${id}`;
    // A server of a skill is not in a config.
    if (from === "skill") return [];
    if (from === "store" || from === "code") return [{ key, value, origin: from }];
    return [{ key, value, origin: "file", where: serverOrigin(document, origin.file, id) }];
  });
  return (await Promise.all(values)).flat();
}

/** A server of a role is `id@role`, and its entry is with the role. */
function serverOrigin(document: ConfigDocument | undefined, file: string, id: string): string {
  if (document?.file !== file) return file;
  const [, own, role] = /^(.*)@([^@]*)$/.exec(id) ?? [];
  const ofRole = own === undefined || role === undefined ? undefined : ["roles", role, "mcpServers", own];
  const paths = [["mcpServers", id], ...(ofRole === undefined ? [] : [ofRole])];
  const places = paths.map((path) => placeInFile(document, path));
  return places.at(-1) ?? file;
}

type ConfigValue = z.output<typeof ConfigValueSchema>;

interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** Every value of the config under its dotted key, and where it came from. */
async function configValues(
  config: LoadedConfig,
  { commandLine = {}, env = process.env }: Pick<ApiParts, "commandLine" | "env">,
): Promise<ConfigValue[]> {
  const document = await readDocument(config);
  const fromEnv = limitsFromEnv(env).limits;
  return leavesOf(config.config, []).map(({ path, value }) => {
    const key = formatPath(path);
    const given = commandLine[key];
    if (given !== undefined) return { key, value: given.value, origin: "command line", where: given.option };
    const [first, limit = ""] = path;
    if (first === "limits" && Object.hasOwn(fromEnv, limit)) {
      return { key, value, origin: "environment", where: limitVariable(limit) };
    }
    return { key, value: maskValue(path, value), ...valueOrigin(config, document, path) };
  });
}

/** The file and line of a key; the file alone if the line is unknown. */
function placeInFile(document: ConfigDocument, path: readonly string[]): string {
  const { line } = document.report(path, { severity: "warning", code: "place", message: "", atKey: true });
  return line === 0 ? document.file : `${document.file}:${line}`;
}

/** The current file, which the hub reloads soon. Undefined if there is none, or it cannot be read. */
export async function readDocument({ file }: LoadedConfig): Promise<ConfigDocument | undefined> {
  if (file === null) return undefined;
  try {
    const document = parseConfigText(file, await readFile(file, "utf8"));
    return document.errors.length === 0 ? document : undefined;
  } catch {
    return undefined;
  }
}

function valueOrigin(
  { inCode }: LoadedConfig,
  document: ConfigDocument | undefined,
  path: readonly string[],
): Pick<ConfigValue, "origin" | "where"> {
  if (inCode) return { origin: "code" };
  if (document === undefined || detectDialect(document.value, document.file) !== "toolcrib")
    return { origin: "default" };
  const written = isSetByProfile(document.value, path) ? ["guard"] : path;
  return hasPath(document.value, written)
    ? { origin: "file", where: placeInFile(document, written) }
    : { origin: "default" };
}

/** A profile of the guard sets its keys without naming them. */
function isSetByProfile(value: unknown, [first, key = ""]: readonly string[]): boolean {
  const guard = isJsonObject(value) ? value["guard"] : undefined;
  if (first !== "guard" || !Object.hasOwn(GUARD_PROFILES.off, key)) return false;
  return typeof guard === "string" || (isJsonObject(guard) && "profile" in guard && !Object.hasOwn(guard, key));
}

function hasPath(value: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return true;
  return isJsonObject(value) && Object.hasOwn(value, key) && hasPath(value[key], rest);
}

/** A list is one value: its entries belong together. */
function leavesOf(value: unknown, path: readonly string[]): Leaf[] {
  if (value === undefined || HIDDEN_KEYS.some((pattern) => pattern.test(path.join(".")))) return [];
  if (!isJsonObject(value) || (Object.keys(value).length === 0 && path.length > 0)) return [{ path, value }];
  return Object.entries(value).flatMap(([key, member]) => leavesOf(member, [...path, key]));
}

function maskValue(path: readonly string[], value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (isCredentialName(path.at(-1) ?? "") && isPlainText(value)) return MASK;
  return value.replace(/^([a-z][a-z0-9+.-]*:\/\/[^:/?#@]*:)([^/?#]*)(?=@)/i, (whole, start: string, password: string) =>
    isPlainText(password) ? start + MASK : whole,
  );
}

const VERDICT_TEXT: Readonly<Record<Decision["verdict"], string>> = {
  allow: "It may be used.",
  deny: "It may not be used.",
  ask: "It needs approval first.",
};
const policyHandlers = handlersOf({
  explainPolicy({ name, role }, { caller, session }, { hub }) {
    const who = role === undefined || role === session.role ? session : asRole(role, caller);
    const knowsAll = caller.scopes.has("admin") || session.owner;
    const visible = canSee(hub, who, name);
    return explained({ hub, name, who, visible, knowsAll }, visible || knowsAll ? hub.explain(name, who) : undefined);
  },

  async explainCall({ name, role, session: _session, ...call }, { caller, session }, { hub }) {
    const who = role === undefined || role === session.role ? session : asRole(role, caller);
    const knowsAll = caller.scopes.has("admin") || session.owner;
    const visible = canSee(hub, who, name);
    const explanation = visible || knowsAll ? await hub.explain({ name, session: who, ...call }) : undefined;
    return explained({ hub, name, who, visible, knowsAll }, explanation);
  },
});

interface ExplainedFor {
  readonly hub: Hub;
  readonly name: string;
  readonly who: Session;
  readonly visible: boolean;
  /** The rule and its location are only for the operator. */
  readonly knowsAll: boolean;
}

function explained(
  { hub, name, who, visible, knowsAll }: ExplainedFor,
  explanation: Explanation | undefined,
): ExplanationView {
  if (explanation === undefined) throw hub.internals.missing(who, name);
  const { verdict, rule } = explanation.decision;
  if (!knowsAll) return { name, verdict, visible, rule: null, reasons: [VERDICT_TEXT[verdict]], nearest: null };
  const { nearest } = explanation;
  return {
    ...{ name, verdict, visible },
    rule: rule && { ...rule },
    reasons: reasonsOf(explanation),
    nearest: nearest === undefined ? null : { ...nearest, rule: { ...nearest.rule }, unmet: [...nearest.unmet] },
  };
}

/** To see what a role sees: nothing is opened. */
export function asRole(role: string, { scopes, owner }: Caller): Session {
  if (!scopes.has("admin")) throw missingScope("admin");
  return new Session({ door: "rest", role, owner });
}

function canSee(hub: Hub, session: Session, name: string): boolean {
  const { tools, prompts, resources, templates } = hub.view(session);
  return [tools, prompts, resources, templates].some((list) => list.some((capability) => capability.name === name));
}

function reasonsOf({ decision, steps }: Explanation): string[] {
  const others = steps.flatMap(({ verdict, rule }) =>
    rule === null || isDeepStrictEqual(rule, decision.rule) ? [] : [`Also ${verdict}: ${ruleText(rule)}.`],
  );
  const { verdict, rule: deciding } = decision;
  if (deciding === null) return ["No rule applies to it, so it is allowed.", ...others];
  return [`${VERDICT_TEXT[verdict].slice(0, -1)}: ${ruleText(deciding)}.`, ...others];
}

function ruleText({ level, list, pattern, where }: Rule): string {
  return `${list} ${JSON.stringify(pattern)} of the ${level}, in ${where}`;
}

const CLIENT_ENTRY_ID = "toolcrib";
const TOKEN_PLACEHOLDER = "Bearer <token>";

const clientHandlers = handlersOf({
  async clientSnippets(_input, { session, baseUrl }, { hub, env = process.env }) {
    // Loaded here: only this operation needs editors of all formats.
    const [{ CLIENTS }, { editorFor }, { gatewayCommand, shellCommand, shellQuoted }, { clientState }] =
      await Promise.all([
        import("../../../clients/clients.ts"),
        import("../../../files/edit/editors.ts"),
        import("../../../hub/clients/gateway-command.ts"),
        import("../../../hub/clients/connect-client.ts"),
      ]);
    const { config, file: configFile } = hub.config;
    const url = `${baseUrl}/mcp`;
    const headers = config.http.auth === undefined ? undefined : { Authorization: TOKEN_PLACEHOLDER };
    const place = localClientEnvironment(env, process.cwd());
    const isHere = session.owner;
    // On the hub's machine the command works as it stands, in a clone as well; elsewhere Toolcrib has to be installed.
    const program = isHere ? shellCommand(env, "anywhere") : "toolcrib";
    const clients = CLIENTS.map(async (client): Promise<ClientSnippet[]> => {
      const state = isHere ? await clientState(client, place) : { installed: false, connected: false };
      const shared = { place, editorFor, isHere, state };
      const named = namedInEntry(client);
      const address = named === undefined ? url : `${url}?client=${named}`;
      const entry = client.write(CLIENT_ENTRY_ID, { url: address, transport: "http", headers });
      if (entry !== undefined) {
        return [snippetOf(client, entry, { ...shared, command: `${program} connect ${client.id} --url ${url}` })];
      }
      // Started on the hub's machine, by the user who runs the hub: of no use to other callers.
      const start = gatewayCommand({ configFile, env, client: named });
      const local = isHere ? client.write(CLIENT_ENTRY_ID, start) : undefined;
      if (local === undefined) return [];
      const config = configFile === null ? "" : ` --config ${shellQuoted(configFile)}`;
      return [snippetOf(client, local, { ...shared, command: `${program} connect ${client.id}${config}` })];
    });
    return { clients: (await Promise.all(clients)).flat() };
  },

  async connectClient(input, context, parts) {
    const { connectClient } = await import("../../../hub/clients/connect-client.ts");
    return changedClient(await connectClient(connectOptions(input.clientId, context, parts)));
  },

  async disconnectClient(input, context, parts) {
    const { disconnectClient } = await import("../../../hub/clients/connect-client.ts");
    return changedClient(await disconnectClient(connectOptions(input.clientId, context, parts)));
  },
});

function connectOptions(
  clientId: string,
  { session }: OperationContext,
  { hub, env = process.env }: ApiParts,
): Parameters<typeof connectClient>[0] {
  if (!session.owner) {
    throw new ToolcribError("denied", "Only the user who runs the hub may change configs of clients on its machine.", {
      hint: "Copy the entry into the client's config instead.",
    });
  }
  if (hub.internals.cluster !== undefined) {
    throw new ToolcribError("denied", "A client of this machine would start a hub outside the cluster.", {
      hint: "Give the client the URL of the cluster.",
    });
  }
  return {
    clientId,
    place: localClientEnvironment(env, process.cwd()),
    home: toolcribHome(env),
    configFile: hub.config.file,
    warn: (message) => hub.internals.warn(message),
  };
}

function changedClient({ client, file, changed }: Awaited<ReturnType<typeof connectClient>>): ChangedClient {
  return { id: client.id, title: client.name, file, changed, next: client.afterChange };
}

interface SnippetOptions {
  readonly place: ClientEnvironment;
  readonly command: string;
  readonly editorFor: (format: TextEditor["format"]) => TextEditor;
  /** Whether the caller works on the hub's machine. */
  readonly isHere: boolean;
  readonly state: Pick<ClientSnippet, "installed" | "connected">;
}

/** A whole file with this server alone. */
function snippetOf(
  client: AgentClient,
  entry: object,
  { place, command, editorFor, isHere, state }: SnippetOptions,
): ClientSnippet {
  const file = client.files(place).find(({ scope }) => scope === "user") ?? { scope: "user", path: "" };
  const { text } = editorFor(client.format).set(client.newFile ?? "", client.pathOf(CLIENT_ENTRY_ID, file), entry);
  const shown = isHere && file.path !== "" ? file.path : null;
  return { id: client.id, title: client.name, file: shown, snippet: text, command, ...state };
}

export const settingsHandlers = { ...configHandlers, ...changeHandlers, ...policyHandlers, ...clientHandlers };
