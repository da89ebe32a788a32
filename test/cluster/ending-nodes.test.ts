/** What clients without any rights over the hub are told when a node dies or ends in the middle of their request. */
import { once } from "node:events";
import { connect as openSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMissing } from "../support/skips.ts";
import { isFull } from "./full.ts";
import { Balancer } from "./rig/balancer.ts";
import { countingServer, written } from "./rig/counting.ts";
import type { NodeProcess } from "./rig/node-process.ts";
import { ownerOf } from "./rig/owner.ts";
import { missingForCluster, type Rig, startRig } from "./rig/rig.ts";

const missing = missingForCluster();
isMissing("nodes that end during a request", missing);

const TOKEN = "ada-token-0123456789";
const SERVER = "--name=count";
const UNKNOWN = "Whether the call ran is not known.";
const INVITES_RETRY = /try again|retry|later/i;
const WITHIN = { timeout: 60_000 };
const ROUNDS = isFull ? 10 : 1;

describe.skipIf(missing !== undefined)("a node that goes during a request", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({
      servers: (dir) => ({ count: countingServer(dir, "count") }),
      config: { http: { auth: { tokens: [{ token: TOKEN, user: "ada" }] } } },
    });
    await rig.whenReady();
  }, 120_000);
  afterAll(async () => {
    expect(await rig.stop(), "processes that outlived their nodes").toEqual([]);
  }, 60_000);

  const survivorOf = (node: NodeProcess): NodeProcess => rig.nodes.find((each) => each !== node) ?? node;
  const slow = (id: string): object => ({ name: "count__slow", arguments: { id, ms: 60_000 } });
  async function hasBegun(id: string): Promise<void> {
    await expect.poll(() => written(rig.dir).map((entry) => entry.id), WITHIN).toContain(id);
  }

  it("[whole-39a] tells every caller that a call may have run, and invites no one to repeat it", async () => {
    const { node } = ownerOf(rig, SERVER);
    const survivor = survivorOf(node);
    const session = await openSession(node);
    const modern = rpc(survivor, "tools/call", slow("modern"));
    const legacy = rpc(survivor, "tools/call", slow("legacy"), session);
    const rest = fetch(`${survivor.url}/api/v1/mcp/tools/count__slow/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ arguments: { id: "rest", ms: 60_000 } }),
    });
    await Promise.all(["modern", "legacy", "rest"].map(hasBegun));
    await node.kill();
    for (const answer of [await modern, await legacy]) {
      expect(answer.text, rig.logs()).toContain(UNKNOWN);
      expect(answer.text).toContain("See what it did before you call again.");
      expect(answer.text).not.toMatch(INVITES_RETRY);
      expect(answer.headers.get("retry-after")).toBeNull();
    }
    const overRest = await rest;
    const said = await overRest.text();
    expect(said).toContain(UNKNOWN);
    expect(said).not.toMatch(INVITES_RETRY);
    expect(overRest.headers.get("retry-after")).toBeNull();
    await node.start();
    await rig.whenReady();
  }, 120_000);

  it("[whole-40b] that ends in order takes what was begun: connections without a request, and bodies half sent", async () => {
    const node = rig.node(0);
    const begun = await Promise.all(["header", "body"].map((id) => halfSent(node, id)));
    const stopped = node.stop();
    await refusesConnections(node);
    const answers = await Promise.all(begun.map(({ finish }) => finish()));
    for (const answer of answers) {
      expect(answer, rig.logs()).toMatch(/^HTTP\/1\.1 200/);
      expect(answer).toMatch(/^connection: close$/im);
    }
    await stopped;
    expect(written(rig.dir).map(({ id }) => id)).toEqual(expect.arrayContaining(["header", "body"]));
    await node.start();
    await rig.whenReady();
  }, 60_000);

  it("[whole-40b] and is restarted behind a balancer that does not ask /readyz, without a call that fails", async () => {
    const balancer = await Balancer.open(rig.nodes, { asksReadiness: false, passesOn: true });
    const over = new AbortController();
    const statuses = new Map<string, number>();
    const clients = Array.from({ length: 8 }, async (_, client) => {
      for (let call = 0; !over.signal.aborted; call += 1) {
        const said = await rpc({ url: balancer.url }, "tools/call", append(`roll-${client}-${call}`)).then(
          ({ status, text }) => (text.includes('"content"') ? "answered" : `${status} ${text.slice(0, 300)}`),
          (error: unknown) => String(error),
        );
        // The balancer's own word, on a machine too busy to connect: nothing was sent.
        if (said.startsWith("503 No node takes connections")) continue;
        statuses.set(said, (statuses.get(said) ?? 0) + 1);
      }
    });
    for (let round = 0; round < ROUNDS; round += 1) for (const node of rig.nodes) await node.restart();
    over.abort();
    await Promise.all(clients);
    await balancer.close();
    expect([...statuses.keys()], `${JSON.stringify([...statuses])}\n${rig.logs()}`).toEqual(["answered"]);
    // What was passed on had been read by no node.
    const ran = written(rig.dir).filter(({ id }) => id.startsWith("roll-"));
    expect(new Set(ran.map(({ id }) => id)).size).toBe(ran.length);
    expect(ran.length).toBeGreaterThanOrEqual(statuses.get("answered") ?? 0);
    const calls = `${statuses.get("answered") ?? 0} calls answered, ${balancer.resets} connections reset as a listener closed`;
    if (isFull || balancer.resets > 0) console.log(`${ROUNDS * 3} restarts, ${calls}`);
    await rig.whenReady();
  }, 600_000);

  const append = (id: string): object => ({ name: "count__append", arguments: { id } });

  /** A call of which the hub has the connection, or the connection and a part of the body. */
  async function halfSent(node: NodeProcess, id: string): Promise<{ finish(): Promise<string> }> {
    const { headers, body } = message("tools/call", append(id));
    const head = Object.entries({ ...headers, host: "localhost", "content-length": String(Buffer.byteLength(body)) });
    const text = `POST /mcp HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
    const cut = id === "body" ? text.length - 20 : 0;
    const socket = openSocket(node.port ?? 0, "127.0.0.1");
    await once(socket, "connect");
    if (cut > 0) socket.write(text.slice(0, cut));
    // Another request, so that the hub has accepted the connections before.
    await fetch(`${node.url}/healthz`);
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => (answer += chunk));
    return {
      async finish() {
        socket.write(text.slice(cut));
        await once(socket, "close");
        return answer;
      },
    };
  }

  async function refusesConnections({ port }: NodeProcess): Promise<void> {
    await expect
      .poll(
        async () =>
          fetch(`http://127.0.0.1:${port ?? 0}/healthz`).then(
            () => "open",
            () => "closed",
          ),
        WITHIN,
      )
      .toBe("closed");
  }

  /** With the headers that its first request of the session set. */
  async function openSession(node: NodeProcess): Promise<string> {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } };
    const { headers } = await rpc(node, "initialize", params, "");
    return headers.get("mcp-session-id") ?? expect.fail("no session");
  }
});

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

interface Message {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

async function rpc(
  { url }: Pick<NodeProcess, "url">,
  method: string,
  params: object,
  session?: string,
): Promise<Answered> {
  const response = await fetch(`${url}/mcp`, { method: "POST", ...message(method, params, session) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** @param session Of the old era; the modern era if absent. */
function message(method: string, params: object, session?: string): Message {
  const modern = {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "new", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  };
  return {
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": session === undefined ? "2026-07-28" : "2025-06-18",
      ...(session === undefined || session === "" ? {} : { "mcp-session-id": session }),
      ...(session === undefined
        ? { "mcp-method": method, ...("name" in params ? { "mcp-name": String(params.name) } : {}) }
        : {}),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: session === undefined ? { ...params, ...modern } : params,
    }),
  };
}
