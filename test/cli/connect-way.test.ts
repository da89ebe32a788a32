import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { describe, expect, it } from "vitest";
import type { ClientStatus } from "../../src/cli/commands/connect.ts";
import { editorFor } from "../../src/files/edit/editors.ts";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { eventually } from "../support/eventually.ts";
import { giveFile, TEXTS, textOf } from "./client-files.ts";
import { misbehaving, type RunOptions, type Workspace, workspace } from "./run-cli.ts";

interface Connected {
  readonly by: string;
  readonly why: string;
  readonly file: string;
}

const SERVERS = { one: misbehaving("ok") };
const TOKEN = "tok-5f0e2c6b9d1f4a7c";
const IN_VARIABLE = { tokens: [{ token: "secret://env/CRIB_TOKEN", role: "reader" }] };
const ROLES = { roles: { reader: { servers: ["one"] } } };

/** `serve` at a port that the config names once it is known, so that no other test can take it first. */
async function serve(place: Workspace, http: Record<string, unknown> = {}, options: RunOptions = {}): Promise<string> {
  const rest = { ...ROLES, http };
  place.configure(SERVERS, rest);
  place.start(["serve", "--port", "0", "--json"], { ...options, open: true });
  const { url } = await eventually(() => readHubRecords(place.home)[0]);
  place.configure(SERVERS, { ...rest, http: { ...http, port: Number(new URL(url).port) } });
  return url;
}

async function connect(place: Workspace, ...args: string[]): Promise<Connected> {
  const done = await place.runHere(["connect", ...args, "--json"]);
  expect([done.code, done.stderr]).toEqual([0, ""]);
  return done.json<Connected>();
}

interface GrokFile {
  readonly mcp_servers: { readonly toolcrib: { command: string; args: string[]; env?: Record<string, string> } };
}

describe("[whole-30c] an entry for Grok, which drops tools with a second `__`", () => {
  /** The client may call itself anything. */
  const namesOver = async (transport: Transport): Promise<string[]> => {
    const client = new Client({ name: "xai-shell", version: "9" });
    await client.connect(transport);
    const names = await eventually(async () => {
      const { tools } = await client.listTools();
      return tools.length > 0 && tools.map(({ name }) => name);
    });
    const called = await client.callTool({ name: "one-echo", arguments: { text: "hi" } });
    expect(JSON.stringify(called)).toContain("hi");
    await client.close();
    return names;
  };

  it("has names that it can take over stdio", async () => {
    const place = workspace();
    place.configure(SERVERS);
    const path = join(place.home, ".grok", "config.toml");
    mkdirSync(dirname(path), { recursive: true });
    expect(await connect(place, "grok")).toMatchObject({ by: "bridge", file: path });
    const entry = (editorFor("toml").parse(textOf(path)) as GrokFile).mcp_servers.toolcrib;
    const { command, args, env } = entry;
    expect(args.slice(-4, -2)).toEqual(["--client", "grok"]);
    const names = await namesOver(new StdioClientTransport({ command, args, env, cwd: "/" }));
    expect(names).toContain("one-echo");
    expect(names.filter((name) => name.includes("__"))).toEqual([]);
    expect((await place.runHere(["disconnect", "grok"])).code).toBe(0);
    expect(existsSync(path) ? textOf(path).trim() : "").toBe("");
  });

  it("has names that it can take over HTTP", async () => {
    const place = workspace();
    const path = join(place.home, ".grok", "config.toml");
    mkdirSync(dirname(path), { recursive: true });
    const url = await serve(place);
    await connect(place, "grok");
    expect(textOf(path)).toContain(`${url}/mcp?client=grok`);
    const names = await namesOver(new StreamableHTTPClientTransport(new URL(`${url}/mcp?client=grok`)));
    expect(names.filter((name) => name.includes("__"))).toEqual([]);
  });
});

