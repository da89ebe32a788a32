/** Other programs of an editor's user in the session that the editor has open with `toolcrib acp`. */
import type { ChildProcess } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { client as acpClient, type ClientConnection, methods, ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it, onTestFinished } from "vitest";
import { ToolcribClient } from "../../src/api-client/index.ts";
import { type HubRecord, readHubRecords } from "../../src/hub/activity/hub-records.ts";
import {
  calls,
  type FakeServer,
  type Scenario,
  startFakeServer,
  startScriptedModel,
  text,
} from "../../src/testing/index.ts";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/processes.ts";
import { misbehaving } from "../support/servers.ts";
import { BIN, type Workspace, workspace } from "./run-cli.ts";

const ADMIN = "an-admin-token-of-the-config";
const CALLER = "a-calling-token-of-the-config";

/** A server of the editor, whose state shows who was there. */
async function notesServer(): Promise<{ server: FakeServer; notes: string[] }> {
  const notes: string[] = [];
  const server = await startFakeServer({
    tools: {
      add: { run: ({ note }) => `note ${notes.push(String(note))}`, annotations: { readOnlyHint: false } },
      list: { run: () => notes.join(", "), annotations: { readOnlyHint: true } },
    },
  });
  onTestFinished(() => server.close());
  return { server, notes };
}

class Editor {
  readonly child: ChildProcess;
  readonly #connection: ClientConnection;
  said = "";

  constructor(place: Workspace, args: readonly string[]) {
    const { child } = place.start(["acp", ...args], { open: true });
    this.child = child;
    if (child.stdin === null || child.stdout === null) throw new Error("It has no pipes.");
    this.#connection = acpClient()
      .onNotification(methods.client.session.update, ({ params: { update } }) => {
        if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
          this.said += update.content.text;
        }
      })
      .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>));
  }

  async open(cwd: string, mcpServers: readonly object[]): Promise<string> {
    const { agent } = this.#connection;
    const clientInfo = { name: "an-editor", version: "1.0" };
    await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {}, clientInfo });
    const { sessionId } = await agent.request<{ sessionId: string }>("session/new", { cwd, mcpServers });
    return sessionId;
  }

  async prompt(sessionId: string, words: string): Promise<void> {
    await this.#connection.agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: words }],
    });
  }

  async close(sessionId: string): Promise<void> {
    await this.#connection.agent.request("session/close", { sessionId });
  }
}

interface OpenEditor {
  readonly place: Workspace;
  readonly editor: Editor;
  readonly sessionId: string;
  /** The process of the editor's agent, as its file in the home says. */
  readonly record: HubRecord;
  readonly notes: string[];
  /** The results that the model got in its step, counted from 0. */
  results(step: number): string[];
}

interface EditorOptions {
  readonly scenario?: Scenario;
  readonly mode?: "auto" | "ask";
  readonly http?: object;
  readonly servers?: readonly object[];
}

async function editorWith({
  scenario = [],
  mode = "auto",
  http,
  servers = [],
}: EditorOptions = {}): Promise<OpenEditor> {
  const place = workspace();
  const model = await startScriptedModel(scenario);
  onTestFinished(() => model.close());
  place.configure({}, { agent: { model: { baseUrl: `${model.url}/v1`, model: "scripted" } }, ...(http && { http }) });
  const { server, notes } = await notesServer();
  const editor = new Editor(place, ["--mode", mode]);
  const sessionId = await editor.open(place.dir, [
    { type: "http", name: "notes", url: server.url, headers: [] },
    ...servers,
  ]);
  const record = await eventually(() => readHubRecords(place.home).find(({ pid }) => pid === editor.child.pid));
  const results = (step: number): string[] =>
    model.requests[step]?.messages.at(-1)?.results.map((result) => result.text) ?? [];
  return { place, editor, sessionId, record, notes, results };
}

