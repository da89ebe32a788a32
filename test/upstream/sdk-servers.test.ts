import { resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { Progress } from "../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import type { ConnectionDeps } from "../../src/upstream/connection-deps.ts";
import { Connection } from "../../src/upstream/connection.ts";
import { eraKey, InMemoryEras } from "../../src/upstream/era-memory.ts";
import { startSdkHttp } from "../fixtures/sdk-servers.ts";
import { contextOf, depsOf, sessionOf, specOf } from "../support/connection-bench.ts";
import { startEverything } from "../support/everything-http.ts";
import { eventually } from "../support/eventually.ts";

const SERVERS = resolve(import.meta.dirname, "../fixtures/sdk-servers.ts");
const stdio = (era: string): ServerEntryInput => ({ command: process.execPath, args: [SERVERS, era] });

const open = new Set<AsyncDisposable>();
afterEach(async () => {
  await Promise.all([...open].map((part) => part[Symbol.asyncDispose]()));
  open.clear();
});

async function http(era: "modern" | "legacy", auth?: { header: string; value: string }) {
  const server = await startSdkHttp({ era, ...(auth && { auth }) });
  open.add(server);
  return server;
}

function connection(entry: ServerEntryInput, more: Partial<ConnectionDeps> = {}): Connection {
  const offers = { elicitation: { form: {} } };
  const made = new Connection(specOf(entry), depsOf(systemClock, { offers, ...more }));
  open.add({ [Symbol.asyncDispose]: () => made.close() });
  return made;
}

async function connected(entry: ServerEntryInput, more: Partial<ConnectionDeps> = {}): Promise<Connection> {
  const made = connection(entry, more);
  await made.connect();
  expect(made.state).toMatchObject({ kind: "ready" });
  return made;
}

const call = (name: string, args: Record<string, unknown> = {}) => ({ kind: "tool", name, arguments: args }) as const;
const said = (text: string) => ({ content: [{ type: "text", text }] });

const KINDS = [
  ["stdio", "legacy"],
  ["stdio", "modern"],
  ["http", "legacy"],
  ["http", "modern"],
] as const;

describe.each(KINDS)("%s, %s", (transport, era) => {
  const entry = async (): Promise<ServerEntryInput> =>
    transport === "stdio" ? stdio(era) : { url: (await http(era)).url };

  it("[spine-07a] connects, lists and runs everything", async () => {
    const made = await connected(await entry());
    expect(made.info()).toMatchObject({ era, transport, serverVersion: "3.2.1", toolCount: 5, warnings: [] });
    expect(made.instructions()).toBe("Ask nicely.");
    const { resources, templates, prompts } = made.definitions();
    expect([resources.length, templates.length, prompts.length]).toEqual([1, 1, 1]);
    expect(await made.run(call("echo", { text: "hi" }), contextOf())).toMatchObject(said("hi"));
    expect(await made.run({ kind: "resource", uri: "note:///one" }, contextOf())).toMatchObject({
      contents: [{ text: "A note" }],
    });
    expect(await made.run({ kind: "prompt", name: "travel", arguments: { city: "Porto" } }, contextOf())).toMatchObject(
      {
        messages: [{ content: { text: "Go to Porto" } }],
      },
    );
  });

  it("[spine-11c] reports progress before the result", async () => {
    const made = await connected(await entry());
    const seen: Progress[] = [];
    await made.run(call("steps", { count: 20 }), contextOf({ onProgress: (progress) => seen.push(progress) }));
    expect(seen).toEqual(Array.from({ length: 20 }, (_, n) => ({ progress: n + 1, total: 20 })));
  });

  it("[spine-12b] lets the server ask, and hands the answer back", async () => {
    const made = await connected(await entry());
    const session = sessionOf("s", { onElicit: () => Promise.resolve({ action: "accept", content: { name: "Ada" } }) });
    expect(await made.run(call("greet"), contextOf({ session }))).toMatchObject(said("Hello Ada"));
  });

  it("[spine-13c] completes arguments", async () => {
    const made = await connected(await entry());
    const use = {
      kind: "completion",
      ref: { type: "ref/prompt", name: "travel" },
      argument: { name: "city", value: "P" },
    } as const;
    expect(await made.run(use, contextOf())).toMatchObject({ completion: { values: ["Paris", "Prague", "Porto"] } });
  });

  it("[spine-11b] cancels a call", async () => {
    const made = await connected(await entry());
    const controller = new AbortController();
    const running = made.run(call("wait"), contextOf({ signal: controller.signal }));
    setTimeout(() => controller.abort(), 50);
    await expect(running).rejects.toMatchObject({ code: "cancelled" });
    expect(await made.run(call("echo", { text: "still here" }), contextOf())).toMatchObject(said("still here"));
  });

  it("[spine-11d] runs many calls at once", async () => {
    const made = await connected(await entry());
    const all = Array.from({ length: 100 }, (_, n) => made.run(call("echo", { text: String(n) }), contextOf()));
    expect(await Promise.all(all)).toEqual(
      Array.from({ length: 100 }, (_, n) => expect.objectContaining(said(String(n)))),
    );
  });
});

describe("over HTTP", () => {
  it.each(["legacy", "modern"] as const)("[spine-13b] sees a tool appear (%s)", async (era) => {
    const server = await http(era);
    const made = await connected({ url: server.url });
    server.addTool();
    await eventually(() => made.definitions().tools.length === 6);
    expect(made.definitions().tools.map(({ name }) => name)).toContain("extra");
  });

  it("[spine-07b] does not probe a server that it remembers", async () => {
    const server = await http("legacy");
    const eras = new InMemoryEras();
    await connected({ url: server.url }, { eras });
    expect(await eras.get(eraKey(specOf({ url: server.url })))).toBe("legacy");
    const before = server.requests.length;
    await connected({ url: server.url }, { eras });
    expect(server.requests.slice(before).map(({ rpc }) => rpc)).not.toContain("server/discover");
  });

  it("[spine-09b] survives a server that forgot the session, and reads its lists again", async () => {
    const server = await http("legacy");
    const made = await connected({ url: server.url });
    server.forgetSessions();
    const results = await Promise.all(["a", "b", "c"].map((text) => made.run(call("echo", { text }), contextOf())));
    expect(results).toEqual(["a", "b", "c"].map((text) => expect.objectContaining(said(text))));
    const methods = server.requests.map(({ rpc }) => rpc);
    expect(methods.filter((method) => method === "initialize")).toHaveLength(2);
    expect(methods.filter((method) => method === "tools/list")).toHaveLength(2);
  });

  it.each([
    ["bearer", { type: "bearer", token: "${TOKEN}" }, { header: "Authorization", value: "Bearer s3cret-token" }],
    ["api-key", { type: "api-key", key: "${TOKEN}" }, { header: "X-API-Key", value: "s3cret-token" }],
    [
      "api-key in its own header",
      { type: "api-key", key: "${TOKEN}", header: "X-Token" },
      { header: "X-Token", value: "s3cret-token" },
    ],
  ] as const)("[spine-07e] sends %s credentials with every request", async (_name, auth, expected) => {
    for (const era of ["legacy", "modern"] as const) {
      const server = await http(era, expected);
      const made = await connected({ url: server.url, auth }, { env: { TOKEN: "s3cret-token" } });
      expect(await made.run(call("header", { name: expected.header }), contextOf())).toMatchObject(
        said(expected.value),
      );
    }
  });

  it("[spine-08b] says that credentials are missing, and does not keep trying", async () => {
    const server = await http("legacy", { header: "Authorization", value: "Bearer right" });
    const made = connection({ url: server.url, auth: { type: "bearer", token: "wrong-token" } });
    await made.connect();
    expect(made.state).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("401"),
      hint: expect.any(String),
    });
    expect(JSON.stringify(made.info())).not.toContain("wrong-token");
    expect(server.requests).toHaveLength(1);
  });

  it("[spine-07a] [spine-07c] finds the SSE transport behind a bare url", async () => {
    const server = await startEverything("sse");
    open.add(server);
    const made = await connected({ url: server.url });
    expect(made.info()).toMatchObject({ transport: "sse", era: "legacy" });
    expect(await made.run(call("echo", { message: "hi" }), contextOf())).toMatchObject(said("Echo: hi"));
  });

  it("[spine-07a] connects to SSE where it is named", async () => {
    const server = await startEverything("sse");
    open.add(server);
    const made = await connected({ url: server.url, transport: "sse" });
    expect(made.info().toolCount).toBeGreaterThan(5);
  });
});

describe("what a person reads", () => {
  it("[spine-08b] when the command does not exist", async () => {
    const made = connection({ command: "surely-not-a-command-here" });
    await made.connect();
    expect(made.state).toMatchObject({ kind: "failed", reason: "command not found: surely-not-a-command-here" });
  });

  it("[spine-08b] when the server exits: the code and what it said", async () => {
    const script = "console.error('DATABASE_URL is not set: ' + process.env.API_KEY); process.exit(3)";
    const entry: ServerEntryInput = {
      command: process.execPath,
      args: ["-e", script],
      env: { API_KEY: "${K}" },
      restart: false,
    };
    const made = connection(entry, { env: { ...process.env, K: "very-secret-value" } });
    await made.connect();
    expect(made.state).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/code 3[\s\S]*DATABASE_URL is not set/),
    });
    expect(JSON.stringify(made.info())).not.toContain("very-secret-value");
  });

  it("[spine-08b] when nothing listens at the address", async () => {
    const made = connection({ url: "http://127.0.0.1:1/mcp", restart: false });
    await made.connect();
    expect(made.state).toMatchObject({ kind: "failed", reason: expect.stringContaining("connection refused") });
  });
});
