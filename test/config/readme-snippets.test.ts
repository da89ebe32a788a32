/** Entries as servers' READMEs print them for other clients, put into toolcrib.json as they stand. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { ServerSpec } from "../../src/model/server-spec.ts";
import { Workplace } from "./support.ts";

type Row = readonly [what: string, snippet: JsonObject, expected: Partial<Record<keyof ServerSpec, unknown>>];

const one = (entry: JsonObject): JsonObject => ({ mcpServers: { it: entry } });
const npx = (name: string, ...rest: string[]): JsonObject => ({ command: "npx", args: ["-y", name, ...rest] });
const TOKEN = { GITHUB_PERSONAL_ACCESS_TOKEN: "<YOUR_TOKEN>" };

const SNIPPETS: readonly Row[] = [
  // Claude Desktop
  ["a package", one(npx("@modelcontextprotocol/server-memory")), { command: "npx", enabled: true }],
  ["folders", one(npx("@modelcontextprotocol/server-filesystem", "/Users/me/Desktop")), { command: "npx" }],
  ["uvx", one({ command: "uvx", args: ["mcp-server-git", "--repository", "path/to/repo"] }), { command: "uvx" }],
  ["uv in a folder", one({ command: "uv", args: ["--directory", "/abs", "run", "weather.py"] }), { command: "uv" }],
  ["docker", one({ command: "docker", args: ["run", "-i", "--rm", "mcp/time"] }), { command: "docker" }],
  ["node", one({ command: "node", args: ["/path/to/build/index.js"] }), { args: ["/path/to/build/index.js"] }],
  ["python", one({ command: "python", args: ["-m", "mcp_server_fetch"] }), { command: "python" }],
  ["a variable", one({ ...npx("server-github"), env: TOKEN }), { env: TOKEN }],
  [
    "a number as a variable",
    one({ ...npx("x"), env: { PORT: 5432, DEBUG: true } }),
    { env: { PORT: "5432", DEBUG: "true" } },
  ],
  ["an empty env", one({ ...npx("x"), env: {} }), { command: "npx" }],
  ["Windows", one({ command: "cmd", args: ["/c", "npx", "-y", "x"] }), { command: "cmd" }],
  ["a null", one({ ...npx("x"), env: null, url: null }), { command: "npx" }],
  ["mcp-remote", one(npx("mcp-remote", "https://mcp.example.com/sse")), { command: "npx" }],
  // Claude Code
  ["type stdio", one({ type: "stdio", ...npx("x"), env: {} }), { transport: "stdio" }],
  ["type http", one({ type: "http", url: "https://mcp.example.com/mcp" }), { transport: "http" }],
  ["type sse", one({ type: "sse", url: "https://mcp.example.com/sse" }), { transport: "sse" }],
  [
    "a header",
    one({ type: "http", url: "https://h.example/mcp", headers: { Authorization: "Bearer ${API_KEY}" } }),
    { headers: { Authorization: "Bearer ${API_KEY}" } },
  ],
  ["a default", one({ type: "http", url: "${API_BASE_URL:-https://api.example.com}/mcp" }), { transport: "http" }],
  // Cursor
  [
    "a url alone",
    one({ url: "https://mcp.example.com/mcp" }),
    { url: "https://mcp.example.com/mcp", transport: undefined },
  ],
  ["${env:…}", one({ ...npx("x"), env: { KEY: "${env:MY_KEY}" } }), { env: { KEY: "${MY_KEY}" } }],
  [
    "${env:…} in a header",
    one({ url: "https://h.example/mcp", headers: { "X-Key": "${env:K}" } }),
    { headers: { "X-Key": "${K}" } },
  ],
  ["${userHome}", one({ command: "${userHome}/bin/server" }), { command: "/home/somebody/bin/server" }],
  ["a name and a description", one({ ...npx("x"), name: "Nice", description: "What it does" }), { name: "Nice" }],
  [
    "a login with a client of one's own",
    one({
      url: "https://h.example/mcp",
      auth: { CLIENT_ID: "${env:ID}", CLIENT_SECRET: "${env:S}", scopes: ["read"] },
    }),
    { auth: { type: "oauth", clientId: "${ID}", clientSecret: "${S}", scopes: ["read"] } },
  ],
  [
    "oauth of Claude Code",
    one({ type: "http", url: "https://h.example/mcp", oauth: { clientId: "1", callbackPort: 3118, scopes: "a b" } }),
    { auth: { type: "oauth", clientId: "1", redirectPort: 3118, scopes: ["a", "b"] } },
  ],
  [
    "oauth of Gemini CLI",
    one({ httpUrl: "https://h.example/mcp", oauth: { enabled: true } }),
    { auth: { type: "oauth" } },
  ],
  // Windsurf
  ["serverUrl", one({ serverUrl: "https://mcp.example.com/mcp" }), { url: "https://mcp.example.com/mcp" }],
  ["disabled", one({ ...npx("x"), disabled: true }), { enabled: false }],
  ["not disabled", one({ ...npx("x"), disabled: false }), { enabled: true }],
  ["disabledTools", one({ ...npx("x"), disabledTools: ["drop"] }), { tools: { deny: ["drop"] } }],
  // Cline, Roo Code
  ["autoApprove of none", one({ ...npx("x"), disabled: false, autoApprove: [] }), { tools: undefined }],
  ["alwaysAllow", one({ ...npx("x"), alwaysAllow: ["get"] }), { tools: { ask: ["readOnly", "writes", "!get"] } }],
  ["timeout of Roo Code", one({ ...npx("x"), disabled: false, timeout: 300 }), { toolTimeout: 300_000 }],
  ["timeout in seconds", one({ ...npx("x"), autoApprove: [], timeout: 60 }), { toolTimeout: 60_000, timeout: 30_000 }],
  [
    "streamableHttp",
    one({ type: "streamableHttp", url: "https://h.example/mcp", disabled: true }),
    { transport: "http", enabled: false },
  ],
  ["streamable-http", one({ type: "streamable-http", url: "https://h.example/mcp" }), { transport: "http" }],
  ["transportType", one({ ...npx("x"), transportType: "stdio" }), { transport: "stdio" }],
  ["timeout in milliseconds", one({ ...npx("x"), disabled: false, timeout: 120_000 }), { toolTimeout: 120_000 }],
  // Gemini CLI
  [
    "httpUrl",
    one({ httpUrl: "https://h.example/mcp", timeout: 5000 }),
    { url: "https://h.example/mcp", toolTimeout: 5000 },
  ],
  [
    "httpUrl before url",
    one({ url: "https://h.example/sse", httpUrl: "https://h.example/mcp" }),
    { url: "https://h.example/mcp", transport: "http" },
  ],
  ["trust", one({ ...npx("x"), trust: true }), { trust: "untrusted" }],
  [
    "includeTools",
    one({ ...npx("x"), includeTools: ["a"], excludeTools: ["b"] }),
    { tools: { allow: ["a"], deny: ["b"] } },
  ],
  ["$NAME", one({ ...npx("x"), env: { KEY: "$MY_KEY" } }), { env: { KEY: "${MY_KEY}" } }],
  ["cwd", one({ command: "./server", cwd: "./dir" }), { cwd: "./dir" }],
  // Copilot CLI and its coding agent
  [
    "type local and all tools",
    one({ type: "local", ...npx("x"), tools: ["*"] }),
    { transport: "stdio", tools: undefined },
  ],
  ["some tools", one({ type: "local", ...npx("x"), tools: ["get"] }), { tools: { allow: ["get"] } }],
  // Others
  ["workingDir", one({ command: "./server", workingDir: "/srv" }), { cwd: "/srv" }],
  [
    "environment and a command in a list",
    one({ type: "local", command: ["bun", "x", "it"], environment: { A: "b" } }),
    { command: "bun", args: ["x", "it"], env: { A: "b" } },
  ],
  ["type remote", one({ type: "remote", url: "https://h.example/mcp", enabled: true }), { transport: undefined }],
  ["isActive", one({ ...npx("x"), isActive: false, registryUrl: "", name: "x" }), { enabled: false }],
  [
    "baseUrl",
    one({ type: "streamableHttp", isActive: true, baseUrl: "https://h.example/mcp" }),
    { url: "https://h.example/mcp" },
  ],
  [
    "a command with a path",
    one({ command: { path: "npx", args: ["-y", "x"], env: { A: "b" } }, source: "custom" }),
    { command: "npx", env: { A: "b" } },
  ],
  ["a list of variables", one({ ...npx("x"), env: [{ name: "A", value: "b" }] }), { env: { A: "b" } }],
  [
    "a schema and an icon",
    { $schema: "https://s.example/x.json", ...one({ ...npx("x"), icon: "i.png", version: "1" }) },
    { command: "npx" },
  ],
  [
    "Warp",
    one({ ...npx("x"), working_directory: "/srv", start_on_launch: false }),
    { cwd: "/srv", autoConnect: false },
  ],
  ["streamable", one({ type: "streamable", url: "https://h.example/mcp" }), { transport: "http" }],
  ["enabled_tools", one({ ...npx("x"), enabled_tools: ["get"] }), { tools: { allow: ["get"] } }],
  [
    "comments",
    one({ "//": "needs Node", _comment: "and a token", _meta: {}, license: "MIT", ...npx("x") }),
    { command: "npx" },
  ],
  // VS Code
  ["servers", { servers: { it: { type: "stdio", ...npx("x") } } }, { command: "npx" }],
  [
    "inputs",
    {
      inputs: [{ type: "promptString", id: "api-key", description: "Key", password: true }],
      servers: { it: { ...npx("x"), env: { K: "${input:api-key}" } } },
    },
    { env: { K: "secret://env/API_KEY" } },
  ],
  [
    "servers with http",
    { servers: { it: { type: "http", url: "https://h.example/mcp" } } },
    { url: "https://h.example/mcp" },
  ],
];

describe("snippets of servers' READMEs in toolcrib.json", () => {
  it("[whole-01a] are at least fifty", () => {
    expect(SNIPPETS.length).toBeGreaterThanOrEqual(50);
  });

  it.each(SNIPPETS)("[whole-01a] %s", async (_, snippet, expected) => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", snippet);
    const { servers, warnings } = await place.load({ file, env: { HOME: "/home/somebody" } });
    expect(servers.map(({ id }) => id)).toEqual(["it"]);
    const [spec] = servers;
    const found = Object.fromEntries(Object.keys(expected).map((key) => [key, spec?.[key as keyof ServerSpec]]));
    expect(found).toEqual(expected);
    expect(spec?.problem).toBeUndefined();
    expect(warnings.filter(({ code }) => code === "unknown_key")).toEqual([]);
  });

  it("[whole-01a] names that are no ids become ids, each its own, with a warning at the name", async () => {
    const place = new Workplace();
    const names = ["@21st-dev/magic", "github.com/acme/files", "files", "@acme/files", "acme/files", "local"];
    const file = place.write("toolcrib.json", {
      mcpServers: Object.fromEntries(
        names.map((name) => [name, { ...npx(name), frob: name === "acme/files" || undefined }]),
      ),
    });
    const { servers, warnings } = await place.load({ file });
    expect(servers.map(({ id, args }) => [id, args?.at(-1)])).toEqual([
      ["21st-dev-magic", "@21st-dev/magic"],
      ["github.com-acme-files", "github.com/acme/files"],
      ["files", "files"],
      ["acme-files", "@acme/files"],
      ["acme-files-2", "acme/files"],
      ["local-2", "local"],
    ]);
    expect(servers.map(({ problem }) => problem?.includes('mcpServers["acme/files"].frob'))).toEqual(
      names.map((name) => (name === "acme/files" ? true : undefined)),
    );
    expect(warnings.flatMap(({ code, path }) => (code === "renamed" ? [path] : []))).toEqual([
      'mcpServers["@21st-dev/magic"]',
      'mcpServers["github.com/acme/files"]',
      'mcpServers["@acme/files"]',
      'mcpServers["acme/files"]',
      "mcpServers.local",
    ]);
  });

  it("[whole-01c] tools that are not allowed are not offered by being asked about", async () => {
    const place = new Workplace();
    const entry = { ...npx("x"), includeTools: ["read", "write"], autoApprove: ["read"] };
    const { servers } = await place.load({ file: place.write("toolcrib.json", one(entry)) });
    expect(servers[0]?.tools).toEqual({ allow: ["read", "write"], ask: ["read", "write", "!read"] });
  });

  it.each<[string, JsonObject]>([
    ["disabled", { ...npx("x"), enabled: true, disabled: true }],
    ["disabled", { ...npx("x"), disabled: "yes", enabled: true }],
    ["type", { ...npx("x"), type: "stdio", transport: "sse" }],
    ["workingDir", { ...npx("x"), workingDir: "/srv", cwd: "/tmp" }],
    ["environment", { ...npx("x"), environment: { A: "1" }, env: { A: "2" } }],
    ["serverUrl", { url: "https://one.example/mcp", serverUrl: "https://two.example/mcp" }],
  ])("[whole-01b] %s that contradicts another key stops its server only", async (key, entry) => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", { mcpServers: { fine: npx("x"), it: entry } });
    const { servers } = await place.load({ file });
    expect(servers.map(({ problem }) => problem === undefined)).toEqual([true, false]);
    expect(servers[1]?.problem).toContain(`mcpServers.it.${key}: "${key}" contradicts another key of this server`);
  });

  it("[whole-01b] a key inside of another one contradicts none", async () => {
    const place = new Workplace();
    const entry = { ...npx("x"), sandbox: { kind: "bubblewrap", type: "docker" } };
    const { servers } = await place.load({ file: place.write("toolcrib.json", one(entry)) });
    expect(servers[0]?.problem).toContain('unknown key "type"');
  });

  it("[whole-01b] the same said twice is no contradiction", async () => {
    const place = new Workplace();
    const entry = {
      type: "http",
      transport: "streamable-http",
      url: "https://h.example/mcp",
      enabled: true,
      disabled: false,
    };
    const { servers } = await place.load({ file: place.write("toolcrib.json", one(entry)) });
    expect(servers).toMatchObject([{ transport: "http", enabled: true }]);
    expect(servers[0]?.problem).toBeUndefined();
  });

  it("[whole-01b] a key with a dot stops its server too", async () => {
    const place = new Workplace();
    const { servers } = await place.load({
      file: place.write("toolcrib.json", one({ ...npx("x"), "tools.deny": ["*"] })),
    });
    expect(servers[0]?.problem).toContain('unknown key "tools.deny"');
  });

  it.each([
    ["disabledTools", "delete", "servers.it.disabledTools"],
    ["includeTools", "read", "servers.it.includeTools"],
    ["autoApprove", [5], "servers.it.autoApprove"],
    ["restartOnCrash", "no", "servers.it.restartOnCrash"],
    ["maxRestarts", "many", "servers.it.maxRestarts"],
    ["workingDir", 7, "servers.it.workingDir"],
    ["environment", "A=b", "servers.it.environment"],
  ])(
    "[whole-01d] a wrong value of %s is reported under that key, in the form with servers",
    async (key, value, path) => {
      const place = new Workplace();
      const servers = { fine: npx("x"), it: { ...npx("x"), [key]: value } };
      const file = place.write("toolcrib.json", { servers });
      const lines = readFileSync(file, "utf8").split("\n");
      const line = lines.findIndex((text) => text.includes(`"${key}"`)) + 1;
      expect(await place.entryProblems({ file })).toMatchObject([{ path, line }]);
      expect((await place.load({ file })).servers.map(({ id, problem }) => [id, problem === undefined])).toEqual([
        ["fine", true],
        ["it", false],
      ]);
    },
  );

  it("[whole-01d] an entry with wrong values and unknown keys stops its server only, and tells of each", async () => {
    const place = new Workplace();
    const odd = { ...npx("x"), frob: 1, timeout: "long", sandbox: { kind: "container", colour: "red" } };
    const file = place.write("toolcrib.json", { mcpServers: { fine: npx("x"), odd, text: "npx x", none: null } });
    expect((await place.entryProblems({ file })).map(({ path }) => path)).toEqual([
      "mcpServers.odd.timeout",
      "mcpServers.odd.frob",
      "mcpServers.odd.sandbox.colour",
      "mcpServers.text",
      "mcpServers.none",
    ]);
    const { servers } = await place.load({ file });
    expect(servers).toMatchObject([{ id: "fine" }, { command: "npx" }, { id: "text" }, { id: "none" }]);
    expect(servers[0]).not.toHaveProperty("problem");
  });

  it("[whole-01d] no secret of an entry with wrong values is in a message", async () => {
    const place = new Workplace();
    const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    const file = place.write("toolcrib.json", {
      mcpServers: {
        text: `npx x --key ${secret}`,
        variables: { ...npx("x"), env: `KEY=${secret}`, args: `--key ${secret}`, timeout: secret },
        remote: { url: { address: secret }, headers: { type: { Authorization: secret } }, auth: secret },
        login: { url: "https://h.example", auth: { type: "barer", token: secret } },
      },
    });
    const { servers, warnings } = await place.load({ file });
    expect(servers.map(({ problem }) => problem === undefined)).toEqual([false, false, false, false]);
    expect(servers[3]?.problem).toContain('auth.type: found "barer"; expected "bearer"');
    expect(JSON.stringify([servers.map(({ problem }) => problem), warnings])).not.toContain(secret);
  });

  it("[whole-01d] a role's server with a wrong value still replaces the shared one for that role", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", {
      mcpServers: { it: npx("x") },
      roles: { reviewer: { mcpServers: { it: { ...npx("x"), tools: "read" } } } },
    });
    const [shared, own] = (await place.load({ file })).servers;
    expect(shared).toMatchObject({ id: "it" });
    expect(shared).not.toHaveProperty("problem");
    expect(own).toMatchObject({ id: "it@reviewer", replaces: "it", roles: ["reviewer"] });
    expect(own?.problem).toContain('roles.reviewer.mcpServers.it.tools: found "read"');
  });

  it("[whole-01d] a role may have a name that every object has", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", { roles: { constructor: { mcpServers: { it: npx("x") } } } });
    expect((await place.load({ file })).servers).toMatchObject([{ id: "it@constructor" }]);
  });

  it("[whole-01e] a role's server does not run without the rules of a shared one that cannot be read", async () => {
    const place = new Workplace();
    const own = { reviewer: { mcpServers: { it: npx("own"), another: npx("x") } } };
    for (const wrong of [{ ...npx("x"), tools: { deny: ["delete_*", 5] } }, { ...npx("x"), denyTools: 5 }, "npx x"]) {
      const file = place.write("toolcrib.json", { mcpServers: { it: wrong }, roles: own });
      const { servers } = await place.load({ file });
      expect(servers.map(({ id, problem }) => [id, problem?.includes("mcpServers.it")])).toEqual([
        ["it", true],
        ["it@reviewer", true],
        ["another@reviewer", undefined],
      ]);
    }
  });

  it("[whole-01d] where the roles of a server are wrong, no role sees it", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", one({ ...npx("x"), roles: "reviewer" }));
    expect((await place.load({ file })).servers).toMatchObject([{ command: "npx", roles: [] }]);
  });

  it("[whole-03a] HTTP in the form with servers may turn out to be SSE", async () => {
    const place = new Workplace();
    const servers = { it: { type: "streamable-http", url: "https://h.example/mcp", workingDir: "/srv" } };
    const { servers: read } = await place.load({ file: place.write("toolcrib.json", { servers }) });
    expect(read).toMatchObject([{ id: "it", url: "https://h.example/mcp", cwd: "/srv" }]);
    expect(read[0]?.transport).toBeUndefined();
  });

  it("count in roles as well", async () => {
    const place = new Workplace();
    const roles = { reviewer: { mcpServers: { it: { serverUrl: "https://h.example/mcp", disabled: true } } } };
    const { servers } = await place.load({ file: place.write("toolcrib.json", { roles }) });
    expect(servers).toMatchObject([{ id: "it@reviewer", url: "https://h.example/mcp", enabled: false }]);
  });
});