describe("[whole-13g] a session that an editor has open", () => {
  it("[whole-14b] is found by other programs, which use its servers and give it tools; the editor's turn sees the effect", async () => {
    const { place, editor, sessionId, record, notes, results } = await editorWith({
      scenario: [
        calls({ id: "a", name: "notes__list" }, { id: "b", name: "weather", arguments: { at: "Ulm" } }),
        text("Read."),
      ],
    });
    expect(statSync(join(place.home, "hubs", `${record.pid}.json`)).mode & 0o777).toBe(0o600);
    const found = await place.run(["hub", "--json"]);
    expect(found.json()).toMatchObject([
      { pid: record.pid, editor: true, sessions: [{ id: sessionId, client: "an-editor 1.0", folder: place.dir }] },
    ]);
    expect(found.stdout).not.toContain(record.token);

    const called = await place.run(["call", "notes__add", "note=milk", "--session", sessionId.slice(0, 8)]);
    expect([called.code, called.stdout.trim(), called.stderr]).toEqual([0, "note 1", ""]);
    const rest = new ToolcribClient({ url: record.url, token: record.token });
    await rest.callTool({ toolName: "notes__add", args: { note: "eggs" }, session: sessionId });
    const listed = await rest.listServers({ session: sessionId });
    expect(listed.servers).toMatchObject([{ name: "notes", state: "ready", enabled: true, autoConnect: true }]);
    expect(listed.servers[0]?.config).toBeUndefined();
    const live = rest.live();
    onTestFinished(() => live.close());
    const seen: unknown[] = [];
    const weather = {
      name: "weather",
      description: "The weather.",
      execute: (args: object) => (seen.push(args), "rain"),
    };
    expect(await live.setExtraTools([weather], { session: sessionId })).toMatchObject({ tools: ["weather"] });

    await editor.prompt(sessionId, "What is there?");
    expect(results(1)).toEqual([expect.stringContaining("milk, eggs"), expect.stringContaining("rain")]);
    expect(seen).toEqual([{ at: "Ulm" }]);
    expect(editor.said).toContain("Read.");
    expect(notes).toEqual(["milk", "eggs"]);
  });

  it("is joined by MCP clients over HTTP and stdio, without what steers the agent, until the editor closes it", async () => {
    const { place, editor, sessionId, record, notes } = await editorWith();
    const over = async (transport: Parameters<Client["connect"]>[0]): Promise<Client> => {
      const client = new Client({ name: "second-agent", version: "1" });
      await client.connect(transport);
      onTestFinished(() => client.close());
      return client;
    };
    const requestInit = { headers: { authorization: `Bearer ${record.token}` } };
    const address = new URL(`${record.url}/mcp?session=${sessionId}`);
    const http = await over(new StreamableHTTPClientTransport(address, { requestInit }));
    const args = [BIN, "mcp", "--session", sessionId];
    const stdio = await over(
      new StdioClientTransport({ command: process.execPath, args, env: place.env() as Record<string, string> }),
    );
    for (const [index, client] of [http, stdio].entries()) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["notes__add", "notes__list"]);
      await client.callTool({ name: "notes__add", arguments: { note: String(index) } });
    }
    expect(notes).toEqual(["0", "1"]);
    const ended = new Promise<void>((resolve) => Object.assign(stdio, { onclose: resolve }));

    await editor.close(sessionId);
    await ended;
    await expect(http.listTools()).rejects.toBeInstanceOf(Error);
    const rest = new ToolcribClient({ url: record.url, token: record.token });
    await expect(rest.listTools({ session: sessionId })).rejects.toMatchObject({ code: "not_found" });
    const called = await place.run(["call", "notes__list", "--session", sessionId]);
    expect([called.code, called.stderr]).toEqual([1, expect.stringContaining("No session of an editor")]);
  });

  it("keeps its mode for those who join, and is no hub for other clients and commands", async () => {
    const { place, sessionId, record, notes } = await editorWith({ mode: "ask" });
    const refused = await place.run(["call", "notes__add", "note=milk", "--session", sessionId]);
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("approv")]);
    expect(notes).toEqual([]);
    expect((await place.run(["call", "notes__list", "--session", sessionId])).code).toBe(0);
    const listed = await place.run(["list", "--session", sessionId, "--json"]);
    expect(listed.stdout).toContain("notes__list");
    const unknown = await place.run(["read", "note://none", "--session", sessionId]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("note://none")]);
    expect(await place.run(["prompt", "none", "--session", sessionId])).toMatchObject({ code: 1 });
    expect(await place.run(["status", "--session", sessionId])).toMatchObject({ code: 0 });
    expect((await place.run(["list", "--json"])).stdout).not.toContain("notes__list");
    const rest = new ToolcribClient({ url: record.url, token: record.token });
    expect(await rest.getSession({ sessionId })).toMatchObject({
      session: { door: "acp", conversation: sessionId, servers: [{ name: "notes" }] },
    });
    expect((await rest.listTools()).tools.map(({ name }) => name)).toEqual([]);
  });
});

