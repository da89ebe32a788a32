/** `toolcrib mcp`: the catalog, or a single server, as an MCP server over stdio. Only the protocol goes to stdout. */
import { McpDoor } from "../../doors/mcp/mcp-door.ts";
import { StdioDoor } from "../../doors/mcp/stdio-door.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import { SCOPES } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { logFor, logHubEvents, logWarnings } from "./hub-log.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { flags, env, out, stdin } = invocation;
  const log = logFor(invocation);
  const config = await loadCommandConfig(invocation, { asks: false });
  const server = flags.text("server");
  const role = flags.text("role");
  const hub = await createHub(config, {
    wait: false,
    door: "mcp",
    env,
    redactor: out.redactor,
    ...(server === undefined ? {} : { connect: [server] }),
  });
  if (server !== undefined && !hub.servers().some(({ id }) => id === server)) {
    const known = hub.servers().map(({ id }) => id);
    await hub.close();
    const hint = `Known servers: ${known.join(", ") || "none"}.`;
    throw new ToolcribError("not_found", `There is no server "${server}".`, { hint });
  }
  logWarnings(hub, log);
  logHubEvents(hub, log);
  const door = new McpDoor({ hub });
  const stopWatching = hub.watch();
  const scope = { role, ...(server === undefined ? {} : { servers: [server] }) };
  // The process that starts it acts for its owner.
  const caller = { key: "stdio", owner: true, scopes: new Set(SCOPES) };
  const stdio = new StdioDoor(door, { caller, scope }, { input: stdin, output: process.stdout });
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
