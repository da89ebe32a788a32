/** What each agent client on this machine has. Only names: entries may hold secrets. */
import { existsSync } from "node:fs";
import type { AgentClient, ClientPlace, ClientScope } from "../../clients/client.ts";
import { isInstalled } from "../../config/client-servers.ts";
import { renderDiagnostic } from "../../config/diagnostics.ts";
import { openClientFile } from "../../config/dialects/client-file.ts";

export interface SeenClient {
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

export async function lookAtClient(client: AgentClient, place: ClientPlace): Promise<SeenClient> {
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
