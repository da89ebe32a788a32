import { describe, expect, it } from "vitest";
import { type ServerEntryInput, ServerEntrySchema, type ServerSpec } from "../../../src/model/server-spec.ts";
import { resolveServerEntry, sameServer, satisfiedBy } from "../../../src/skills/servers/server-entry.ts";
import { only, VARIABLES } from "./support.ts";

function spec(id: string, entry: ServerEntryInput): ServerSpec {
  return { ...ServerEntrySchema.parse(entry), id, origin: { file: "test", dialect: "toolcrib" }, baseDir: "/" };
}

describe("[skill-13a] satisfiedBy", () => {
  const filesystem = only(["filesystem"]);

  it("takes a server of the same id", () => {
    const own = spec("filesystem", { command: "my-own" });
    expect(satisfiedBy(filesystem, [spec("x", { command: "y" }), own])).toBe(own);
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
    expect(satisfiedBy(filesystem, [own])).toBe(own);
  });

  it("takes the same Python package, whichever way it is written", () => {
    const git = only(["git"]);
    for (const [command, args] of [
      ["uvx", ["mcp-server-git"]],
      ["uvx", ["--from", "mcp_server_git==2.0", "mcp-server-git"]],
      ["uv", ["tool", "run", "mcp-server-git"]],
      ["pipx", ["run", "mcp-server-git"]],
    ] as const) {
      expect(satisfiedBy(git, [spec("g", { command, args: [...args] })])?.id).toBe("g");
    }
    expect(satisfiedBy(git, [spec("g", { command: "npx", args: ["mcp-server-git"] })])).toBeUndefined();
  });

  it("does not take another package, or the name as an argument of another program", () => {
    const others = [
      spec("a", { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem-x"] }),
      spec("b", { command: "npx", args: ["-y", "other", "@modelcontextprotocol/server-filesystem"] }),
      spec("c", { command: "echo", args: ["@modelcontextprotocol/server-filesystem"] }),
      spec("d", { url: "https://x.example/@modelcontextprotocol/server-filesystem" }),
    ];
    expect(satisfiedBy(filesystem, others)).toBeUndefined();
  });

  it("takes the same command with other values for the parameters", () => {
    const needed = only([{ name: "t", command: "node", args: ["/opt/server.js", "--dir", "${DIR}"] }]);
    expect(satisfiedBy(needed, [spec("n", { command: "node", args: ["/opt/server.js", "--dir", "/a"] })])?.id).toBe(
      "n",
    );
    expect(
      satisfiedBy(needed, [spec("n", { command: "node", args: ["/opt/other.js", "--dir", "/a"] })]),
    ).toBeUndefined();
    const open = only([{ name: "t", command: "node", args: ["${SCRIPT}"] }]);
    expect(satisfiedBy(open, [spec("n", { command: "node", args: ["/opt/server.js"] })])).toBeUndefined();
    const own = only([{ name: "t", command: "node", args: ["${SKILL_DIR}/server.js", "serve"] }]);
    expect(satisfiedBy(own, [spec("n", { command: "node", args: ["/other/server.js", "serve"] })])).toBeUndefined();
  });

  it("takes the same address", () => {
    const wiki = only([{ name: "w", url: "https://wiki.example.com/${SPACE}/mcp/" }]);
    expect(satisfiedBy(wiki, [spec("n", { url: "https://wiki.example.com/main/mcp" })])?.id).toBe("n");
    expect(satisfiedBy(wiki, [spec("n", { url: "https://wiki.example.org/main/mcp" })])).toBeUndefined();
    const open = only([{ name: "w", url: "https://${HOST}/mcp" }]);
    expect(satisfiedBy(open, [spec("n", { url: "https://any.example.com/mcp" })])).toBeUndefined();
  });
});

describe("[skill-13a] sameServer", () => {
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
    expect(sameServer(a, b)).toBe(true);
    expect(sameServer(a, { ...b, env: { A: "1" } })).toBe(false);
    expect(sameServer(a, { ...b, args: [] })).toBe(false);
    expect(sameServer(a, { ...b, cwd: "/elsewhere" })).toBe(false);
    expect(sameServer({ command: "x" }, { command: "x", args: [], env: {}, tags: ["t"] })).toBe(true);
  });

  it("compares addresses and headers", () => {
    const url = "https://x.example/mcp";
    expect(sameServer({ url }, { url: `${url}/`, transport: "http" })).toBe(true);
    expect(sameServer({ url }, { url, headers: { A: "1" } })).toBe(false);
    expect(sameServer({ url }, { command: url })).toBe(false);
  });
});
