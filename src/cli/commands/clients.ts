import { existsSync } from "node:fs";
import type { AgentClient, ClientEnvironment, ClientScope } from "../../clients/agent-client.ts";
import { CLIENTS } from "../../clients/clients.ts";
import { isInstalled, openClientFile } from "../../config/client-servers.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { clientEnvironment } from "../client-config.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";

export async function run(invocation: Invocation): Promise<number> {
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

/** What each agent client on this machine has. Only names: entries may hold secrets. */

export interface ClientStatus {
  readonly id: string;
  readonly name: string;
  readonly installed: boolean;
  readonly files: readonly { readonly scope: ClientScope; readonly path: string; readonly exists: boolean }[];
  readonly servers: readonly string[];
  /** Whether one of the servers is Toolcrib. */
  readonly connected: boolean;
  /** Why a file of it cannot be read, with the line. */
  readonly problem?: string;
}

export async function inspectClient(client: AgentClient, place: ClientEnvironment): Promise<ClientStatus> {
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
