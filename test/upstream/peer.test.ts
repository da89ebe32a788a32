import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Progress } from "../../src/model/protocol.ts";
import type { TransportKind } from "../../src/model/server-state.ts";
import { Peer, type PeerOptions } from "../../src/upstream/peer.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { FakeWire, type Handlers, RpcFailure } from "../support/fake-wire.ts";
import { clientOf } from "../support/connection-bench.ts";

function setUp(handlers: Handlers = {}, transport: TransportKind = "stdio", more: Partial<PeerOptions> = {}) {
  const clock = new FakeClock();
  const wire = new FakeWire(transport, handlers);
  const warnings: string[] = [];
  const lost: ToolcribError[] = [];
  const peer = new Peer(wire, {
    clock,
    onRequest: () => Promise.resolve({ served: true }),
    onNotification: () => {},
    onLost: (error) => lost.push(error),
    onWarning: (text) => warnings.push(text),
    ...more,
  });
  return { clock, wire, peer, warnings, lost };
}

/** Never answers by itself. */
const silent = { work: () => undefined };

async function failureOf(promise: Promise<unknown>): Promise<ToolcribError> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ToolcribError)) throw error;
  return error;
}

describe("requests", () => {
  it("[spine-13d] hand the result over with every field it came with", async () => {
    const result = { content: [{ type: "hologram", depth: 3 }], "x-new": [null, { deep: 1 }], _meta: { a: 1 } };
    const { peer } = setUp({ work: () => result });
    expect(await peer.request("work", { a: 1 })).toEqual(result);
  });

  it("keep any number in flight and match answers that come in another order", async () => {
    const { peer, wire } = setUp(silent);
    const all = Array.from({ length: 500 }, (_, n) => peer.request("work", { n }));
    for (let id = 500; id >= 1; id--) wire.answer(id, { n: id - 1 });
    expect(await Promise.all(all)).toEqual(Array.from({ length: 500 }, (_, n) => ({ n })));
  });

  it.each([
    [-32602, "invalid_arguments"],
    [-32601, "not_found"],
    [-32000, "tool_error"],
    [-32042, "tool_error"],
  ])("turn the error answer %i into %s and keep it whole", async (code, expected) => {
    const { peer } = setUp({ work: () => Promise.reject(new RpcFailure(code, "no", { urls: ["https://x"] })) });
    const error = await failureOf(peer.request("work"));
    expect(error.code).toBe(expected);
    expect(error.details?.["rpc"]).toEqual({ code, message: "no", data: { urls: ["https://x"] } });
  });

  it("accept a numeric id that comes back as a string", async () => {
    const { peer, wire } = setUp(silent);
    const done = peer.request("work");
    wire.answer("1", { ok: true });
    expect(await done).toEqual({ ok: true });
  });

  it("drop a second answer with a warning", async () => {
    const { peer, wire, warnings } = setUp({ work: () => ({ n: 1 }) });
    expect(await peer.request("work")).toEqual({ n: 1 });
    wire.answer(1, { n: 2 });
    expect(warnings).toEqual([expect.stringContaining("answered already")]);
  });

  it("are rejected together when the wire is lost, and say that they were sent", async () => {
    const { peer, wire, lost } = setUp(silent);
    const both = [peer.request("work"), peer.request("work")];
    wire.lose("exited with code 9", { exitCode: 9 });
    for (const request of both) {
      const error = await failureOf(request);
      expect(error).toMatchObject({
        code: "server_unavailable",
        message: "exited with code 9",
        details: { sent: true, exitCode: 9 },
      });
    }
    expect(lost).toHaveLength(1);
    expect((await failureOf(peer.request("work"))).details?.["sent"]).toBe(false);
  });

  it("wait for the exit that explains a broken pipe", async () => {
    const { peer, wire } = setUp(silent);
    wire.sendError = new ToolcribError("server_unavailable", "closed its input", { details: { sent: false } });
    const request = failureOf(peer.request("work"));
    await settle();
    wire.lose("exited with code 3");
    expect(await request).toMatchObject({ message: "exited with code 3", details: { sent: false } });
  });

  it("say what the pipe said when no exit follows", async () => {
    const { peer, wire, clock } = setUp(silent);
    wire.sendError = new ToolcribError("server_unavailable", "closed its input", { details: { sent: false } });
    const request = failureOf(peer.request("work"));
    await clock.advance(2000);
    expect((await request).message).toBe("closed its input");
  });

  it("fail alone when only their own stream ended", async () => {
    const { peer, wire } = setUp(silent, "http");
    const first = failureOf(peer.request("work"));
    const second = peer.request("work");
    wire.fail(1, new ToolcribError("server_unavailable", "the stream ended early", { details: { sent: true } }));
    wire.answer(2, { fine: true });
    expect((await first).message).toBe("the stream ended early");
    expect(await second).toEqual({ fine: true });
  });
});

