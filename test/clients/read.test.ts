import { describe, expect, it } from "vitest";
import { CLIENT_IDS } from "../../src/clients/agent-client.ts";
import { CLIENTS, clientById } from "../../src/clients/clients.ts";
import { ConfigDocument } from "../../src/config/config-document.ts";
import { EntryReader } from "../../src/config/entry-reader.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { client, fileOf, fixtureDocument, LINUX } from "./fixture.ts";

/** What each client's fixture says, in the words of an import. */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, JsonObject>>>> = {
  "claude-desktop": {
    files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/papers"] },
    notes: { command: "/opt/notes/bin/notes-mcp", args: [], env: { NOTES_DB: "/home/ada/notes.db" } },
  },
  "claude-code": {
    github: {
      type: "http",
      url: "https://api.example.test/mcp/",
      headers: { Authorization: "Bearer ${GITHUB_TOKEN}" },
    },
    memory: { type: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-memory"], env: {} },
  },
  cursor: {
    postgres: {
      command: "npx",
      args: ["-y", "server-postgres", "${DATABASE_URL}"],
      env: { PGOPTIONS: "-c search_path=${PGSCHEMA}" },
    },
    // Folders are for the import to fill in: it knows them.
    design: { url: "https://design.example.test/mcp", headers: { "X-Team": "${TEAM_ID}", "X-Home": "${userHome}" } },
    crm: { url: "https://crm.example.test/mcp" },
    files: { type: "stdio", command: "node", args: ["${workspaceFolder}/mcp.js"] },
  },
  vscode: {
    search: { url: "https://search.example.test/mcp", headers: { "X-Api-Key": "${input:api-key}" } },
    fetch: { type: "stdio", command: "uvx", args: ["mcp-server-fetch"], env: { HTTPS_PROXY: "${HTTPS_PROXY}" } },
    caged: { command: "npx", args: ["-y", "untrusted-thing"], sandbox: { kind: "bubblewrap" } },
  },
  windsurf: {
    deploy: {
      serverUrl: "https://deploy.example.test/mcp",
      headers: { Authorization: "Bearer ${DEPLOY_TOKEN}" },
      disabledTools: ["drop_everything"],
    },
    vault: {
      command: "vault-mcp",
      args: ["--stdio"],
      env: { VAULT_TOKEN: "${secret://file//run/secrets/vault}" },
      disabled: true,
    },
  },
  cline: {
    browser: {
      type: "stdio",
      command: "npx",
      args: ["-y", "@playwright/mcp@latest"],
      disabled: false,
      toolTimeout: 90_000,
    },
    wiki: { type: "streamableHttp", url: "https://wiki.example.test/mcp", disabled: true, toolTimeout: 30_000 },
    shell: { type: "stdio", command: "shell-mcp", args: ["--safe"] },
  },
  zed: {
    "local-tools": { command: "uvx", args: ["local-tools"], env: {}, toolTimeout: 45_000 },
    "old-form": { command: "/usr/local/bin/old", args: ["serve"], env: { LEVEL: "debug" } },
    remote: { url: "https://tools.example.test/mcp", headers: { "X-Client": "zed" }, enabled: false },
  },
  codex: {
    docs: {
      url: "https://docs.example.test/mcp",
      headers: { "X-Region": "eu", "X-Tenant": "${TENANT_ID}", Authorization: "Bearer ${DOCS_TOKEN}" },
      timeout: 20_000,
      includeTools: ["search", "open"],
    },
    build: {
      command: "build-mcp",
      args: ["--stdio", "--quiet"],
      cwd: "/srv/build",
      env: { LOG_LEVEL: "info", CI_TOKEN: "${CI_TOKEN}" },
      toolTimeout: 1500,
      disabledTools: ["wipe"],
      enabled: false,
    },
  },
  "gemini-cli": {
    http: {
      httpUrl: "https://tools.example.test/mcp",
      headers: { Authorization: "Bearer ${TOOLS_TOKEN}" },
      toolTimeout: 15_000,
    },
    legacy: { url: "https://tools.example.test/sse", type: "sse", enabled: false },
    python: {
      command: "python",
      args: ["-m", "tools", "--home=${TOOLS_HOME:-/opt}"],
      cwd: "./server",
      env: { KEY: "${TOOLS_KEY}", PRICE: "5$" },
      includeTools: ["count"],
      excludeTools: ["reset"],
    },
  },
  opencode: {
    everything: {
      type: "local",
      command: ["npx", "-y", "@modelcontextprotocol/server-everything"],
      environment: { API_KEY: "${EVERYTHING_KEY}", CERT: "${secret://file/./cert.pem}" },
      enabled: true,
      timeout: 8000,
    },
    sentry: {
      type: "remote",
      url: "https://sentry.example.test/mcp",
      headers: { Authorization: "Bearer ${SENTRY_TOKEN}" },
      enabled: false,
    },
    context: { type: "remote", url: "https://context.example.test/mcp", disabled: true, toolTimeout: 9000 },
  },
  kiro: {
    "aws-docs": {
      command: "uvx",
      args: ["awslabs.aws-documentation-mcp-server@latest"],
      env: { FASTMCP_LOG_LEVEL: "ERROR", TOKEN: "${AWS_DOCS_TOKEN}" },
      disabled: false,
      disabledTools: ["recommend"],
      toolTimeout: 60_000,
    },
    remote: { url: "https://kiro.example.test/mcp", headers: { "X-Team": "blue" }, disabled: true },
  },
  junie: {
    filesystem: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] },
    context: { url: "https://context.example.test/mcp", headers: { "X-Key": "k" } },
  },
  goose: {
    tracker: {
      type: "stdio",
      command: "npx",
      args: ["-y", "tracker-mcp"],
      env: { TRACKER_URL: "https://tracker.example.test", TRACKER_TOKEN: "${TRACKER_TOKEN}" },
      enabled: true,
      toolTimeout: 120_000,
    },
    search: {
      type: "streamable_http",
      url: "https://search.example.test/mcp",
      headers: { Authorization: "Bearer ${SEARCH_TOKEN}" },
      enabled: false,
      includeTools: ["find"],
    },
    gone: { type: "sse", url: "https://gone.example.test/sse", enabled: false },
  },
  "lm-studio": {
    hf: { url: "https://hf.example.test/mcp", headers: { "X-Mode": "full" } },
    calc: { command: "calc-mcp", args: ["--precise"] },
  },
  amp: {
    playwright: {
      command: "npx",
      args: ["-y", "@playwright/mcp@latest", "--headless"],
      includeTools: ["browser_navigate", "browser_click"],
    },
    semgrep: { url: "https://semgrep.example.test/mcp", headers: { "X-Org": "${SEMGREP_ORG}" }, disabled: true },
  },
  continue: {
    sqlite: {
      command: "uvx",
      args: ["mcp-server-sqlite", "--db-path", "./data.db"],
      cwd: "/srv/data",
      env: { LEVEL: "debug" },
      timeout: 20_000,
    },
    "Hosted search": {
      type: "streamable-http",
      url: "https://search.example.test/mcp",
      headers: { "X-Key": "${SEARCH_KEY}", Authorization: "Bearer ${SEARCH_TOKEN}" },
    },
  },
  openclaw: {
    context: { command: "uvx", args: ["context-mcp"], env: { KEY: "${CONTEXT_KEY}" } },
    docs: {
      url: "https://docs.example.test/mcp",
      transport: "streamable-http",
      enabled: false,
      auth: { type: "oauth" },
      toolTimeout: 20_000,
      timeout: 5000,
      includeTools: ["search_*"],
      excludeTools: ["admin_*"],
    },
  },
  "copilot-cli": {
    sentry: {
      type: "local",
      command: "npx",
      args: ["@sentry/mcp-server@latest"],
      env: { SENTRY_TOKEN: "${SENTRY_TOKEN}" },
      includeTools: ["get_issue", "list_issues"],
    },
    docs: { type: "http", url: "https://docs.example.test/mcp", headers: {}, toolTimeout: 30_000 },
    off: { type: "sse", url: "https://off.example.test/sse", enabled: false },
  },
  "qwen-code": {
    docs: { httpUrl: "https://docs.example.test/mcp", headers: { Authorization: "Bearer ${DOCS_TOKEN}" } },
    stream: { url: "https://docs.example.test/sse", type: "sse" },
    build: {
      command: "build-mcp",
      args: ["--stdio"],
      env: { KEY: "${BUILD_KEY}" },
      toolTimeout: 20_000,
      includeTools: ["compile"],
    },
  },
  kilo: {
    files: {
      type: "local",
      command: ["npx", "-y", "files-mcp", "."],
      environment: { KEY: "${FILES_KEY}" },
      enabled: true,
    },
    search: { type: "remote", url: "https://search.example.test/mcp", enabled: false },
  },
  droid: {
    linear: {
      type: "http",
      url: "https://linear.example.test/mcp",
      headers: { Authorization: "Bearer ${LINEAR_TOKEN}" },
      disabled: false,
    },
    two: { type: "stdio", command: "two-mcp", args: ["serve"], env: { A: "1" }, disabled: true },
  },
  kimi: {
    docs: {
      url: "https://docs.example.test/mcp",
      headers: { Authorization: "Bearer ${DOCS_TOKEN}" },
      timeout: 15_000,
      includeTools: ["search"],
    },
    stream: { type: "sse", url: "https://docs.example.test/sse", enabled: false },
    disk: {
      command: "local-mcp",
      args: ["--stdio"],
      cwd: "/srv/local",
      toolTimeout: 90_000,
      disabledTools: ["wipe"],
    },
  },
  pi: {
    browser: { command: "npx", args: ["-y", "browser-mcp"], env: { KEY: "${BROWSER_KEY}" } },
    docs: { url: "https://docs.example.test/mcp", headers: { Authorization: "Bearer ${DOCS_TOKEN}" } },
    off: { url: "https://off.example.test/${TENANT}/mcp", disabled: true },
  },
  grok: {
    docs: {
      url: "https://docs.example.test/mcp",
      headers: { Authorization: "Bearer ${DOCS_TOKEN}" },
      enabled: true,
    },
    stream: { url: "https://docs.example.test/sse", type: "sse" },
    old: {
      command: "old-mcp",
      args: ["serve"],
      env: { LEVEL: "debug" },
      timeout: 10_000,
      toolTimeout: 120_000,
      enabled: false,
    },
  },
};

