import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { detectDialect, parseConfigText, readDialect } from "../../src/config/dialects.ts";
import type { DialectRead } from "../../src/config/entry-reader.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { ServerSpec } from "../../src/model/server-spec.ts";
import { codes, FIXTURES, Workplace } from "./support.ts";

function read(name: string): DialectRead {
  const file = join(FIXTURES, name);
  const document = parseConfigText(file, readFileSync(file, "utf8"));
  expect(document.errors).toEqual([]);
  return readDialect(document.value, { file, document });
}

function readValue(value: unknown, file = "/x/some.json"): DialectRead {
  return readDialect(value, { file });
}

function byId(servers: readonly ServerSpec[]): Record<string, ServerSpec> {
  return Object.fromEntries(servers.map((spec) => [spec.id, spec]));
}

describe("[spine-05a] Claude Desktop, Cursor and their kin", () => {
  it("reads a Claude Desktop file as it stands", () => {
    const { dialect, servers, warnings, problems } = read("claude_desktop_config.json");
    expect(dialect).toBe("claude");
    expect(problems).toEqual([]);
    expect(servers.map(({ id, command }) => [id, command])).toEqual([
      ["filesystem", "npx"],
      ["github", "docker"],
    ]);
    expect(codes(warnings)).toEqual(["plain_credential mcpServers.github.env.GITHUB_PERSONAL_ACCESS_TOKEN"]);
    expect(warnings[0]?.line).toBe(12);
  });

  it("loads it as the main config without a word about the client's own keys", async () => {
    const { servers, warnings } = await new Workplace().load({ file: join(FIXTURES, "claude_desktop_config.json") });
    expect(servers).toHaveLength(2);
    expect(codes(warnings)).toEqual(["plain_credential mcpServers.github.env.GITHUB_PERSONAL_ACCESS_TOKEN"]);
  });

  it("expands Cursor's variables and turns numbers into text with a warning", () => {
    const { servers, warnings } = read(".cursor/mcp.json");
    const { own, linear } = byId(servers);
    expect(own).toMatchObject({
      transport: "stdio",
      command: `${FIXTURES}/bin/server`,
      args: ["--root", FIXTURES, "--home", homedir()],
      env: { API_KEY: "${MY_KEY}", RETRIES: "3", VERBOSE: "true" },
    });
    expect(linear?.headers).toEqual({ Authorization: "Bearer ${LINEAR_TOKEN}" });
    expect(codes(warnings)).toEqual(["adapted mcpServers.own.env.RETRIES", "adapted mcpServers.own.env.VERBOSE"]);
  });

  it("reads Windsurf's serverUrl, disabled and disabledTools, and makes ids valid", () => {
    const { servers, warnings } = read("mcp_config.json");
    expect(servers).toMatchObject([
      { id: "figma remote", url: "https://mcp.figma.com/mcp", tools: { deny: ["delete_file"] }, enabled: true },
      { id: "upstash-context7", enabled: false },
    ]);
    expect(warnings.map(({ message }) => message)).toEqual([
      'the name "@upstash/context7" is not a valid id; it is called "upstash-context7" here',
    ]);
  });

  it("reads Cline's transports and its timeout in seconds", () => {
    const { servers } = read("cline_mcp_settings.json");
    expect(servers).toMatchObject([
      { id: "weather", transport: "http", toolTimeout: 90_000, timeout: 30_000, enabled: true },
      { id: "old", transport: "sse", enabled: false },
    ]);
  });

  it("reads Gemini CLI's httpUrl, filters, timeout and $NAME", () => {
    const { servers, problems } = read("gemini-settings.json");
    expect(problems).toEqual([]);
    expect(servers).toMatchObject([
      {
        id: "http",
        url: "https://api.example.com/mcp",
        transport: "http",
        toolTimeout: 5000,
        headers: { Authorization: "${API_AUTH}" },
        tools: { allow: ["read_*"], deny: ["read_secret"] },
      },
      { id: "python", cwd: "./server" },
    ]);
  });

  it("keeps a plain timeout as the time for connecting, in milliseconds", () => {
    expect(readValue({ mcpServers: { a: { command: "x", timeout: 500 } } }).servers).toMatchObject([{ timeout: 500 }]);
  });

  it("makes an id of its own for a name that is reserved, taken, empty or too long", () => {
    const names = ["local", "local-2", "/", "", "a/b", "a-b", "x".repeat(80)];
    const { servers } = readValue({ mcpServers: Object.fromEntries(names.map((name) => [name, { command: "x" }])) });
    const ids = servers.map(({ id }) => id);
    expect(ids).toEqual(["local-3", "local-2", "server", "server-2", "a-b-2", "a-b", "x".repeat(60)]);
  });

  it("reads a command with its arguments as one list, and env as a list of K=v", () => {
    const { servers } = readValue({
      mcpServers: { a: { command: ["npx", "-y", "p"], environment: ["A=1", "B: 2"], url: null } },
    });
    expect(servers).toMatchObject([{ command: "npx", args: ["-y", "p"], env: { A: "1", B: "2" } }]);
  });

  it("prefers Toolcrib's own word where an entry has both", () => {
    const entry = {
      command: "x",
      enabled: true,
      disabled: true,
      timeout: 1,
      connectionTimeoutMs: 2,
      cwd: "/a",
      workingDir: "/b",
    };
    expect(readValue({ mcpServers: { a: entry } }).servers).toMatchObject([{ enabled: true, timeout: 1, cwd: "/a" }]);
  });

  it("[spine-04d] keeps an entry's own rules, whatever names of other programs stand beside or before them", () => {
    const rulesOf = (entry: JsonObject) => {
      const { servers, problems } = readValue({ mcpServers: { a: { command: "x", ...entry } } });
      return servers[0]?.tools ?? codes(problems);
    };
    expect(rulesOf({ disabledTools: ["b"], tools: { deny: ["a"] } })).toEqual({ deny: ["a", "b"] });
    expect(rulesOf({ disabledTools: ["b"], tools: ["c"] })).toEqual({ allow: ["c"], deny: ["b"] });
    expect(rulesOf({ disabledTools: ["b"], tools: ["*"] })).toEqual({ deny: ["b"] });
    expect(rulesOf({ tools: { deny: "a" }, disabledTools: ["b"] })).toEqual(["wrong_value mcpServers.a.tools.deny"]);
    expect(rulesOf({ tools: { ask: "a" }, autoApprove: ["b"] })).toEqual(["wrong_value mcpServers.a.tools.ask"]);
    expect(rulesOf({ tools: "a", autoApprove: ["b"] })).toEqual(["wrong_value mcpServers.a.tools"]);
  });

  it("names a bad entry and keeps the good ones", () => {
    const { servers, problems } = readValue({
      mcpServers: {
        good: { command: "x" },
        none: {},
        text: "x",
        ws: { type: "ws", url: "https://h" },
        list: { command: [] },
      },
    });
    expect(servers.map(({ id }) => id)).toEqual(["good"]);
    expect(codes(problems)).toEqual([
      "wrong_server mcpServers.none",
      "wrong_server mcpServers.text",
      "wrong_value mcpServers.ws.transport",
      "wrong_value mcpServers.list.command",
    ]);
  });
});

