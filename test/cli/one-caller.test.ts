/** One caller that wants all of the hub, on `toolcrib serve` as people start it, with others beside it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Answer, ask } from "../doors/http/support.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";

const TOKENS = { greedy: "t0-0123456789-greedy", other: "t1-0123456789-other", boss: "t2-0123456789-boss" };
const SESSIONS = 40;

/** A server whose answers and lists are nested without end. */
const DEEP_SERVER = `
  const deep = '{"a":'.repeat(100000) + "1" + "}".repeat(100000);
  const say = (id, result) => process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + "," + result + "}\\n");
  const tool = (name, schema) => '{"name":"' + name + '","inputSchema":' + schema + "}";
  const plain = '{"type":"object"}';
  const results = {
    echo: '"result":{"content":[{"type":"text","text":"hi"}]}',
    structured: '"result":{"content":[],"structuredContent":' + deep + "}",
    block: '"result":{"content":[{"type":"odd","x":' + deep + '}],"_meta":' + deep + "}",
    error: '"error":{"code":-32000,"message":"no","data":' + deep + "}",
  };
  const answers = {
    initialize: () => '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}',
    "tools/list": () =>
      '"result":{"tools":[' + [tool("bad", deep), ...Object.keys(results).map((name) => tool(name, plain))].join() + "]}",
    "tools/call": ({ name }) => results[name],
  };
  let rest = "";
  process.stdin.on("data", (chunk) => {
    rest += chunk;
    const lines = rest.split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      const { id, method, params } = JSON.parse(line);
      if (id !== undefined) say(id, answers[method]?.(params) ?? '"result":{}');
    }
  });
`;

const dir = mkdtempSync(join(tmpdir(), "toolcrib-one-caller-"));
let child: ChildProcess;
let url = "";

