import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeNotification, encodeResult } from "../../../../src/doors/mcp/rpc-messages.ts";
import { settle } from "../../../support/fake-clock.ts";
import { Bench, call, type EventReader } from "./bench.ts";
import { FakeEngine, type FakeSession } from "./fake-engine.ts";
import { eventually } from "../../../support/eventually.ts";

const HEARTBEAT_MS = 15_000;

let engine: FakeEngine;
let bench: Bench;

beforeEach(async () => {
  engine = new FakeEngine();
  bench = await new Bench(engine).open();
});
afterEach(() => bench.close());

function session(): FakeSession {
  const found = engine.sessions[0];
  if (found === undefined) throw new Error("no session was opened");
  return found;
}

async function hold(id: string, headers: Record<string, string>): Promise<EventReader> {
  const opening = bench.postStream(call(id, "hold"), headers);
  await eventually(() => engine.held.has(id));
  progress(id, 1);
  return opening;
}

function progress(id: string, value: number): void {
  engine.held.get(id)?.sink.send(encodeNotification("notifications/progress", { progress: value }));
}

function answer(id: string): void {
  engine.held.get(id)?.end(encodeResult(id, { done: true }));
}

const steps = (events: readonly { readonly message: Record<string, unknown> }[]): unknown[] =>
  events.map(
    ({ message }) => (message["params"] as Record<string, unknown> | undefined)?.["progress"] ?? message["result"],
  );