describe("[spine-05b] VS Code", () => {
  it("turns inputs into references and says which variables to set", () => {
    const { dialect, servers, warnings, problems } = read(".vscode/mcp.json");
    expect(dialect).toBe("vscode");
    expect(problems).toEqual([]);
    const { github, fetch } = byId(servers);
    expect(github).toMatchObject({
      url: "https://api.githubcopilot.com/mcp/",
      headers: { Authorization: "Bearer secret://env/GITHUB_TOKEN", "X-Region": "${REGION:-eu}" },
    });
    expect(github?.transport).toBeUndefined();
    expect(fetch).toMatchObject({
      transport: "stdio",
      args: ["mcp-server-fetch", "--cache", `${FIXTURES}/.cache`],
      env: { HOME_DIR: homedir(), TOKEN: "${FETCH_TOKEN}", MIX: "${GITHUB_TOKEN}x" },
      cwd: FIXTURES,
    });
    expect(warnings.map(({ code, line, message }) => [code, line, message])).toEqual([
      [
        "input",
        4,
        'VS Code asks for the input "github-token" (GitHub Personal Access Token); set the environment variable GITHUB_TOKEN',
      ],
      ["input", 5, 'VS Code asks for the input "region" (Region); set the environment variable REGION'],
      ["not_read", 18, "envFile is not read"],
    ]);
  });

  it("reads the servers of a settings.json", () => {
    const { dialect, servers } = read("vscode-settings.json");
    expect([dialect, servers.map(({ id }) => id)]).toEqual(["vscode", ["memory"]]);
  });

  it("[cage-01a] cages what VS Code cages, and never more widely", () => {
    const sandbox = {
      filesystem: {
        allowWrite: ["${workspaceFolder}/out", "${userHome}/*", "/srv/data"],
        denyRead: ["/srv/data/private"],
      },
      network: { allowedDomains: ["api.example.test"] },
    };
    const caged = { command: "x", sandboxEnabled: true, sandbox };
    const { servers, problems, warnings } = readValue({
      servers: { a: caged, b: { ...caged, sandboxEnabled: false } },
    });
    expect(problems).toEqual([]);
    expect(servers.map((spec) => spec.sandbox)).toEqual([
      { kind: "bubblewrap", network: "none", write: [expect.stringMatching(/^\/.*\/out$/)] },
      undefined,
    ]);
    expect(codes(warnings)).toEqual(["adapted servers.a.sandboxEnabled"]);
    expect(warnings[0]?.message).toMatch(/single domains cannot be allowed/);
  });

  it("[cage-01a] keeps a sandbox that is Toolcrib's own, which VS Code does not know", () => {
    const wishes = ["bubblewrap", { image: "x@sha256:1" }, { read: ["/srv"], network: "host" }, "bubblwrap", 5];
    const servers = Object.fromEntries(wishes.map((sandbox, at) => [`s${at}`, { command: "x", sandbox }]));
    const read = readValue({ servers }, "/work/site/.vscode/mcp.json");
    expect(read.servers.map(({ id, sandbox }) => [id, sandbox])).toEqual([
      ["s0", "bubblewrap"],
      ["s1", expect.objectContaining({ image: "x@sha256:1" })],
      ["s2", expect.objectContaining({ read: ["/srv"], network: "host" })],
    ]);
    expect(read.problems.map(({ path }) => path)).toEqual(["servers.s3.sandbox", "servers.s4.sandbox"]);
  });
});

