/** The entry that `connect` writes for a client: the URL of a running hub or the bridge, and the reason. */
import { existsSync } from "node:fs";
import { isLoopback } from "../base/network-address.ts";
import { type AgentClient, namedInEntry, type WrittenServer } from "../clients/agent-client.ts";
import { canReadToken } from "../clients/server-entries.ts";
import { findConfig, isConfigName, toolcribHome } from "../config/find-config.ts";
import { loadConfig } from "../config/load-config.ts";
import { findHub, readHubRecords } from "../hub/activity/hub-records.ts";
import { findClientToken, gatewayCommand, neededVariables } from "../hub/clients/gateway-command.ts";
import { ToolcribError } from "../model/errors.ts";
import type { LoadedConfig } from "../model/loaded-config.ts";
import { HttpClient } from "../upstream/http/http-client.ts";
import { loadCommandConfig, unknownServer } from "./command-config.ts";
import type { Invocation } from "./command.ts";
import { userConfigFile } from "./config-target.ts";
import { readSecret } from "./terminal-input.ts";

export interface ClientEntries {
  readonly by: "url" | "bridge";
  /** A part of a sentence. */
  readonly why: string;
  readonly servers: Readonly<Record<string, WrittenServer>>;
}

type UrlServer = Extract<WrittenServer, { readonly url: string }>;
type Token = NonNullable<UrlServer["token"]>;

/** The name of the entry for the whole catalog. */
const ID = "toolcrib";
/** Where `login` and `approve` look for a token too. */
const TOKEN_VARIABLE = "TOOLCRIB_TOKEN";
const PROBE_MS = 5000;

/** The whole catalog under the name `toolcrib`, or single servers under their own names. */
export async function clientEntries(invocation: Invocation, client: AgentClient): Promise<ClientEntries> {
  const { flags, env, cwd, out } = invocation;
  const url = flags.text("url");
  const ids = flags.list("server");
  if (url !== undefined && flags.has("stdio")) {
    throw new ToolcribError("invalid_arguments", "--url and --stdio exclude each other.");
  }
  if (url !== undefined) return entriesForUrl(invocation, client, url, ids);
  if (["tokenEnv", "tokenStdin"].some((flag) => flags.has(flag) || flags.text(flag) !== undefined)) {
    throw new ToolcribError("invalid_arguments", "A token is for a hub at a URL.", { hint: "Add --url <url>." });
  }
  const configFile = userConfigFile(invocation);
  if (ids.length === 0) {
    const found = findConfig({ config: flags.text("config"), env, cwd });
    if ("project" in found && found.project !== null && isConfigName(found.project)) {
      const hint = "To use that file instead, pass it with --config.";
      out.warn(`The client will use ${configFile} and not ${found.project}. ${hint}`);
    }
    return entriesForConfig(invocation, client, configFile, [undefined]);
  }
  const { project, servers } = await loadCommandConfig(invocation);
  for (const id of ids) if (!servers.some((spec) => spec.id === id)) throw unknownServer(id, servers);
  const byFile = Map.groupBy(ids, (id) => {
    const spec = servers.find((each) => each.id === id);
    if (spec?.fromProject !== true || project === undefined) return configFile;
    return isConfigName(project.file) ? project.file : spec.origin.file;
  });
  const groups = await Promise.all(
    [...byFile].map(([file, group]) => entriesForConfig(invocation, client, file, group)),
  );
  // Mixed groups are not alike in rare cases; each entry works all the same.
  const [first] = groups;
  if (first === undefined) throw new ToolcribError("internal", "There is no server to write.");
  return { ...first, servers: Object.assign({}, ...groups.map((group) => group.servers)) as ClientEntries["servers"] };
}

