import { describe, expect, it } from "vitest";
import type { AgentClient, WrittenServer } from "../../../src/clients/agent-client.ts";
import { clientById } from "../../../src/clients/clients.ts";
import { assertNoSecrets } from "../../../src/hub/clients/no-secrets.ts";
import { ToolcribError } from "../../../src/model/errors.ts";

function client(id: string): AgentClient {
  const found = clientById(id);
  if (found === undefined) throw new Error(`no client ${id}`);
  return found;
}

const run = (more: Partial<Extract<WrittenServer, { command: string }>> = {}): WrittenServer => ({
  command: "npx",
  args: ["-y", "server"],
  ...more,
});
const at = (url: string, headers?: Record<string, string>): WrittenServer => ({
  url,
  transport: "http",
  headers,
});

describe("[skill-11c] what is written into a foreign file", () => {
  it.each<[string, WrittenServer, string]>([
    ["a reference in env", run({ env: { X: "secret://keychain/X" } }), "env.X"],
    ["a reference inside of an argument", run({ args: ["--dsn=pg://${secret://env/P}@h"] }), "args[0]"],
    ["a reference as the command", run({ command: "SECRET://env/X" }), "command"],
    ["a reference in a header", at("https://x.example/mcp", { Any: "secret://env/X" }), "headers.Any"],
    ["a plain token in env", run({ env: { GITHUB_TOKEN: "hunter2hunter2" } }), "env.GITHUB_TOKEN"],
    [
      "a plain header",
      at("https://x.example/mcp", { Authorization: "Bearer hunter2hunter2" }),
      "headers.Authorization",
    ],
    ["a flag with its value", run({ args: ["--api-key", "hunter2hunter2"] }), "args[1]"],
    ["a flag with =", run({ args: ["--api-key=hunter2hunter2"] }), "args[0]"],
    ["a header as an argument", run({ args: ["--header", "Authorization: hunter2hunter2"] }), "args[1]"],
    ["a token without a name", run({ args: ["ghp_hunter2hunter2hunter2hunter2"] }), "args[0]"],
    ["a password in a connection string", run({ args: ["postgres://me:hunter2hunter2@db/x"] }), "args[0]"],
    ["a password in a variable", run({ env: { DATABASE: "pg://me:hunter2hunter2@db/x" } }), "env.DATABASE"],
    ["a password in the address", at("https://me:hunter2hunter2@x.example/mcp"), "url"],
    ["a key in the query", at("https://x.example/mcp?api_key=hunter2hunter2"), "url?api_key"],
  ])("is never %s", (_what, server, place) => {
    let error: unknown;
    try {
      assertNoSecrets(client("cursor"), "x", server);
    } catch (thrown) {
      error = thrown;
    }
    if (!(error instanceof ToolcribError)) throw new Error("it was let through");
    expect(error.code).toBe("invalid_arguments");
    expect(error.message).toContain(`x: ${place} `);
    expect(`${error.message} ${error.hint}`).not.toContain("hunter2");
    expect(error.hint).toContain("url" in server ? "itself" : "toolcrib mcp --server x");
  });

  it.each<[string, WrittenServer]>([
    ["cursor", run({ env: { GITHUB_TOKEN: "${env:GITHUB_TOKEN}" } })],
    ["opencode", run({ env: { GITHUB_TOKEN: "{env:GITHUB_TOKEN}" } })],
    ["continue", at("https://x.example/mcp", { Authorization: "Bearer ${{ secrets.TOKEN }}" })],
    ["cursor", run({ env: { TOKEN_FILE: "/run/token", DEBUG: "1", API_KEY: "" } })],
    ["cursor", run({ command: "/home/me/sk-learn-experiments-2024/node", args: ["/x/sk-learn-experiments-2024.js"] })],
    ["cursor", run({ args: ["postgres://me:${env:PW}@db/x", "postgres://db:5432/x", "C:\\x"] })],
    ["cursor", at("http://127.0.0.1:4700/mcp?servers=files")],
  ])("may be what %s can resolve, and what is no secret: %j", (id, server) => {
    expect(() => assertNoSecrets(client(id), "x", server)).not.toThrow();
  });
});
