import { describe, expect, it } from "vitest";
import { parsePastedServers } from "../../src/config/pasted-servers.ts";
import { ToolcribError } from "../../src/model/errors.ts";

const FILES = { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] };

function one(text: string): { serverId: string; config: object; warnings: string[] } {
  const [server, ...others] = parsePastedServers(text);
  expect(others).toEqual([]);
  if (server === undefined) throw new Error("nothing was parsed");
  return server;
}

describe("a command line", () => {
  it.each([
    ["npx -y @modelcontextprotocol/server-filesystem /tmp", "filesystem", FILES],
    ["$ npx -y \\\n  @modelcontextprotocol/server-filesystem /tmp", "filesystem", FILES],
    [
      "uvx mcp-server-git --repository '/a b/c'",
      "git",
      { command: "uvx", args: ["mcp-server-git", "--repository", "/a b/c"] },
    ],
    ["python -m mcp_server_time", "time", { command: "python", args: ["-m", "mcp_server_time"] }],
    [
      "docker run -i --rm -e GITHUB_TOKEN mcp/github:latest",
      "github",
      { command: "docker", args: ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "mcp/github:latest"] },
    ],
    ["node /home/me/weather/dist/index.js", "weather", { command: "node", args: ["/home/me/weather/dist/index.js"] }],
    ['LOG="a b" MODE=x /opt/notes-mcp', "notes", { command: "/opt/notes-mcp", env: { LOG: "a b", MODE: "x" } }],
    ["ROOT=$HOME/x my-server $ARG", "my", { command: "my-server", args: ["${ARG}"], env: { ROOT: "${HOME}/x" } }],
  ])("%s", (text, serverId, config) => {
    expect(one(text)).toMatchObject({ serverId, config });
  });

  it.each([
    [
      "claude mcp add files -e MODE=1 LEVEL=2 -- npx -y pkg --flag",
      "files",
      { command: "npx", args: ["-y", "pkg", "--flag"], env: { MODE: "1", LEVEL: "2" } },
    ],
    [
      "claude mcp add --transport http linear https://mcp.linear.app/mcp -H 'X-Team: core'",
      "linear",
      { url: "https://mcp.linear.app/mcp", transport: "http" },
    ],
    [
      "claude mcp add --transport http -H 'X-Team: core' linear https://mcp.linear.app/mcp",
      "linear",
      { url: "https://mcp.linear.app/mcp", transport: "http", headers: { "X-Team": "core" } },
    ],
    [
      `claude mcp add-json files '{"command":"npx","args":["-y","pkg"]}'`,
      "files",
      { command: "npx", args: ["-y", "pkg"] },
    ],
    [
      "codex mcp add docs --url https://x.example/mcp --bearer-token-env-var DOCS_TOKEN",
      "docs",
      { url: "https://x.example/mcp", headers: { Authorization: "Bearer ${DOCS_TOKEN}" } },
    ],
    [
      `code --add-mcp '{"name":"play","command":"npx","args":["@playwright/mcp"]}'`,
      "play",
      { command: "npx", args: ["@playwright/mcp"] },
    ],
  ])("of another program: %s", (text, serverId, config) => {
    expect(one(text)).toMatchObject({ serverId, config });
  });

  it.each([
    ["npx a && npx b", '"&&"'],
    ["npx 'a", "single quote"],
    ["FOO=bar", "no program"],
    ["claude mcp add files", "follows the name"],
    ["npx a\nnpx b", "one line"],
  ])("that is not understood says why: %s", (text, why) => {
    expect(() => parsePastedServers(text)).toThrow(why);
  });
});

describe("an address", () => {
  it.each([
    ["https://mcp.linear.app/mcp", "linear"],
    ["https://api.githubcopilot.com/mcp/", "githubcopilot"],
    ["http://127.0.0.1:3000/weather/mcp", "weather"],
  ])("%s", (url, serverId) => {
    expect(one(url)).toEqual({ serverId, config: { url }, warnings: [] });
  });
});