describe("[spine-05c] the list form", () => {
  it("reads transports as words and as objects, and the names of its other keys", () => {
    const { dialect, servers, problems } = read("mcp-servers.json");
    expect(dialect).toBe("list");
    expect(problems).toEqual([]);
    expect(servers).toMatchObject([
      {
        id: "filesystem",
        name: "File system",
        transport: "stdio",
        command: "npx",
        cwd: "./work",
        enabled: true,
        autoConnect: true,
        roles: ["coder", "reviewer"],
        tags: ["files", "local"],
        restart: { max: 3, initialDelay: 1000 },
      },
      {
        id: "search",
        transport: "http",
        url: "https://search.example.com/mcp",
        headers: { "X-Team": "a" },
        autoConnect: false,
        timeout: 12_000,
      },
      { id: "events", transport: "sse", enabled: false, restart: false },
      { id: "no id- but a name", name: "no id, but a name", command: "x", env: { A: "1" } },
    ]);
    expect(servers[1]?.roles).toBeUndefined();
  });

  it("takes the last of two with one id, and refuses one without any", () => {
    const { servers, warnings, problems } = readValue({
      servers: [{ id: "a", command: "1" }, { id: "a", command: "2" }, { command: "3" }, 4],
    });
    expect(servers.map(({ command }) => command)).toEqual(["2"]);
    expect(codes(warnings)).toEqual(["duplicate_id servers"]);
    expect(codes(problems)).toEqual(["wrong_server servers[2]", "wrong_server servers[3]"]);
  });

  it("tells of a list of roles that nobody is on", () => {
    const { servers, warnings } = readValue({ servers: [{ id: "a", command: "x", allowedAgentRoles: [] }] });
    expect(servers[0]?.roles).toEqual([]);
    expect(codes(warnings)).toEqual(["no_roles servers[0]"]);
  });
});

