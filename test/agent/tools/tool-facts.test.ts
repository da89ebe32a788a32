import { describe, expect, it } from "vitest";
import { toolCallLocations, toolCallTitle, toolKind } from "../../../src/agent/tools/tool-facts.ts";
import type { ToolDefinition } from "../../../src/model/protocol.ts";

describe("the kind of a tool", () => {
  it.each([
    ["read_text_file", undefined, "read"],
    ["listDirectory", undefined, "read"],
    ["search-files", undefined, "search"],
    ["create_entities", undefined, "edit"],
    ["delete_entity", undefined, "delete"],
    ["move_file", undefined, "move"],
    ["run_command", undefined, "execute"],
    ["fetch", undefined, "fetch"],
    ["fetch", { openWorldHint: false }, "read"],
    ["update_and_run", { readOnlyHint: true }, "read"],
    ["start_search", { readOnlyHint: true }, "search"],
    ["toolcrib_plan", { readOnlyHint: true }, "think"],
    ["frobnicate", undefined, "other"],
    ["frobnicate", { readOnlyHint: true }, "read"],
  ] as const)("%s %j is %s", (name, annotations, kind) => {
    expect(toolKind(name, annotations)).toBe(kind);
  });
});

const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  inputSchema: { type: "object" },
  ...more,
});

describe("the title of a call", () => {
  const titled = (definition: ToolDefinition, input: object) =>
    toolCallTitle({ definition, server: "files", workspaceDir: "/home/me/project" }, { ...input });

  it("says what is used on what", () => {
    expect(titled(tool("read_file"), { path: "notes.txt", head: 3 })).toBe("Read file notes.txt (files)");
    expect(titled(tool("readFile", { title: "Read" }), { path: "/home/me/project/a/b.ts" })).toBe(
      "Read a/b.ts (files)",
    );
    expect(titled(tool("read"), { path: "/home/me/projects" })).toBe("Read /home/me/projects (files)");
    expect(titled(tool("move_file"), { source: "a", destination: "b" })).toBe("Move file a → b (files)");
    const hard = tool("think", { annotations: { title: "Think hard" } });
    expect(titled(hard, { thought: "why?" })).toBe("Think hard why? (files)");
    expect(toolCallTitle({ definition: tool("sum"), server: undefined, workspaceDir: undefined }, { a: 1, b: 2 })).toBe(
      "Sum",
    );
  });

  it("is one line of at most 100 characters that a terminal can show", () => {
    const long = titled(tool("run", { title: `Run\u001b[31m\n${"x".repeat(500)}` }), { command: "y\n".repeat(300) });
    expect(long.length).toBeLessThanOrEqual(100);
    expect(long).toMatch(/^Run \[31m x+… y y [^\n\p{Cc}]*… \(files\)$/u);
  });
});

describe("the locations of a call", () => {
  it("are absolute paths, with the line if it is given", () => {
    expect(toolCallLocations({ path: "src/a.ts", line: 3 }, "/w")).toEqual([{ path: "/w/src/a.ts", line: 3 }]);
    expect(toolCallLocations({ source: "/a", destination: "/b/../c" }, undefined)).toEqual([
      { path: "/a" },
      { path: "/c" },
    ]);
    expect(toolCallLocations({ uri: "file:///tmp/a%20b" }, undefined)).toEqual([{ path: "/tmp/a b" }]);
    expect(toolCallLocations({ paths: ["a", "b", "a"] }, "/w")).toEqual([{ path: "/w/a" }, { path: "/w/b" }]);
  });

  it("leave out what is no path, or is relative to a folder that nobody knows", () => {
    expect(toolCallLocations({ path: "a.ts" }, undefined)).toEqual([]);
    expect(
      toolCallLocations({ path: "https://example.com/a", uri: "skill://x/SKILL.md", file: 3, filename: "" }, "/w"),
    ).toEqual([]);
    expect(toolCallLocations({ path: "a\0b", line: 0, uri: "file://elsewhere/a" }, "/w")).toEqual([]);
  });
});
