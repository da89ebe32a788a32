/** `toolcrib mcp`: the catalog, or a single server, as an MCP server over stdio. Only the protocol goes to stdout. */
import { accessSync, constants } from "node:fs";
import { toolcribHome } from "../../config/find-config.ts";
import { systemErrorCode } from "../../model/errors.ts";
import { McpDoor } from "../../doors/mcp/mcp-door.ts";
import { StdioDoor } from "../../doors/mcp/stdio-door.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import { SCOPES } from "../../model/caller.ts";
import type { Invocation } from "../command.ts";
import { loadCommandConfig, unknownServer } from "../command-config.ts";
import { logFor, logHubEvents, logStart, logWarnings } from "./hub-log.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { flags, env, out, stdin } = invocation;
  const log = logFor(invocation);
  const config = await loadCommandConfig(invocation, { asks: false });
  const server = flags.text("server");
  const role = flags.text("role");
  const home = toolcribHome(env);
  const isReadOnly = isReadOnlyDisk(home);
  if (isReadOnly) {
    log.warn(
      `${home} is on a disk that cannot be written to: servers of its store are missing, and no record is kept.`,
    );
  }
  const hub = await createHub(config, {
    wait: false,
    door: "mcp",
    ...(isReadOnly ? { store: false as const } : {}),
    env,
    redactor: out.redactor,
    otelExport: true,
    connect: server === undefined ? undefined : [server],
  });
  if (server !== undefined && !hub.servers.list().some(({ id }) => id === server)) {
    const error = unknownServer(server, hub.servers.list());
    await hub.close();
    throw error;
  }
  logWarnings(hub, log);
  logHubEvents(hub, log);
  void logStart(hub, log);
  const door = new McpDoor({ hub });
  const stopWatching = hub.internals.watch();
  const scope = { role, view: flags.text("view"), servers: server === undefined ? undefined : [server] };
  // The process that starts it acts for its owner.
  const caller = { key: "stdio", owner: true, scopes: new Set(SCOPES) };
  const stdio = new StdioDoor(
    door,
    { caller, scope, peer: { transport: "stdio", pid: process.ppid, entryOf: flags.text("client") } },
    { input: stdin, output: process.stdout },
  );
  try {
    await stdio.run();
    return 0;
  } finally {
    stopWatching();
    stdio.close();
    door.close();
    await hub.close();
  }
}

/** Permissions are another matter: those can be corrected. */
function isReadOnlyDisk(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return systemErrorCode(error) === "EROFS";
  }
}