describe("[whole-13h] who joins an editor's session", () => {
  it("has the token of the process, which is in the home; without it nothing is open", async () => {
    const { place, sessionId, record } = await editorWith();
    for (const path of ["/api/v1/tools", `/api/v1/sessions/${sessionId}`, "/mcp", "/metrics"]) {
      expect((await fetch(record.url + path)).status).toBe(401);
    }
    const standalone = new Editor(place, ["--standalone"]);
    const hidden = await standalone.open(place.dir, []);
    const found = await place.run(["list", "--session", hidden]);
    expect([found.code, found.stderr]).toEqual([1, expect.stringContaining(sessionId)]);
    expect(readHubRecords(place.home)).toHaveLength(1);
  });

  it("needs the scope admin where http.auth is set, also as a command of the same user", async () => {
    const tokens = [
      { token: ADMIN, scopes: ["admin"] },
      { token: CALLER, scopes: ["call"] },
    ];
    const { place, sessionId, record } = await editorWith({ http: { auth: { tokens } } });
    const list = (...more: string[]) => place.run(["list", "--session", sessionId, ...more]);
    expect(await list()).toMatchObject({ code: 1, stderr: expect.stringContaining("scope admin") });
    expect(await list("--token", CALLER)).toMatchObject({ code: 1, stderr: expect.stringContaining("scope admin") });
    expect(await list("--token", ADMIN)).toMatchObject({ code: 0, stdout: expect.stringContaining("notes__list") });
    const bridge = await place.run(["mcp", "--session", sessionId], { main: BIN });
    expect([bridge.code, bridge.stderr]).toEqual([1, expect.stringContaining("No session")]);
    const rest = new ToolcribClient({ url: record.url, token: CALLER });
    await expect(rest.listTools({ session: sessionId })).rejects.toMatchObject({ code: "not_found" });
    await expect(rest.getSession({ sessionId })).rejects.toMatchObject({ code: "denied" });
  });

  it("finds nothing of a process that was killed", async () => {
    const { command, args } = misbehaving("ok");
    const { place, editor, sessionId, record } = await editorWith({
      servers: [{ name: "own", command, args, env: [] }],
    });
    const rest = new ToolcribClient({ url: record.url, token: record.token });
    const pids = await rest.callTool({ toolName: "own__pids", session: sessionId });
    const [server = 0] = /\d{2,}/.exec(JSON.stringify(pids))?.map(Number) ?? [];
    expect(isAlive(server)).toBe(true);
    editor.child.kill("SIGKILL");
    await eventually(() => editor.child.signalCode !== null);
    const hub = await place.run(["hub"]);
    expect([hub.code, hub.stdout]).toEqual([0, expect.stringContaining("No hub runs")]);
    expect((await place.run(["list", "--session", sessionId])).code).toBe(1);
    await expect(fetch(record.url)).rejects.toBeInstanceOf(TypeError);
    await place.run(["list"]);
    await eventually(() => !isAlive(server));
  });
});
