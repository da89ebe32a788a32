/** The output of `serve` at its start: addresses, client configs, and a warning on shared machines. */
import { readdirSync, readFileSync } from "node:fs";
import type { AgentClient, WrittenServer } from "../../clients/agent-client.ts";
import { claudeDesktop, cursor, vscode } from "../../clients/json-clients.ts";
import { writeServer } from "../../clients/server-entries.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { HttpListener } from "../../doors/http/listener.ts";
import { findClientToken, gatewayCommand } from "../../hub/clients/gateway-command.ts";
import type { HttpConfig } from "../../model/config.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import { VERSION } from "../../model/version.ts";
import type { Output } from "../output.ts";

export interface Served {
  readonly listener: Pick<HttpListener, "url" | "loginLink">;
  readonly config: LoadedConfig;
  readonly needsToken: boolean;
  /** That this hub is a node of. */
  readonly cluster?: Pick<Cluster, "name" | "node"> | undefined;
  readonly command: string;
}

export function addresses({ listener: { url } }: Served): Record<string, string> {
  return {
    page: `${url}/`,
    mcp: `${url}/mcp`,
    sse: `${url}/sse`,
    api: `${url}/api/v1`,
    ws: `${url.replace(/^http/, "ws")}/ws`,
    approvals: `${url}/api/v1/approvals`,
    metrics: `${url}/metrics`,
    health: `${url}/healthz`,
  };
}

export function printBanner(out: Output, served: Served): void {
  const { listener, config, needsToken, cluster, command } = served;
  const { mcp = "", sse = "", health = "", metrics = "" } = addresses(served);
  const row = (name: string, text: string): void => out.line(`  ${name.padEnd(10)} ${text}`);
  out.line(`${out.paint("bold", `Toolcrib ${VERSION}`)} at ${listener.url}`);
  out.line("");
  // Not into a log, whose readers would get full access.
  if (out.isLive) {
    row("Page", `${listener.loginLink()}   (works once)`);
    row("", `${command} login   prints a new link`);
  } else row("Page", `${listener.url}/   (${command} login   prints a link that opens it)`);
  row("MCP", `${mcp}   (one role: ${mcp}/<role>)`);
  row("MCP, SSE", sse);
  row("API", `${listener.url}/api/docs`);
  row("Health", `${health}, ${listener.url}/readyz, ${metrics}`);
  row("Approve", `${command} approve`);
  row("Config", config.file === null ? "none found; toolcrib add creates one" : `${config.file} (changes are applied)`);
  if (config.project !== undefined) row("Project", `${config.project.file} (changes are applied once trusted)`);
  if (cluster !== undefined) row("Cluster", `${cluster.name}; this node is ${cluster.node.name}`);
  if (needsToken) row("Access", accessLine(config.config.http.auth));
  out.line("");
  out.line("Paste into your client:");
  const mayStart = cluster === undefined;
  const { auth } = config.config.http;
  for (const { client, text } of clientSnippets({ url: mcp, needsToken, auth, configFile: config.file, mayStart })) {
    out.line("");
    out.line(`  ${out.paint("dim", client)}`);
    out.line(`  ${text}`);
  }
  out.line("");
}

/** The last line of the start: what to do next. */
export function printOpenLine(out: Output, { listener, command }: Pick<Served, "listener" | "command">): void {
  out.line("");
  const where = out.isLive ? listener.loginLink() : `${listener.url}/`;
  const more = out.isLive ? "works once" : `${command} login   prints a link that opens it`;
  out.line(`${out.paint("bold", "Open this:")} ${where}   (${more})`);
}

function accessLine(auth: HttpConfig["auth"]): string {
  const { env } = findClientToken(auth) ?? {};
  return `clients need a token of http.auth${env === undefined ? "" : `; below it is in their variable ${env}`}`;
}

/** Undefined while the server is connecting. */
export function serverLine(out: Output, info: ServerInfo): string | undefined {
  const { id, state, sleeping, toolCount, lastError, hint } = info;
  const name = id.padEnd(14);
  const tools = `${toolCount} ${toolCount === 1 ? "tool" : "tools"}`;
  if (state === "ready") return `  ${out.paint("green", "ready ")}  ${name} ${tools}`;
  if (sleeping === true) return `  ${out.paint("green", "asleep")}  ${name} ${tools}`;
  if (state === "disabled") return `  ${out.paint("dim", "off   ")}  ${name} disabled, skipped`;
  if (state === "failed") {
    const advice = hint === undefined ? "" : ` ${hint}`;
    const reason = (lastError ?? "").replace(/[^.!?:]$/, advice === "" ? "$&" : "$&.");
    return `  ${out.paint("red", "failed")}  ${name} ${reason}${advice}`.replaceAll("\n", " ");
  }
  return undefined;
}

