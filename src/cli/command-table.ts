/** The table of commands. Only `load` may import a handler, so that --help stays fast. */
import type { ArgumentEntry, CommandEntry, OptionEntry } from "./command.ts";

const dryRun: OptionEntry = { flags: "--dry-run", summary: "show the changes as a diff without making them" };
const force = (summary: string): OptionEntry => ({ flags: "--force", summary });
const out: OptionEntry = {
  flags: "--out <path>",
  summary: "save images, audio and other binary content to this file or folder",
};
const overwrite = force("let --out overwrite an existing file");
const scope: OptionEntry = { flags: "--scope <scope>", summary: "user or project (default: user)" };
const serverId: ArgumentEntry = { syntax: "<id>", summary: "server id" };

const model: OptionEntry = {
  flags: "--model <id>",
  summary: "<provider>/<model>, or a model of the config (default: agent.model)",
};
const timeout: OptionEntry = {
  flags: "--timeout <ms>",
  summary: "time limit of the command in milliseconds",
  kind: "milliseconds",
};
const standalone: OptionEntry = { flags: "--standalone", summary: "use no running hub" };
const atHub: readonly OptionEntry[] = [
  standalone,
  { flags: "--hub <url>", summary: "URL of another hub to use (default: the hub that serves this config)" },
  { flags: "--token <token>", summary: "token for that hub; prefer $TOOLCRIB_TOKEN" },
];
const role: OptionEntry = { flags: "--role <name>", summary: "act as this role" };
const yes: OptionEntry = { flags: "--yes", summary: "approve calls that need approval, once each; only on a terminal" };
const logOptions: readonly OptionEntry[] = [
  { flags: "--log-format <format>", summary: "pretty or json" },
  { flags: "--log-level <level>", summary: "debug, info, warn, error or silent" },
];

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "serve",
    summary: "run the hub and serve MCP over HTTP until stopped",
    arguments: [],
    options: [
      { flags: "--host <host>", summary: "address to listen on; overrides http.host" },
      { flags: "--port <port>", summary: "port to listen on; overrides http.port; 0 picks a free port" },
      { flags: "--background", summary: "as toolcrib hub start runs it: on this machine only, and it ends when idle" },
      ...logOptions,
    ],
    examples: ["toolcrib serve", "toolcrib serve --port 0 --log-format json --log-level debug"],
    load: async () => (await import("./serve/serve-command.ts")).run,
  },
  {
    name: "mcp",
    summary: "serve the catalog, or a single server, as an MCP server over stdio",
    arguments: [],
    options: [{ flags: "--server <id>", summary: "serve only this server" }, role, ...atHub, ...logOptions],
    examples: ["toolcrib mcp", "toolcrib mcp --server files"],
    load: async () => (await import("./serve/mcp-command.ts")).run,
  },
  {
    name: "acp",
    summary: "run an agent for editors: the Agent Client Protocol over stdio",
    arguments: [],
    options: [
      model,
      { flags: "--mode <mode>", summary: "mode of new sessions: ask, auto or read-only (default: ask)" },
      role,
      { flags: "--log-file <file>", summary: "write the log to this file instead of stderr" },
      ...logOptions,
    ],
    examples: ["toolcrib acp", "toolcrib acp --model ollama/qwen3 --log-file /tmp/toolcrib-acp.log --log-level debug"],
    load: async () => (await import("./serve/acp-command.ts")).run,
  },
  {
    name: "run",
    summary: "answer a prompt with the built-in agent and all tools, or start a chat",
    arguments: [{ syntax: "[prompt...]", summary: "what to do; - reads it from stdin" }],
    options: [
      { flags: "-i, --interactive", summary: "start a chat; /help lists its commands" },
      model,
      {
        flags: "--mode <mode>",
        summary: "ask, auto or read-only (default: ask on a terminal, otherwise auto)",
      },
      { flags: "--file <path>", summary: "text or image file to attach to the prompt; repeatable", kind: "list" },
      { flags: "--continue", summary: "continue the last conversation in this folder" },
      { flags: "--resume <id>", summary: "continue this conversation; a prefix of its id is enough" },
      { flags: "--max-steps <n>", summary: "maximum number of model responses; overrides agent.maxSteps" },
      {
        flags: "--max-tokens <n>",
        summary: "maximum number of tokens, input and output together; overrides agent.maxTokens",
      },
      { flags: "--verbose", summary: "show reasoning, token counts and the conversation id" },
      role,
      yes,
      timeout,
    ],
    examples: [
      'toolcrib run "What changed in this folder today?"',
      "git diff | toolcrib run --model ollama/qwen3 -",
      'toolcrib run --file error.log --json "What went wrong?"',
      "toolcrib run -i --continue",
    ],
    load: async () => (await import("./run/run-command.ts")).run,
  },
  {
    name: "list",
    summary: "list tools, resources and prompts",
    arguments: [{ syntax: "[server]", summary: "list only this server; no other server is connected" }],
    options: [
      { flags: "--resources", summary: "list resources and resource templates" },
      { flags: "--prompts", summary: "list prompts" },
      { flags: "--all", summary: "list tools, resources and prompts" },
      { flags: "--schema", summary: "show the arguments of each tool" },
      role,
      timeout,
      ...atHub,
    ],
    atHub: "read",
    load: async () => (await import("./commands/list.ts")).run,
  },
  {
    name: "call",
    summary: "call a tool",
    arguments: [
      { syntax: "<tool>", summary: "tool name, as shown by `toolcrib list`" },
      { syntax: "[arguments...]", summary: "key=value, key:=JSON, key=@file, nested.key=value" },
    ],
    options: [
      { flags: "--args <json>", summary: "all arguments as a JSON object; - reads it from stdin" },
      { flags: "--schema", summary: "show the tool's arguments instead of calling it" },
      out,
      overwrite,
      role,
      yes,
      timeout,
      ...atHub,
    ],
    examples: [
      "toolcrib call files__read_text_file path=notes.txt head=10",
      "toolcrib call memory__open_nodes names=Ada names=Grace",
      'echo \'{"a": 1, "b": 2}\' | toolcrib call everything__get-sum --args -',
    ],
    atHub: "call",
    load: async () => (await import("./commands/call.ts")).runCall,
  },
  {
    name: "read",
    summary: "read a resource",
    arguments: [{ syntax: "<uri>", summary: "resource URI, as shown by `toolcrib list --resources`" }],
    options: [{ ...out, summary: "save the content to this file or folder" }, overwrite, role, yes, timeout, ...atHub],
    atHub: "read",
    load: async () => (await import("./commands/call.ts")).runRead,
  },
  {
    name: "prompt",
    summary: "get a prompt",
    arguments: [
      { syntax: "<name>", summary: "prompt name, as shown by `toolcrib list --prompts`" },
      { syntax: "[arguments...]", summary: "key=value or key=@file" },
    ],
    options: [out, overwrite, role, yes, timeout, ...atHub],
    atHub: "read",
    load: async () => (await import("./commands/call.ts")).runPrompt,
  },
  {
    name: "add",
    summary: "add a server to the config",
    arguments: [
      { syntax: "<id>", summary: "id for the new server" },
      { syntax: "[target...]", summary: "a URL, or -- followed by a command" },
    ],
    options: [
      {
        flags: "--env <K=V>",
        summary: "environment variable for the command; K alone means K=${K}; repeatable",
        kind: "list",
      },
      { flags: "--header <K=V>", summary: 'HTTP header, as K=V or "K: V"; repeatable', kind: "list" },
      { flags: "--transport <kind>", summary: "stdio, http or sse (default: inferred)" },
      { flags: "--cwd <dir>", summary: "working directory of the command" },
      { flags: "--disabled", summary: "add the server without connecting to it" },
      force("replace an existing server with the same id"),
      dryRun,
    ],
    examples: [
      "toolcrib add files -- npx -y @modelcontextprotocol/server-filesystem .",
      "toolcrib add linear https://mcp.linear.app/mcp --header 'Authorization: Bearer ${LINEAR_TOKEN}'",
    ],
    load: async () => (await import("./commands/servers.ts")).runAdd,
  },
  {
    name: "remove",
    summary: "remove a server from the config",
    arguments: [serverId],
    options: [dryRun],
    load: async () => (await import("./commands/servers.ts")).runRemove,
  },
  {
    name: "enable",
    summary: "enable a server",
    arguments: [serverId],
    options: [dryRun],
    load: async () => (await import("./commands/servers.ts")).runEnable,
  },
  {
    name: "disable",
    summary: "disable a server and keep its entry",
    arguments: [serverId],
    options: [dryRun],
    load: async () => (await import("./commands/servers.ts")).runDisable,
  },
  {
    name: "status",
    summary: "show every server with its state, and the clients of the hub that runs",
    arguments: [],
    options: [{ flags: "--clients", summary: "show only the clients that are connected" }, timeout, ...atHub],
    atHub: "read",
    load: async () => (await import("./commands/status.ts")).run,
  },
  {
    name: "doctor",
    summary: "check Node, the config and every server, and suggest fixes",
    arguments: [],
    options: [timeout, ...atHub],
    atHub: "admin",
    load: async () => (await import("./commands/doctor.ts")).run,
  },
  {
    name: "auth",
    summary: "log in to and out of remote servers, and show the state of each login",
    arguments: [
      { syntax: "<action>", summary: "login, logout or status" },
      { syntax: "[server]", summary: "server id; status shows all servers if omitted" },
    ],
    options: [
      { flags: "--user <user>", summary: "user to log in, for servers with one login per user" },
      { flags: "--no-browser", summary: "print the login URL without opening a browser" },
      ...atHub,
    ],
    examples: ["toolcrib auth login linear", "toolcrib auth status --json"],
    atHub: ([action]) => (action === "status" ? "admin" : undefined),
    load: async () => (await import("./commands/auth.ts")).run,
  },
  {
    name: "secrets",
    summary: "check that every secret reference resolves, or store a secret",
    arguments: [
      { syntax: "<action>", summary: "check or set" },
      {
        syntax: "[name...]",
        summary: "set: name of the secret, or store/NAME for the hub's store; prompts for the value",
      },
    ],
    options: [
      { flags: "--stdin", summary: "set: read the value from stdin" },
      { flags: "--user <user>", summary: "set: store it for one user, for secret://user/NAME" },
    ],
    examples: [
      "toolcrib secrets check",
      "toolcrib secrets set GITHUB_TOKEN",
      "toolcrib secrets set store/GITHUB_TOKEN",
      "pass show github | toolcrib secrets set GITHUB_TOKEN --stdin",
    ],
    load: async () => (await import("./commands/secrets.ts")).run,
  },
  {
    name: "hub",
    summary: "manage the hub in the background that stdio clients share",
    arguments: [{ syntax: "[action]", summary: "start, stop, restart, status or logs (default: status)" }],
    options: [],
    examples: ["toolcrib hub", "toolcrib hub restart", "toolcrib hub logs"],
    load: async () => (await import("./hub/hub-command.ts")).run,
  },
  {
    name: "trust",
    summary: "manage which project configs may be used; they are found in the working directory and its parents",
    arguments: [
      { syntax: "[action]", summary: "list, add or remove; add if only a file is given" },
      { syntax: "[file]", summary: "the config file or its folder (default: the project config found here)" },
    ],
    options: [{ flags: "--shared", summary: "add: accept a file or folder that other users can change" }],
    examples: ["toolcrib trust", "toolcrib trust ~/work/app/toolcrib.json", "toolcrib trust list"],
    load: async () => (await import("./commands/trust.ts")).run,
  },
  {
    name: "import",
    summary: "import the servers of another program",
    arguments: [{ syntax: "<source>", summary: "client id, as shown by `toolcrib clients`, or a config file" }],
    options: [
      force("replace existing servers with the same id"),
      { flags: "--rename", summary: "give imported servers a new id if theirs is taken" },
      {
        flags: "--scope <scope>",
        summary: "user, or project to include the client's files in this folder (default: user)",
      },
      dryRun,
    ],
    load: async () => (await import("./commands/import.ts")).run,
  },
  {
    name: "clients",
    summary: "list the agent clients on this machine and their servers",
    arguments: [],
    options: [],
    load: async () => (await import("./commands/connect.ts")).runClients,
  },
  {
    name: "connect",
    summary: "add Toolcrib, or single servers of it, to a client's config",
    arguments: [{ syntax: "<client>", summary: "client id, as shown by `toolcrib clients`" }],
    options: [
      {
        flags: "--server <id>",
        summary: "add only this server instead of the whole catalog; repeatable",
        kind: "list",
      },
      {
        flags: "--url <url>",
        summary: "write the URL of this hub, instead of what fits the client and the hub that runs",
      },
      { flags: "--stdio", summary: "write the command that starts the bridge, even if a hub with a URL runs" },
      { flags: "--token-env <name>", summary: "with --url: the client finds the hub's token in this variable" },
      {
        flags: "--token-stdin",
        summary: "with --url: read the hub's token from stdin and write it into the client's file",
      },
      { flags: "--role <name>", summary: "what the client may see and do" },
      scope,
      force("replace an entry with the same name that Toolcrib did not write"),
      dryRun,
    ],
    examples: ["toolcrib connect cursor", "toolcrib connect vscode --scope project --url http://127.0.0.1:4700/mcp"],
    load: async () => (await import("./commands/connect.ts")).runConnect,
  },
  {
    name: "disconnect",
    summary: "remove from a client's config what `toolcrib connect` added",
    arguments: [{ syntax: "<client>", summary: "client id" }],
    options: [
      { flags: "--server <id>", summary: "remove only this server; repeatable", kind: "list" },
      scope,
      force("also remove entries that were edited since"),
      dryRun,
    ],
    load: async () => (await import("./commands/connect.ts")).runDisconnect,
  },
  {
    name: "skill",
    summary: "list, show, validate, import, install, update and remove skills",
    arguments: [
      { syntax: "<action>", summary: "list, show, validate, import, install, update or remove" },
      { syntax: "[names...]", summary: "folders, sources or skill names" },
    ],
    options: [
      { flags: "--strict", summary: "validate: check strictly against the Agent Skills standard" },
      { flags: "--select <names>", summary: "import, install: only these skills, separated by commas" },
      { flags: "--all", summary: "import, install, update: all skills that are found" },
      { flags: "--with-mcp", summary: "install: also set up the MCP servers that the skill needs" },
      { flags: "--client <ids>", summary: "install, remove: also for these clients, separated by commas" },
      scope,
      {
        flags: "--set <K=V>",
        summary: "install: value of a parameter; K alone takes it from your environment; repeatable",
        kind: "list",
      },
      { flags: "--with-servers", summary: "remove: also remove servers that no other skill needs" },
      { flags: "--yes", summary: "ask no questions and use the defaults" },
      force(
        "import, install, update: accept skills that the scan refuses, and replace others; remove: also remove changed files",
      ),
      dryRun,
      ...atHub,
    ],
    examples: [
      "toolcrib skill import ~/.openclaw/skills --dry-run",
      "toolcrib skill install ./notes --with-mcp --client cursor,codex --set ROOT=~/notes",
      "toolcrib skill validate ./notes --strict",
    ],
    atHub: ([action]) => (action === "list" || action === "show" ? "admin" : undefined),
    load: async () => (await import("./skill/skill-command.ts")).run,
  },
  {
    name: "policy",
    summary: "explain what policy decides and by which rule, check expected decisions, or replay the audit log",
    arguments: [
      { syntax: "<action>", summary: "explain, test or replay" },
      {
        syntax: "[operand]",
        summary: "for explain, name of a tool or prompt, or URI of a resource; for test, a file of cases",
      },
    ],
    options: [
      { flags: "--args <json>", summary: "for explain: the arguments of the call" },
      { flags: "--since <time>", summary: "for replay: from this time on, such as 7d (default)" },
      role,
      timeout,
      ...atHub,
    ],
    examples: [
      "toolcrib policy explain files__write_file --role reviewer",
      `toolcrib policy explain git__push --args '{"branch":"main"}'`,
      "toolcrib policy test policy-cases.json",
      "toolcrib policy replay --since 7d --config new.json",
    ],
    atHub: "admin",
    load: async () => (await import("./commands/policy.ts")).run,
  },
  {
    name: "guard",
    summary: "show how the guard judges a text, and which rules match",
    arguments: [
      { syntax: "<action>", summary: "test" },
      { syntax: "<file>", summary: "a text file, or - for standard input" },
    ],
    options: [
      {
        flags: "--place <place>",
        summary: "where a server would have put it: result, definition, error … (default: result)",
      },
      { flags: "--sensitivity <level>", summary: "low, normal or high (default: normal)" },
    ],
    examples: ["toolcrib guard test page.html", "curl -s https://example.com | toolcrib guard test - --json"],
    load: async () => (await import("./commands/guard.ts")).run,
  },
  {
    name: "pins",
    summary: "list, compare and approve pinned definitions",
    arguments: [
      { syntax: "<action>", summary: "list, diff, approve or reset" },
      { syntax: "[names...]", summary: "names, URIs or server ids; for reset, one server id" },
    ],
    options: [{ flags: "--all", summary: "approve everything that is new or has changed" }, timeout, ...atHub],
    examples: ["toolcrib pins diff", "toolcrib pins approve files__read_file"],
    atHub: "admin",
    load: async () => (await import("./commands/pins.ts")).run,
  },
  {
    name: "login",
    summary: "print a one-time link that opens the web page of a running hub",
    arguments: [],
    options: [
      { flags: "--hub <url>", summary: "URL of the hub (default: the hub that this user runs)" },
      { flags: "--token <token>", summary: "token with the scope admin; prefer $TOOLCRIB_TOKEN" },
    ],
    load: async () => (await import("./commands/login.ts")).run,
  },
  {
    name: "approve",
    summary: "list the calls that wait for approval at a running hub, or answer one",
    arguments: [{ syntax: "[id]", summary: "id of the call, or a prefix of it; lists the waiting calls if omitted" }],
    options: [
      {
        flags: "--answer <answer>",
        summary:
          "once, session, always, always-values, always-call or no (default: prompts on a terminal, otherwise once)",
      },
      { flags: "--hub <url>", summary: "URL of the hub (default: the hub that this user runs)" },
      {
        flags: "--token <token>",
        summary: "token with the scope approve, required in scripts; prefer $TOOLCRIB_TOKEN",
      },
      yes,
    ],
    examples: ["toolcrib approve", "toolcrib approve 3f2a --answer session --hub https://tools.example.com"],
    load: async () => (await import("./commands/approve.ts")).run,
  },
  {
    name: "taint",
    summary:
      "list what sessions and memory-like servers of a running hub hold that anyone may have written, or clear it",
    arguments: [
      { syntax: "[action]", summary: "clear" },
      { syntax: "[what]", summary: "id of a session, or a prefix of it; or id of a memory-like server" },
    ],
    options: [
      { flags: "--hub <url>", summary: "URL of the hub (default: the hub that this user runs)" },
      { flags: "--token <token>", summary: "token with the scope admin, required in scripts; prefer $TOOLCRIB_TOKEN" },
    ],
    examples: ["toolcrib taint", "toolcrib taint clear 3f2a", "toolcrib taint clear memory"],
    load: async () => (await import("./commands/taint.ts")).run,
  },
  {
    name: "audit",
    summary: "show audit records, or verify that they were not changed",
    arguments: [{ syntax: "[action]", summary: "verify" }],
    options: [
      {
        flags: "--since <time>",
        summary: "only records after this time: an ISO time, or a span before now such as 2h",
      },
      { flags: "--until <time>", summary: "only records before this time" },
      { flags: "--tool <glob>", summary: "only tools with matching names" },
      { flags: "--server <id>", summary: "only tools of this server" },
      { flags: "--client <name>", summary: "only calls of the program that calls itself this" },
      { flags: "--session <id>", summary: "only this session; a prefix of its id is enough" },
      { flags: "--denied", summary: "only calls that policy or the guard refused" },
      { flags: "--limit <n>", summary: "show the newest n records; 0 shows all" },
      { flags: "-f, --follow", summary: "keep showing records as they are written" },
      ...atHub,
    ],
    examples: ["toolcrib audit --since 2h --denied", "toolcrib audit -f --tool 'files__*'", "toolcrib audit verify"],
    atHub: "admin",
    load: async () => (await import("./commands/audit.ts")).run,
  },
  {
    name: "backup",
    summary: "save the state of the home and the store to one file; hubs may keep running",
    arguments: [{ syntax: "<file>", summary: "file to write, such as toolcrib-backup.tar.gz" }],
    options: [
      { flags: "--with-key", summary: "include store.key, which decrypts the secrets in the backup" },
      force("overwrite an existing file"),
    ],
    examples: ["toolcrib backup ~/toolcrib-backup.tar.gz"],
    load: async () => (await import("./commands/backup.ts")).run,
  },
  {
    name: "restore",
    summary: "restore a backup",
    arguments: [{ syntax: "<file>", summary: "file written by `toolcrib backup`" }],
    options: [force("restore over existing state, which is moved aside")],
    examples: ["toolcrib restore ~/toolcrib-backup.tar.gz"],
    load: async () => (await import("./commands/restore.ts")).run,
  },
  {
    name: "export",
    summary: "export the config as a compose file or as Kubernetes manifests, with secrets as references",
    arguments: [{ syntax: "<target>", summary: "compose or kubernetes" }],
    options: [
      { flags: "--out <folder>", summary: "write the files into this folder" },
      { flags: "--image <image>", summary: "image of the gateway (default: toolcrib)" },
      { flags: "--replicas <n>", summary: "number of nodes in a cluster (default: 3)" },
      force("let --out overwrite existing files"),
    ],
    examples: [
      "toolcrib export compose --out deploy",
      "toolcrib export kubernetes --image images.example.com/toolcrib:1 | kubectl apply -f -",
    ],
    load: async () => (await import("./export/export-command.ts")).run,
  },
  {
    name: "schema",
    summary: "print the JSON Schema of the config, or of a skill's frontmatter",
    arguments: [],
    options: [{ flags: "--skill", summary: "print the schema of SKILL.md frontmatter" }],
    load: async () => (await import("./commands/schema.ts")).runSchema,
  },
  {
    name: "openapi",
    summary: "print the OpenAPI document of the HTTP API",
    arguments: [],
    options: [],
    load: async () => (await import("./commands/schema.ts")).runOpenapi,
  },
];
