/** What to paste into the common agent clients, so that they find this hub. `toolcrib connect` writes the same. */
import { claudeDesktop } from "../../clients/claude-desktop.ts";
import type { AgentClient, WrittenServer } from "../../clients/client.ts";
import { cursor } from "../../clients/cursor.ts";
import { vscode } from "../../clients/vscode.ts";
import { gatewayCommand } from "../../hub/clients/gateway-command.ts";

export interface HubAddress {
  /** Address of the MCP endpoint. */
  readonly url: string;
  /** Whether clients have to bring a token. */
  readonly needsToken: boolean;
  /** The config file of the hub, for clients that start their servers themselves. */
  readonly configFile: string | null;
  /** Whether a client may start a hub with that file; beside a node of a cluster it would be a second one, and no node. */
  readonly mayStart?: boolean;
}

export interface ClientSnippet {
  readonly client: string;
  readonly text: string;
}

const ID = "toolcrib";
const TOKEN = "Bearer <token>";

export function clientSnippets({ url, needsToken, configFile, mayStart = true }: HubAddress): ClientSnippet[] {
  const headers = needsToken ? { headers: { Authorization: TOKEN } } : {};
  const hub: WrittenServer = { url, transport: "http", ...headers };
  const claudeCode = [
    `claude mcp add --transport http ${ID}`,
    url,
    ...(needsToken ? [`--header "Authorization: ${TOKEN}"`] : []),
  ];
  const desktop = {
    client: "Claude Desktop (claude_desktop_config.json)",
    text: fileWith(claudeDesktop, gatewayCommand({ configFile })),
  };
  return [
    { client: "Claude Code", text: claudeCode.join(" ") },
    { client: "Cursor (mcp.json)", text: fileWith(cursor, hub) },
    { client: "VS Code (.vscode/mcp.json)", text: fileWith(vscode, hub) },
    ...(mayStart ? [desktop] : []),
  ];
}

/** A whole file with this server alone. */
function fileWith(client: AgentClient, server: WrittenServer): string {
  const path = client.pathOf(ID, { scope: "user", path: "" }).filter((step) => typeof step === "string");
  const entry: unknown = client.write(ID, server);
  return JSON.stringify(path.reduceRight((inner, key) => ({ [key]: inner }), entry));
}