describe("[spine-05d] OpenClaw", () => {
  it("reads JSON5 with shared servers, defaults and per-agent overrides", () => {
    const { dialect, servers, roleServers, problems } = read("openclaw.json");
    expect(dialect).toBe("openclaw");
    expect(problems).toEqual([]);
    const { docs, home, notes } = byId(servers);
    expect(servers).toHaveLength(3);
    expect(docs).toMatchObject({
      transport: "http",
      timeout: 5000,
      toolTimeout: 20_000,
      headers: { Authorization: "Bearer ${DOCS_TOKEN}" },
    });
    expect(home).toMatchObject({
      command: "uvx",
      cwd: "/srv/home",
      tools: { allow: ["read_*"] },
      env: { LEVEL: "2", TOKEN: "secret://env/HOME_TOKEN" },
    });
    expect(notes).toMatchObject({ command: "notes-mcp" });
    expect(Object.keys(roleServers)).toEqual(["ops"]);
    expect(roleServers["ops"]).toMatchObject([
      { id: "home", command: "uvx", env: { LEVEL: "9", TOKEN: "secret://env/HOME_TOKEN" } },
      { id: "pager", command: "pager-mcp" },
    ]);
  });

  it("is loaded as a main config, JSON5 and all, while JSON5 in Toolcrib's own file is a syntax error", async () => {
    const { servers } = await new Workplace().load({ file: join(FIXTURES, "openclaw.json") });
    expect(servers.map(({ id }) => id).slice(3)).toEqual(["home@ops", "pager@ops"]);
    expect(servers[3]).toMatchObject({ roles: ["ops"], replaces: "home" });
    const place = new Workplace();
    const problems = await place.problems({ file: place.write("toolcrib.json", "{ mcpServers: {} }") });
    expect(problems[0]?.code).toBe("syntax");
  });

  it("[whole-02a] its lists of tools are rules of its servers", () => {
    const mcp = { servers: { files: { command: "x", toolFilter: { exclude: ["rm"] } } } };
    const rulesOf = (rest: JsonObject): unknown => readValue({ mcp, ...rest }, "/x/openclaw.json").servers[0]?.tools;
    expect(rulesOf({})).toEqual({ deny: ["rm"] });
    expect(rulesOf({ tools: { deny: ["files__write_*", "group:web"] } })).toEqual({ deny: ["rm", "files__write_*"] });
    const both = {
      tools: { allow: ["read", "files__*"] },
      gateway: { tools: { allow: ["files__*", "b__x"], deny: ["c"] } },
    };
    expect(rulesOf(both)).toEqual({ allow: ["files__*"], deny: ["rm", "c"] });
    // Only tools of its own.
    expect(rulesOf({ tools: { allow: ["read", "group:fs"] } })).toEqual({ allow: [], deny: ["rm"] });
    expect(rulesOf({ tools: { allow: ["bundle-mcp"] } })).toEqual({ allow: ["*"], deny: ["rm"] });
  });

  it("[whole-02a] one name may be written without a list, and a list that cannot be read allows nothing", () => {
    const read = (rest: JsonObject) => {
      const value = { mcp: { servers: { files: { command: "x" } } }, ...rest };
      const { servers, roles, warnings } = readValue(value, "/x/openclaw.json");
      return [servers[0]?.tools ?? roles["shy"]?.tools, codes(warnings)];
    };
    expect(read({ tools: { deny: "files__rm" } })).toEqual([{ deny: ["files__rm"] }, []]);
    expect(read({ gateway: { tools: { allow: "files__ls" } } })).toEqual([{ allow: ["files__ls"] }, []]);
    const none = "no_tools mcp.servers.files";
    expect(read({ tools: { deny: { rm: true } } })).toEqual([{ allow: [] }, ["wrong_value tools.deny", none]]);
    expect(read({ tools: { deny: ["a", 5] }, gateway: { tools: { allow: ["*"] } } })).toEqual([
      { allow: [] },
      ["wrong_value tools.deny", none],
    ]);
    const agents = { list: [{ id: "shy", tools: { allow: 5 } }] };
    expect(read({ agents })).toEqual([{ allow: [] }, ["wrong_value agents.list[0].tools.allow"]]);
  });

  it("[whole-02a] a tool is allowed if every list allows it, by its own name, its public one or a pattern", () => {
    const include = ["echo", "get-*"];
    const allowed = (allow: string[], gateway: string[], entry: JsonObject = {}) => {
      const mcp = { servers: { ev: { command: "x", toolFilter: { include }, ...entry } } };
      const read = readValue({ mcp, tools: { allow }, gateway: { tools: { allow: gateway } } }, "/x/openclaw.json");
      return [read.servers[0]?.tools?.allow, codes(read.warnings)];
    };
    expect(allowed(["ev__*"], ["ev__echo", "ev__get-sum", "ev__rm"])).toEqual([
      ["echo", "ev__echo", "ev__get-sum"],
      [],
    ]);
    expect(allowed(["*"], ["bundle-mcp"])).toEqual([["echo", "get-*"], []]);
    expect(allowed(["fs__e*"], ["*"], { toolPrefix: "fs" })).toEqual([["echo"], []]);
    expect(allowed(["ev__?et-x"], ["*"])).toEqual([[], ["no_tools mcp.servers.ev"]]);
    // Tools of OpenClaw itself.
    expect(allowed(["read", "exec"], ["*"])).toEqual([[], ["no_tools mcp.servers.ev"]]);
  });

  it("[whole-02b] every agent is a role, which has the shared servers, and rules of its own", async () => {
    const { config, servers } = await new Workplace().load({ file: join(FIXTURES, "openclaw.json") });
    expect(Object.keys(config.roles)).toEqual(["main", "ops"]);
    expect(servers.find(({ id }) => id === "notes")?.roles).toBeUndefined();
    const agents = { list: [{ id: "shy", tools: { deny: ["notes__*"] } }] };
    const read = readValue({ mcp: { servers: {} }, agents }, "/x/openclaw.json");
    expect(read.roles).toEqual({ shy: { tools: { deny: ["notes__*"] } } });
  });

  it("[whole-02b] as an import too, unless the config has a role of that name", async () => {
    const place = new Workplace();
    const file = place.write("toolcrib.json", {
      import: [join(FIXTURES, "openclaw.json")],
      roles: { ops: { tools: { deny: ["x"] } } },
    });
    const { config, servers } = await place.load({ file });
    expect(config.roles).toEqual({ main: {}, ops: { tools: { deny: ["x"] } } });
    expect(servers.map(({ id }) => id)).toContain("pager@ops");
  });

  it("[whole-01e] a wrong entry of the config stops the imported server of a role that its rules would apply to", async () => {
    const place = new Workplace();
    const other = place.write("openclaw.json", {
      agents: { list: [{ id: "ops", mcp: { servers: { notes: { command: "x" }, pager: { command: "x" } } } }] },
    });
    place.write("toolcrib.json", {
      import: [other],
      mcpServers: { notes: { command: "y", tools: { deny: "delete_*" } } },
    });
    const { servers } = await place.load();
    expect(servers.map(({ id, problem }) => [id, problem === undefined])).toEqual([
      ["notes", false],
      ["notes@ops", false],
      ["pager@ops", true],
    ]);
  });

  it("[whole-01e] an agent whose own server has an error does not get the shared one in its place", async () => {
    const own = { files: { toolFilter: { exclude: "delete_*" } }, notes: [], web: { toolFilter: ["get_*"] } };
    const list = [{ id: "ops", mcp: { servers: { ...own, mail: { toolFilter: { exclude: ["send_*"] } } } } }];
    const shared = Object.fromEntries(["files", "notes", "web", "mail"].map((id) => [id, { command: "x" }]));
    const place = new Workplace();
    const other = place.write("openclaw.json", { mcp: { servers: shared }, agents: { list } });
    place.write("toolcrib.json", { import: [other] });
    for (const options of [{}, { file: other }]) {
      const { servers, warnings } = await place.load(options);
      const ofRole = servers.filter(({ roles }) => roles?.includes("ops"));
      expect(ofRole.map(({ id, replaces, problem }) => [id, replaces, problem === undefined])).toEqual([
        ["mail@ops", "mail", true],
        ["files@ops", "files", false],
        ["notes@ops", "notes", false],
        ["web@ops", "web", false],
      ]);
      expect(ofRole[1]?.problem).toMatch(/openclaw\.json:\d+:\d+: .*files.*expected a list of strings/);
      expect(codes(warnings).filter((code) => code.includes("agents.list"))).toHaveLength(3);
    }
  });

  it("[whole-02a] a list of tools that cannot be read leaves no tool of its server", () => {
    for (const toolFilter of [["read_*"], "read_*", { includes: ["read_*"] }, { include: 5 }]) {
      const read = readValue({ mcp: { servers: { a: { command: "x", toolFilter } } } }, "/x/openclaw.json");
      expect(read.servers, JSON.stringify(toolFilter)).toEqual([]);
      expect(read.problems).toHaveLength(1);
    }
  });

  it("[whole-02c] a prefix of tools does not have the separator in it", () => {
    const servers = {
      a: { command: "x", toolPrefix: "fs" },
      b: { command: "x", toolPrefix: "" },
      c: { command: "x", toolPrefix: "g_" },
    };
    const read = readValue({ mcp: { servers } }, "/x/openclaw.json");
    expect(read.servers.map(({ toolPrefix }) => toolPrefix)).toEqual(["fs__", "", "g_"]);
  });

  it("takes logins, and refuses certificates, which are not built", () => {
    const servers = { a: { url: "https://h", auth: "oauth" }, b: { url: "https://h", clientCert: "/c" } };
    const read = readValue({ mcp: { servers } }, "/x/openclaw.json");
    expect(codes(read.problems)).toEqual(["not_supported mcp.servers.b.clientCert"]);
    expect(read.servers[0]?.auth).toEqual({ type: "oauth" });
  });
});

