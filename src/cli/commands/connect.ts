/** `toolcrib clients`, `connect` and `disconnect`: the servers in the configs of agent clients. */
import { existsSync, statSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import type { AgentClient, ClientEnvironment, ClientFile, ClientScope } from "../../clients/agent-client.ts";
import { CLIENTS, clientThatSays } from "../../clients/clients.ts";
import { isInstalled, openClientFile } from "../../config/client-servers.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { toolcribHome } from "../../config/find-config.ts";
import {
  planRemove,
  planWrite,
  readTextIfPresent,
  readWrittenEntries,
  removeClientServers,
  fileToWriteFor,
  type RemovePlan,
  type RemoveRequest,
  writeClientServers,
  type WritePlan,
  type WriteRequest,
  WRITTEN_BY_CONNECT,
  type WrittenEntry,
} from "../../hub/clients/client-files.ts";
import { withChangeSet } from "../../hub/clients/connect-client.ts";
import type { JsonObject } from "../../model/json.ts";
import { clientEnvironment, clientScope, findClient, showClientDiff } from "../client-config.ts";
import { clientEntries, type ClientEntries } from "../client-entry.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";
import { recordedCalls } from "./audit.ts";

export async function runConnect(invocation: Invocation): Promise<number> {
  const { args, env, flags, out } = invocation;
  const client = findClient(args[0] ?? "");
  const { request, entries } = await connection(invocation, client);
  const { file } = request;
  const home = toolcribHome(env);
  if (file.scope === "user" && !isInstalled(client, clientEnvironment(invocation))) {
    out.warn(`${client.name} does not seem to be installed on this machine.`);
  }

  if (flags.has("dryRun")) {
    const before = await readTextIfPresent(file.path);
    const plan = planWrite(before, request, await readWrittenEntries(home));
    const after = plan.written.length === 0 ? before : plan.text;
    showClientDiff(invocation, client, { file: file.path, before, after }, writeFacts(request, entries, plan));
    return 0;
  }
  const plan = await withChangeSet(home, out, (changes) => writeClientServers({ ...request, changes, home }));
  if (out.json) {
    const facts = writeFacts(request, entries, plan);
    out.value({ ...facts, file: file.path, changed: plan.written.length > 0, afterChange: client.afterChange });
    return 0;
  }
  for (const id of plan.written) out.line(`Added ${id} to ${file.path}`);
  for (const id of plan.present) out.line(`Nothing to change: ${id} is already in ${file.path}.`);
  out.line(`The client connects ${describeWay(entries)}.`);
  if (plan.written.length > 0) out.line(client.afterChange);
  warnAboutReaders(invocation, file, entries);
  return 0;
}

/** The change that `connect` makes to the config of a client. */
async function connection(
  invocation: Invocation,
  client: AgentClient,
): Promise<{ readonly request: WriteRequest; readonly entries: ClientEntries }> {
  const file = fileToWriteFor(client, clientScope(invocation), clientEnvironment(invocation));
  const entries = await clientEntries(invocation, client);
  return { request: { client, file, servers: entries.servers, replace: invocation.flags.has("force") }, entries };
}

/** Adds Toolcrib to the client's config of the user, and resolves with that file. */
export async function connectClient(invocation: Invocation, client: AgentClient): Promise<string> {
  const { request, entries } = await connection(invocation, client);
  const home = toolcribHome(invocation.env);
  await withChangeSet(home, invocation.out, (changes) => writeClientServers({ ...request, changes, home }));
  warnAboutReaders(invocation, request.file, entries);
  return request.file.path;
}

function describeWay({ by, why, servers }: ClientEntries): string {
  const [first] = Object.values(servers);
  const url = first !== undefined && "url" in first ? ` ${first.url}` : "";
  return by === "url" ? `to${url}, ${why}` : `through the bridge, toolcrib mcp, ${why}`;
}

/** A file that existed keeps its mode. */
function warnAboutReaders({ out }: Invocation, file: ClientFile, { servers }: ClientEntries): void {
  const hasToken = Object.values(servers).some(
    (each) => "url" in each && each.token !== undefined && "text" in each.token,
  );
  if (!hasToken || process.platform === "win32" || (statSync(file.path).mode & 0o077) === 0) return;
  out.warn(`${file.path} contains the token, and other users of this machine may read it. Run chmod 600 on it.`);
}

function writeFacts(
  { client, file }: WriteRequest,
  { by, why, servers }: ClientEntries,
  { written, present }: WritePlan,
): Record<string, unknown> {
  return { client: client.id, scope: file.scope, by, why, servers: Object.keys(servers), written, present };
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
  const plan = await remove(invocation, request);
  const changed = plan.removed.length > 0;
  if (out.json)
    out.value({ ...removeFacts(request, plan), file: file.path, changed, afterChange: afterRemoval(client) });
  else showRemoved(invocation, client, file, plan);
  return 0;
}

async function remove({ env, out }: Invocation, request: RemoveRequest): Promise<RemovePlan> {
  const home = toolcribHome(env);
  const plan = await withChangeSet(home, out, (changes) => removeClientServers({ ...request, changes, home }));
  // Fails, as it should, if the folder is not empty.
  for (const folder of plan.madeFolders.toReversed()) await rmdir(folder).catch(() => undefined);
  for (const { id, reason } of plan.kept) {
    const why =
      reason === "edited" ? "was edited since Toolcrib wrote it" : "was not written by Toolcrib with this home";
    out.warn(`${request.file.path}: ${id} ${why}, and was kept. Use --force to remove it, if it starts Toolcrib.`);
  }
  return plan;
}

/** Removes everything that `connect` wrote into the client's config of the user. */
export async function disconnectClient(invocation: Invocation, client: AgentClient): Promise<void> {
  const file = fileToWriteFor(client, "user", clientEnvironment(invocation));
  const ids = idsFor(invocation, await readWrittenEntries(toolcribHome(invocation.env)), file);
  const plan = await remove(invocation, { client, file, ids, force: invocation.flags.has("force") });
  if (!invocation.out.json) showRemoved(invocation, client, file, plan);
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
  if (plan.removed.length > 0) out.line(afterRemoval(client));
}

function afterRemoval({ afterRemoval: step, afterChange }: AgentClient): string {
  return step ?? afterChange;
}

function removeFacts({ client, file }: RemoveRequest, plan: RemovePlan): Record<string, unknown> {
  const { removed, kept, absent } = plan;
  return { client: client.id, scope: file.scope, removed, kept, absent };
}

export async function runClients(invocation: Invocation): Promise<number> {
  const { env, out } = invocation;
  const place = clientEnvironment(invocation);
  const records = await readWrittenEntries(toolcribHome(env));
  const [found, calls] = await Promise.all([
    Promise.all(CLIENTS.map((client) => inspectClient(client, place, records))),
    lastCalls(invocation),
  ]);
  const seen = found.map((client) => ({ ...client, lastCall: calls.get(client.id) ?? null }));
  if (out.json) out.value(seen);
  // Those of this machine are what was asked for; the others show what could be connected.
  else
    out.table(COLUMNS, [...seen.filter(({ installed }) => installed), ...seen.filter(({ installed }) => !installed)]);
  for (const { problem } of seen) for (const line of problem?.split("\n") ?? []) out.warn(line);
  return 0;
}

const COLUMNS: readonly Column<ClientStatus>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "CLIENT", cell: ({ name }) => name },
  { title: "INSTALLED", cell: ({ installed }) => (installed ? "yes" : "no") },
  { title: "TOOLCRIB", cell: ({ via }) => via.map(({ by, url }) => url ?? by).join(", ") || "-" },
  { title: "LAST CALL", cell: ({ lastCall }) => lastCall?.slice(0, 16).replace("T", " ") ?? "-" },
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
  /** The servers that are Toolcrib, and how the client reaches it. */
  readonly via: readonly { readonly server: string; readonly by: "url" | "bridge"; readonly url?: string }[];
  /** ISO time of the last call of a client that gives itself this one's name, in the last 30 days. */
  readonly lastCall: string | null;
  /** Why one of its files cannot be read, with the line. */
  readonly problem?: string;
}