describe("connect with a hub that runs", () => {
  it("[counter-05a] [counter-05d] writes the URL of serve, by which the client calls", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    giveFile(place, "claude-desktop");
    const url = await serve(place);

    const done = await place.runHere(["connect", "cursor"]);
    expect([done.code, done.stderr]).toEqual([0, ""]);
    expect(done.stdout).toContain(`The client connects to ${url}/mcp, because toolcrib serve runs there`);
    expect(textOf(path)).toContain(`"url": "${url}/mcp"`);
    expect(await connect(place, "claude-desktop")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("Claude Desktop cannot reach a server by URL"),
    });

    const before = (await place.runHere(["clients", "--json"])).json<ClientStatus[]>();
    expect(before.find(({ id }) => id === "cursor")).toMatchObject({
      connected: true,
      via: [{ server: "toolcrib", by: "url", url: `${url}/mcp` }],
      lastCall: null,
    });
    expect(before.find(({ id }) => id === "claude-desktop")?.via).toEqual([{ server: "toolcrib", by: "bridge" }]);

    const client = new Client({ name: "cursor-vscode", version: "1.4" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const answer = await eventually(async () => {
      const got = await client.callTool({ name: "one__echo", arguments: { text: "hi" } });
      return got.isError === true ? undefined : got;
    });
    expect(JSON.stringify(answer)).toContain("hi");
    await client.close();
    const called = await eventually(async () => {
      const seen = (await place.runHere(["clients", "--json"])).json<ClientStatus[]>();
      return seen.find(({ id, lastCall }) => id === "cursor" && lastCall !== null);
    });
    expect(Math.abs(Date.now() - Date.parse(called.lastCall ?? ""))).toBeLessThan(120_000);

    expect((await place.runHere(["disconnect", "cursor"])).code).toBe(0);
    expect(textOf(path)).toBe(TEXTS.cursor);
    expect(existsSync(`${path}.toolcrib-backup`)).toBe(false);
  });

  it("[counter-05a] writes one server and a role into the URL", async () => {
    const place = workspace();
    const path = giveFile(place, "codex");
    const url = await serve(place);
    await connect(place, "codex", "--server", "one", "--role", "reader");
    expect(textOf(path)).toContain(`url = "${url}/mcp/reader?servers=one"`);
    const { via } = (await place.runHere(["clients", "--json"]))
      .json<ClientStatus[]>()
      .find(({ id }) => id === "codex") as ClientStatus;
    expect(via).toEqual([{ server: "one", by: "url", url: `${url}/mcp/reader` }]);
    expect((await place.runHere(["disconnect", "codex"])).code).toBe(0);
    expect(textOf(path)).toBe(TEXTS.codex);
  });

  it("[counter-05b] writes the bridge without serve, or where the URL may change", async () => {
    const place = workspace();
    place.configure(SERVERS);
    giveFile(place, "cursor");
    expect(await connect(place, "cursor")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("no toolcrib serve"),
    });

    expect((await place.run(["hub", "start"])).code).toBe(0);
    expect(await connect(place, "cursor")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("was started by a client"),
    });
    expect((await place.run(["hub", "stop"])).code).toBe(0);

    const url = await serve(place);
    expect(await connect(place, "cursor")).toMatchObject({ by: "url" });
    expect(await connect(place, "cursor", "--stdio")).toMatchObject({ by: "bridge", why: "as --stdio says" });
    place.configure(SERVERS, { http: { port: 1 } });
    expect(await connect(place, "cursor")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("not at its configured port 1"),
    });
    expect(await connect(place, "cursor", "--url", `${url}/mcp`)).toMatchObject({ by: "url", why: "as --url says" });
    expect((await place.runHere(["connect", "cursor", "--url", `${url}/mcp`, "--stdio"])).code).toBe(2);
  });

  it("[counter-05c] names the variable of the token in the client's own form, or writes the bridge", async () => {
    const place = workspace();
    await serve(place, { auth: IN_VARIABLE }, { env: { CRIB_TOKEN: TOKEN } });
    for (const [client, text] of [
      ["cursor", '"Authorization": "Bearer ${env:CRIB_TOKEN}"'],
      ["codex", 'bearer_token_env_var = "CRIB_TOKEN"'],
      ["continue", 'Authorization: "Bearer ${{ secrets.CRIB_TOKEN }}"'],
    ] as const) {
      const path = giveFile(place, client);
      expect(await connect(place, client)).toMatchObject({ by: "url", why: expect.stringContaining("CRIB_TOKEN") });
      expect(textOf(path)).toContain(text);
      // It is bound to its role.
      expect(textOf(path)).not.toContain("/mcp/reader");
      expect((await place.runHere(["disconnect", client])).code).toBe(0);
      expect(textOf(path)).toBe(TEXTS[client]);
    }
    giveFile(place, "zed");
    expect(await connect(place, "zed")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("cannot read variables"),
    });
  });

  it("[counter-05c] keeps a token that is not in a variable out of the file", async () => {
    const place = workspace();
    await serve(place, { auth: { tokens: [{ token: TOKEN }] } });
    const path = giveFile(place, "cursor");
    expect(await connect(place, "cursor", "--role", "reader")).toMatchObject({
      by: "bridge",
      why: expect.stringContaining("needs no token"),
    });
    expect(textOf(path)).toContain('"reader"');
    expect(textOf(path)).not.toContain(TOKEN);
  });
});