describe("the answer as a stream", () => {
  it("[gate-01a] begins with an event to resume from, says how long to wait, and ends with the answer", async () => {
    const stream = await bench.postStream(call("p", "progress"), await bench.initialize("2025-11-25"));
    expect(stream.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    const events = await stream.rest();
    expect(events[0]).toMatchObject({ id: "1-0", retry: "1000", data: "" });
    expect(events.map(({ id }) => id)).toEqual(["1-0", "1-1", "1-2"]);
    expect(events[1]?.message["method"]).toBe("notifications/progress");
    expect(events[2]?.message).toEqual({ jsonrpc: "2.0", id: "p", result: { done: true } });
    expect(stream.ended).toBe(true);
  });

  it("[gate-01a] older clients get no event without data, but ids all the same", async () => {
    const stream = await bench.postStream(call("p", "progress"), await bench.initialize("2025-06-18"));
    expect((await stream.rest()).map(({ id, data }) => [id, data === ""])).toEqual([
      ["1-1", false],
      ["1-2", false],
    ]);
  });

  it("[gate-01a] is taken up where it was cut, with what came meanwhile, and nothing of other streams", async () => {
    const headers = await bench.initialize();
    const first = await hold("a", headers);
    const other = await hold("b", headers);
    const events = [await first.next(), await first.next()];
    first.cut();
    await eventually(() => bench.http.streams === 1);
    progress("a", 2);
    progress("b", 7);
    session().tell("notifications/message", {});
    await bench.clock.advance(5_000);

    const again = await bench.getStream({ ...headers, "last-event-id": events[1]?.id ?? "" });
    expect((await again.next())?.id).toBe(events[1]?.id);
    progress("a", 3);
    answer("a");
    expect(steps(await again.rest())).toEqual([2, 3, { done: true }]);
    expect(session().abandoned).toEqual([]);
    answer("b");
    expect(steps(await other.rest())).toEqual([undefined, 1, 7, { done: true }]);
  });

  it("[gate-01a] can be asked for again after its end, from any event on", async () => {
    const headers = await bench.initialize();
    await (await bench.postStream(call("p", "progress"), headers)).rest();
    const all = await (await bench.getStream({ ...headers, "last-event-id": "1-0" })).rest();
    expect(all.map(({ id }) => id)).toEqual(["1-0", "1-1", "1-2"]);
    const last = await (await bench.getStream({ ...headers, "last-event-id": "1-2" })).rest();
    expect(last.map(({ id }) => id)).toEqual(["1-2"]);
    const stranger = await bench.initialize();
    for (const id of ["1-0", "99-1", "x", "1-1-1", "-1-0"]) {
      const refused = await bench.send("GET", "/mcp", {
        ...stranger,
        accept: "text/event-stream",
        "last-event-id": id,
      });
      expect(refused.status, id).toBe(400);
    }
  });

  it("[gate-01a] an answer that came while nobody was there waits for whoever resumes", async () => {
    const headers = await bench.initialize("2025-11-25");
    const opening = bench.postStream(call("slow", "hold"), headers);
    await eventually(() => engine.held.has("slow"));
    await bench.clock.advance(500);
    const stream = await opening;
    expect(await stream.next()).toMatchObject({ id: "1-0", retry: "1000", data: "" });
    stream.cut();
    await eventually(() => bench.http.streams === 0);
    answer("slow");
    await settle();
    await bench.clock.advance(60_000);
    const resumed = await (await bench.getStream({ ...headers, "last-event-id": "1-0" })).rest();
    expect(resumed.at(-1)?.message).toEqual({ jsonrpc: "2.0", id: "slow", result: { done: true } });
    expect(session().abandoned).toEqual([]);
  });

  it("[gate-01a] a call that takes its time becomes a stream to resume, which is kept alive", async () => {
    const headers = await bench.initialize("2025-11-25");
    const opening = bench.postStream(call("long", "hold"), headers);
    await eventually(() => engine.held.has("long"));
    await bench.clock.advance(500);
    const stream = await opening;
    expect((await stream.next())?.data).toBe("");
    expect(stream.comments).toEqual([]);
    await bench.clock.advance(2 * HEARTBEAT_MS);
    await eventually(() => stream.comments.length > 0);
    answer("long");
    expect((await stream.rest()).at(-1)?.message["id"]).toBe("long");
  });

  it("[gate-01a] a client that could not resume gets a stream only when the connection would fall silent", async () => {
    const headers = await bench.initialize("2025-06-18");
    const opening = bench.postStream(call("long", "hold"), headers);
    await eventually(() => engine.held.has("long"));
    await bench.clock.advance(HEARTBEAT_MS - 500);
    expect(bench.http.streams).toBe(0);
    await bench.clock.advance(1000);
    expect(bench.http.streams).toBe(1);
    answer("long");
    expect((await (await opening).rest()).map(({ message }) => message["id"])).toEqual(["long"]);
  });

  it("[gate-02c] a cancelled request ends without an answer", async () => {
    const headers = await bench.initialize();
    const opening = bench.postStream(call("c", "hold"), headers);
    await eventually(() => engine.held.has("c"));
    engine.held.get("c")?.end(null);
    const stream = await opening;
    expect([stream.status, await stream.rest()]).toEqual([200, []]);
    const asJson = bench.post(call("d", "hold"), { ...headers, accept: "application/json" });
    await eventually(() => engine.held.has("d"));
    engine.held.get("d")?.end(null);
    expect((await asJson).json).toMatchObject({ id: "d", error: { message: expect.stringContaining("cancelled") } });
  });
});

describe("the session's own stream", () => {
  it("[gate-01a] gets what came while nobody listened, and each kind of change once", async () => {
    const headers = await bench.initialize("2025-06-18");
    for (let round = 0; round < 3; round++) session().tell("notifications/tools/list_changed");
    session().tell("notifications/resources/updated", { uri: "a:1" });
    session().ask(1, "roots/list");
    session().tell("notifications/tools/list_changed");
    const stream = await bench.getStream(headers);
    const events = [await stream.next(), await stream.next(), await stream.next()];
    expect(events.map((event) => event?.message["method"])).toEqual([
      "notifications/resources/updated",
      "roots/list",
      "notifications/tools/list_changed",
    ]);
    session().tell("notifications/prompts/list_changed");
    session().tell("notifications/prompts/list_changed");
    expect((await stream.next())?.message["method"]).toBe("notifications/prompts/list_changed");
    expect((await stream.next())?.message["method"]).toBe("notifications/prompts/list_changed");
  });

  it("[gate-01a] is opened at once, and a newer one takes its place", async () => {
    const headers = await bench.initialize("2025-06-18");
    const first = await bench.getStream(headers);
    expect(first.status).toBe(200);
    const second = await bench.getStream(headers);
    expect(await first.next()).toBeUndefined();
    session().tell("notifications/message", { level: "info" });
    expect((await second.next())?.message["method"]).toBe("notifications/message");
    await eventually(() => bench.http.streams === 1);
  });

  it("[gate-01a] is resumed by Last-Event-ID with what was lost on the way", async () => {
    const headers = await bench.initialize("2025-11-25");
    const first = await bench.getStream(headers);
    const primed = await first.next();
    session().tell("notifications/message", { n: 1 });
    session().tell("notifications/message", { n: 2 });
    const one = await first.next();
    first.cut();
    await eventually(() => bench.http.streams === 0);
    session().tell("notifications/message", { n: 3 });
    const second = await bench.getStream({ ...headers, "last-event-id": one?.id ?? "" });
    const events = [await second.next(), await second.next(), await second.next()];
    expect(events.slice(1).map((event) => event?.message["params"])).toEqual([{ n: 2 }, { n: 3 }]);
    expect(primed?.id).toBe("0-0");
  });

  it("[gate-01a] DELETE ends it", async () => {
    const headers = await bench.initialize("2025-06-18");
    const stream = await bench.getStream(headers);
    await bench.send("DELETE", "/mcp", headers);
    expect(await stream.next()).toBeUndefined();
  });
});

describe("slow clients", () => {
  it("[gate-08f] a stream whose client does not read is ended, and what it missed can be resumed", async () => {
    const headers = await bench.initialize("2025-06-18");
    const stream = await bench.getStream(headers);
    stream.pauseReading();
    const text = "x".repeat(512 * 1024);
    for (let round = 0; round < 200 && bench.http.streams > 0; round++) {
      session().tell("notifications/message", { text, round });
      await settle(1);
    }
    expect(bench.http.streams).toBe(0);
    session().tell("notifications/message", { last: true });
    const again = await bench.getStream(headers);
    let event = await again.next();
    while (event !== undefined && (event.message["params"] as Record<string, unknown>)["last"] !== true) {
      event = await again.next();
    }
    expect(event).toBeDefined();
  });
});
