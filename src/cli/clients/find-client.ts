/** The client that a person named, and the file of it that a scope means. */
import { nearMatches } from "../../catalog/near-matches.ts";
import type { AgentClient, ClientFile, ClientPlace, ClientScope } from "../../clients/client.ts";
import { clientById, CLIENTS } from "../../clients/clients.ts";
import { thisPlace } from "../../config/client-servers.ts";
import { fileToWrite } from "../../hub/clients/choose-file.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";

export function findClient(named: string): AgentClient {
  const client = clientById(named);
  if (client !== undefined) return client;
  const ids = new Map(CLIENTS.flatMap(({ id, name }) => [[id as string, id] as const, [name, id] as const]));
  const near = [...new Set(nearMatches(named, ids.keys()).map((match) => ids.get(match)))];
  throw new ToolcribError("invalid_arguments", `There is no client ${JSON.stringify(named)}.`, {
    hint:
      near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Clients: ${CLIENTS.map(({ id }) => id).join(", ")}.`,
    details: { near },
  });
}

export function placeOf({ env, cwd }: Invocation): ClientPlace {
  return thisPlace(env, cwd);
}

export function scopeOf({ flags }: Invocation): ClientScope {
  const scope = flags.text("scope") ?? "user";
  if (scope === "user" || scope === "project") return scope;
  throw new ToolcribError("invalid_arguments", `--scope must be user or project.`);
}

/** The one that is written. */
export function fileFor(client: AgentClient, scope: ClientScope, place: ClientPlace): ClientFile {
  const file = fileToWrite(client, scope, place);
  if (file !== undefined) return file;
  const other = scope === "user" ? "project" : "user";
  throw new ToolcribError("invalid_arguments", `${client.name} has no ${scope} file for MCP servers.`, {
    hint: `Use --scope ${other}.`,
  });
}