describe("timeouts", () => {
  it("[spine-11a] give up after silence and tell the server", async () => {
    const { peer, wire, clock, warnings } = setUp(silent);
    const request = failureOf(peer.request("work", {}, { timeoutMs: 1000 }));
    await clock.advance(999);
    expect(wire.methods()).toEqual(["work"]);
    await clock.advance(1);
    expect(await request).toMatchObject({ code: "timeout", details: { afterMs: 1000 } });
    expect(wire.params("notifications/cancelled")).toMatchObject({ requestId: 1 });
    wire.answer(1, { late: true });
    expect(warnings).toEqual([]);
  });

  it("[spine-11a] are restarted by progress, up to the ceiling", async () => {
    const { peer, wire, clock } = setUp(silent);
    const request = failureOf(peer.request("work", {}, { timeoutMs: 1000, maxTotalMs: 2500, onProgress: () => {} }));
    let failed = false;
    void request.then(() => (failed = true));
    for (let step = 1; step <= 3; step++) {
      await clock.advance(800);
      expect(failed).toBe(false);
      wire.notify("notifications/progress", { progressToken: 1, progress: step });
    }
    await clock.advance(99);
    expect(failed).toBe(false);
    await clock.advance(1);
    expect(await request).toMatchObject({ code: "timeout", details: { afterMs: 2500 } });
  });

  it("do not count time in which the server waits for us", async () => {
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    const { peer, wire, clock } = setUp(silent, "stdio", { onRequest: () => promise });
    const request = peer.request("work", {}, { timeoutMs: 1000, maxTotalMs: 10_000 });
    wire.ask("q", "elicitation/create");
    await clock.advance(5000);
    resolve({ action: "accept" });
    await clock.advance(500);
    wire.answer(1, { done: true });
    expect(await request).toEqual({ done: true });
  });

  it("[joy-01f] stand still while a person answers, however long that takes, and begin again with the answer", async () => {
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    const { peer, wire, clock } = setUp(silent, "stdio", { onRequest: () => promise });
    const options = { timeoutMs: 1000, maxTotalMs: 3000, client: { key: "c", capabilities: {} }, onProgress: () => {} };
    const request = failureOf(peer.request("work", {}, options));
    let failed = false;
    void request.then(() => (failed = true));
    await clock.advance(900);
    wire.ask("q", "elicitation/create");
    wire.ask("r", "elicitation/create");
    wire.notify("notifications/progress", { progressToken: 1, progress: 1 });
    await clock.advance(60_000);
    resolve({ action: "accept" });
    await clock.advance(999);
    expect(failed).toBe(false);
    await clock.advance(1);
    expect(await request).toMatchObject({ code: "timeout", details: { afterMs: 1900 } });
  });
});

describe("progress", () => {
  it("[spine-11c] arrives whole and before the result, and never after it", async () => {
    const { peer, wire } = setUp(silent);
    const seen: (Progress | string)[] = [];
    const request = peer
      .request("work", {}, { onProgress: (progress) => seen.push(progress) })
      .then(() => seen.push("result"));
    expect(wire.params("work")).toEqual({ _meta: { progressToken: 1 } });
    wire.notify("notifications/progress", { progressToken: 1, progress: 1, total: 2, message: "half", extra: "kept" });
    wire.notify("notifications/progress", { progressToken: 77, progress: 9 });
    wire.notify("notifications/progress", { progressToken: 1, progress: 2 });
    wire.answer(1, {});
    wire.notify("notifications/progress", { progressToken: 1, progress: 3 });
    await request;
    expect(seen).toEqual([{ progress: 1, total: 2, message: "half", extra: "kept" }, { progress: 2 }, "result"]);
  });

  it("is taken by the same ids as answers, and restarts the timeout", async () => {
    const { peer, wire, clock } = setUp(silent);
    const seen: Progress[] = [];
    const options = { timeoutMs: 1000, onProgress: (progress: Progress) => void seen.push(progress) };
    const request = peer.request("work", {}, options);
    await clock.advance(800);
    wire.notify("notifications/progress", { progressToken: "1", progress: 1 });
    await clock.advance(800);
    wire.answer(1, { ok: true });
    expect(await request).toEqual({ ok: true });
    expect(seen).toEqual([{ progress: 1 }]);
  });

  it("does not carry a token of the caller's own client upstream", async () => {
    const { peer, wire } = setUp({ work: () => ({}) });
    await peer.request("work", { _meta: { progressToken: "theirs", traceparent: "00-1" } });
    expect(wire.params("work")).toEqual({ _meta: { traceparent: "00-1" } });
  });

  it("survives a listener that throws", async () => {
    const { peer, wire, warnings } = setUp(silent);
    const onProgress = () => {
      throw new Error("mine");
    };
    const request = peer.request("work", {}, { onProgress });
    wire.notify("notifications/progress", { progressToken: 1, progress: 1 });
    wire.answer(1, { ok: 1 });
    expect(await request).toEqual({ ok: 1 });
    expect(warnings).toEqual([expect.stringContaining("mine")]);
  });
});

