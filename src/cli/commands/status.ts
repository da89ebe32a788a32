import { basename, dirname } from "node:path";
import type { ServerInfo } from "../../model/server-state.ts";
import { loginExpiryNote, withHub } from "../running-hub.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";

/** Succeeds even if servers are down; `doctor` is the command that fails. */
export function run(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  return withHub(invocation, async (running) => {
    running.connectAuto();
    await running.settled();
    const servers = running.hub.servers.list();
    out.list(columns(running.took), servers, "No servers are configured. Add one with toolcrib add.");
    return 0;
  });
}

function columns(took: ReadonlyMap<string, number>): Column<ServerInfo>[] {
  return [
    { title: "ID", cell: (info) => info.id },
    { title: "STATE", cell: (info) => info.state },
    { title: "TRANSPORT", cell: (info) => info.transport },
    { title: "TOOLS", cell: (info) => (info.status === "connected" ? String(info.toolCount) : "-") },
    { title: "VERSION", cell: (info) => info.serverVersion ?? "-" },
    { title: "TIME", cell: ({ id }) => (took.has(id) ? `${took.get(id)} ms` : "-") },
    { title: "FROM", cell: ({ origin }) => originOf(origin), shrink: true },
    { title: "REASON", cell: (info) => reasonOf(info), shrink: true },
  ];
}

/** The file that defines it, or the store. */
function originOf({ file, dialect }: ServerInfo["origin"]): string {
  if (dialect === "store") return "store";
  return dialect === "skill" ? `skill ${basename(dirname(file))}` : file;
}

function reasonOf(info: ServerInfo): string {
  if (info.status === "connected") return loginExpiryNote(info)?.message ?? info.warnings[0] ?? "";
  if (info.state === "idle") return "connects on demand";
  if (info.progress !== undefined) return info.progress;
  return info.lastError ?? "";
}
