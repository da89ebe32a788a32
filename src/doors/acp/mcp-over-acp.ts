/** MCP servers that live in the client and are reached through the ACP connection. */
import { type AgentContext, isMcpServerAcp, McpOverAcpCaller } from "@agentclientprotocol/sdk/unstable";
import { VERSION } from "../../model/version.ts";
import { WireEntry } from "../../sessions/own/wire-entry.ts";
import { AcpWire } from "./acp-wire.ts";

export class McpOverAcp {
  /** Takes the notifications that belong to requests under way. */
  readonly caller = new McpOverAcpCaller({ clientInfo: { name: "toolcrib", version: VERSION } });
  readonly #entries = new Map<string, WireEntry>();

  /** The same list with a way to those of `type: "acp"`: the same way each time, so that mounting again changes nothing. */
  reachable(client: AgentContext, servers: readonly unknown[]): readonly unknown[] {
    return servers.map((server) => {
      if (!isMcpServerAcp(server)) return server;
      const { name, serverId } = server;
      const key = JSON.stringify([name, serverId]);
      let entry = this.#entries.get(key);
      if (entry === undefined) {
        entry = new WireEntry(name, () => new AcpWire({ client, caller: this.caller, serverId }));
        this.#entries.set(key, entry);
      }
      return entry;
    });
  }
}

/** Whether an entry is worth keeping for later: what lives in a client is gone with the connection. */
export function outlivesConnection(server: unknown): boolean {
  return !isMcpServerAcp(server);
}
