/** Forms that only one client has. */
import { describe, expect, it } from "vitest";
import { isJsonObject } from "../../src/model/json.ts";
import { client, fileOf, fixtureDocument, LINUX, WINDOWS } from "./fixture.ts";

function readUser(id: string, document: unknown): ReturnType<ReturnType<typeof client>["read"]> {
  const of = client(id);
  return of.read(document, fileOf(of));
}

describe("forms of single clients", () => {
  it("[skill-14a] Claude Code: the user's own servers of this project, and of no other", () => {
    const of = client("claude-code");
    const own = of.files(LINUX).find(({ projectKey }) => projectKey !== undefined);
    expect(own).toEqual({ scope: "project", path: "/home/ada/.claude.json", projectKey: "/home/ada/engine" });
    if (own === undefined) return;
    const { servers, problems } = of.read(fixtureDocument(of), own);
    expect(servers).toEqual({
      "scratch-db": {
        type: "stdio",
        command: "uvx",
        args: ["mcp-server-sqlite", "--db-path", "${DB_FILE:-scratch.db}"],
        toolTimeout: 120_000,
      },
      tickets: { type: "sse", url: "https://tickets.example.test/sse", enabled: false },
    });
    expect(problems.map(({ path }) => path)).toEqual([
      ["projects", "/home/ada/engine", "mcpServers", "tickets", "headersHelper"],
    ]);
    expect(of.pathOf("x", own)).toEqual(["projects", "/home/ada/engine", "mcpServers", "x"]);
    expect(of.pathOf("x", fileOf(of))).toEqual(["mcpServers", "x"]);
  });

  it("[skill-14a] Claude Code names a folder of Windows with forward slashes", () => {
    const own = client("claude-code")
      .files(WINDOWS)
      .find(({ projectKey }) => projectKey !== undefined);
    expect(own?.projectKey).toBe("C:/work/engine");
  });

  it("[skill-14a] VS Code: each input is told of once and by name, a sandbox becomes a cage", () => {
    const of = client("vscode");
    const { problems } = readUser("vscode", fixtureDocument(of));
    expect(problems[0]?.message).toContain('"api-key"');
    const sandbox = { filesystem: { allowWrite: ["/a", "/b/"], denyWrite: ["/b/c"] } };
    const { servers } = readUser("vscode", { servers: { one: { command: "a", sandboxEnabled: true, sandbox } } });
    expect(servers["one"]).toEqual({ command: "a", sandbox: { kind: "bubblewrap", write: ["/a"] } });
    const twice = { type: "stdio", command: "a", args: ["${input:key}", "${input:key}", "${input:other}"] };
    const { problems: told } = readUser("vscode", { servers: { one: twice, two: twice } });
    expect(told.map(({ message }) => /"(.*)"/.exec(message)?.[1])).toEqual(["key", "other"]);
  });

  it("[skill-14a] Gemini CLI: an address is SSE unless it says otherwise, and a list of allowed servers counts", () => {
    const mcpServers = { a: { url: "https://a.test", type: "http" }, b: { httpUrl: "https://b.test" } };
    const { servers } = readUser("gemini-cli", { mcp: { allowed: ["b"] }, mcpServers });
    expect(servers["a"]).toEqual({ url: "https://a.test", type: "http", enabled: false });
    expect(servers["b"]).toEqual({ httpUrl: "https://b.test" });
  });

  it("[skill-14a] Gemini CLI: only a name after a single dollar is a reference", () => {
    const args = ["$A", "a$B_1/c", "$$C", "${D}", "$1", "$"];
    const { servers } = readUser("gemini-cli", { mcpServers: { x: { command: "x", args } } });
    expect(servers["x"]?.["args"]).toEqual(["${A}", "a${B_1}/c", "$$C", "${D}", "$1", "$"]);
  });

  it("[skill-14a] OpenCode: servers may be called servers and timeout, and the new form counts before the old", () => {
    const old = { type: "local", command: ["old"] };
    const { servers } = readUser("opencode", { mcp: { servers: old, timeout: old } });
    expect(Object.keys(servers)).toEqual(["servers", "timeout"]);
    const both = readUser("opencode", {
      mcp: { a: old, timeout: 5000, servers: { a: { type: "local", command: ["new"] } } },
    });
    expect(both).toEqual({ servers: { a: { type: "local", command: ["new"] } }, problems: [] });
  });

  it("[skill-14a] OpenCode: a container that is none is told of", () => {
    expect(readUser("opencode", { mcp: [] }).problems).toEqual([
      { path: ["mcp"], message: "an object is expected here" },
    ]);
  });

  it("[skill-14a] Codex: headers of its own word only, seconds before milliseconds, no tools means off", () => {
    const { servers } = readUser("codex", {
      mcp_servers: {
        x: { url: "https://x.test", headers: { a: "b" }, startup_timeout_ms: 9, startup_timeout_sec: 2 },
        y: { command: "y", enabled_tools: [] },
      },
    });
    expect(servers["x"]).toEqual({ url: "https://x.test", timeout: 2000 });
    expect(servers["y"]).toEqual({ command: "y", enabled: false });
  });

  it("[skill-14a] goose: what is built in is no server and is not told of", () => {
    const extensions = { a: { type: "builtin", name: "a" }, b: { type: "frontend", name: "b", tools: [] } };
    expect(readUser("goose", { extensions })).toEqual({ servers: {}, problems: [] });
  });

  it("[skill-14a] Continue: the object form of other clients is read too", () => {
    const { servers, problems } = readUser("continue", { mcpServers: { a: { command: "a" } } });
    expect({ servers, problems }).toEqual({ servers: { a: { command: "a" } }, problems: [] });
  });

  it("[skill-14a] limits of nonsense are left out, and tiny ones stay above zero", () => {
    for (const timeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(readUser("cline", { mcpServers: { a: { command: "a", timeout } } }).servers["a"]).toEqual({
        command: "a",
      });
    }
    const { servers } = readUser("kiro", { mcpServers: { a: { command: "a", timeout: 0.2 } } });
    expect(servers["a"]?.["toolTimeout"]).toBe(1);
  });

  it("[skill-14a] keys that have another meaning here are not taken over", () => {
    const entry = {
      command: "a",
      trust: true,
      tools: ["x"],
      roles: ["y"],
      isolation: "user",
      restart: false,
      auth: {},
    };
    for (const id of ["cursor", "gemini-cli", "kiro", "lm-studio", "amp", "windsurf", "claude-desktop"]) {
      expect(readUser(id, { mcpServers: { a: entry }, "amp.mcpServers": { a: entry } }).servers["a"]).toEqual({
        command: "a",
      });
    }
  });

  it("[skill-14a] a server called __proto__ is a server and no prototype", () => {
    const document: unknown = JSON.parse('{"mcpServers": {"__proto__": {"command": "x"}}}');
    const { servers } = readUser("cursor", document);
    expect(Object.keys(servers)).toEqual(["__proto__"]);
    expect(isJsonObject(Object.getPrototypeOf(servers)) && "command" in servers).toBe(false);
  });
});