describe("the form of the library", () => {
  it("[whole-03a] has workingDir, and HTTP that may turn out to be SSE", () => {
    const servers = {
      a: { command: "x", workingDir: "/srv" },
      b: { type: "streamable-http", url: "https://h.example/mcp" },
      c: { type: "sse", url: "https://h.example/sse" },
    };
    const { servers: read } = readValue({ servers });
    expect(read).toMatchObject([{ cwd: "/srv" }, { url: "https://h.example/mcp" }, { transport: "sse" }]);
    expect(read[1]?.transport).toBeUndefined();
  });
});

describe("[spine-05e] ACP", () => {
  it("reads the array with name/value lists, and the same under mcpServers", () => {
    const { dialect, servers, problems } = read("acp.json");
    expect(dialect).toBe("acp");
    expect(problems).toEqual([]);
    const expected = [
      {
        id: "filesystem",
        command: "/usr/local/bin/mcp-server",
        args: ["--stdio"],
        env: { API_KEY: "${FS_KEY}", MODE: "rw" },
      },
      { id: "api", transport: "http", url: "https://api.example.com/mcp", headers: { Authorization: "Bearer ${T}" } },
      { id: "stream", transport: "sse", headers: {} },
      { id: "plain", transport: "stdio", command: "plain-mcp", env: {} },
    ];
    expect(servers).toMatchObject(expected);
    const list: unknown = JSON.parse(readFileSync(join(FIXTURES, "acp.json"), "utf8"));
    expect(readValue({ mcpServers: list }).servers).toMatchObject(expected);
  });
});

describe("which dialect it is", () => {
  it.each([
    ["toolcrib", "toolcrib.json", { servers: [] }],
    ["toolcrib", "x.json", { mcpServers: {}, limits: {} }],
    ["toolcrib", "x.json", {}],
    ["claude", "settings.json", { mcpServers: {}, tools: {} }],
    ["claude", "x.json", { mcpServers: {} }],
    ["vscode", "settings.json", { mcp: { servers: {} } }],
    ["vscode", "x.json", { mcp: { servers: {}, inputs: [] } }],
    ["toolcrib", "x.json", { mcp: { servers: {}, inputs: [] }, tools: {} }],
    ["vscode", "settings.json", { mcp: { servers: {} }, tools: {} }],
    ["openclaw", "x.json", { mcp: { servers: {} } }],
    ["openclaw", "openclaw.json", {}],
    ["list", "x.json", { servers: [] }],
    ["toolcrib", "x.json", { servers: [], tools: {} }],
    ["acp", "x.json", { mcpServers: [] }],
    ["toolcrib", "x.json", { mcpServers: [], tools: {} }],
    ["acp", "x.json", []],
  ])("is %s for %s with %j", (dialect, file, value) => {
    expect(detectDialect(value, file)).toBe(dialect);
  });
});