export async function inspectClient(
  client: AgentClient,
  place: ClientEnvironment,
  records: readonly WrittenEntry[],
): Promise<Omit<ClientStatus, "lastCall">> {
  const files = client.files(place);
  const opened = await Promise.all(files.map((file) => openClientFile(client, file)));
  const read = opened.flatMap((each, at) => (each.state === "read" ? [{ ...each, path: files[at]?.path }] : []));
  const problems = new Set(opened.flatMap((each) => (each.state === "broken" ? [renderDiagnostic(each.problem)] : [])));
  const own = read.flatMap(({ path, entries, own: ids }) => {
    // A URL under another name is known by the record alone.
    const written = records.filter(({ file, by }) => file === path && by === WRITTEN_BY_CONNECT).map(({ id }) => id);
    return [...new Set([...ids, ...written])].flatMap((id) =>
      entries[id] === undefined ? [] : [[id, entries[id]] as const],
    );
  });
  return {
    id: client.id,
    name: client.name,
    installed: isInstalled(client, place),
    files: files.map(({ scope, path }) => ({ scope, path, exists: existsSync(path) })),
    servers: [...new Set(read.flatMap(({ entries }) => Object.keys(entries)))],
    connected: own.length > 0,
    via: [...new Map(own)].map(([server, entry]) => ({ server, ...wayOf(entry) })),
    ...(problems.size === 0 ? {} : { problem: [...problems].join("\n") }),
  };
}

/** The address without what may be a secret. */
function wayOf(entry: JsonObject): { by: "url" | "bridge"; url?: string } {
  const text = [entry["url"], entry["httpUrl"], entry["serverUrl"]].find((each) => typeof each === "string");
  if (text === undefined) return { by: "bridge" };
  if (!URL.canParse(text)) return { by: "url" };
  const { origin, pathname } = new URL(text);
  return { by: "url", url: `${origin}${pathname}` };
}

const LAST_CALLS_MS = 30 * 24 * 3_600_000;

/** By client. The names are what programs say of themselves. */
async function lastCalls(invocation: Invocation): Promise<Map<string, string>> {
  const last = new Map<string, string>();
  for await (const { record } of recordedCalls(invocation, {
    since: new Date(Date.now() - LAST_CALLS_MS).toISOString(),
  })) {
    const { name } = record.client ?? {};
    const client = name === undefined ? undefined : clientThatSays(name);
    const known = client && last.get(client.id);
    if (client !== undefined && (known === undefined || known < record.time)) last.set(client.id, record.time);
  }
  return last;
}