/** Where something is told of, by client. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  "claude-desktop": ["mcpServers.half finished"],
  cursor: ["mcpServers.crm.auth", "mcpServers.files.envFile"],
  vscode: ["servers.search", "servers.caged.sandboxEnabled"],
  zed: ["context_servers.mcp-server-extension"],
  codex: ["mcp_servers.build.env_vars.1"],
  kiro: ["mcpServers.remote.oauth"],
  goose: ["extensions.snippet"],
  continue: ["mcpServers.2", "mcpServers.3"],
  openclaw: ["mcp.servers.context.env.STORE", "mcp.servers.mutual.clientCert"],
};

describe("what the clients' files say", () => {
  it("[skill-14a] every client is there once, under its id", () => {
    expect(CLIENTS.map(({ id }) => id)).toEqual([...CLIENT_IDS]);
    expect(CLIENT_IDS.map((id) => clientById(id)?.id)).toEqual([...CLIENT_IDS]);
    expect(clientById("emacs")).toBeUndefined();
  });

  it.each(CLIENT_IDS)("[skill-14a] %s: the servers of a file, and what of it is lost", (id) => {
    const of = client(id);
    const { servers, problems } = of.read(fixtureDocument(of), fileOf(of));
    expect(servers).toEqual(EXPECTED[id]);
    expect(problems.map(({ path }) => path.join("."))).toEqual(TOLD[id] ?? []);
  });

  it.each(CLIENT_IDS)("[skill-14a] %s: an import understands every entry", (id) => {
    const of = client(id);
    const file = fileOf(of);
    const { servers } = of.read(fixtureDocument(of), file);
    const reader = new EntryReader(ConfigDocument.ofValue(file.path, {}), "claude", { userHome: LINUX.home });
    const specs = reader.readMap([], servers);
    expect(reader.problems).toEqual([]);
    expect(reader.warnings.filter(({ code }) => code === "unknown_key")).toEqual([]);
    expect(specs.map((spec) => spec.id)).toEqual(Object.keys(servers));
  });

  it("[skill-14a] no message repeats a value of the file", () => {
    const leaks = CLIENTS.flatMap((of) => {
      const document = fixtureDocument(of);
      const values = [...textsIn(document)].filter((text) => text.length > 6);
      const { problems } = of.read(document, fileOf(of));
      return problems.filter(({ message }) => values.some((value) => message.includes(value)));
    });
    expect(leaks).toEqual([]);
  });
});

/** Texts that stand as values, other than the ids of inputs, which messages are to name. */
function textsIn(value: unknown): Set<string> {
  if (typeof value === "string") return new Set([value]);
  const inner = Array.isArray(value)
    ? value
    : Object.entries(isJsonObject(value) ? value : {})
        .filter(([key]) => key !== "id")
        .map(([, item]) => item);
  return new Set(inner.flatMap((item) => [...textsIn(item)]));
}
