import type { ServerDetail } from "../server.ts";
import type { OutputOf } from "../operations.ts";
import type { Examples } from "./example.ts";

const CONFIG = {
  command: "npx",
  args: ["-y", "@modelcontextprotocol/server-filesystem", "."],
  env: { NOTES_TOKEN: "secret://env/NOTES_TOKEN" },
};

export const FILES: OutputOf<"connectServer">["server"] = {
  id: "files",
  name: "files",
  transport: "stdio",
  state: "ready",
  status: "connected",
  capabilities: { tools: {} },
  toolCount: 14,
  serverVersion: "0.2.0",
  lastError: null,
  connectedAt: "2026-11-16T08:00:01.412Z",
  origin: { file: "store", dialect: "toolcrib" },
  tags: [],
  era: "legacy",
  protocolVersion: "2025-11-25",
  warnings: [],
};

const DETAIL: ServerDetail = {
  ...FILES,
  from: "store",
  editable: true,
  enabled: true,
  autoConnect: true,
  config: CONFIG,
  etag: '"3-9f86d081884c7d65"',
  stderr: ["Secure MCP Filesystem Server running on stdio"],
  history: [
    { at: "2026-11-16T08:00:00.120Z", state: "connecting" },
    { at: "2026-11-16T08:00:01.412Z", state: "ready" },
  ],
  resourceCount: 0,
  promptCount: 0,
};

const STOPPED: OutputOf<"disconnectServer">["server"] = {
  ...FILES,
  state: "closed",
  status: "disconnected",
  toolCount: 0,
  connectedAt: null,
};

export const SERVER_EXAMPLES: Examples<
  | "listServers"
  | "getServer"
  | "addServer"
  | "updateServer"
  | "removeServer"
  | "connectServer"
  | "disconnectServer"
  | "parseServers"
  | "testServer"
> = {
  listServers: { input: { limit: 50, state: "ready" }, output: { servers: [FILES], total: 1 } },
  getServer: { input: { serverId: "files" }, output: { server: DETAIL } },
  addServer: { input: { serverId: "files", config: CONFIG }, output: { server: DETAIL } },
  updateServer: {
    input: { serverId: "files", updates: { autoConnect: false, toolTimeout: null }, ifMatch: '"3-9f86d081884c7d65"' },
    output: { server: { ...DETAIL, autoConnect: false, etag: '"4-0b822cd15d6c15b0"' } },
  },
  removeServer: { input: { serverId: "files", ifMatch: '"4-0b822cd15d6c15b0"' }, output: { serverId: "files" } },
  connectServer: { input: { serverId: "files" }, output: { server: FILES } },
  disconnectServer: { input: { serverId: "files" }, output: { server: STOPPED } },
  parseServers: {
    input: { text: "npx -y @modelcontextprotocol/server-memory" },
    output: {
      servers: [
        {
          serverId: "server-memory",
          config: { command: "npx", args: ["-y", "@modelcontextprotocol/server-memory"] },
          warnings: [],
        },
      ],
    },
  },
  testServer: {
    input: { serverId: "files", config: CONFIG },
    output: {
      ok: true,
      tools: ["read_text_file", "write_file"],
      serverVersion: "0.2.0",
      error: null,
      stderr: ["Secure MCP Filesystem Server running on stdio"],
    },
  },
};
