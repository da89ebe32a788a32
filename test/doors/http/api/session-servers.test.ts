/** Servers that callers of a running hub bring along, and what they try to get at with them. */
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InputOf, OutputOf } from "../../../../src/contract/operations.ts";
import { startSdkHttp } from "../../../fixtures/sdk-servers.ts";
import { ServedHub } from "../../../load/served-hub.ts";
import { misbehaving } from "../../../support/servers.ts";
import { Talk } from "../live/live-setup.ts";
import { ask } from "../support.ts";

const CALLER = "caller-0123456789-abcdef";
const NOBODY = "nobody-0123456789-abcdef";
const CANARY = "canary-5c1f0e6b7d";

let hub: ServedHub;
let recorder: Server;
let connections = 0;
let closedPort = 0;

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

beforeAll(async () => {
  recorder = createServer((socket) => {
    connections += 1;
    socket.on("error", () => {}).end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  }).listen(0, "0.0.0.0");
  const closed = createServer().listen(0, "127.0.0.1");
  await Promise.all([once(recorder, "listening"), once(closed, "listening")]);
  closedPort = portOf(closed);
  closed.close();
  hub = await ServedHub.start(
    {
      roles: { blind: { tools: { allow: [] }, servers: [] } },
      http: {
        auth: {
          tokens: [
            { token: CALLER, user: "cal", scopes: ["call"] },
            { token: NOBODY, user: "nob", role: "blind", scopes: ["call"] },
          ],
        },
      },
    },
    { HUB_CANARY: CANARY, DATABASE_PASSWORD: CANARY },
  );
  writeFileSync(join(hub.dir, "canary.txt"), CANARY);
});

afterAll(async () => {
  recorder?.close();
  await hub?.remove();
});

type Opened = OutputOf<"openSession">;

async function open(token: string, servers: InputOf<"openSession">["servers"]): Promise<Opened> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ servers, waitMs: 20_000 });
  const answer = await ask(`${hub.url}/api/v1/sessions`, { method: "POST", token, headers, body });
  expect(answer.status, answer.text).toBe(201);
  const opened = answer.json<Opened>();
  await ask(`${hub.url}/api/v1/sessions/${opened.id}`, { method: "DELETE", token });
  return opened;
}

/** All that the caller learns of one server, but for what it named itself. */
function told({ servers, notices }: Opened, host: string): string {
  const facts = servers.map(({ state, status, lastError, hint, capabilities }) => ({
    state,
    status,
    lastError,
    hint,
    capabilities,
  }));
  return JSON.stringify({ facts, notices }).replaceAll(host, "HOST");
}

describe("[trust-04a] a token with `call`, at the hub's own machine", () => {
  it("is told the same of every port, and nothing is connected to", async () => {
    const ports = [Number(new URL(hub.url).port), portOf(recorder), closedPort];
    for (const host of ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]) {
      const answers = [];
      for (const token of [CALLER, NOBODY]) {
        for (const port of ports) {
          for (const scheme of ["http", "https"]) {
            const url = new URL(`${scheme}://${host}:${port}/mcp`);
            const opened = await open(token, { a: { url: url.href } });
            expect(opened.servers.every(({ state }) => state === "failed")).toBe(true);
            answers.push(told(opened, url.hostname.replace(/^\[|\]$/g, "")));
          }
        }
      }
      expect(new Set(answers).size, [...new Set(answers)].join("\n")).toBe(1);
      expect(answers[0]).toContain("may not be at");
    }
    expect(connections).toBe(0);
  });

  it("is told the same over the WebSocket and by SSE", async () => {
    const talk = await Talk.open(`${hub.url.replace("http", "ws")}/ws`, CALLER);
    const answers = [];
    for (const [id, port] of [Number(new URL(hub.url).port), portOf(recorder), closedPort].entries()) {
      const servers = [{ name: "a", type: "sse", url: `http://127.0.0.1:${port}/sse` }];
      const reply = (await talk.ask({ id, type: "sessions.open", servers, waitMs: 20_000 })) as unknown as Opened;
      answers.push(told(reply, "127.0.0.1"));
    }
    talk.socket.terminate();
    expect(new Set(answers).size, answers.join("\n")).toBe(1);
    expect(connections).toBe(0);
  });

  it("is told the same of private hosts, whether they are there or not", async () => {
    const answers = [];
    for (const url of ["https://10.255.255.1:1/", "https://10.255.255.1:443/"]) {
      answers.push(told(await open(CALLER, { a: { url } }), "10.255.255.1"));
    }
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("is a private address");
  });
});

