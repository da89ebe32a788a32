import { describe, expect, it } from "vitest";
import { CLIENT_IDS, type ClientId, type WrittenServer } from "../../src/clients/agent-client.ts";
import { CLIENTS } from "../../src/clients/clients.ts";
import { ConfigDocument } from "../../src/config/config-document.ts";
import { EntryReader } from "../../src/config/entry-reader.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { client, fileOf, LINUX } from "./fixture.ts";
import { documentOf, SERVERS } from "./written.ts";

const BARE = { command: "npx", args: ["-y", "a"] };
const ENV = { LEVEL: "debug" };
const HEADERS = { "X-Team": "blue" };
const URL_ENTRY = { url: "https://x.test/mcp", headers: HEADERS };

interface Forms {
  readonly command: JsonObject;
  readonly http?: JsonObject;
  readonly sse?: JsonObject;
}

/** What is written for a command with env, and for an address with headers. */
const FORMS: Readonly<Record<ClientId, Forms>> = {
  "claude-desktop": { command: { ...BARE, env: ENV } },
  "claude-code": {
    command: { type: "stdio", ...BARE, env: ENV },
    http: { type: "http", ...URL_ENTRY },
    sse: { type: "sse", ...URL_ENTRY },
  },
  cursor: { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: URL_ENTRY },
  vscode: {
    command: { type: "stdio", ...BARE, env: ENV },
    http: { type: "http", ...URL_ENTRY },
    sse: { type: "sse", ...URL_ENTRY },
  },
  windsurf: {
    command: { ...BARE, env: ENV },
    http: { serverUrl: "https://x.test/mcp", headers: HEADERS },
    sse: { serverUrl: "https://x.test/mcp", headers: HEADERS },
  },
  cline: {
    command: { ...BARE, env: ENV, disabled: false },
    http: { type: "streamableHttp", ...URL_ENTRY, disabled: false },
    sse: { type: "sse", ...URL_ENTRY, disabled: false },
  },
  zed: { command: { ...BARE, env: ENV }, http: URL_ENTRY },
  codex: { command: { ...BARE, env: ENV }, http: { url: "https://x.test/mcp", http_headers: HEADERS } },
  "gemini-cli": {
    command: { ...BARE, env: ENV },
    http: { httpUrl: "https://x.test/mcp", headers: HEADERS },
    sse: URL_ENTRY,
  },
  opencode: {
    command: { type: "local", command: ["npx", "-y", "a"], environment: ENV, enabled: true },
    http: { type: "remote", ...URL_ENTRY, enabled: true },
    sse: { type: "remote", ...URL_ENTRY, enabled: true },
  },
  kiro: {
    command: { ...BARE, env: ENV, disabled: false },
    http: { ...URL_ENTRY, disabled: false },
    sse: { ...URL_ENTRY, disabled: false },
  },
  junie: { command: { ...BARE, env: ENV }, http: URL_ENTRY },
  goose: {
    command: {
      name: "x",
      description: "",
      enabled: true,
      timeout: 300,
      type: "stdio",
      cmd: "npx",
      args: ["-y", "a"],
      envs: ENV,
    },
    http: {
      name: "x",
      description: "",
      enabled: true,
      timeout: 300,
      type: "streamable_http",
      uri: "https://x.test/mcp",
      headers: HEADERS,
    },
  },
  "lm-studio": { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: URL_ENTRY },
  amp: { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: URL_ENTRY },
  continue: {
    command: { name: "x", type: "stdio", ...BARE, env: ENV },
    http: { name: "x", type: "streamable-http", url: "https://x.test/mcp", requestOptions: { headers: HEADERS } },
    sse: { name: "x", type: "sse", url: "https://x.test/mcp", requestOptions: { headers: HEADERS } },
  },
  openclaw: {
    command: { ...BARE, env: ENV },
    http: { url: "https://x.test/mcp", transport: "streamable-http", headers: HEADERS },
    sse: { url: "https://x.test/mcp", transport: "sse", headers: HEADERS },
  },
  "copilot-cli": {
    command: { type: "stdio", ...BARE, env: ENV, tools: ["*"] },
    http: { type: "http", ...URL_ENTRY, tools: ["*"] },
    sse: { type: "sse", ...URL_ENTRY, tools: ["*"] },
  },
  "qwen-code": {
    command: { ...BARE, env: ENV },
    http: { httpUrl: "https://x.test/mcp", headers: HEADERS },
    sse: URL_ENTRY,
  },
  kilo: {
    command: { type: "local", command: ["npx", "-y", "a"], environment: ENV, enabled: true },
    http: { type: "remote", ...URL_ENTRY, enabled: true },
    sse: { type: "remote", ...URL_ENTRY, enabled: true },
  },
  droid: {
    command: { type: "stdio", ...BARE, env: ENV, disabled: false },
    http: { type: "http", ...URL_ENTRY, disabled: false },
    sse: { type: "sse", ...URL_ENTRY, disabled: false },
  },
  kimi: { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: { transport: "sse", ...URL_ENTRY } },
  pi: { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: URL_ENTRY },
  grok: { command: { ...BARE, env: ENV }, http: URL_ENTRY, sse: { type: "sse", ...URL_ENTRY } },
};