beforeAll(async () => {
  const config = join(dir, "toolcrib.json");
  const tokens = [
    { token: TOKENS.greedy, user: "greedy", scopes: ["read", "call"] },
    { token: TOKENS.other, user: "other", scopes: ["read"] },
    { token: TOKENS.boss, scopes: ["admin"] },
  ];
  const server = join(dir, "deep-server.cjs");
  writeFileSync(server, DEEP_SERVER);
  const mcpServers = { deep: { command: process.execPath, args: [server] } };
  writeFileSync(config, JSON.stringify({ mcpServers, http: { auth: { tokens }, limits: { sessions: SESSIONS } } }));
  child = spawn(process.execPath, [MAIN, "serve", "--config", config, "--port", "0", "--json"], {
    env: { PATH: process.env["PATH"], HOME: dir, ...PATIENT, TOOLCRIB_HOME: join(dir, "home") },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let printed = "";
  for await (const chunk of child.stdout ?? []) {
    printed += String(chunk);
    const found = /http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/.exec(printed)?.[0];
    if (found === undefined) continue;
    url = found;
    break;
  }
});

afterAll(async () => {
  if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
  rmSync(dir, { recursive: true, force: true });
});

function initialize(token: string): Promise<Answer> {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  return ask(`${url}/mcp`, {
    method: "POST",
    token,
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
}

describe("[trust-13c] sessions", () => {
  it("of one token are its quota at most, and others and the operator still open theirs", async () => {
    const statuses: number[] = [];
    for (let count = 0; count < SESSIONS + 5; count += 1) statuses.push((await initialize(TOKENS.greedy)).status);
    const opened = statuses.filter((status) => status === 200).length;
    expect([opened, new Set(statuses)]).toEqual([SESSIONS / 5, new Set([200, 503])]);
    const refused = (await initialize(TOKENS.greedy)).json<{ error: { message: string; data: object } }>();
    expect(refused.error.message).toContain("of this token");
    expect(refused.error.data).toMatchObject({
      code: "rate_limited",
      hint: expect.stringContaining("http.limits.sessionsPerToken"),
    });
    expect((await initialize(TOKENS.other)).status).toBe(200);
    expect((await initialize(TOKENS.boss)).status).toBe(200);
  });
});

describe("[trust-06b] schemas of extra tools", () => {
  const branch = (value: number): object => ({ properties: { a: { const: value }, b: { const: value } } });
  const slow = { oneOf: Array.from({ length: 2500 }, (_, index) => branch(index)) };
  const column = { type: "string", description: "x" };
  const wide = (columns: number): object => ({
    properties: Object.fromEntries(Array.from({ length: columns }, (_, index) => [`p${index}`, column])),
  });

  async function socket(): Promise<WebSocket> {
    const made = new WebSocket(`${url.replace("http", "ws")}/ws`, {
      headers: { authorization: `Bearer ${TOKENS.greedy}` },
    });
    await once(made, "open");
    return made;
  }

  async function set(
    made: WebSocket,
    schema: object,
  ): Promise<{ ok: boolean; error?: { code: string; message: string } }> {
    const reply = new Promise<Record<string, unknown>>((resolve) => {
      made.on("message", (data: Buffer) => {
        const frame = JSON.parse(data.toString("utf8")) as Record<string, unknown>;
        if (frame["id"] === 7) resolve(frame);
      });
    });
    const tools = [{ name: "t", description: "", schema }];
    made.send(JSON.stringify({ id: 7, type: "sessions.setExtraTools", tools }));
    // What the hub says to this command.
    return (await reply) as { ok: boolean; error?: { code: string; message: string } };
  }

  it("that take long are compiled while the requests of others are answered", async () => {
    const order: string[] = [];
    const attack = await socket();
    const refused = set(attack, slow).then((reply) => {
      order.push("schema");
      return reply;
    });
    for (let count = 0; count < 3; count += 1) {
      const answer = await ask(`${url}/api/v1/mcp/tools`, { token: TOKENS.other });
      order.push(`request ${answer.status}`);
    }
    expect(await refused).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    expect(order).toEqual(["request 200", "request 200", "request 200", "schema"]);
    attack.terminate();
  });

  it("that are too large are refused by name, and honest ones of a usual and of a great size are taken", async () => {
    const made = await socket();
    expect(await set(made, wide(40_000))).toMatchObject({
      ok: false,
      error: { code: "too_large", message: expect.stringMatching(/tool "t".*more than 20000 values/) },
    });
    expect(await set(await socket(), wide(10))).toMatchObject({ ok: true });
    expect(await set(await socket(), wide(2000))).toMatchObject({ ok: true });
    made.terminate();
  });
});

describe("[trust-06c] values that are nested without end", () => {
  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;

  function call(name: string, args = "{}"): Promise<Answer> {
    return ask(`${url}/api/v1/mcp/tools/deep__${name}/call`, {
      method: "POST",
      token: TOKENS.greedy,
      headers: { "content-type": "application/json" },
      body: `{"arguments":${args}}`,
    });
  }

  it("in a tool's schema set that tool aside, and the others of its server work", async () => {
    await expect
      .poll(async () => {
        const { tools } = (await ask(`${url}/api/v1/mcp/tools`, { token: TOKENS.other })).json<{
          tools: { name: string }[];
        }>();
        return tools.map(({ name }) => name);
      })
      .toEqual(["deep__echo", "deep__structured", "deep__block", "deep__error"]);
    expect((await call("echo")).json()).toMatchObject({ content: [{ type: "text", text: "hi" }] });
  });

  it("are refused in arguments, with a code that says whose mistake it is", async () => {
    const refused = await call("echo", deep);
    expect([refused.status, refused.json().error]).toEqual([
      400,
      expect.objectContaining({ code: "invalid_arguments", message: expect.stringContaining("nested too deeply") }),
    ]);
  });

  it.each(["structured", "block", "error"])("do not end the hub when a server answers with them: %s", async (name) => {
    const { status } = await call(name);
    expect([200, 502]).toContain(status);
    expect((await call("echo")).status).toBe(200);
    expect(child.exitCode).toBeNull();
  });
});