interface HubAddress {
  readonly url: string;
  readonly needsToken: boolean;
  readonly auth: HttpConfig["auth"];
  /** The config file of the hub, for clients that start their servers themselves. */
  readonly configFile: string | null;
  /** Whether a client may start a hub with that file. Beside a cluster node it would be a separate hub outside the cluster. */
  readonly mayStart?: boolean;
}

interface ClientSnippet {
  readonly client: string;
  readonly text: string;
}

const ID = "toolcrib";

function clientSnippets({ url, needsToken, auth, configFile, mayStart = true }: HubAddress): ClientSnippet[] {
  const { env, role } = findClientToken(auth) ?? {};
  const token = env === undefined ? { text: "<token>" } : { env };
  const hub: WrittenServer = { url, transport: "http", ...(needsToken ? { token } : {}) };
  // In single quotes: Claude Code reads the variable itself, so that the token is not in its file.
  const header = `'Authorization: Bearer ${env === undefined ? "<token>" : `\${${env}}`}'`;
  const claudeCode = [`claude mcp add --transport http ${ID}`, url, ...(needsToken ? [`--header ${header}`] : [])];
  const desktop = {
    client: "Claude Desktop (claude_desktop_config.json)",
    text: fileWith(claudeDesktop, gatewayCommand({ configFile, role })),
  };
  return [
    { client: "Claude Code", text: claudeCode.join(" ") },
    { client: "Cursor (mcp.json)", text: fileWith(cursor, hub) },
    { client: "VS Code (.vscode/mcp.json)", text: fileWith(vscode, hub) },
    ...(mayStart ? [desktop] : []),
  ];
}

/** A complete file with only this server. */
function fileWith(client: AgentClient, server: WrittenServer): string {
  const path = client.pathOf(ID, { scope: "user", path: "" }).filter((step) => typeof step === "string");
  const entry: unknown = writeServer(client, ID, server);
  return JSON.stringify(path.reduceRight((inner, key) => ({ [key]: inner }), entry));
}

interface MachineFacts {
  /** Of this process; undefined on systems without user ids. */
  readonly uid: number | undefined;
  /** The text of `/etc/passwd`. */
  readonly passwd: string;
  /** The names in `/run/user`: ids of logged-in users, including those of a directory service. */
  readonly loggedIn: readonly string[];
}

/** Lower ids are service accounts, higher ones include `nobody`. */
const FIRST_UID = 1000;
const LAST_UID = 60_000;
const NO_SHELL = /(?:^|\/)(?:nologin|false|sync|halt|shutdown)$/;
const MAX_NAMED_USERS = 3;

/** Users who can log in, besides root and the user of this process. Without `http.auth` they can use a hub on loopback. */
export function otherUsers({ uid, passwd, loggedIn }: MachineFacts): string[] {
  if (uid === undefined) return [];
  const isOther = (id: number): boolean => id >= FIRST_UID && id <= LAST_UID && id !== uid;
  const accounts = passwd.split("\n").map((line) => line.split(":"));
  const named = new Map(accounts.map(([name = "", , id = ""]) => [Number(id), name]));
  const people = accounts.flatMap(([name = "", , id = "", , , , shell = ""]) =>
    isOther(Number(id)) && !NO_SHELL.test(shell) ? [name] : [],
  );
  const present = loggedIn.flatMap((id) => (isOther(Number(id)) ? [named.get(Number(id)) ?? `user ${id}`] : []));
  return [...new Set([...people, ...present])];
}

export function machineFacts(): MachineFacts {
  return {
    uid: process.getuid?.(),
    passwd: tryRead(() => readFileSync("/etc/passwd", "utf8")) ?? "",
    loggedIn: tryRead(() => readdirSync("/run/user")) ?? [],
  };
}

/** For a hub without `http.auth`; undefined if there are no other users. */
export function sharedMachineWarning(facts: MachineFacts): string | undefined {
  const users = otherUsers(facts);
  if (users.length === 0) return undefined;
  const more = users.length > MAX_NAMED_USERS ? ` and ${users.length - MAX_NAMED_USERS} more` : "";
  const named = `${users.slice(0, MAX_NAMED_USERS).join(", ")}${more}`;
  return (
    `Other users of this machine (${named}) can use this hub, because it does not require a token. ` +
    'To require one, add this to the config: "http": { "auth": { "tokens": [{ "token": "secret://env/TOOLCRIB_TOKEN" }] } }'
  );
}

function tryRead<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
