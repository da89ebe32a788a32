/** `toolcrib clients`, `connect` and `disconnect`: the servers in the configs of agent clients. */
import { existsSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { isLoopback } from "../../base/network-address.ts";
import type {
  AgentClient,
  ClientEnvironment,
  ClientFile,
  ClientScope,
  WrittenServer,
} from "../../clients/agent-client.ts";
import { CLIENTS } from "../../clients/clients.ts";
import { isInstalled, openClientFile } from "../../config/client-servers.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { findConfig, toolcribHome } from "../../config/find-config.ts";
import {
  planRemove,
  planWrite,
  readTextIfPresent,
  readWrittenEntries,
  removeClientServers,
  type RemovePlan,
  type RemoveRequest,
  writeClientServers,
  type WritePlan,
  type WriteRequest,
  WRITTEN_BY_CONNECT,
  type WrittenEntry,
} from "../../hub/clients/client-files.ts";
import { gatewayCommand } from "../../hub/clients/gateway-command.ts";
import { ToolcribError } from "../../model/errors.ts";
import {
  clientEnvironment,
  clientScope,
  fileToWriteFor,
  findClient,
  showClientDiff,
  withChangeSet,
} from "../client-config.ts";
import { loadCommandConfig, unknownServer } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import { userConfigFile } from "../config-target.ts";
import type { Column } from "../table.ts";

export async function runConnect(invocation: Invocation): Promise<number> {
  const { args, env, flags, out } = invocation;
  const client = findClient(args[0] ?? "");
  const place = clientEnvironment(invocation);
  const file = fileToWriteFor(client, clientScope(invocation), place);
  const servers = await serversToWrite(invocation);
  const request: WriteRequest = { client, file, servers, replace: flags.has("force") };
  const home = toolcribHome(env);
  warnAboutPlainHttp(invocation);
  if (file.scope === "user" && !isInstalled(client, place)) {
    out.warn(`${client.name} does not seem to be installed on this machine.`);
  }

  if (flags.has("dryRun")) {
    const before = await readTextIfPresent(file.path);
    const plan = planWrite(before, request, await readWrittenEntries(home));
    const after = plan.written.length === 0 ? before : plan.text;
    showClientDiff(invocation, client, { file: file.path, before, after }, writeFacts(request, plan));
    return 0;
  }
  const plan = await withChangeSet(home, out, (changes) => writeClientServers({ ...request, changes, home }));
  if (out.json) {
    const facts = writeFacts(request, plan);
    out.value({ ...facts, file: file.path, changed: plan.written.length > 0, afterChange: client.afterChange });
    return 0;
  }
  for (const id of plan.written) out.line(`Added ${id} to ${file.path}`);
  for (const id of plan.present) out.line(`Nothing to change: ${id} is already in ${file.path}.`);
  if (plan.written.length > 0) out.line(client.afterChange);
  return 0;
}

/** The whole catalog under the name `toolcrib`, or single servers under their own names. */
async function serversToWrite(invocation: Invocation): Promise<Record<string, WrittenServer>> {
  const { flags, env, cwd, out } = invocation;
  const url = flags.text("url");
  const role = flags.text("role");
  const ids = flags.list("server");
  if (url !== undefined) {
    if (role !== undefined) {
      throw new ToolcribError("invalid_arguments", "--role cannot be combined with --url.", {
        hint: `Put the role into the URL: ${url.replace(/\/$/, "")}/${encodeURIComponent(role)}`,
      });
    }
    // The servers of a hub at another address are not known here.
    return ids.length === 0
      ? { toolcrib: hubAddress(url) }
      : Object.fromEntries(ids.map((server) => [server, hubAddress(url, server)]));
  }
  const found = findConfig({ config: flags.text("config"), env, cwd });
  const configFile = userConfigFile(invocation);
  if (ids.length === 0) {
    if ("project" in found && found.project !== null) {
      const hint = "To use that file instead, pass it with --config.";
      out.warn(`The client will use ${configFile} and not ${found.project}. ${hint}`);
    }
    return { toolcrib: gatewayCommand({ role, configFile, env }) };
  }
  const { project, servers } = await loadCommandConfig(invocation);
  for (const id of ids) if (!servers.some((spec) => spec.id === id)) throw unknownServer(id, servers);
  const isProjects = (id: string): boolean => servers.some((spec) => spec.id === id && spec.fromProject === true);
  return Object.fromEntries(
    ids.map((server) => {
      const holder = isProjects(server) && project !== undefined ? project.file : configFile;
      return [server, gatewayCommand({ server, role, configFile: holder, env })];
    }),
  );
}

function hubAddress(text: string, server?: string): WrittenServer {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--url must be the URL of a running hub.", {
      hint: "toolcrib serve prints it, such as http://127.0.0.1:4700/mcp",
    });
  }
  if (server !== undefined) url.searchParams.set("servers", server);
  return { url: url.href, transport: url.pathname.endsWith("/sse") ? "sse" : "http" };
}

function warnAboutPlainHttp({ flags, out }: Invocation): void {
  // `addressOf` has parsed it by now.
  const url = new URL(flags.text("url") ?? "https://localhost");
  if (url.protocol !== "http:" || isLoopback(url.hostname)) return;
  out.warn(`The connection to ${url.host} is not encrypted: anyone on the network can read and change it. Use https.`);
}

