/** What to paste into the common agent clients, so that they find this hub. */
export interface HubAddress {
  /** Address of the MCP endpoint. */
  readonly url: string;
  /** Whether clients have to bring a token. */
  readonly needsToken: boolean;
  /** The config file of the hub, for clients that start their servers themselves. */
  readonly configFile: string | null;
}

export interface ClientSnippet {
  readonly client: string;
  readonly text: string;
}

const TOKEN = "Bearer <token>";

export function clientSnippets({ url, needsToken, configFile }: HubAddress): ClientSnippet[] {
  const headers = needsToken ? { headers: { Authorization: TOKEN } } : {};
  const json = (value: unknown): string => JSON.stringify(value);
  const claudeCode = [
    "claude mcp add --transport http toolcrib",
    url,
    ...(needsToken ? [`--header "Authorization: ${TOKEN}"`] : []),
  ];
  const args = ["mcp", ...(configFile === null ? [] : ["--config", configFile])];
  return [
    { client: "Claude Code", text: claudeCode.join(" ") },
    { client: "Cursor (mcp.json)", text: json({ mcpServers: { toolcrib: { url, ...headers } } }) },
    { client: "VS Code (.vscode/mcp.json)", text: json({ servers: { toolcrib: { type: "http", url, ...headers } } }) },
    {
      client: "Claude Desktop (claude_desktop_config.json)",
      text: json({ mcpServers: { toolcrib: { command: "toolcrib", args } } }),
    },
  ];
}