describe("a snippet", () => {
  it.each([
    ["Claude Desktop", `{"mcpServers": {"files": ${JSON.stringify(FILES)}}}`],
    ["a map", `{"files": ${JSON.stringify(FILES)}}`],
    ["a property cut out of a file", `"files": ${JSON.stringify(FILES)},`],
    ["between fences", `\`\`\`json\n{"mcpServers": {"files": ${JSON.stringify(FILES)}}}\n\`\`\``],
    ["VS Code", `{"servers": {"files": ${JSON.stringify({ type: "stdio", ...FILES })}}}`],
    ["JSON5", `{files: {command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/tmp'],},}`],
    [
      "Codex",
      `[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]\n`,
    ],
    [
      "Goose",
      `extensions:\n  files:\n    type: stdio\n    cmd: npx\n    args: [-y, "@modelcontextprotocol/server-filesystem", /tmp]\n`,
    ],
    [
      "YAML",
      `mcpServers:\n  files:\n    command: npx\n    args:\n      - -y\n      - "@modelcontextprotocol/server-filesystem"\n      - /tmp\n`,
    ],
    [
      "OpenCode",
      `{"mcp": {"files": {"type": "local", "command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp"]}}}`,
    ],
    ["Zed", `{"context_servers": {"files": ${JSON.stringify(FILES)}}}`],
    [
      "an extension's settings",
      `{"augment.advanced": {"mcpServers": [${JSON.stringify({ name: "files", ...FILES })}]}}`,
    ],
    ["ACP", `[{"name": "files", "command": "npx", "args": ${JSON.stringify(FILES.args)}, "env": []}]`],
  ])("%s", (_, text) => {
    const { serverId, config } = one(text);
    expect({ serverId, config }).toMatchObject({ serverId: "files", config: FILES });
  });

  it("is an entry alone, in any dialect's words", () => {
    expect(one(`{"serverUrl": "https://x.example/mcp", "disabled": true}`)).toEqual({
      serverId: "x",
      config: { url: "https://x.example/mcp", enabled: false },
      warnings: [],
    });
  });

  it("gives each server an id of its own", () => {
    const servers = parsePastedServers(
      `[{"url": "https://a.example/mcp"}, {"url": "https://a.example/sse"}, {"name": "/odd", "url": "https://b.example"}]`,
    );
    expect(servers.map(({ serverId }) => serverId)).toEqual(["a", "a-2", "odd"]);
    expect(servers[2]?.warnings).toEqual(['the name "/odd" cannot be an id here']);
  });

  it.each([
    [`{"mcpServers": {"x": {"args": []}}}`, '"x" has neither a command nor an address'],
    [`{"mcpServers": {"x": `, "line 1"],
    [`[mcp_servers.x\ncommand = "a"`, "not understood"],
    [`{"command": "a", "url": "https://x.example"}`, "both command and url"],
    [`{"command": "npx", "args": ["toolcrib", "mcp"]}`, "starts Toolcrib itself"],
    ["   ", "empty"],
    ["[]", "empty"],
  ])("that is not understood says why: %s", (text, why) => {
    expect(() => parsePastedServers(text)).toThrow(why);
    expect(() => parsePastedServers(text)).toThrow(ToolcribError);
  });
});

