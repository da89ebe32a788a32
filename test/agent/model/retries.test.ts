import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { StepPart } from "../../../src/agent/model/chat-model.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import {
  contextTooLong,
  overloaded,
  rateLimited,
  type Scenario,
  type ScriptedModel,
  startScriptedModel,
  text,
  type Turn,
} from "../../../src/testing/index.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { ask, ImpatientClock, KEY, open, textOf, user, ways, WAYS } from "./opened-model.ts";

let scripted: ScriptedModel | undefined;
afterEach(async () => {
  await scripted?.close();
  scripted = undefined;
});

async function serve(scenario: Scenario): Promise<ScriptedModel> {
  scripted = await startScriptedModel(scenario, { apiKey: KEY, repeatLast: true });
  return scripted;
}

async function failure(asking: Promise<unknown>): Promise<ToolcribError> {
  const error = await asking.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ToolcribError) return error;
  throw new Error(`expected a ToolcribError, got ${String(error)}`);
}

function sinceAgain(parts: readonly StepPart[]): readonly StepPart[] {
  return parts.slice(parts.findLastIndex(({ type }) => type === "again") + 1);
}

describe.each(WAYS)("a model by %s", (way) => {
  it("[agent-04d] is asked again when it is busy, fails, or its answer breaks off", async () => {
    const broken: Turn[] = [
      rateLimited(7),
      overloaded(),
      { status: 500 },
      { text: "never", dropAfter: "request" },
      { text: ["Hal", "f"], dropAfter: 1 },
      { text: ["Hal", "f"], failAfter: 1 },
    ];
    const server = await serve([...broken, text("Whole.")]);
    const clock = new ImpatientClock();
    const model = await open(ways(server.url)[way], { retries: broken.length, clock });
    const parts = await ask(model, [user("Hi")]);
    const again = parts.filter((part) => part.type === "again");
    expect(again.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(again.map(({ delayMs }) => delayMs)).toEqual(clock.waits);
    expect(clock.waits[0]).toBeGreaterThanOrEqual(7000);
    // Each wait is longer than the one before, until the longest.
    expect(clock.waits[4]).toBeGreaterThan(clock.waits[2] ?? 0);
    expect(textOf(sinceAgain(parts))).toBe("Whole.");
    expect(server.problems).toEqual([]);
  });

  it("[agent-04d] is not asked again where that is of no use", async () => {
    const server = await serve([{ status: 401 }, { status: 403 }, { status: 404 }, { status: 400 }, contextTooLong()]);
    const clock = new ImpatientClock();
    const model = await open(ways(server.url)[way], { clock });
    const codes: string[] = [];
    for (let turn = 0; turn < 5; turn++) codes.push((await failure(ask(model, [user("Hi")]))).code);
    expect(codes).toEqual(["unauthorized", "unauthorized", "not_found", "invalid_arguments", "too_large"]);
    expect(clock.waits).toEqual([]);
    expect(server.requests).toHaveLength(5);
  });

  it("stops with the signal in the middle of the stream", async () => {
    const server = await serve([{ text: ["Once", "upon"], stallAfter: 1 }]);
    const model = await open(ways(server.url)[way]);
    const stop = new AbortController();
    const parts: StepPart[] = [];
    const asking = (async () => {
      for await (const part of model.step({ system: "", messages: [user("Hi")], tools: [], signal: stop.signal })) {
        parts.push(part);
        stop.abort();
      }
    })();
    expect((await failure(asking)).code).toBe("cancelled");
    expect(textOf(parts)).toBe("Once");
    await expect.poll(() => server.aborted).toBe(1);
  });

  it("stops the model when nobody reads on", async () => {
    const server = await serve([{ text: ["Once", "upon"], stallAfter: 1 }]);
    const model = await open(ways(server.url)[way]);
    const signal = new AbortController().signal;
    for await (const part of model.step({ system: "", messages: [user("Hi")], tools: [], signal })) {
      if (part.type === "text") break;
    }
    await expect.poll(() => server.aborted).toBe(1);
  });
});

it("[agent-04d] gives up after the retries, with what the provider said", async () => {
  const server = await serve([{ status: 429, message: "Slow down." }]);
  const limited = await failure(ask(await open(ways(server.url).compatible, { retries: 2 }), [user("Hi")]));
  expect(limited).toMatchObject({ code: "rate_limited", details: { status: 429 } });
  expect(limited.message).toContain("Slow down.");
  expect(server.requests).toHaveLength(3);
});

it("[agent-04d] does not wait for a provider that asks for a very long pause", async () => {
  const server = await serve([rateLimited(3600)]);
  const clock = new ImpatientClock();
  const error = await failure(ask(await open(ways(server.url).anthropic, { clock }), [user("Hi")]));
  expect(error).toMatchObject({ code: "rate_limited", details: { retryAfterMs: 3_600_000 } });
  expect(clock.waits).toEqual([]);
});

it("[agent-04d] does not ask again when the quota is used up", async () => {
  const server = await serve([{ status: 429, message: "You have insufficient_quota." }]);
  const error = await failure(ask(await open(ways(server.url).openai), [user("Hi")]));
  expect(error.code).toBe("rate_limited");
  expect(server.requests).toHaveLength(1);
});

it("ends at once when it is aborted during a wait", async () => {
  const server = await serve([rateLimited(30)]);
  const clock = new FakeClock();
  const model = await open(ways(server.url).compatible, { clock });
  const stop = new AbortController();
  const steps = model.step({ system: "", messages: [user("Hi")], tools: [], signal: stop.signal });
  const iterator = steps[Symbol.asyncIterator]();
  expect((await iterator.next()).value).toMatchObject({ type: "again", attempt: 1 });
  const waiting = failure(iterator.next());
  await settle();
  expect(clock.pending).toBe(1);
  stop.abort();
  expect((await waiting).code).toBe("cancelled");
  expect(clock.pending).toBe(0);
  expect(server.requests).toHaveLength(1);
});

it("never repeats the key that a provider repeats, and says what to set", async () => {
  const server = await serve([{ status: 401, message: `Incorrect API key provided: ${KEY}. Header: Bearer ${KEY}` }]);
  for (const way of WAYS) {
    const error = await failure(ask(await open(ways(server.url)[way]), [user("Hi")]));
    expect(JSON.stringify(error.toObject())).not.toContain(KEY);
    expect(error.message).toContain("Incorrect API key provided: ***");
    expect(error.hint).toMatch(/_API_KEY|apiKey/);
  }
});

it("says at once that nothing runs at a local address, and how to start it", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens on TCP has an address of this shape.
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const clock = new ImpatientClock();
  const model = await open({ setting: "ollama/qwen3", env: { OLLAMA_HOST: `127.0.0.1:${port}` } }, { clock });
  const error = await failure(ask(model, [user("Hi")]));
  expect(error).toMatchObject({ code: "server_unavailable", hint: expect.stringContaining("ollama serve") });
  expect(clock.waits).toEqual([]);
});

it("follows no redirect, which would take the key elsewhere", async () => {
  const server = await serve([text("Not for you.")]);
  const elsewhere = createServer((_request, response) => {
    response.writeHead(307, { location: `${server.url}/v1/messages` }).end();
  });
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  try {
    // A server that listens on TCP has an address of this shape.
    const { port } = elsewhere.address() as AddressInfo;
    const model = await open(ways(`http://127.0.0.1:${port}`).anthropic);
    expect((await failure(ask(model, [user("Hi")]))).code).toBe("invalid_config");
    expect(server.requests).toEqual([]);
  } finally {
    elsewhere.close();
  }
});

it("takes a web page for a wrong address, and does not ask again", async () => {
  const pages = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<html>Log in</html>");
  });
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  try {
    // A server that listens on TCP has an address of this shape.
    const { port } = pages.address() as AddressInfo;
    const clock = new ImpatientClock();
    const model = await open(ways(`http://127.0.0.1:${port}`).compatible, { clock });
    const error = await failure(ask(model, [user("Hi")]));
    expect(error).toMatchObject({ code: "invalid_config", hint: expect.stringContaining("baseUrl") });
    expect(clock.waits).toEqual([]);
  } finally {
    pages.close();
  }
});