describe("[trust-04c] a server of this machine", () => {
  it("is used with the scope `admin`, also where it is refused to others with a hint", async () => {
    await using server = await startSdkHttp({ era: "modern" });
    const servers = { near: { url: server.url } };
    expect(await open(hub.token, servers)).toMatchObject({ servers: [{ name: "near", state: "ready" }] });
    const refused = await open(CALLER, servers);
    expect(refused.servers).toMatchObject([{ state: "failed" }]);
    expect(JSON.stringify(refused.notices)).toMatch(/scope `admin`.*sessions\.allowHosts/);
  });

  it("is used by others where the config names it with its port", async () => {
    await using server = await startSdkHttp({ era: "modern" });
    const { host } = new URL(server.url);
    const other = await ServedHub.start({
      sessions: { allowHosts: [host] },
      http: { auth: { tokens: [{ token: CALLER, scopes: ["call"] }] } },
    });
    try {
      const body = JSON.stringify({ servers: { near: { url: server.url } }, waitMs: 20_000 });
      const headers = { "content-type": "application/json" };
      const answer = await ask(`${other.url}/api/v1/sessions`, { method: "POST", token: CALLER, headers, body });
      expect(answer.json()).toMatchObject({ servers: [{ name: "near", state: "ready" }] });
    } finally {
      await other.remove();
    }
  });

  it("[trust-04b] is no hub of this home, not even with the scope `admin`", async () => {
    const opened = await open(hub.token, {
      self: { url: `${hub.url}/mcp`, headers: { authorization: `Bearer ${CALLER}` } },
    });
    expect(opened.servers).toMatchObject([{ state: "failed", lastError: expect.stringContaining("Toolcrib itself") }]);
  });
});

describe("[trust-05a] references in what a caller brings", () => {
  it("give none of the hub's secrets away, at any place and in any form, whatever the role", async () => {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    let heard = "";
    listener.on("connection", (socket) => {
      socket
        .on("error", () => {})
        .on("data", (chunk) => {
          heard += chunk.toString("latin1");
          socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        });
    });
    const file = join(hub.dir, "canary.txt");
    mkdirSync(join(hub.dir, "out"), { recursive: true });
    const url = `http://127.0.0.1:${portOf(listener)}`;
    const forms = [
      "${HUB_CANARY}",
      "${HUB_CANARY:-none}",
      "${env:HUB_CANARY}",
      "${DATABASE_PASSWORD}",
      "secret://env/HUB_CANARY",
      "${secret://env/HUB_CANARY}",
      `secret://file/${file}`,
      "$HUB_CANARY",
    ];
    const dump = (n: number): string => join(hub.dir, "out", String(n));
    let number = 0;
    for (const form of forms) {
      const program = { command: "/bin/sh", args: ["-c", `env >${dump(number++)}; echo "$0" >>${dump(number++)}`] };
      const entries = {
        env: { ...program, env: { GOT: form } },
        list: { ...program, env: [{ name: "GOT", value: form }] },
        args: { ...program, args: [...program.args, form] },
        cwd: { ...program, cwd: `/${form}` },
        url: { url: `${url}/${form}` },
        query: { url: `${url}/?q=${form}` },
        headers: { url, headers: { "x-got": form } },
        pairs: { url, headers: [{ name: "x-got", value: form }] },
        bearer: { url, auth: { type: "bearer", token: form } },
        key: { url, auth: { type: "api-key", key: form } },
        sse: { type: "sse", url, headers: { "x-got": form } },
      };
      for (const token of [hub.token, CALLER, NOBODY]) {
        const opened = await open(token, entries);
        expect(JSON.stringify(opened)).not.toContain(CANARY);
        // Some clients write $NAME, in `env` and `headers` only; elsewhere it is the text itself.
        if (form.startsWith("$H")) continue;
        expect(opened.servers).toEqual([]);
        const refused = opened.notices.filter(({ message }) => message.includes(" contains the reference "));
        expect(refused.map(({ server }) => server)).toEqual(Object.keys(entries));
      }
    }
    expect(heard).not.toContain(CANARY);
    for (let each = 0; each < number; each++) {
      const path = dump(each);
      if (existsSync(path)) expect(readFileSync(path, "utf8")).not.toContain(CANARY);
    }
    listener.close();
  });

  it("[trust-05c] are looked up where the config lists them, for who may start programs alone", async () => {
    const other = await ServedHub.start(
      {
        sessions: { allowReferences: ["secret://env/HUB_CANARY"] },
        http: { auth: { tokens: [{ token: CALLER, scopes: ["call"] }] } },
      },
      { HUB_CANARY: CANARY, DATABASE_PASSWORD: CANARY },
    );
    try {
      const send = async (token: string, servers: object): Promise<Opened> => {
        const headers = { "content-type": "application/json" };
        const body = JSON.stringify({ servers, waitMs: 20_000 });
        const answer = await ask(`${other.url}/api/v1/sessions`, { method: "POST", token, headers, body });
        return answer.json<Opened>();
      };
      const listed = { mine: { ...misbehaving("ok"), env: { GOT: "secret://env/HUB_CANARY" } } };
      expect(await send(other.token, listed)).toMatchObject({
        servers: [{ name: "mine", state: "ready" }],
        notices: [],
      });
      const unlisted = { mine: { ...misbehaving("ok"), env: { GOT: "secret://env/DATABASE_PASSWORD" } } };
      expect(await send(other.token, unlisted)).toMatchObject({ servers: [] });
      const remote = { mine: { url: "https://a.test/", headers: { "x-got": "secret://env/HUB_CANARY" } } };
      expect(await send(CALLER, remote)).toMatchObject({ servers: [], notices: [{ server: "mine" }] });
    } finally {
      await other.remove();
    }
  });
});