describe("cancellation", () => {
  it("[spine-11b] becomes notifications/cancelled", async () => {
    const { peer, wire } = setUp(silent);
    const controller = new AbortController();
    const request = failureOf(peer.request("work", {}, { signal: controller.signal }));
    controller.abort();
    expect((await request).code).toBe("cancelled");
    expect(wire.params("notifications/cancelled")).toMatchObject({ requestId: 1 });
  });

  it("[spine-11b] closes the request's stream on modern HTTP, without a notification", async () => {
    const { peer, wire } = setUp(silent, "http");
    peer.setEnvelope({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    const controller = new AbortController();
    const request = failureOf(peer.request("work", {}, { signal: controller.signal }));
    expect(wire.sent[0]?.options?.signal?.aborted).toBe(false);
    controller.abort();
    expect((await request).code).toBe("cancelled");
    expect(wire.sent[0]?.options?.signal?.aborted).toBe(true);
    expect(wire.methods()).toEqual(["work"]);
  });

  it("sends nothing for a signal that was aborted before", async () => {
    const { peer, wire } = setUp(silent);
    const error = await failureOf(peer.request("work", {}, { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: "cancelled", details: { sent: false } });
    expect(wire.sent).toEqual([]);
  });

  it("[spine-11d] of 10,000 calls on one signal leaves no listener and warns of none", async () => {
    const { peer, wire } = setUp(silent);
    const { signal } = new AbortController();
    const processWarnings: Error[] = [];
    const onWarning = (warning: Error): void => void processWarnings.push(warning);
    process.on("warning", onWarning);
    const all = Array.from({ length: 10_000 }, () => peer.request("work", {}, { signal, timeoutMs: 1000 }));
    expect(getEventListeners(signal, "abort")).toHaveLength(10_000);
    for (let id = 1; id <= 10_000; id++) wire.answer(id, {});
    await Promise.all(all);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    await settle();
    process.off("warning", onWarning);
    expect(processWarnings).toEqual([]);
  });

  it("leaves no timer behind", async () => {
    const { peer, clock } = setUp({ work: () => ({}) });
    await peer.request("work", {}, { timeoutMs: 1000 });
    expect(clock.pending).toBe(0);
  });
});

describe("requests of the server", () => {
  it("are answered, ping without asking anyone", async () => {
    const { wire } = setUp();
    wire.ask("a", "roots/list");
    wire.ask("b", "ping");
    await settle();
    expect(wire.answers()).toEqual([
      { jsonrpc: "2.0", id: "b", result: {} },
      { jsonrpc: "2.0", id: "a", result: { served: true } },
    ]);
  });

  it("are aborted by the server's cancellation and then get no answer", async () => {
    let aborted = false;
    const { wire } = setUp({}, "stdio", {
      onRequest: (_method, _params, { signal }) =>
        new Promise((resolve) => signal.addEventListener("abort", () => ((aborted = true), resolve({})))),
    });
    wire.ask("a", "sampling/createMessage");
    wire.notify("notifications/cancelled", { requestId: "a" });
    await settle();
    expect(aborted).toBe(true);
    expect(wire.answers()).toEqual([]);
  });

  it("do not cancel a request of ours that has the same id", async () => {
    const { peer, wire } = setUp(silent);
    const request = peer.request("work");
    wire.notify("notifications/cancelled", { requestId: 1 });
    wire.answer(1, { ok: true });
    expect(await request).toEqual({ ok: true });
  });

  it("[spine-12d] come with the client of the stream they arrived on", async () => {
    const seen: unknown[] = [];
    const { peer, wire } = setUp(silent, "http", {
      onRequest: (_method, _params, { client }) => {
        seen.push(client?.key);
        return Promise.resolve({});
      },
    });
    void peer.request("work", {}, { client: clientOf("one") });
    void peer.request("work", {}, { client: clientOf("two") });
    wire.ask("a", "roots/list", {}, 2);
    wire.ask("b", "roots/list");
    await settle();
    expect(seen).toEqual(["two", undefined]);
    expect(peer.callers().map(({ key }) => key)).toEqual(["one", "two"]);
  });
});
