import { basename, dirname } from "node:path";
import type { SessionInfo } from "../../contract/activity-schemas.ts";
import { clientLabel } from "../../model/client-info.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { untrustedClientFiles } from "../../config/load-config.ts";
import { showWarnings } from "../load-with-trust.ts";
import { loginExpiryNote, showAnswers, withHub } from "../running-hub.ts";
import type { AttachedHub, Invocation } from "../command.ts";
import { plain } from "../skill/describe-skill.ts";
import type { Column } from "../table.ts";

/** Succeeds even if servers are down; `doctor` is the command that fails. */
export async function run(invocation: Invocation): Promise<number> {
  const { out, flags, attached, env, cwd } = invocation;
  if (flags.has("clients")) return showClients(invocation);
  // The hub's own warnings are not about the folder that the command is in, which is on this machine without `files`.
  if (attached !== undefined && attached.files === undefined && attached.hub.config.searched !== undefined) {
    showWarnings(invocation, await untrustedClientFiles({ env, cwd, home: toolcribHome(env) }));
  }
  return withHub(invocation, async (running) => {
    running.connectAuto();
    const known = running.servers();
    const shown = columns(running.took);
    if (out.showsParts && known.length > 0) {
      // One file for all is not worth a column.
      const isOneFile = new Set(known.map(({ origin }) => originOf(origin))).size === 1;
      const telling = shown.filter(({ title }) => !isOneFile || title !== "FROM");
      await showAnswers(out, running, out.growingTable(telling, known));
    } else {
      await showAnswers(out, running);
      out.list(shown, running.servers(), "No servers are configured. Add one with toolcrib add.");
    }
    if (out.json || attached === undefined || !mayList(attached)) return 0;
    const clients = await clientsOf(attached, running.session.id);
    if (clients.length > 0) {
      out.line("");
      out.table(CLIENT_COLUMNS, clients);
    }
    return 0;
  });
}

async function showClients({ attached, out }: Invocation): Promise<number> {
  if (attached !== undefined && !mayList(attached)) {
    throw new ToolcribError("denied", "The list of clients needs the scope admin.", {
      hint: "Give a token that has it, with --token or TOOLCRIB_TOKEN.",
    });
  }
  const nothing = attached === undefined ? "No hub runs, so there are no clients." : "No clients are connected.";
  out.list(CLIENT_COLUMNS, attached === undefined ? [] : await clientsOf(attached), nothing);
  return 0;
}

function mayList({ caller }: AttachedHub): boolean {
  return caller.scopes.has("admin");
}

const MAX_CLIENTS = 1000;

/** Open sessions of other programs; the hub's own is not one. */
async function clientsOf({ hub }: AttachedHub, own?: string): Promise<SessionInfo[]> {
  const { sessions } = await hub.internals.activity.sessions({ limit: MAX_CLIENTS, state: "open" });
  return sessions.filter(({ id }) => id !== own && id !== hub.session.id);
}

const CLIENT_COLUMNS: readonly Column<SessionInfo>[] = [
  { title: "CLIENT", cell: ({ client }) => (client === null ? "-" : plain(clientLabel(client))) },
  { title: "BY", cell: ({ door, client }) => client?.transport ?? door },
  { title: "PROCESS", cell: ({ client }) => processOf(client), dropAt: 2 },
  { title: "USER", cell: ({ user }) => user ?? "-" },
  { title: "ROLE", cell: ({ role, owner }) => role ?? (owner ? "owner" : "-") },
  { title: "CALLS", cell: ({ calls }) => String(calls) },
  { title: "SINCE", cell: ({ openedAt }) => openedAt, dropAt: 3 },
  { title: "FOLDER", cell: ({ client }) => client?.cwd ?? "", shrink: true, dropAt: 1 },
];

function processOf(client: SessionInfo["client"]): string {
  if (client?.pid === undefined) return "-";
  return client.program === undefined ? String(client.pid) : `${client.pid} (${plain(client.program)})`;
}

function columns(took: ReadonlyMap<string, number>): Column<ServerInfo>[] {
  return [
    { title: "ID", cell: (info) => info.id },
    { title: "STATE", cell: (info) => info.state, usual: 10 },
    { title: "TRANSPORT", cell: (info) => info.transport, dropAt: 3 },
    { title: "TOOLS", cell: (info) => (isListed(info) ? String(info.toolCount) : "-"), usual: 5 },
    { title: "VERSION", cell: (info) => info.serverVersion ?? "-", dropAt: 1, usual: 8 },
    { title: "TIME", cell: ({ id }) => (took.has(id) ? `${took.get(id)} ms` : "-"), dropAt: 2, usual: 8 },
    { title: "FROM", cell: ({ origin }) => originOf(origin), shrink: true, dropAt: 4 },
    { title: "REASON", cell: (info) => reasonOf(info), shrink: true, usual: 28 },
  ];
}

function isListed({ status, sleeping }: ServerInfo): boolean {
  return status === "connected" || sleeping === true;
}

/** The file that defines it, or the store. */
function originOf({ file, dialect }: ServerInfo["origin"]): string {
  if (dialect === "store") return "store";
  return dialect === "skill" ? `skill ${basename(dirname(file))}` : file;
}

function reasonOf(info: ServerInfo): string {
  if (info.status === "connected") return loginExpiryNote(info)?.message ?? info.warnings[0] ?? "";
  if (info.sleeping === true) return "asleep; its next use starts it";
  if (info.state === "idle") return "connects on demand";
  if (info.progress !== undefined) return info.progress;
  // The line begins with its id, and the reason is what a narrow terminal cuts.
  const named = `Server ${JSON.stringify(info.id)}: `;
  const reason = info.lastError?.startsWith(named) === true ? info.lastError.slice(named.length) : info.lastError;
  // What a package manager says follows on lines of its own; a cell has one.
  return (reason ?? "").replace(/(?<!\s)\s*\n\s*/g, " ");
}
