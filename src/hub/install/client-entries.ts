/** The servers of a skill as they stand in the files of clients: directly, or through Toolcrib where a secret is needed. */
import type { AgentClient, ClientFile, ClientPlace, ClientScope, WrittenServer } from "../../clients/client.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { holdsReference } from "../../secrets/references.ts";
import { specStrings } from "../../secrets/spec-strings.ts";
import { fileToWrite } from "../clients/choose-file.ts";
import { assertNoSecrets } from "../clients/no-secrets.ts";
import { gatewayCommand } from "../clients/write-client.ts";

export interface ClientWrite {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly servers: Readonly<Record<string, WrittenServer>>;
}

export interface ClientWriteOptions {
  readonly clients: readonly AgentClient[];
  readonly place: ClientPlace;
  readonly scope: ClientScope;
  readonly servers: readonly ServerSpec[];
  readonly configFile: string;
}

/** Throws `invalid_arguments` for a client that has no file of that scope. */
export function clientWrites({ clients, place, scope, servers, configFile }: ClientWriteOptions): ClientWrite[] {
  if (servers.length === 0) return [];
  return clients.map((client) => {
    const file = fileToWrite(client, scope, place);
    if (file === undefined) {
      throw new ToolcribError("invalid_arguments", `${client.name} has no ${scope} file for MCP servers.`, {
        hint: `Use --scope ${scope === "user" ? "project" : "user"}.`,
      });
    }
    const written = servers.map((spec) => [spec.id, writtenFor(client, spec, configFile, place.env)] as const);
    return { client, file, servers: Object.fromEntries(written) };
  });
}

function writtenFor(client: AgentClient, spec: ServerSpec, configFile: string, env: NodeJS.ProcessEnv): WrittenServer {
  const direct = directly(spec);
  if (direct !== undefined && isFit(client, spec.id, direct)) return direct;
  return gatewayCommand({ server: spec.id, configFile, env });
}

/** undefined for what only Toolcrib can do: resolve references, log in, make a cage, find a folder from the place of the config. */
function directly(spec: ServerSpec): WrittenServer | undefined {
  const { command, args = [], env, cwd, url, headers, transport, auth, sandbox = "none" } = spec;
  if (auth !== undefined || specStrings(spec).some(({ text }) => holdsReference(text) || text.includes("$${"))) {
    return undefined;
  }
  if (url !== undefined) {
    return { url, transport: transport === "sse" ? "sse" : "http", headers };
  }
  if (command === undefined || cwd !== undefined || sandbox !== "none") return undefined;
  return { command, args, env };
}

function isFit(client: AgentClient, id: string, server: WrittenServer): boolean {
  if (client.write(id, server) === undefined) return false;
  try {
    assertNoSecrets(client, id, server);
    return true;
  } catch (error) {
    if (error instanceof ToolcribError) return false;
    throw error;
  }
}
