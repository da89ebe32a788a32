import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { CallHandler, Cluster } from "../../../../src/cluster/cluster.ts";
import { RequestForwarder, serveForwarded } from "../../../../src/doors/http/forward-request.ts";
import { type ForwardResult, type HttpExchange, RouteTable } from "../../../../src/doors/http/http-exchange.ts";
import { type Clock, systemClock } from "../../../../src/base/clock.ts";
import { ToolcribError } from "../../../../src/model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../src/model/json.ts";
import { place, type Place } from "../support.ts";

/** Two nodes that are linked without anything in between. */
class Link {
  readonly sent: JsonObject[] = [];
  questions = 0;
  failure: ToolcribError | undefined;
  living = ["owner", "other"];
  #handler: CallHandler | undefined;

  node(id: string): Cluster {
    const serve: Cluster["serve"] = (address, handler) => {
      expect(address).toBe(`node.${id}.http`);
      this.#handler = handler;
      return () => {};
    };
    const call: Cluster["call"] = async (_address, { head, body, signal, onEvent, onQuestion }) => {
      if (this.failure !== undefined || this.#handler === undefined) throw this.failure ?? new Error("nobody");
      this.sent.push(head);
      return this.#handler({
        head: structuredClone(head),
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
        from: id,
        signal: signal ?? new AbortController().signal,
        emit: async (event, bytes) => onEvent?.(event, bytes && new Uint8Array(bytes)),
        ask: async (question, until) => {
          this.questions += 1;
          return (await onQuestion?.(question, until)) ?? {};
        },
      });
    };
    const nodes = (): { id: string; name: string; facts: JsonObject }[] =>
      this.living.map((each) => ({ id: each, name: each, facts: {} }));
    // Of a cluster no more is used here.
    return { node: { id, name: id, facts: {} }, isUp: true, nodes, serve, call } as unknown as Cluster;
  }
}

interface Linked {
  readonly link: Link;
  readonly there: Place;
  readonly requests: RequestForwarder;
  readonly outcomes: ForwardResult[];
}

async function linked(handle: (exchange: HttpExchange) => void | Promise<void>): Promise<Linked> {
  const link = new Link();
  const routes = new RouteTable([{ path: "/mcp", access: "read", handle }]);
  onTestFinished(serveForwarded({ cluster: link.node("owner"), routes, bodyBytes: () => 1e8, warn: expect.fail }));
  const requests = new RequestForwarder(link.node("other"));
  const outcomes: ForwardResult[] = [];
  const there = await place(
    { auth: { tokens: [{ token: TOKEN, user: "ada" }] } },
    {
      routes: [
        {
          path: "/mcp",
          access: "read",
          handle: async (exchange) => {
            const body = exchange.readBody();
            const { request, response, caller, refuseScope } = exchange;
            const handed = await requests.forward(
              { request, response, caller, refuseScope, readBody: () => body },
              "owner",
            );
            outcomes.push(handed);
            if (handed !== "answered") response.writeHead(418).end();
          },
        },
      ],
    },
  );
  return { link, there, requests, outcomes };
}

const TOKEN = "a-token-0123456789";

