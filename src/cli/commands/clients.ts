import { CLIENTS } from "../../clients/clients.ts";
import { lookAtClient, type SeenClient } from "../clients/look-at-clients.ts";
import { placeOf } from "../clients/find-client.ts";
import type { Invocation } from "../command.ts";
import type { Column } from "../table.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const place = placeOf(invocation);
  const seen = await Promise.all(CLIENTS.map((client) => lookAtClient(client, place)));
  if (out.json) out.value(seen);
  else out.table(COLUMNS, seen);
  for (const { problem } of seen) for (const line of problem?.split("\n") ?? []) out.warn(line);
  return 0;
}

const COLUMNS: readonly Column<SeenClient>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "CLIENT", cell: ({ name }) => name },
  { title: "INSTALLED", cell: ({ installed }) => (installed ? "yes" : "no") },
  { title: "TOOLCRIB", cell: ({ connected }) => (connected ? "connected" : "-") },
  { title: "SERVERS", cell: ({ servers }) => servers.join(", ") || "-", shrink: true },
  { title: "FILES", cell: (client) => filesOf(client), shrink: true },
];

function filesOf({ files, problem }: SeenClient): string {
  const found = [...new Set(files.filter(({ exists }) => exists).map(({ path }) => path))];
  return `${found.join(", ") || "-"}${problem === undefined ? "" : " (cannot be read)"}`;
}
