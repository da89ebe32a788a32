import { describe, expect, it } from "vitest";
import { type ServerEntryInput, ServerEntrySchema, type ServerSpec } from "../../../src/model/server-spec.ts";
import { findMatchingServer, isSameServer } from "../../../src/skills/servers/match-servers.ts";
import { resolveServerEntry } from "../../../src/skills/servers/server-entry.ts";
import { only, VARIABLES } from "./support.ts";

function spec(id: string, entry: ServerEntryInput): ServerSpec {
  return { ...ServerEntrySchema.parse(entry), id, origin: { file: "test", dialect: "toolcrib" }, baseDir: "/" };
}

describe("[skill-13a] findMatchingServer", () => {
  const filesystem = only(["filesystem"]);

  it("takes a server of the same id", () => {
    const own = spec("filesystem", { command: "my-own" });
    expect(findMatchingServer(filesystem, [spec("x", { command: "y" }), own])).toBe(own);
  });

  it.each<[string, string, string[]]>([
    ["npx", "npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"]],
    ["a version", "npx", ["--yes", "@modelcontextprotocol/server-filesystem@2025.1.1", "/data"]],
    ["a path", "/usr/local/bin/npx", ["@modelcontextprotocol/server-filesystem", "."]],
    ["Windows", "cmd", ["/c", "npx", "-y", "@modelcontextprotocol/server-filesystem@latest"]],
    ["npx.cmd", "C:\\node\\npx.cmd", ["-y", "@modelcontextprotocol/server-filesystem"]],
    ["pnpx", "pnpx", ["@modelcontextprotocol/server-filesystem"]],
    ["bunx", "bunx", ["@modelcontextprotocol/server-filesystem"]],
    ["pnpm dlx", "pnpm", ["dlx", "@modelcontextprotocol/server-filesystem"]],
    ["--package", "npx", ["-y", "--package=@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", "/x"]],
    ["-p", "npx", ["-p", "@modelcontextprotocol/server-filesystem", "--", "mcp-server-filesystem"]],
  ])("takes the same package: %s", (_, command, args) => {
    const own = spec("mine", { command, args });
    expect(findMatchingServer(filesystem, [own])).toBe(own);
  });

  it("takes the same Python package, whichever way it is written", () => {
    const git = only(["git"]);
    for (const [command, args] of [
      ["uvx", ["mcp-server-git"]],
      ["uvx", ["--from", "mcp_server_git==2.0", "mcp-server-git"]],
      ["uv", ["tool", "run", "mcp-server-git"]],
      ["pipx", ["run", "mcp-server-git"]],
    ] as const) {
      expect(findMatchingServer(git, [spec("g", { command, args: [...args] })])?.id).toBe("g");
    }
    expect(findMatchingServer(git, [spec("g", { command: "npx", args: ["mcp-server-git"] })])).toBeUndefined();
  });

  it("does not take another package, or the name as an argument of another program", () => {
    const others = [
      spec("a", { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem-x"] }),
      spec("b", { command: "npx", args: ["-y", "other", "@modelcontextprotocol/server-filesystem"] }),
      spec("c", { command: "echo", args: ["@modelcontextprotocol/server-filesystem"] }),
      spec("d", { url: "https://x.example/@modelcontextprotocol/server-filesystem" }),
    ];
    expect(findMatchingServer(filesystem, others)).toBeUndefined();
  });

  it("takes the same command with other values for the parameters", () => {
    const needed = only([{ name: "t", command: "node", args: ["/opt/server.js", "--dir", "${DIR}"] }]);
    expect(
      findMatchingServer(needed, [spec("n", { command: "node", args: ["/opt/server.js", "--dir", "/a"] })])?.id,
    ).toBe("n");
    expect(
      findMatchingServer(needed, [spec("n", { command: "node", args: ["/opt/other.js", "--dir", "/a"] })]),
    ).toBeUndefined();
    const open = only([{ name: "t", command: "node", args: ["${SCRIPT}"] }]);
    expect(findMatchingServer(open, [spec("n", { command: "node", args: ["/opt/server.js"] })])).toBeUndefined();
    const own = only([{ name: "t", command: "node", args: ["${SKILL_DIR}/server.js", "serve"] }]);
    expect(
      findMatchingServer(own, [spec("n", { command: "node", args: ["/other/server.js", "serve"] })]),
    ).toBeUndefined();
  });

  it("takes the same address", () => {
    const wiki = only([{ name: "w", url: "https://wiki.example.com/${SPACE}/mcp/" }]);
    expect(findMatchingServer(wiki, [spec("n", { url: "https://wiki.example.com/main/mcp" })])?.id).toBe("n");
    expect(findMatchingServer(wiki, [spec("n", { url: "https://wiki.example.org/main/mcp" })])).toBeUndefined();
    const open = only([{ name: "w", url: "https://${HOST}/mcp" }]);
    expect(findMatchingServer(open, [spec("n", { url: "https://any.example.com/mcp" })])).toBeUndefined();
  });
});

describe("[skill-13a] isSameServer", () => {
  it("compares command, args and env after resolving", () => {
    const a = resolveServerEntry(
      only([{ name: "a", command: "node", args: ["${CWD}/s.js"], env: { A: "1", B: "2" } }]),
      {},
      VARIABLES,
    );
    const b = resolveServerEntry(
      only([{ name: "b", command: "node", args: ["/work/s.js"], env: { B: "2", A: "1" } }]),
      {},
      VARIABLES,
    );
    expect(isSameServer(a, b)).toBe(true);
    expect(isSameServer(a, { ...b, env: { A: "1" } })).toBe(false);
    expect(isSameServer(a, { ...b, args: [] })).toBe(false);
    expect(isSameServer(a, { ...b, cwd: "/elsewhere" })).toBe(false);
    expect(isSameServer({ command: "x" }, { command: "x", args: [], env: {}, tags: ["t"] })).toBe(true);
  });

  it("compares addresses and headers", () => {
    const url = "https://x.example/mcp";
    expect(isSameServer({ url }, { url: `${url}/`, transport: "http" })).toBe(true);
    expect(isSameServer({ url }, { url, headers: { A: "1" } })).toBe(false);
    expect(isSameServer({ url }, { command: url })).toBe(false);
  });
});