describe("[scale-07b] a request that is handed on", () => {
  it("is the same there, with its caller and without credentials, and cannot be handed on again", async () => {
    const { there, link } = await linked(async (exchange) => {
      const { request, response, path, query, caller, forwardTo } = exchange;
      const seen = {
        method: request.method,
        path,
        query: [...query],
        headers: request.headers,
        again: forwardTo !== undefined,
      };
      const body = (await exchange.readBody()).toString();
      response.setHeader("x-made", ["one", "two"]);
      response.writeHead(201, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...seen, body, caller: { ...caller, scopes: [...caller.scopes] } }));
    });
    const answer = await there.ask("/mcp/role?servers=a,b", {
      method: "POST",
      token: TOKEN,
      headers: { cookie: "toolcrib=1", "mcp-session-id": "s", "x-other": "1", "content-type": "application/json" },
      body: "{}",
    });
    expect([answer.status, answer.headers["x-made"]]).toEqual([201, "one, two"]);
    const seen = answer.json<JsonObject>();
    expect(seen).toMatchObject({
      method: "POST",
      path: "/mcp/role",
      query: [["servers", "a,b"]],
      body: "{}",
      again: false,
      caller: { user: "ada", owner: false, scopes: ["read", "call"] },
    });
    const headers = isJsonObject(seen["headers"]) ? Object.keys(seen["headers"]) : [];
    expect(headers).toEqual(expect.arrayContaining(["mcp-session-id", "content-type", "host"]));
    expect(headers).not.toEqual(expect.arrayContaining([expect.stringMatching(/cookie|authorization|x-other/)]));
    expect(JSON.stringify(link.sent)).not.toContain(TOKEN);
  });

  it("is refused for a missing scope by the node that knows the credentials", async () => {
    const { there } = await linked((exchange) => exchange.refuseScope("admin"));
    const answer = await there.ask("/mcp", { token: TOKEN });
    expect(answer.status).toBe(403);
    expect(answer.headers["www-authenticate"]).toContain("insufficient_scope");
    expect(answer.headers["toolcrib-refused-scope"]).toBeUndefined();
  });

  it("answers errors of the route as errors, and cuts what is cut", async () => {
    const { there } = await linked(async ({ response, query }) => {
      if (query.has("throw")) throw new ToolcribError("conflict", "Not now.");
      response.writeHead(200).write("half");
      await delay(20);
      response.destroy();
    });
    const thrown = await there.ask("/mcp?throw", { token: TOKEN });
    expect([thrown.status, thrown.json().error.code]).toEqual([409, "conflict"]);
    await expect(there.ask("/mcp", { token: TOKEN })).rejects.toThrow("aborted");
  });

  it("lets its answer flow no faster than the client reads, and ends with the client", async () => {
    let written = 0;
    let closed = 0;
    const { there, link } = await linked(async ({ response }) => {
      const gone = new Promise<void>((resolve) => response.once("close", resolve));
      void gone.then(() => (closed += 1));
      response.writeHead(200, { "content-type": "text/event-stream" });
      const piece = Buffer.alloc(64 * 1024, "x");
      while (!response.destroyed && written < 64 * 1024 * 1024) {
        written += piece.length;
        if (response.write(piece)) continue;
        await Promise.race([gone, new Promise<void>((resolve) => response.once("drain", resolve))]);
      }
    });
    const client = await there.open();
    client.socket.pause();
    client.send("GET /mcp HTTP/1.1", "Host: localhost", `Authorization: Bearer ${TOKEN}`, "", "");
    await vi.waitFor(() => expect(link.questions).toBeGreaterThan(0), { timeout: 60_000 });
    let before = -1;
    await vi.waitFor(
      () => {
        const still = before === written;
        before = written;
        expect(still).toBe(true);
      },
      { interval: 100 },
    );
    expect(written).toBeLessThan(32 * 1024 * 1024);
    client.socket.destroy();
    await vi.waitFor(() => expect(closed).toBe(1), { timeout: 60_000 });
  });

  it("tells a node that has gone from one that is away", async () => {
    const { there, link, outcomes } = await linked(() => {});
    link.failure = new ToolcribError("server_unavailable", "Nobody answers.");
    await there.ask("/mcp", { token: TOKEN });
    link.living = ["other"];
    await there.ask("/mcp", { token: TOKEN });
    expect(outcomes).toEqual(["away", "gone"]);
  });

  it("is let finish when its node ends; a stream that only listens is not waited for", async () => {
    const finish = Promise.withResolvers<void>();
    const { there, requests } = await linked(async ({ request, response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: begun\n\n");
      if (request.method === "GET") return;
      await finish.promise;
      response.end("data: done\n\n");
    });
    const listens = there.ask("/mcp", { token: TOKEN });
    const called = there.ask("/mcp", { token: TOKEN, method: "POST", body: "{}" });
    await vi.waitFor(() => expect(requests.size).toBe(2));
    const closed = requests.close(5000, systemClock);
    finish.resolve();
    expect((await called).text).toContain("done");
    await closed;
    expect((await listens).text).toBe("data: begun\n\n");
  });

  it("[scale-09c] is waited for although it came late, and never looks answered when it is given up", async () => {
    const finish = Promise.withResolvers<void>();
    const { there, requests, outcomes } = await linked(async ({ response, query }) => {
      if (query.has("begun")) response.writeHead(200, { "content-type": "text/event-stream" }).write("data: begun\n\n");
      if (!query.has("late")) return;
      await finish.promise;
      response.writeHead(200).end("done");
    });
    let isOver = (): void => {};
    const clock: Clock = { now: () => 0, after: (_ms, run) => ((isOver = run), () => {}) };
    const post = (query: string): Promise<string> =>
      there.ask(`/mcp?${query}`, { token: TOKEN, method: "POST", body: "{}" }).then(
        ({ status, text }) => `${status} ${text}`,
        () => "cut",
      );
    const asked = [post("nothing"), post("begun"), there.ask("/mcp?nothing", { token: TOKEN })];
    await vi.waitFor(() => expect(requests.size).toBe(3));
    const closed = requests.close(5000, clock);
    const late = post("late");
    await vi.waitFor(() => expect(requests.size).toBe(4));
    finish.resolve();
    expect(await late).toBe("200 done");
    isOver();
    await closed;
    expect(await Promise.all(asked)).toEqual(["418 ", "cut", expect.objectContaining({ status: 418 })]);
    expect(await post("late")).toBe("418 ");
    expect(outcomes.toSorted()).toEqual(["answered", "answered", "away", "away", "away"]);
  });

  it("[scale-09c] of several that a node has when it ends, all are waited for, also those of later", async () => {
    const finishes: (() => void)[] = [];
    const { there, requests } = await linked(async ({ response }) => {
      await new Promise<void>((resolve) => finishes.push(resolve));
      response.writeHead(200).end("done");
    });
    const post = (): Promise<string> =>
      there.ask("/mcp", { token: TOKEN, method: "POST", body: "{}" }).then(({ text }) => text);
    const first = post();
    await vi.waitFor(() => expect(finishes).toHaveLength(1));
    let isClosed = false;
    const closed = requests.close(60_000, systemClock).then(() => (isClosed = true));
    const second = post();
    await vi.waitFor(() => expect(finishes).toHaveLength(2));
    finishes[0]?.();
    expect(await first).toBe("done");
    await delay(20);
    expect(isClosed).toBe(false);
    finishes[1]?.();
    expect(await second).toBe("done");
    await closed;
  });
});
