/** The table of commands. Nothing here may import a handler: `load` does, when the command runs. */
import type { ArgumentEntry, CommandEntry, OptionEntry } from "./command.ts";

const dryRun: OptionEntry = { flags: "--dry-run", summary: "print what would change as a diff, and change nothing" };
const force = (summary: string): OptionEntry => ({ flags: "--force", summary });
const out: OptionEntry = {
  flags: "--out <path>",
  summary: "save images, audio and binary content to this file or folder",
};
const overwrite = force("let --out overwrite a file");
const scope: OptionEntry = { flags: "--scope <scope>", summary: "user or project; user if absent" };
const serverId: ArgumentEntry = { syntax: "<id>", summary: "server id" };

const model: OptionEntry = {
  flags: "--model <id>",
  summary: "<provider>/<model>, or one that the config names; agent.model if absent",
};
const timeout: OptionEntry = {
  flags: "--timeout <ms>",
  summary: "milliseconds that the command may take",
  kind: "milliseconds",
};
const role: OptionEntry = { flags: "--role <name>", summary: "see and use only what this role may" };
const yes: OptionEntry = { flags: "--yes", summary: "answer yes, once, where a rule asks; on a terminal only" };
const logOptions: readonly OptionEntry[] = [
  { flags: "--log-format <format>", summary: "pretty or json" },
  { flags: "--log-level <level>", summary: "debug, info, warn, error or silent" },
];
const AGENT_COMMANDS: readonly CommandEntry[] = [
  {
    name: "acp",
    summary: "an agent for editors: the Agent Client Protocol over stdio",
    arguments: [],
    options: [
      model,
      { flags: "--mode <mode>", summary: "what sessions begin with: ask, auto or read-only; ask if absent" },
      role,
      { flags: "--log-file <file>", summary: "write the log to this file instead of stderr" },
      ...logOptions,
    ],
    examples: ["toolcrib acp", "toolcrib acp --model ollama/qwen3 --log-file /tmp/toolcrib-acp.log --log-level debug"],
    load: async () => (await import("./serve/acp-command.ts")).run,
  },
  {
    name: "run",
    summary: "let the built-in agent answer a prompt with all tools, or chat with it",
    arguments: [{ syntax: "[prompt...]", summary: "what to do; - reads it from stdin" }],
    options: [
      { flags: "-i, --interactive", summary: "chat: one prompt after the other; /help lists its commands" },
      model,
      {
        flags: "--mode <mode>",
        summary: "ask, auto or read-only; ask on a terminal, auto without one",
      },
      { flags: "--file <path>", summary: "text or image that goes with the prompt; may be repeated", kind: "list" },
      { flags: "--continue", summary: "go on with the last conversation of this folder" },
      { flags: "--resume <id>", summary: "go on with this conversation; the beginning of its id is enough" },
      { flags: "--max-steps <n>", summary: "answers of the model at most, instead of agent.maxSteps" },
      { flags: "--max-tokens <n>", summary: "tokens at most, input and output together, instead of agent.maxTokens" },
      { flags: "--verbose", summary: "show thoughts, tokens and the id of the conversation" },
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
];
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "serve",
    summary: "run the hub: MCP over HTTP for any client, until it is stopped",
    arguments: [],
    options: [
      { flags: "--host <host>", summary: "address to listen at, instead of http.host" },
      { flags: "--port <port>", summary: "port to listen at, instead of http.port; 0 for any" },
      ...logOptions,
    ],
    examples: ["toolcrib serve", "toolcrib serve --port 0 --log-format json --log-level debug"],
    load: async () => (await import("./serve/serve-command.ts")).run,
  },
  {
    name: "mcp",
    summary: "the catalog, or one server of it, as an MCP server over stdio",
    arguments: [],
    options: [{ flags: "--server <id>", summary: "only this server" }, role, ...logOptions],
    examples: ["toolcrib mcp", "toolcrib mcp --server files"],
    load: async () => (await import("./serve/mcp-command.ts")).run,
  },
  ...AGENT_COMMANDS,
  {
    name: "list",
    summary: "list tools, resources and prompts",
    arguments: [{ syntax: "[server]", summary: "only this server's; connects no other" }],
    options: [
      { flags: "--resources", summary: "list resources and resource templates" },
      { flags: "--prompts", summary: "list prompts" },
      { flags: "--all", summary: "list tools, resources and prompts" },
      { flags: "--schema", summary: "show the arguments of each tool" },
      role,
      timeout,
    ],
    load: async () => (await import("./commands/list.ts")).run,
  },
  {
    name: "call",
    summary: "call a tool",
    arguments: [
      { syntax: "<tool>", summary: "public name, as `toolcrib list` shows it" },
      { syntax: "[arguments...]", summary: "key=value, key:=JSON, key=@file, nested.key=value" },
    ],
    options: [
      { flags: "--args <json>", summary: "all arguments as a JSON object; - reads it from stdin" },
      { flags: "--schema", summary: "show the tool's arguments and do not call it" },
      out,
      overwrite,
      role,
      yes,
      timeout,
    ],
    examples: [
      "toolcrib call files__read_text_file path=notes.txt head=10",
      "toolcrib call memory__open_nodes names=Ada names=Grace",
      'echo \'{"a": 1, "b": 2}\' | toolcrib call everything__get-sum --args -',
    ],
    load: async () => (await import("./commands/call.ts")).runCall,
  },
  {
    name: "read",
    summary: "read a resource",
    arguments: [{ syntax: "<uri>", summary: "as `toolcrib list --resources` shows it" }],
    options: [{ ...out, summary: "save the content to this file or folder" }, overwrite, role, yes, timeout],
    load: async () => (await import("./commands/call.ts")).runRead,
  },
  {
    name: "prompt",
    summary: "get a prompt",
    arguments: [
      { syntax: "<name>", summary: "as `toolcrib list --prompts` shows it" },
      { syntax: "[arguments...]", summary: "key=value or key=@file" },
    ],
    options: [out, overwrite, role, yes, timeout],
    load: async () => (await import("./commands/call.ts")).runPrompt,
  },
  {
    name: "add",
    summary: "add a server to the config",
    arguments: [
      { syntax: "<id>", summary: "what the server shall be called" },
      { syntax: "[target...]", summary: "a URL, or -- and a command" },
    ],
    options: [
      {
        flags: "--env <K=V>",
        summary: "environment variable for the command, K alone for ${K}; may be repeated",
        kind: "list",
      },
      { flags: "--header <K=V>", summary: 'HTTP header, also as "K: V"; may be repeated', kind: "list" },
      { flags: "--transport <kind>", summary: "stdio, http or sse; inferred if absent" },
      { flags: "--cwd <dir>", summary: "working directory of the command" },
      { flags: "--disabled", summary: "add it without connecting it" },
      force("replace an entry of that id"),
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
    summary: "switch a server on",
    arguments: [serverId],
    options: [dryRun],
    load: async () => (await import("./commands/servers.ts")).runEnable,
  },
  {
    name: "disable",
    summary: "switch a server off and keep its entry",
    arguments: [serverId],
    options: [dryRun],
    load: async () => (await import("./commands/servers.ts")).runDisable,
  },
  {
    name: "status",
    summary: "connect every server and show its state",
    arguments: [],
    options: [timeout],
    load: async () => (await import("./commands/status.ts")).run,
  },
  {
    name: "doctor",
    summary: "check Node, config and every server, and say what to do",
    arguments: [],
    options: [timeout],
    load: async () => (await import("./commands/doctor.ts")).run,
  },
  {
    name: "auth",
    summary: "log in to remote servers and out of them, and show how the logins stand",
    arguments: [
      { syntax: "<action>", summary: "login, logout or status" },
      { syntax: "[server]", summary: "server id; status shows all without it" },
    ],
    options: [
      { flags: "--user <user>", summary: "whose login, where each user has their own" },
      { flags: "--no-browser", summary: "only print the address to log in at" },
    ],
    examples: ["toolcrib auth login linear", "toolcrib auth status --json"],
    load: async () => (await import("./commands/auth.ts")).run,
  },
  {
    name: "secrets",
    summary: "check that every secret is found, or store one",
    arguments: [
      { syntax: "<action>", summary: "check, or set" },
      {
        syntax: "[name...]",
        summary: "for set: the name, store/NAME for the hub's store; the value is asked for and not shown",
      },
    ],
    options: [
      { flags: "--stdin", summary: "set: read the value from stdin" },
      { flags: "--user <user>", summary: "set: the value of one user, for secret://user/NAME" },
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
    name: "trust",
    summary: "say which project configs may be used: those that are found from the working directory upward",
    arguments: [
      { syntax: "[action]", summary: "list, add or remove; a file alone is added" },
      { syntax: "[file]", summary: "the config or its folder; the one that is found here if absent" },
    ],
    options: [{ flags: "--shared", summary: "add: also a file or folder that other users can change" }],
    examples: ["toolcrib trust", "toolcrib trust ~/work/app/toolcrib.json", "toolcrib trust list"],
    load: async () => (await import("./commands/trust.ts")).run,
  },
  {
    name: "import",
    summary: "add the servers that another program has",
    arguments: [{ syntax: "<source>", summary: "a client's id, as `toolcrib clients` shows it, or a config file" }],
    options: [
      force("replace entries of the same id"),
      { flags: "--rename", summary: "give a new id to an entry whose id is taken" },
      {
        flags: "--scope <scope>",
        summary: "project: also the client's files in this folder; user, without them, if absent",
      },
      dryRun,
    ],
    load: async () => (await import("./commands/import.ts")).run,
  },
  {
    name: "clients",
    summary: "show which agent clients are on this machine and which servers they have",
    arguments: [],
    options: [],
    load: async () => (await import("./commands/connect.ts")).runClients,
  },
  {
    name: "connect",
    summary: "write Toolcrib, or single servers of it, into a client's config",
    arguments: [{ syntax: "<client>", summary: "a client's id, as `toolcrib clients` shows it" }],
    options: [
      {
        flags: "--server <id>",
        summary: "this server alone instead of the whole catalog; may be repeated",
        kind: "list",
      },
      { flags: "--url <url>", summary: "address of a running hub, for clients that can; a command otherwise" },
      scope,
      force("replace an entry of the same name that is not Toolcrib's"),
      dryRun,
    ],
    examples: ["toolcrib connect cursor", "toolcrib connect vscode --scope project --url http://127.0.0.1:4700/mcp"],
    load: async () => (await import("./commands/connect.ts")).runConnect,
  },
  {
    name: "disconnect",
    summary: "take out of a client's config what connect wrote",
    arguments: [{ syntax: "<client>", summary: "a client's id" }],
    options: [
      { flags: "--server <id>", summary: "only this server; may be repeated", kind: "list" },
      scope,
      force("take out an entry too that was edited since"),
      dryRun,
    ],
    load: async () => (await import("./commands/connect.ts")).runDisconnect,
  },
  {
    name: "skill",
    summary: "list, show, validate, import, install, update and remove skills",
    arguments: [
      { syntax: "<action>", summary: "list, show, validate, import, install, update or remove" },
      { syntax: "[names...]", summary: "folders, sources, or names of skills" },
    ],
    options: [
      { flags: "--strict", summary: "validate: the Agent Skills standard to the letter" },
      { flags: "--select <names>", summary: "import, install: only these skills, with commas" },
      { flags: "--all", summary: "import, install, update: every skill that is found" },
      { flags: "--with-mcp", summary: "install: set up the MCP servers that the skill needs" },
      { flags: "--client <ids>", summary: "install, remove: these clients too, with commas" },
      scope,
      {
        flags: "--set <K=V>",
        summary:
          "install: value of a parameter, or its name alone for the variable of your environment; may be repeated",
        kind: "list",
      },
      { flags: "--with-servers", summary: "remove: servers too that no other skill needs" },
      { flags: "--yes", summary: "ask nothing, and take the defaults" },
      force(
        "import, install, update: also what the scan refuses, and in the place of another; remove: also what was changed",
      ),
      dryRun,
    ],
    examples: [
      "toolcrib skill import ~/.openclaw/skills --dry-run",
      "toolcrib skill install ./notes --with-mcp --client cursor,codex --set ROOT=~/notes",
      "toolcrib skill validate ./notes --strict",
    ],
    load: async () => (await import("./skill/skill-command.ts")).run,
  },
  {
    name: "policy",
    summary: "explain what policy decides for a tool, prompt or resource, and which rule said so",
    arguments: [
      { syntax: "<action>", summary: "explain" },
      { syntax: "<name>", summary: "public name, or URI of a resource" },
    ],
    options: [role, timeout],
    examples: ["toolcrib policy explain files__write_file --role reviewer"],
    load: async () => (await import("./commands/policy.ts")).run,
  },
  {
    name: "pins",
    summary: "show, compare and approve pinned definitions",
    arguments: [
      { syntax: "<action>", summary: "list, diff, approve or reset" },
      { syntax: "[names...]", summary: "public names or URIs, or server ids; for reset one server id" },
    ],
    options: [{ flags: "--all", summary: "approve everything that changed or is new" }, timeout],
    examples: ["toolcrib pins diff", "toolcrib pins approve files__read_file"],
    load: async () => (await import("./commands/pins.ts")).run,
  },
  {
    name: "login",
    summary: "print a link that opens the web page of a running hub, once",
    arguments: [],
    options: [
      { flags: "--hub <url>", summary: "address of the hub; the one that runs for this user if absent" },
      { flags: "--token <token>", summary: "token with the scope admin; better in $TOOLCRIB_TOKEN" },
    ],
    load: async () => (await import("./commands/login.ts")).run,
  },
  {
    name: "approve",
    summary: "show the calls of a running hub that wait for approval, or answer one",
    arguments: [
      { syntax: "[id]", summary: "of the call; its beginning is enough. Without it the waiting calls are listed" },
    ],
    options: [
      { flags: "--answer <answer>", summary: "once, session, always or no; asked for on a terminal, otherwise once" },
      { flags: "--hub <url>", summary: "address of the hub; the one that runs for this user if absent" },
      {
        flags: "--token <token>",
        summary: "token with the scope approve, which a script needs; better in $TOOLCRIB_TOKEN",
      },
      yes,
    ],
    examples: ["toolcrib approve", "toolcrib approve 3f2a --answer session --hub https://tools.example.com"],
    load: async () => (await import("./commands/approve.ts")).run,
  },
  {
    name: "audit",
    summary: "show the audit records, or verify that nobody changed them",
    arguments: [{ syntax: "[action]", summary: "verify" }],
    options: [
      { flags: "--since <time>", summary: "from then on: a span such as 2h, or an ISO time" },
      { flags: "--until <time>", summary: "up to then" },
      { flags: "--tool <glob>", summary: "only these public names" },
      { flags: "--server <id>", summary: "only tools of this server" },
      { flags: "--session <id>", summary: "only this session; the beginning of its id is enough" },
      { flags: "--denied", summary: "only what policy or the guard refused" },
      { flags: "--limit <n>", summary: "at most this many, the newest; 0 for all" },
      { flags: "-f, --follow", summary: "go on showing records as they are written" },
    ],
    examples: ["toolcrib audit --since 2h --denied", "toolcrib audit -f --tool 'files__*'", "toolcrib audit verify"],
    load: async () => (await import("./commands/audit.ts")).run,
  },
  {
    name: "backup",
    summary: "save the state of the home and the store to one file, also while hubs run",
    arguments: [{ syntax: "<file>", summary: "what to write, such as toolcrib-backup.tar.gz" }],
    options: [
      { flags: "--with-key", summary: "also store.key, which opens the encrypted secrets in it" },
      force("replace a file of that name"),
    ],
    examples: ["toolcrib backup ~/toolcrib-backup.tar.gz"],
    load: async () => (await import("./commands/backup.ts")).run,
  },
  {
    name: "restore",
    summary: "bring back what backup saved",
    arguments: [{ syntax: "<file>", summary: "as backup wrote it" }],
    options: [force("also over state that is there, which is moved aside")],
    examples: ["toolcrib restore ~/toolcrib-backup.tar.gz"],
    load: async () => (await import("./commands/restore.ts")).run,
  },
  {
    name: "export",
    summary: "print the config as a compose file or as manifests for Kubernetes, with secrets as references",
    arguments: [{ syntax: "<target>", summary: "compose or kubernetes" }],
    options: [
      { flags: "--out <folder>", summary: "write the files into this folder" },
      { flags: "--image <image>", summary: "image of the gateway; toolcrib if absent" },
      { flags: "--replicas <n>", summary: "nodes of a cluster; 3 if absent" },
      force("let --out overwrite files"),
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
    options: [{ flags: "--skill", summary: "of the frontmatter of SKILL.md" }],
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

/** The agent's part of the table of commands. */

/** Options that several commands have. */
