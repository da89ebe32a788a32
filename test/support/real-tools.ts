/** Tool definitions of the real servers, read by the SDK's own client, as capabilities under their default names. */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { ToolCapability } from "../../src/model/capability.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";

export async function realTools(servers: Readonly<Record<string, ServerEntryInput>>): Promise<ToolCapability[]> {
  const lists = await Promise.all(Object.entries(servers).map(([id, entry]) => toolsOf(id, entry)));
  return lists.flat();
}

async function toolsOf(id: string, { command = "", args = [], env = {} }: ServerEntryInput): Promise<ToolCapability[]> {
  const client = new Client({ name: "toolcrib-test", version: "0.0.0" });
  await client.connect(new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: "ignore" }));
  try {
    const { tools } = await client.listTools();
    // The SDK has checked that they are tools.
    return tools.map((tool) => capability(id, tool as ToolDefinition));
  } finally {
    await client.close();
  }
}

function capability(server: string, definition: ToolDefinition): ToolCapability {
  const { name } = definition;
  return {
    kind: "tool",
    name: `${server}__${name}`,
    origin: { source: server, name },
    definition,
    fingerprint: `${server}/${name}`,
  };
}
