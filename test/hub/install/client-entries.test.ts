import { describe, expect, it } from "vitest";
import { clientById } from "../../../src/clients/clients.ts";
import type { AgentClient } from "../../../src/clients/agent-client.ts";
import { planClientWrites } from "../../../src/hub/install/apply-install.ts";
import { ServerEntrySchema } from "../../../src/model/server-spec.ts";

const env = { HOME: "/nowhere/home", PATH: "" };
const place = { platform: "linux", home: "/nowhere/home", env, projectDir: "/nowhere/work" } as const;

function written(client: string, entry: object): unknown {
  const found = clientById(client);
  const clients: AgentClient[] = found === undefined ? [] : [found];
  const spec = {
    ...ServerEntrySchema.parse(entry),
    id: "it",
    origin: { file: "/c", dialect: "toolcrib" },
    baseDir: "/",
  };
  const configFile = "/nowhere/home/.toolcrib/toolcrib.json";
  const [first] = planClientWrites({ clients, place, scope: "user", servers: [spec], configFile });
  return first?.servers["it"];
}

const throughToolcrib = { args: expect.arrayContaining(["mcp", "--server", "it"]) };

describe("[skill-11c] servers in the files of clients", () => {
  it("stand there as they are if nothing in them is secret", () => {
    expect(written("cursor", { command: "x", args: ["a"], env: { MODE: "b" } })).toEqual({
      command: "x",
      args: ["a"],
      env: { MODE: "b" },
    });
    expect(written("cursor", { url: "https://example.com/mcp" })).toEqual({
      url: "https://example.com/mcp",
      transport: "http",
    });
  });

  it.each([
    ["a reference to a secret", { command: "x", env: { A: "secret://env/A" } }],
    ["a variable", { command: "x", args: ["${HOME}"] }],
    ["an escaped brace, which only Toolcrib reads so", { command: "x", args: ["$${A}"] }],
    ["a credential in plain text", { command: "x", env: { API_TOKEN: "abcdef123456" } }],
    ["a header with a secret", { url: "https://example.com", headers: { Authorization: "Bearer secret://env/T" } }],
    ["a login", { url: "https://example.com", auth: { type: "oauth" } }],
    ["a working directory", { command: "x", cwd: "sub" }],
  ])("go through Toolcrib for %s", (_what, entry) => {
    expect(written("cursor", entry)).toMatchObject(throughToolcrib);
  });

  it("go through Toolcrib where the client has no word for it", () => {
    expect(written("claude-desktop", { url: "https://example.com/mcp" })).toMatchObject(throughToolcrib);
  });

  it("are refused where the client has no file of that scope", () => {
    const client = clientById("claude-desktop");
    const servers = [
      {
        ...ServerEntrySchema.parse({ command: "x" }),
        id: "it",
        origin: { file: "/c", dialect: "toolcrib" },
        baseDir: "/",
      },
    ];
    const clients = client === undefined ? [] : [client];
    expect(() => planClientWrites({ clients, place, scope: "project", servers, configFile: "/c" })).toThrow(
      /no project file/,
    );
  });
});