describe("[whole-36a] connect --url to a hub with tokens", () => {
  it("takes the token on stdin or by its variable, and writes nothing without one", async () => {
    const place = workspace();
    const other = workspace();
    const url = `${await serve(other, { auth: { tokens: [{ token: TOKEN }] } })}/mcp`;
    const path = giveFile(place, "cursor");
    const header = `"Authorization": "Bearer ${TOKEN}"`;

    const refused = await place.runHere(["connect", "cursor", "--url", url]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("requires a token")]);
    expect(textOf(path)).toBe(TEXTS.cursor);

    const given = await place.run(["connect", "cursor", "--url", url, "--token-stdin"], { input: `${TOKEN}\n` });
    expect([given.code, given.stderr]).toEqual([0, expect.stringContaining("other users")]);
    expect(given.stdout + given.stderr).not.toContain(TOKEN);
    expect(textOf(path)).toContain(header);
    const shown = await place.runHere(["clients"]);
    expect(shown.stdout).not.toContain(TOKEN);
    expect((await place.runHere(["disconnect", "cursor"])).code).toBe(0);
    expect(textOf(path)).toBe(TEXTS.cursor);

    const named = await place.runHere(["connect", "cursor", "--url", url, "--token-env", "MY_TOKEN"]);
    expect(named.code).toBe(0);
    expect(textOf(path)).toContain('"Bearer ${env:MY_TOKEN}"');
    expect((await place.runHere(["disconnect", "cursor"])).code).toBe(0);

    // A new file, for the user alone.
    const amp = join(place.home, ".config/amp/settings.json");
    const fresh = await place.run(["connect", "amp", "--url", url, "--token-stdin"], { input: TOKEN });
    expect([fresh.code, fresh.stderr]).toEqual([0, expect.not.stringContaining("other users")]);
    expect(statSync(amp).mode & 0o777).toBe(0o600);

    const shared = await place.run(["connect", "cursor", "--scope", "project", "--url", url, "--token-stdin"], {
      input: TOKEN,
    });
    expect([shared.code, shared.stderr]).toEqual([2, expect.stringContaining("a file of the project")]);
    expect((await place.runHere(["connect", "zed", "--url", url, "--token-env", "X"])).stderr).toContain(
      "cannot read a token",
    );
    expect((await place.runHere(["connect", "cursor", "--url", url, "--token-env", "a b"])).code).toBe(2);
    expect((await place.runHere(["connect", "cursor", "--token-env", "X"])).code).toBe(2);
  });

  it("says so where the hub does not answer, and how a token is given", async () => {
    const place = workspace();
    const path = giveFile(place, "cursor");
    const done = await place.runHere(["connect", "cursor", "--url", "http://127.0.0.1:9/mcp"]);
    expect([done.code, done.stderr]).toEqual([0, expect.stringMatching(/does not answer now.*--token-env NAME/)]);
    expect(textOf(path)).toContain("127.0.0.1:9");
    const typed = await place.runHere(["connect", "cursor", "--url", "http://127.0.0.1:9/mcp", "--token", TOKEN]);
    expect([typed.code, typed.stderr]).toEqual([2, expect.stringContaining("--token-stdin")]);
    expect(typed.stderr).not.toContain(TOKEN);
  });

  it("knows the variable of a hub of one's own, and of the environment", async () => {
    const place = workspace();
    const url = `${await serve(place, { auth: IN_VARIABLE }, { env: { CRIB_TOKEN: TOKEN } })}/mcp`;
    const path = giveFile(place, "vscode");
    expect(await connect(place, "vscode", "--url", url)).toMatchObject({ by: "url" });
    expect(textOf(path)).toContain("Bearer ${env:CRIB_TOKEN}");
    const elsewhere = workspace();
    const file = giveFile(elsewhere, "vscode");
    const done = await elsewhere.run(["connect", "vscode", "--url", url], { env: { TOOLCRIB_TOKEN: TOKEN } });
    expect([done.code, done.stderr]).toEqual([0, ""]);
    expect(textOf(file)).toContain("Bearer ${env:TOOLCRIB_TOKEN}");
  });

  it("[whole-36b] an entry to which the user added a token is still ours; one with another URL is not", async () => {
    const place = workspace();
    const path = giveFile(place, "vscode");
    const edit = async (change: (text: string) => string): Promise<string> => {
      // No hub answers there, which it says.
      await connect(place, "vscode", "--quiet", "--url", "http://127.0.0.1:1/mcp");
      writeFileSync(path, change(textOf(path)));
      return (await place.runHere(["disconnect", "vscode"])).stdout;
    };
    const header = `"url": "http://127.0.0.1:1/mcp",\n"headers": { "Authorization": "Bearer ${TOKEN}" }`;
    expect(await edit((text) => text.replace('"url": "http://127.0.0.1:1/mcp"', header))).toContain("Removed toolcrib");
    expect(textOf(path)).not.toContain("toolcrib");
    expect(textOf(path)).not.toContain(TOKEN);
    expect(await edit((text) => text.replace("127.0.0.1:1/", "127.0.0.1:2/"))).not.toContain("Removed");
    expect(textOf(path)).toContain("127.0.0.1:2/mcp");
  });
});