describe("inputs of an editor", () => {
  const says = (id: string, variable: string): unknown =>
    expect.stringMatching(`input "${id}".*set the environment variable ${variable}$`);

  it("become variables to set, in the text around them", () => {
    const snippet = {
      inputs: [{ type: "promptString", id: "tok", description: "A token", password: true }],
      servers: {
        a: { type: "http", url: "https://a.example/mcp", headers: { Authorization: "Bearer ${input:tok}" } },
        b: { command: "b", args: ["--host=${input:apiHost}/x"], env: { K: "${input:tok}", API_TOKEN: "${input:tok}" } },
        c: { command: "c" },
      },
    };
    expect(parsePastedServers(JSON.stringify(snippet))).toMatchObject([
      {
        config: { headers: { Authorization: "Bearer secret://env/TOK" } },
        warnings: [says("tok", "TOK")],
      },
      {
        config: {
          args: ["--host=secret://env/API_HOST/x"],
          env: { K: "secret://env/TOK", API_TOKEN: "secret://env/TOK" },
        },
        warnings: [says("apiHost", "API_HOST"), says("tok", "TOK"), expect.stringContaining("visible to every user")],
      },
      { config: { command: "c" }, warnings: [] },
    ]);
  });

  it.each([
    ['"x": {"command": "x", "env": {"K": "${input:my-key}"}}'],
    ['{"mcp": {"inputs": [], "servers": {"x": {"command": "x", "env": {"K": "${input:my-key}"}}}}}'],
    [`code --add-mcp '{"name":"x","command":"x","env":{"K":"\${input:my-key}"}}'`],
  ])("are known wherever they stand: %s", (text) => {
    const { config, warnings } = one(text);
    expect(config).toMatchObject({ env: { K: "secret://env/MY_KEY" } });
    expect(warnings).toEqual([says("my-key", "MY_KEY")]);
  });
});

describe("a text that would keep the hub busy", () => {
  const dots = "a.".repeat(40_000);
  it.each([
    ["a key of TOML with many dots", `[mcp_servers.a]\n${dots}a=1`, /nested too deeply/],
    ["such a table", `[${dots}a]\n`, /nested too deeply/],
    ["such a key in a table of one line", `[mcp_servers.a]\nb = {${dots}a=1}`, /nested too deeply/],
    ["brackets of TOML", `[mcp_servers.a]\na=${"[".repeat(40_000)}`, /nests deeper/],
    ["brackets of YAML", `a: ${"[".repeat(40_000)}`, /nests deeper/],
    ["a map of YAML with many keys", `a:\n${" ? x\n".repeat(15_000)}`, /too many keys/],
    ["brackets of JSON", `{a:${"[".repeat(40_000)}`, /begins like JSON/],
  ])("is refused: %s", (_, text, message) => {
    expect(() => parsePastedServers(text)).toThrow(message);
  });

  it("is refused: aliases of aliases", () => {
    const lines = Array.from(
      { length: 12 },
      (_, at) => `  a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`).join()}]`,
    );
    expect(() => parsePastedServers(["mcpServers:", "  a0: &a0 [x]", ...lines].join("\n"))).toThrow(/aliases/);
  });
});

describe("[oper-02d] plain secrets", () => {
  const SECRET = "canary-7f3a9b2c51d84e60";

  it("become references, and the warning names the place alone", () => {
    const parsed = parsePastedServers(
      JSON.stringify({
        github: { command: "x", env: { GITHUB_TOKEN: SECRET, MODE: "ro" }, args: ["--api-key", SECRET] },
        linear: { url: `https://me:${SECRET}@x.example/mcp`, headers: { Authorization: `Bearer ${SECRET}` } },
      }),
    );
    expect(JSON.stringify(parsed)).not.toContain(SECRET);
    expect(parsed.map(({ config }) => config)).toEqual([
      {
        command: "x",
        env: { GITHUB_TOKEN: "secret://env/GITHUB_TOKEN", MODE: "ro" },
        args: ["--api-key", "secret://env/GITHUB_SECRET"],
      },
      { url: "secret://env/LINEAR_SECRET", headers: { Authorization: "Bearer secret://env/LINEAR_TOKEN" } },
    ]);
    expect(parsed[0]?.warnings.join("\n")).toContain("env.GITHUB_TOKEN: a plaintext secret was here");
  });

  it("are not shown by an error either", () => {
    const bad = `{"x": {"command": "a", "env": {"TOKEN": "${SECRET}"}, "timeout": "${SECRET}"}}`;
    expect(() => parsePastedServers(bad)).toThrow(ToolcribError);
    try {
      parsePastedServers(bad);
    } catch (error) {
      expect(JSON.stringify((error as ToolcribError).toObject())).not.toContain("TOKEN");
    }
  });
});
