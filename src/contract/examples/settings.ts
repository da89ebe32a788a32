import type { Examples } from "./example.ts";

const FILE = "/home/ada/toolcrib.json";

export const SETTINGS_EXAMPLES: Examples<"me" | "explainPolicy" | "getConfig" | "clientSnippets"> = {
  me: {
    input: {},
    output: {
      user: "ops",
      role: null,
      owner: true,
      scopes: ["read", "call", "approve", "admin"],
      version: "0.1.0",
      url: "http://127.0.0.1:4700",
    },
  },
  explainPolicy: {
    input: { name: "files__write_file", role: "reviewer" },
    output: {
      name: "files__write_file",
      verdict: "deny",
      visible: false,
      rule: { level: "role", list: "deny", pattern: "*__write_*", where: `${FILE} (role reviewer)` },
      reasons: [`It may not be used: deny "*__write_*" of the role, in ${FILE} (role reviewer).`],
    },
  },
  getConfig: {
    input: {},
    output: {
      file: FILE,
      files: [FILE],
      values: [
        { key: "limits.callsPerMinute", value: 100, origin: "default" },
        { key: "guard.wrap", value: "all", origin: "file", where: `${FILE}:12` },
        { key: "limits.servers", value: 20, origin: "environment", where: "TOOLCRIB_LIMITS_SERVERS" },
        { key: "http.port", value: 4701, origin: "command line", where: "--port" },
      ],
      warnings: [],
      tokens: [{ user: "ops", role: null, scopes: ["admin"] }],
      roles: ["reviewer"],
    },
  },
  clientSnippets: {
    input: {},
    output: {
      clients: [
        {
          id: "cursor",
          title: "Cursor",
          file: "/home/ada/.cursor/mcp.json",
          snippet: '{\n  "mcpServers": {\n    "toolcrib": {\n      "url": "http://127.0.0.1:4700/mcp"\n    }\n  }\n}\n',
          command: "toolcrib connect cursor --url http://127.0.0.1:4700/mcp",
        },
      ],
    },
  },
};