describe("[whole-29a] clients that start servers with a part of their environment", () => {
  const servers = {
    github: { ...misbehaving("ok"), env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" } },
    linear: { url: "https://linear.example/mcp", auth: { type: "bearer", token: "secret://env/LINEAR_TOKEN" } },
    region: { ...misbehaving("ok"), env: { REGION: "${REGION:-eu}" } },
  };

  it("get the variables that the config needs, each in its own way", async () => {
    const place = workspace();
    place.configure(servers);
    const codex = giveFile(place, "codex");
    const openclaw = giveFile(place, "openclaw");
    const cursor = giveFile(place, "cursor");
    const env = { GITHUB_TOKEN: TOKEN };
    for (const client of ["codex", "openclaw", "cursor"]) {
      const { code, stderr } = await place.run(["connect", client], { env });
      expect(code).toBe(0);
      if (client === "openclaw") expect(stderr).toMatch(/not in the entry: LINEAR_TOKEN\./);
      else expect(stderr).not.toContain("LINEAR_TOKEN");
    }
    expect(textOf(codex)).toContain('env_vars = ["GITHUB_TOKEN", "LINEAR_TOKEN"]');
    // Codex would begin without a hub that is still starting.
    expect(textOf(codex)).toContain("required = true");
    for (const path of [openclaw, cursor]) expect(textOf(path)).not.toContain("required");
    // A reference to a variable that is not set would be passed on as text.
    expect(textOf(openclaw)).toMatch(/GITHUB_TOKEN"?: ["']\$\{GITHUB_TOKEN\}["']/);
    expect(textOf(openclaw)).not.toContain("LINEAR_TOKEN");
    expect(textOf(cursor)).not.toContain("{GITHUB_TOKEN}");
    for (const path of [codex, openclaw, cursor]) expect(textOf(path)).not.toContain(TOKEN);

    expect((await place.run(["connect", "codex", "--server", "github"], { env })).code).toBe(0);
    expect(textOf(codex)).toContain('env_vars = ["GITHUB_TOKEN"]');
    for (const [client, path] of [
      ["codex", codex],
      ["openclaw", openclaw],
    ] as const) {
      expect((await place.runHere(["disconnect", client])).code).toBe(0);
      expect(textOf(path)).toBe(TEXTS[client]);
    }
  });

  it("[whole-29b] doctor names the client and what its entry does not pass on", async () => {
    const place = workspace();
    place.configure({ one: misbehaving("ok") });
    giveFile(place, "codex");
    expect((await place.runHere(["connect", "codex"])).code).toBe(0);
    place.configure({ one: { ...misbehaving("ok"), env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" } } });
    const env = { GITHUB_TOKEN: TOKEN };
    const clientChecks = async (options = {}): Promise<string[]> => {
      const { checks } = (await place.runHere(["doctor", "--json"], { env, ...options })).json<{
        checks: { area: string; message: string }[];
      }>();
      return checks.filter(({ area }) => area === "clients").map(({ message }) => message);
    };
    const lacking = expect.stringMatching(/^Codex CLI .*GITHUB_TOKEN \(one\)/);
    expect(await clientChecks()).toEqual([lacking]);
    // Where the file of the project is the user's.
    expect(await clientChecks({ cwd: place.home })).toEqual([lacking]);
    expect((await place.run(["connect", "codex"], { env })).code).toBe(0);
    expect(await clientChecks()).toEqual([]);
  });
});
