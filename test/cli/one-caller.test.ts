/** One caller that wants all of the hub, on `toolcrib serve` as people start it, with others beside it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Answer, ask } from "../doors/http/support.ts";
import { MAIN } from "../support/main-program.ts";

const TOKENS = { greedy: "t0-0123456789-greedy", other: "t1-0123456789-other", boss: "t2-0123456789-boss" };
const SESSIONS = 40;

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
  writeFileSync(config, JSON.stringify({ http: { auth: { tokens }, limits: { sessions: SESSIONS } } }));
  child = spawn(process.execPath, [MAIN, "serve", "--config", config, "--port", "0", "--json"], {
    env: { PATH: process.env["PATH"], HOME: dir, TOOLCRIB_HOME: join(dir, "home") },
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
    const made = new WebSocket(`${url.replace("http", "ws")}/ws`, { headers: { authorization: `Bearer ${TOKENS.greedy}` } });
    await once(made, "open");
    return made;
  }

  async function set(made: WebSocket, schema: object): Promise<{ ok: boolean; error?: { code: string; message: string } }> {
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