describe("what is written for a client", () => {
  it.each(CLIENT_IDS)("[skill-14a] %s: the documented form of a command and of an address", (id) => {
    const { write } = client(id);
    const address = { url: "https://x.test/mcp", headers: HEADERS };
    expect(write("x", { ...BARE, env: ENV })).toEqual(FORMS[id].command);
    expect(write("x", { ...address, transport: "http" })).toEqual(FORMS[id].http);
    expect(write("x", { ...address, transport: "sse" })).toEqual(FORMS[id].sse);
  });

  it("[skill-14a] a working directory is written where the client has a word for it, and refused elsewhere", () => {
    const able = [
      "vscode",
      "cline",
      "codex",
      "gemini-cli",
      "continue",
      "openclaw",
      "copilot-cli",
      "qwen-code",
      "kimi",
      "pi",
    ];
    for (const { id, write } of CLIENTS) {
      const entry = write("x", { ...BARE, cwd: "/srv" });
      expect([id, entry?.["cwd"]]).toEqual([id, able.includes(id) ? "/srv" : undefined]);
      expect(entry === undefined).toBe(!able.includes(id));
    }
  });

  it("[skill-14a] empty env and headers are left away, except where the client writes them itself", () => {
    for (const { id, write } of CLIENTS) {
      const command = write("x", { ...BARE, env: {} });
      const address = write("x", { url: "https://x.test/mcp", transport: "http", headers: {} });
      const rest = JSON.stringify([command, address]);
      expect([id, /"(?:env|envs|environment|headers|http_headers|requestOptions)":/.test(rest)]).toEqual([
        id,
        ["zed", "goose"].includes(id),
      ]);
    }
  });

  it.each(CLIENT_IDS)("[skill-14a] %s: what is written reads as the same server", (id) => {
    const of = client(id);
    for (const [name, server] of Object.entries(SERVERS)) {
      const entry = of.write(name, server);
      if (entry === undefined) continue;
      const file = fileOf(of);
      const { servers, problems } = of.read(documentOf(of.pathOf(name, file), entry), file);
      expect(problems).toEqual([]);
      expect(Object.keys(servers)).toEqual([name]);
      const reader = new EntryReader(ConfigDocument.ofValue(file.path, {}), "claude", { userHome: LINUX.home });
      const [spec] = reader.readMap([], servers);
      expect(reader.problems).toEqual([]);
      expect(essence(spec)).toEqual(essence(server));
    }
  });

  it("[skill-14a] written values are copies: changing them leaves the given server alone", () => {
    const server: WrittenServer = { command: "a", args: ["b"], env: { C: "d" } };
    for (const { write } of CLIENTS) {
      for (const value of Object.values(write("x", server) ?? {})) if (Array.isArray(value)) value.push("more");
    }
    expect(server.args).toEqual(["b"]);
  });

  it("[skill-14a] the reference to a variable in each client's words", () => {
    const words = Object.fromEntries(CLIENTS.map(({ id, envReference }) => [id, envReference?.("NAME")]));
    expect(words).toEqual({
      "claude-desktop": undefined,
      "claude-code": "${NAME}",
      cursor: "${env:NAME}",
      vscode: "${env:NAME}",
      windsurf: "${env:NAME}",
      cline: undefined,
      zed: undefined,
      codex: undefined,
      "gemini-cli": "${NAME}",
      opencode: "{env:NAME}",
      kiro: "${NAME}",
      junie: undefined,
      goose: undefined,
      "lm-studio": undefined,
      amp: "${NAME}",
      continue: "${{ secrets.NAME }}",
      openclaw: "${NAME}",
      "copilot-cli": "${NAME}",
      "qwen-code": "${NAME}",
      kilo: "{env:NAME}",
      droid: "${NAME}",
      kimi: undefined,
      pi: "${NAME}",
      grok: "${NAME}",
    });
  });

  it("[skill-14a] a written reference comes back as ours", () => {
    for (const of of CLIENTS) {
      const reference = of.envReference?.("API_KEY");
      if (reference === undefined) continue;
      const entry = of.write("x", { command: "a", args: [], env: { KEY: `pre ${reference} post` } });
      const file = fileOf(of);
      const { servers } = of.read(documentOf(of.pathOf("x", file), entry), file);
      const env = servers["x"]?.["env"] ?? servers["x"]?.["environment"];
      expect([of.id, env]).toEqual([of.id, { KEY: "pre ${API_KEY} post" }]);
    }
  });

  it("[skill-14a] each says what a person must do then", () => {
    for (const { afterChange } of CLIENTS) expect(afterChange).toMatch(/^[A-Z].*\.$/);
  });
});

/** What makes a server the one it is, in the words of both forms. */
function essence(server: unknown): unknown {
  const { command, args, env = {}, cwd, url, headers = {} } = isJsonObject(server) ? server : {};
  return command === undefined ? { url, headers } : { command, args, env, cwd };
}
