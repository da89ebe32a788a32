import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { subjectToken } from "../../../src/cluster/cluster.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { EngineBench, failure, missing } from "./bench.ts";

const MIB = 1024 * 1024;

describe.skipIf(missing !== undefined)("calls between nodes", () => {
  let bench: EngineBench;
  beforeAll(async () => {
    bench = await EngineBench.start({ leases: false });
  });
  beforeEach(() => bench.fresh());
  afterEach(() => bench.clear());
  afterAll(() => bench.stop());

  it("[scale-05c] carry the request, events in their order, questions and the reply", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const address = `server.${subjectToken("@scope/my server.v1")}.0`;
    b.serve(address, async (call) => {
      for (let at = 0; at < 300; at++) await call.emit({ at }, at % 2 === 0 ? Buffer.from([at % 256]) : undefined);
      const answer = await call.ask({ question: "name?" }, call.signal);
      return { head: { answer, from: call.from, asked: call.head }, body: call.body ?? Buffer.from("none") };
    });
    await bench.ready(b);
    const events: [JsonObject, number | undefined][] = [];
    const reply = await a.call(address, {
      head: { tool: "x" },
      body: Buffer.alloc(0),
      onEvent: (event, body) => events.push([event, body?.[0]]),
      onQuestion: async (question) => ({ to: question["question"] }),
    });
    expect(events).toEqual(Array.from({ length: 300 }, (_, at) => [{ at }, at % 2 === 0 ? at % 256 : undefined]));
    expect(reply.head).toEqual({ answer: { to: "name?" }, from: a.node.id, asked: { tool: "x" } });
    expect(reply.body).toHaveLength(0);
  });

  it("[scale-05c] carry large heads and bodies both ways, several at once and in events", async () => {
    const [a, b] = await bench.nodes("a", "b");
    b.serve("big", async (call) => {
      await call.emit({ text: call.head["text"] }, call.body);
      return { head: call.head, body: call.body };
    });
    await bench.ready(b);
    const bodies = [randomBytes(20 * MIB), randomBytes(3 * MIB), randomBytes(200)];
    const text = "é".repeat(MIB);
    await Promise.all(
      bodies.map(async (body) => {
        let event: { text: unknown; body: Uint8Array | undefined } | undefined;
        const reply = await a.call("big", {
          head: { text },
          body,
          onEvent: (head, part) => (event = { text: head["text"], body: part }),
        });
        expect(reply.head["text"] === text && event?.text === text).toBe(true);
        expect(Buffer.compare(reply.body ?? Buffer.alloc(0), body)).toBe(0);
        expect(Buffer.compare(event?.body ?? Buffer.alloc(0), body)).toBe(0);
      }),
    );
  });

  it("[scale-05c] what is above the limit is refused on either side", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const body = Buffer.alloc(129 * MIB);
    let ran = 0;
    b.serve("limit", async () => ({ head: { ran: ++ran }, body }));
    await bench.ready(b);
    expect(await failure(a.call("limit", { head: {}, body }))).toMatchObject({ code: "too_large" });
    expect(ran).toBe(0);
    expect(await failure(a.call("limit", { head: {} }))).toMatchObject({ code: "too_large" });
    expect(ran).toBe(1);
  });

  it("[scale-05c] a handler that sends faster than the caller takes is slowed down", async () => {
    const [a, b] = await bench.nodes("a", "b");
    let sent = 0;
    b.serve("fast", async (call) => {
      for (; sent < 40; sent++) await call.emit({ sent }, Buffer.alloc(MIB));
      return { head: {} };
    });
    await bench.ready(b);
    let taken = 0;
    let most = 0;
    await a.call("fast", {
      head: {},
      onEvent: () => {
        taken += 1;
        most = Math.max(most, sent - taken);
      },
    });
    expect(taken).toBe(40);
    expect(most).toBeLessThan(10);
  });

  it("[scale-05c] cancelling reaches the handler, and the caller does not wait for it", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const stop = new AbortController();
    let reason: unknown;
    let asked: AbortSignal | undefined;
    b.serve("slow", async (call) => {
      call.signal.addEventListener("abort", () => (reason = call.signal.reason));
      await call.ask({}, call.signal);
      return { head: {} };
    });
    await bench.ready(b);
    const call = a.call("slow", {
      head: {},
      signal: stop.signal,
      onQuestion: async (_question, signal) => {
        asked = signal;
        stop.abort();
        return await new Promise(() => {});
      },
    });
    expect(await failure(call)).toMatchObject({ code: "cancelled" });
    expect(asked?.aborted).toBe(true);
    await vi.waitFor(() => expect(reason).toMatchObject({ code: "cancelled" }));
    expect(await failure(a.call("slow", { head: {}, signal: AbortSignal.abort() }))).toMatchObject({
      code: "cancelled",
    });
  });

  it("[scale-05c] cancelled before anybody took it, it is stopped where it arrives", async () => {
    const [a, b] = await bench.nodes("a", "b");
    const stop = new AbortController();
    let aborted = false;
    b.serve("early", async (call) => {
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      aborted = true;
      return { head: {} };
    });
    await bench.ready(b);
    const call = a.call("early", { head: {}, signal: stop.signal });
    // It is published, and the answer cannot have been read.
    stop.abort();
    expect(await failure(call)).toMatchObject({ code: "cancelled" });
    await vi.waitFor(() => expect(aborted).toBe(true));
  });

  it("[scale-05c] questions are refused, withdrawn and fail as the caller says", async () => {
    const [a, b] = await bench.nodes("a", "b");
    b.serve("asks", async (call) => {
      const withdrawn = new AbortController();
      if (call.head["withdraw"] === true) setTimeout(() => withdrawn.abort(), 20);
      return { head: { error: (await failure(call.ask({}, withdrawn.signal))).toObject() } };
    });
    await bench.ready(b);
    const outcome = async (request: Parameters<typeof a.call>[1]): Promise<unknown> =>
      (await a.call("asks", request)).head["error"];
    expect(await outcome({ head: {} })).toMatchObject({ code: "denied" });
    const onQuestion = async (): Promise<JsonObject> => {
      throw new ToolcribError("timeout", "Nobody is there.", { hint: "Wait." });
    };
    expect(await outcome({ head: {}, onQuestion })).toEqual({
      code: "timeout",
      message: "Nobody is there.",
      hint: "Wait.",
    });
    let seen: AbortSignal | undefined;
    const waiting = (_question: JsonObject, signal: AbortSignal): Promise<JsonObject> => {
      seen = signal;
      return new Promise(() => {});
    };
    expect(await outcome({ head: { withdraw: true }, onQuestion: waiting })).toMatchObject({ code: "cancelled" });
    await vi.waitFor(() => expect(seen?.aborted).toBe(true));
  });

  it("[scale-05c] what the handler throws arrives as it was thrown", async () => {
    const [a, b] = await bench.nodes("a", "b");
    b.serve("fails", async (call) => {
      if (call.head["plain"] === true) throw new Error("broken");
      throw new ToolcribError("rate_limited", "Too many.", { hint: "Later.", details: { sent: false, after: 3 } });
    });
    await bench.ready(b);
    expect((await failure(a.call("fails", { head: {} }))).toObject()).toEqual({
      code: "rate_limited",
      message: "Too many.",
      hint: "Later.",
      details: { sent: false, after: 3 },
    });
    expect((await failure(a.call("fails", { head: { plain: true } }))).toObject()).toEqual({
      code: "internal",
      message: "broken",
    });
  });

  it("[scale-05c] nobody there is known at once, and that nothing was begun", { retry: 2 }, async () => {
    const [a, b] = await bench.nodes("a", "b");
    const before = performance.now();
    const error = await failure(a.call("nobody", { head: {} }));
    expect(error).toMatchObject({ code: "server_unavailable", details: { sent: false } });
    expect(performance.now() - before).toBeLessThan(900);
    const end = b.serve("leaving", async () => ({ head: {} }));
    await bench.ready(b);
    await a.call("leaving", { head: {} });
    end();
    expect(await failure(a.call("leaving", { head: {} }))).toMatchObject({ details: { sent: false } });
    const tooBig = a.call("nobody", { head: {}, body: Buffer.alloc(5 * MIB) });
    expect(await failure(tooBig)).toMatchObject({ details: { sent: false } });
  });

  it("[scale-05c] of several nodes at one address one gets each call, and none twice", async () => {
    const [a, b, c] = await bench.nodes("a", "b", "c");
    const seen: JsonObject[] = [];
    for (const node of [b, c]) {
      node.serve("shared", async (call) => {
        seen.push({ node: node.node.name, call: call.head["at"] });
        return { head: {} };
      });
    }
    await bench.ready(b, c);
    await Promise.all(Array.from({ length: 100 }, (_, at) => a.call("shared", { head: { at } })));
    expect(seen.map(({ call }) => call).toSorted((x, y) => Number(x) - Number(y))).toEqual([...Array(100).keys()]);
    expect(new Set(seen.map(({ node }) => node)).size).toBe(2);
  });

  it("[scale-05c] the node that handles it leaves: in doubt if it had begun, and not sent if it had not", async () => {
    const [a, b] = await bench.nodes("a", "b");
    let began = false;
    b.serve("stays", async () => {
      began = true;
      return await new Promise(() => {});
    });
    await bench.ready(b);
    const call = failure(a.call("stays", { head: {} }));
    await vi.waitFor(() => expect(began).toBe(true));
    await b.close();
    const error = await call;
    expect(error.code).toBe("server_unavailable");
    expect(error.details?.["sent"]).toBeUndefined();
    expect(await failure(a.call("stays", { head: {} }))).toMatchObject({ details: { sent: false } });
    expect(a.nodes().map(({ name }) => name)).toEqual(["a"]);
  });

  it("news reach every other node that listens, and not the one that tells them", async () => {
    const [a, b, c] = await bench.nodes("a", "b", "c");
    const heard: string[] = [];
    for (const node of [a, b]) {
      node.subscribe("config", (message, from) => heard.push(`${node.node.name} ${String(message["n"])} ${from}`));
    }
    const end = c.subscribe("config", () => heard.push("c"));
    end();
    await bench.ready(a, b, c);
    a.publish("config", { n: 1 });
    await vi.waitFor(() => expect(heard).toEqual([`b 1 ${a.node.id}`]));
    await delay(50);
    expect(heard).toHaveLength(1);
    a.publish("config", { text: "x".repeat(2 * MIB) });
    expect(bench.warnings).toEqual([expect.stringContaining("too large")]);
  });
});

describe("words of an address", () => {
  it("are safe, and never the same for two texts", async () => {
    const texts = ["a.b", "a_b", "a b", "a_2eb", "@x/y", "*", ">", "", "_", "é", "日本", "a-b", "A-b"];
    const words = texts.map((text) => subjectToken(text));
    for (const word of words) expect(word).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(new Set(words).size).toBe(texts.length);
  });
});