async function entriesForConfig(
  invocation: Invocation,
  client: AgentClient,
  configFile: string,
  ids: readonly (string | undefined)[],
): Promise<ClientEntries> {
  const { flags, env, cwd } = invocation;
  // A config that does not load is reported by the hub, and by `doctor`.
  const options = existsSync(configFile) ? { file: configFile } : { config: {} };
  const config = await loadConfig({ ...options, env, cwd }).catch(() => undefined);
  const role = flags.text("role");
  const choice = flags.has("stdio")
    ? { why: "as --stdio says" }
    : chooseUrl(client, toolcribHome(env), configFile, config, role);
  const entry = (server: string | undefined): WrittenServer => {
    const names = namedInEntry(client);
    if ("url" in choice) {
      return { ...hubAddress(choice.url, { role: choice.role, server, client: names }), token: choice.token };
    }
    const envNames = config === undefined ? [] : variablesFor(client, config, invocation, server);
    return { ...gatewayCommand({ server, role, configFile, env, client: names }), envNames };
  };
  return {
    by: "url" in choice ? "url" : "bridge",
    why: choice.why,
    servers: Object.fromEntries(ids.map((id) => [id ?? ID, entry(id)])),
  };
}

type UrlChoice =
  | { readonly url: string; readonly role: string | undefined; readonly token: Token | undefined; readonly why: string }
  | { readonly why: string };

/** A URL must still be right tomorrow, so it is that of `serve` on the configured port. */
function chooseUrl(
  client: AgentClient,
  home: string,
  configFile: string,
  config: LoadedConfig | undefined,
  role: string | undefined,
): UrlChoice {
  if (client.write(ID, { url: "http://127.0.0.1/mcp", transport: "http" }) === undefined) {
    return { why: `because ${client.name} cannot reach a server by URL` };
  }
  const hub = findHub(home, [configFile]);
  if (hub === undefined || config === undefined) return { why: "because no toolcrib serve runs with this config" };
  if (hub.background === true)
    return { why: "because the hub that runs was started by a client and ends with its use" };
  const { http } = config.config;
  if (new URL(hub.url).port !== String(http.port)) {
    return { why: `because toolcrib serve is not at its configured port ${http.port}, so its URL may change` };
  }
  const url = `${hub.url}/mcp`;
  const running = "because toolcrib serve runs there; the client reaches it only while it runs";
  if (http.auth === undefined) return { url, role, token: undefined, why: running };
  const token = findClientToken(http.auth, role);
  if (token?.env !== undefined && canReadToken(client)) {
    const why = `${running}, with the token of the variable ${token.env}, which the client needs in its environment`;
    return { url, role: token.role === undefined ? role : undefined, token: { env: token.env }, why };
  }
  if (http.auth.tokens === undefined) {
    return { url, role, token: undefined, why: `${running}, and must log in there` };
  }
  const reason =
    token?.env === undefined ? "none of its tokens is in a variable" : `${client.name} cannot read variables`;
  return { why: `because the hub requires a token and ${reason}: the bridge needs no token` };
}

/** Codex passes on names; others need a reference, which is literal text where the variable is not set. */
function variablesFor(
  client: AgentClient,
  config: LoadedConfig,
  { env, out }: Invocation,
  server: string | undefined,
): string[] {
  if (client.reducesEnvironment === undefined) return [];
  const names = [...neededVariables(config)]
    .filter(([, ids]) => server === undefined || ids.includes(server))
    .map(([name]) => name);
  if (client.envReference === undefined) return names;
  const unset = names.filter((name) => (env[name] ?? "") === "");
  if (unset.length > 0) {
    out.warn(
      `Not set here, and so not in the entry: ${unset.join(", ")}. A hub that ${client.name} starts lacks them. ` +
        "Connect again with them set, or start the hub in a terminal with toolcrib hub start.",
    );
  }
  return names.filter((name) => !unset.includes(name));
}

/** The servers of a hub at another address are not known here. */
async function entriesForUrl(
  invocation: Invocation,
  client: AgentClient,
  url: string,
  ids: readonly string[],
): Promise<ClientEntries> {
  const { flags, out } = invocation;
  const role = flags.text("role");
  const address = hubAddress(url, { role });
  const { protocol, hostname, host } = new URL(address.url);
  if (protocol === "http:" && !isLoopback(hostname)) {
    const risk = "anyone on the network can read and change it";
    out.warn(`The connection to ${host} is not encrypted: ${risk}. Use https.`);
  }
  const token = await tokenFor(invocation, client, address.url);
  const entry = (server?: string): WrittenServer => ({
    ...hubAddress(url, { role, server, client: namedInEntry(client) }),
    token,
  });
  return {
    by: "url",
    why: "as --url says",
    servers: Object.fromEntries(ids.length === 0 ? [[ID, entry()]] : ids.map((id) => [id, entry(id)])),
  };
}