function writeFacts({ client, file, servers }: WriteRequest, { written, present }: WritePlan): Record<string, unknown> {
  return { client: client.id, scope: file.scope, servers: Object.keys(servers), written, present };
}

export async function runDisconnect(invocation: Invocation): Promise<number> {
  const { args, env, flags, out } = invocation;
  const client = findClient(args[0] ?? "");
  const file = fileToWriteFor(client, clientScope(invocation), clientEnvironment(invocation));
  const home = toolcribHome(env);
  const records = await readWrittenEntries(home);
  const request: RemoveRequest = { client, file, ids: idsFor(invocation, records, file), force: flags.has("force") };

  if (flags.has("dryRun")) {
    const before = await readTextIfPresent(file.path);
    const plan = planRemove(before, request, records);
    showClientDiff(invocation, client, { file: file.path, before, after: plan.text }, removeFacts(request, plan));
    return 0;
  }
  const plan = await withChangeSet(home, out, (changes) => removeClientServers({ ...request, changes, home }));
  // Fails, as it should, if the folder is not empty.
  for (const folder of plan.madeFolders.toReversed()) await rmdir(folder).catch(() => undefined);
  const changed = plan.removed.length > 0;
  if (out.json) out.value({ ...removeFacts(request, plan), file: file.path, changed, afterChange: client.afterChange });
  else showRemoved(invocation, client, file, plan);
  for (const { id, reason } of plan.kept) {
    const why =
      reason === "edited" ? "was edited since Toolcrib wrote it" : "was not written by Toolcrib with this home";
    out.warn(`${file.path}: ${id} ${why}, and was kept. Use --force to remove it, if it starts Toolcrib.`);
  }
  return 0;
}

/** Without --server, everything that connect wrote. Entries of skills are removed with the skill. */
function idsFor({ flags, out }: Invocation, records: readonly WrittenEntry[], file: ClientFile): readonly string[] {
  const named = flags.list("server");
  if (named.length > 0) return named;
  const here = records.filter((entry) => entry.file === file.path && entry.scope === file.scope);
  const others = here.filter(({ by }) => by !== WRITTEN_BY_CONNECT).map(({ id }) => id);
  if (others.length > 0) out.note(`Kept, because they belong to skills: ${others.join(", ")}`);
  const ids = here.filter(({ by }) => by === WRITTEN_BY_CONNECT).map(({ id }) => id);
  return ids.length === 0 ? ["toolcrib"] : ids;
}

function showRemoved({ out }: Invocation, client: AgentClient, file: ClientFile, plan: RemovePlan): void {
  for (const id of plan.removed) out.line(`Removed ${id} from ${file.path}`);
  for (const id of plan.absent) out.line(`Nothing to change: ${id} is not in ${file.path}.`);
  if (plan.removed.length > 0) out.line(client.afterChange);
}

function removeFacts({ client, file }: RemoveRequest, plan: RemovePlan): Record<string, unknown> {
  const { removed, kept, absent } = plan;
  return { client: client.id, scope: file.scope, removed, kept, absent };
}

export async function runClients(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const place = clientEnvironment(invocation);
  const seen = await Promise.all(CLIENTS.map((client) => inspectClient(client, place)));
  if (out.json) out.value(seen);
  else out.table(COLUMNS, seen);
  for (const { problem } of seen) for (const line of problem?.split("\n") ?? []) out.warn(line);
  return 0;
}

const COLUMNS: readonly Column<ClientStatus>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "CLIENT", cell: ({ name }) => name },
  { title: "INSTALLED", cell: ({ installed }) => (installed ? "yes" : "no") },
  { title: "TOOLCRIB", cell: ({ connected }) => (connected ? "connected" : "-") },
  { title: "SERVERS", cell: ({ servers }) => servers.join(", ") || "-", shrink: true },
  { title: "FILES", cell: (client) => filesOf(client), shrink: true },
];

function filesOf({ files, problem }: ClientStatus): string {
  const found = [...new Set(files.filter(({ exists }) => exists).map(({ path }) => path))];
  return `${found.join(", ") || "-"}${problem === undefined ? "" : " (cannot be read)"}`;
}

export interface ClientStatus {
  readonly id: string;
  readonly name: string;
  readonly installed: boolean;
  readonly files: readonly { readonly scope: ClientScope; readonly path: string; readonly exists: boolean }[];
  readonly servers: readonly string[];
  /** Whether one of the servers is Toolcrib. */
  readonly connected: boolean;
  /** Why one of its files cannot be read, with the line. */
  readonly problem?: string;
}

async function inspectClient(client: AgentClient, place: ClientEnvironment): Promise<ClientStatus> {
  const files = client.files(place);
  const opened = await Promise.all(files.map((file) => openClientFile(client, file)));
  const read = opened.filter((each) => each.state === "read");
  const problems = new Set(opened.flatMap((each) => (each.state === "broken" ? [renderDiagnostic(each.problem)] : [])));
  return {
    id: client.id,
    name: client.name,
    installed: isInstalled(client, place),
    files: files.map(({ scope, path }) => ({ scope, path, exists: existsSync(path) })),
    servers: [...new Set(read.flatMap(({ entries }) => Object.keys(entries)))],
    connected: read.some(({ own }) => own.length > 0),
    ...(problems.size === 0 ? {} : { problem: [...problems].join("\n") }),
  };
}
