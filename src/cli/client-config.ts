/** The config files of agent clients: finding, showing and changing them. */
import { nearMatches } from "../base/near-matches.ts";
import type { AgentClient, ClientEnvironment, ClientScope } from "../clients/agent-client.ts";
import { clientById, CLIENTS } from "../clients/clients.ts";
import { localClientEnvironment } from "../config/find-config.ts";
import { jsonScalars } from "../files/edit/json-edit.ts";
import { tomlScalars } from "../files/edit/toml-edit.ts";
import { yamlScalars } from "../files/edit/yaml-edit.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Invocation } from "./command.ts";
import { showDiff } from "./config-target.ts";
import { maskConfig, type ReadScalars } from "../config/masked-diff.ts";

export function findClient(named: string): AgentClient {
  const client = clientById(named);
  if (client === undefined) throw unknownClient(named);
  return client;
}

/** With a suggestion for a mistyped id or name. */
export function unknownClient(named: string): ToolcribError {
  const ids = new Map(CLIENTS.flatMap(({ id, name }) => [[id as string, id] as const, [name, id] as const]));
  const near = [...new Set(nearMatches(named, ids.keys()).map((match) => ids.get(match)))];
  return new ToolcribError("invalid_arguments", `There is no client ${JSON.stringify(named)}.`, {
    hint:
      near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Clients: ${CLIENTS.map(({ id }) => id).join(", ")}.`,
    details: { near },
  });
}

export function clientEnvironment({ env, cwd }: Invocation): ClientEnvironment {
  return localClientEnvironment(env, cwd);
}

export function clientScope({ flags }: Invocation): ClientScope {
  const scope = flags.text("scope") ?? "user";
  if (scope === "user" || scope === "project") return scope;
  throw new ToolcribError("invalid_arguments", "--scope must be user or project.");
}

interface Change {
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
}

const SCALAR_READERS: Readonly<Record<AgentClient["format"], ReadScalars>> = {
  jsonc: jsonScalars,
  json5: jsonScalars,
  yaml: yamlScalars,
  toml: tomlScalars,
};

export function showClientDiff(
  invocation: Invocation,
  client: AgentClient,
  { file, before, after }: Change,
  facts: Readonly<Record<string, unknown>>,
): void {
  const mask = (text: string): string => maskConfig(text, SCALAR_READERS[client.format]);
  showDiff(invocation, file, before ?? "", after ?? "", facts, mask);
}