interface AddressOptions {
  readonly role?: string | undefined;
  readonly server?: string | undefined;
  readonly client?: string | undefined;
}

function hubAddress(text: string, { role, server, client }: AddressOptions): UrlServer {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--url must be the URL of a running hub.", {
      hint: "toolcrib serve prints it, such as http://127.0.0.1:4700/mcp",
    });
  }
  if (role !== undefined) url.pathname = `${url.pathname.replace(/\/$/, "")}/${encodeURIComponent(role)}`;
  if (server !== undefined) url.searchParams.set("servers", server);
  if (client !== undefined) url.searchParams.set("client", client);
  return { url: url.href, transport: /\/sse(?:\/[^/]*)?$/.test(url.pathname) ? "sse" : "http" };
}

/** The token that is named, or given on stdin, or asked for if the hub requires one. */
async function tokenFor(invocation: Invocation, client: AgentClient, url: string): Promise<Token | undefined> {
  const { flags, env, stdin, out } = invocation;
  const named = flags.text("tokenEnv");
  if (named !== undefined) {
    if (/^[A-Za-z_]\w*$/.test(named)) return { env: named };
    throw new ToolcribError("invalid_arguments", "--token-env must be the name of an environment variable.");
  }
  const fromPipe = flags.has("tokenStdin");
  if (!fromPipe) {
    // A dry run shows what it knows without asking anyone.
    if (flags.has("dryRun")) return undefined;
    const isRequired = await requiresToken(url);
    if (isRequired === undefined) {
      out.warn(
        `The hub at ${new URL(url).origin} does not answer now. If it requires a token, connect again with --token-env NAME or --token-stdin.`,
      );
    }
    if (isRequired !== true) return undefined;
    const known =
      (await variableOfOwnHub(invocation, url)) ?? ((env[TOKEN_VARIABLE] ?? "") === "" ? undefined : TOKEN_VARIABLE);
    if (known !== undefined && canReadToken(client)) return { env: known };
    if (!stdin.isTTY || flags.has("yes")) {
      throw new ToolcribError("invalid_arguments", `The hub at ${new URL(url).origin} requires a token.`, {
        hint: canReadToken(client)
          ? "Name the variable that it is in with --token-env NAME, or pass it on stdin with --token-stdin."
          : "Pass it on stdin with --token-stdin. It is then in plain text in the client's file.",
      });
    }
  }
  if (flags.text("scope") === "project") {
    throw new ToolcribError("invalid_arguments", "The token would be in plain text in a file of the project.", {
      hint: "Use --token-env NAME.",
    });
  }
  const prompt = `Token of the hub at ${new URL(url).origin}, for ${client.name}'s file (hidden): `;
  const text = (await readSecret(stdin, { fromPipe, prompt, prompts: out.prompts })).trim();
  out.redactor.addCredential(text);
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new ToolcribError("invalid_arguments", "A token has no spaces and no other than ASCII characters.");
  }
  return { text };
}

/** Undefined for a hub that cannot be reached; false for one at which clients log in by themselves (OAuth). */
async function requiresToken(url: string): Promise<boolean | undefined> {
  const client = new HttpClient();
  try {
    const signal = AbortSignal.timeout(PROBE_MS);
    const headers = { accept: "text/event-stream" };
    const { status, headers: answered } = await client.request({ method: "GET", url: new URL(url), headers, signal });
    return status === 401 && !(answered["www-authenticate"] ?? "").includes("resource_metadata");
  } catch {
    return undefined;
  } finally {
    client.destroy();
  }
}

/** If the URL is that of a hub of this user: the variable that its config names for a token. */
async function variableOfOwnHub({ env, cwd, flags }: Invocation, url: string): Promise<string | undefined> {
  const { origin } = new URL(url);
  const hub = readHubRecords(toolcribHome(env)).find((each) => new URL(each.url).origin === origin);
  const [file] = hub?.config ?? [];
  if (file === undefined) return undefined;
  const config = await loadConfig({ file, env, cwd }).catch(() => undefined);
  return findClientToken(config?.config.http.auth, flags.text("role"))?.env;
}
