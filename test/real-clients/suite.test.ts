/** The suite itself, with a double in the place of a client: `npm run test:clients` runs it with real ones. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ModelRequest } from "../../src/testing/model/model-request.ts";
import { type InstalledClient, script, tryClient } from "./suite.ts";

vi.setConfig({ testTimeout: 240_000 });

const DOUBLE = join(import.meta.dirname, "..", "fixtures", "double-client.mjs");

function double(mode = ""): InstalledClient {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-double-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const program = join(dir, "client");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${DOUBLE}" "$@"\n`, { mode: 0o755 });
  return {
    ...{ id: "cursor", package: "double", program, version: "1.0.0", showsSkills: false },
    setUp: ({ home }, own) => {
      mkdirSync(join(home, ".cursor"));
      writeFileSync(join(home, ".cursor", "mcp.json"), JSON.stringify({ mcpServers: { own } }));
    },
    env: ({ model }) => ({ MODEL_URL: model }),
    args: (prompt) => [prompt, mode],
  };
}

describe.skipIf(process.platform === "win32")("[whole-38a] the suite with real clients", () => {
  it("passes a client that works, step by step", async () => {
    const { steps, version } = await tryClient(double());
    expect(steps.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(steps.map(({ step }) => step)).toEqual([
      ...["detect", "import", "connect over stdio", "list and call over stdio", "disconnect", "connect over HTTP"],
      ...["list and call over HTTP", "disconnect again", "skills", "nothing is left"],
    ]);
    expect(version).toBe("1.0.0");
  });

  it("fails one that offers the model no tools", async () => {
    const { steps } = await tryClient(double("deaf"));
    const failed = steps.filter(({ problem }) => problem?.includes("offered no echo") === true);
    expect(failed.map(({ step }) => step)).toEqual([
      "list and call over stdio",
      "list and call over stdio, at the second run",
      "list and call over HTTP",
    ]);
  });
});

describe("[whole-38a] its model", () => {
  const request = (tools: string[], body: object, results: string[] = [], calls: object[] = []): ModelRequest => ({
    ...{ protocol: "anthropic", model: "m", stream: false, system: "", maxTokens: undefined, headers: {} },
    tools: tools.map((name) => ({ name, description: "", inputSchema: {} })),
    messages: [
      // Only what the script looks at.
      { role: "assistant", text: "", thought: "", images: [], calls: calls as never[], results: [] },
      {
        ...{ role: "tool", text: "", thought: "", images: [], calls: [] },
        results: results.map((text) => ({ id: "1", text, images: [], isError: false })),
      },
    ],
    body: { messages: [body] },
  });
  const ECHO = "mcp__toolcrib__own__echo";

  it("calls a tool that is offered, and one that has to be looked up first", () => {
    expect(script(request([ECHO], {}))).toEqual({ calls: [{ name: ECHO, arguments: { message: "marmalade" } }] });
    const named = { content: `tools:\n${ECHO}\nmcp__x__y` };
    expect(script(request(["ToolSearch"], named))).toEqual({
      calls: [{ name: "ToolSearch", arguments: { query: `select:${ECHO}` } }],
    });
    expect(script(request(["search_tool", "use_tool"], { content: "found toolcrib__own-echo" }))).toEqual({
      calls: [
        { name: "use_tool", arguments: { tool_name: "toolcrib__own-echo", tool_input: { message: "marmalade" } } },
      ],
    });
  });

  it("waits for a server that is still connecting, and gives up in the end", () => {
    const waiting = { content: "The following MCP servers are still connecting (mcp__<server>__*):\nown\ntoolcrib\n" };
    expect(script(request(["ToolSearch"], waiting))).toMatchObject({ calls: [{ name: "ToolSearch" }] });
    expect(script(request(["ToolSearch"], waiting, ["", "", "", ""]))).not.toHaveProperty("calls");
    expect(script(request(["ToolSearch"], { content: "in /tmp/toolcrib-client-x" }))).not.toHaveProperty("calls");
  });
});
