import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { context, propagation, SpanKind, SpanStatusCode, trace, TraceFlags } from "@opentelemetry/api";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { Tracing } from "../../src/telemetry/tracing.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { settle } from "../support/fake-clock.ts";
import { type RecordedSpan, recordTraces } from "../support/trace-recorder.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const META = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: "rojo=1", baggage: "who=ann", mine: { x: 1 } };

const dir = mkdtempSync(join(tmpdir(), "toolcrib-tracing-"));
let hub: Hub;
let recorder: ReturnType<typeof recordTraces> | undefined;

beforeAll(async () => {
  const script = join(dir, "script.json");
  const echo = { content: [], __meta: true };
  const tools = ["echo", "fail", "refuse"].map((name) => ({ name, inputSchema: { type: "object" } }));
  const results = { echo, fail: { content: [], isError: true }, refuse: { __error: { code: -32000, message: "no" } } };
  const reads = { "file:///a": { contents: [], __meta: true } };
  const resources = [{ uri: "file:///a", name: "a" }];
  writeFileSync(script, JSON.stringify({ tools, results, resources, reads }));
  const server = resolve(import.meta.dirname, "../fixtures/scripted-server.mjs");
  const registry = new ToolRegistry();
  registry.register({
    name: "local",
    description: "Says which span is active.",
    parameters: { type: "object" },
    execute: async () => ({
      content: [],
      structuredContent: { active: trace.getSpanContext(context.active())?.spanId ?? null },
    }),
  });
  hub = await createHub(
    {
      mcpServers: { up: { command: process.execPath, args: [server, script] } },
      tools: { deny: ["up__never"], max: 1 },
    },
    { home: join(dir, "home"), registry },
  );
});
afterEach(() => {
  recorder?.stop();
  recorder = undefined;
});
afterAll(async () => {
  await hub.close();
  rmSync(dir, { recursive: true, force: true });
});

async function call(name: string, meta?: JsonObject, door = "mcp"): Promise<{ result: JsonObject; callId: string }> {
  using session = hub.openSession({ door, owner: true });
  const outcome = await hub.call({ session, name, meta });
  return { result: { ...outcome.result }, callId: outcome.callId };
}

/** The API is loaded when the first call sees that somebody has registered. */
async function traced(): Promise<RecordedSpan[]> {
  recorder = recordTraces();
  await call("up__echo");
  await settle();
  recorder.spans.length = 0;
  return recorder.spans;
}

function receivedBy({ result }: { result: JsonObject }): JsonObject {
  const { meta } = result["structuredContent"] as { meta: JsonObject };
  const { progressToken: _ofThisHop, ...rest } = meta;
  return rest;
}

describe("[oper-12b] without an SDK", () => {
  it("the caller's trace context reaches the server unchanged", async () => {
    expect(receivedBy(await call("up__echo", META))).toEqual(META);
    expect(receivedBy(await call("up__echo"))).toEqual({});
  });

  it("nothing is begun", () => {
    const tracing = new Tracing((text) => text);
    const looked: PropertyKey[] = [];
    const call = new Proxy({} as Parameters<Tracing["begin"]>[0], { get: (_call, key) => void looked.push(key) });
    expect(tracing.begin(call)).toBeUndefined();
    expect(looked).toEqual([]);
  });
});

describe("[oper-12b] with an SDK", () => {
  it("a call is a span of the caller's trace, with one for the server within it", async () => {
    const spans = await traced();
    const answer = await call("up__echo", META);
    const [served, sent] = spans;
    expect(spans).toHaveLength(2);
    expect(served).toMatchObject({
      name: "tools/call up__echo",
      kind: SpanKind.SERVER,
      ended: true,
      parent: { traceId: TRACE, spanId: PARENT },
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "up__echo",
        "toolcrib.call_id": answer.callId,
        "toolcrib.server": "up",
        "toolcrib.door": "mcp",
        "toolcrib.decision": "allow",
        "toolcrib.outcome": "ok",
      },
    });
    expect(sent).toMatchObject({
      name: "tools/call echo",
      kind: SpanKind.CLIENT,
      ended: true,
      parent: { traceId: TRACE, spanId: served?.spanContext().spanId },
      attributes: { "gen_ai.tool.name": "echo", "toolcrib.server": "up" },
    });
    const { tracestate: _ofTheParent, ...kept } = META;
    expect(receivedBy(answer)).toEqual({ ...kept, traceparent: `00-${TRACE}-${sent?.spanContext().spanId}-01` });
  });

  it("one without a parent begins a trace, which goes on upstream", async () => {
    const spans = await traced();
    const answer = await call("up__echo", undefined, "library");
    expect(spans[0]).toMatchObject({ kind: SpanKind.INTERNAL, parent: undefined });
    const { traceId, spanId } = spans[1]?.spanContext() ?? {};
    expect(receivedBy(answer)).toEqual({ traceparent: `00-${traceId}-${spanId}-01` });
  });

  it("what carried the message is the parent, or is linked where _meta names one", async () => {
    const spans = await traced();
    const around = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: TraceFlags.SAMPLED };
    const within = trace.setSpanContext(context.active(), around);
    await context.with(within, () => call("up__echo"));
    await context.with(within, () => call("up__echo", META));
    expect(spans[0]).toMatchObject({ parent: around, links: [] });
    expect(spans[2]).toMatchObject({ parent: { spanId: PARENT }, links: [{ context: around }] });
  });

  it.each([
    ["up__fail", "tools/call up__fail", 2],
    ["up__refuse", "tools/call up__refuse", 2],
    ["up__made-up-by-the-caller", "tools/call", 1],
  ])("a failure has its code, and no name that a caller made up: %s", async (name, shown, count) => {
    const spans = await traced();
    await call(name);
    const failed = { status: { code: SpanStatusCode.ERROR }, ended: true };
    const code = count === 1 ? "not_found" : "tool_error";
    expect(spans[0]).toMatchObject({ name: shown, attributes: { "error.type": code, "toolcrib.outcome": code } });
    expect(spans).toHaveLength(count);
    for (const span of spans) expect(span).toMatchObject(failed);
  });

  it("a resource is named by an attribute only", async () => {
    const spans = await traced();
    await hub.read({ uri: "file:///a" });
    expect(spans.map(({ name }) => name)).toEqual(["resources/read", "resources/read"]);
    expect(spans[0]?.attributes["mcp.resource.uri"]).toBe("file:///a");
  });

  it("in-process tools run within the call's span, and calls within calls below it", async () => {
    const spans = await traced();
    const { result } = await call("local");
    expect(spans).toHaveLength(1);
    expect(result["structuredContent"]).toEqual({ active: spans[0]?.spanContext().spanId });

    spans.length = 0;
    using session = hub.openSession({ door: "mcp", owner: true });
    await hub.call({ session, name: "toolcrib_call", arguments: { name: "up__echo", arguments: {} } });
    expect(spans.map(({ name }) => name)).toEqual([
      "tools/call toolcrib_call",
      "tools/call up__echo",
      "tools/call echo",
    ]);
    expect(spans[1]?.parent?.spanId).toBe(spans[0]?.spanContext().spanId);
    expect(spans[1]?.links).toEqual([]);
  });

  it("a fault of it harms no call", async () => {
    await traced();
    recorder?.stop();
    const broken = (): never => {
      throw new Error("broken SDK");
    };
    trace.setGlobalTracerProvider({ getTracer: broken });
    try {
      expect(receivedBy(await call("up__echo", META))).toEqual(META);
    } finally {
      trace.disable();
    }
  });

  it.each(["startSpan", "with", "inject"])("a fault of it in %s harms no call that has begun", async (place) => {
    await traced();
    recorder?.stop();
    const broken = (): never => {
      throw new Error("broken SDK");
    };
    const span = trace.wrapSpanContext({ traceId: TRACE, spanId: PARENT, traceFlags: TraceFlags.SAMPLED });
    let started = 0;
    const startSpan = (): typeof span => (place === "startSpan" && started++ % 2 === 1 ? broken() : span);
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: broken }) });
    const within = vi.spyOn(context, "with");
    const inject = vi.spyOn(propagation, "inject");
    if (place === "with") within.mockImplementation(broken);
    if (place === "inject") inject.mockImplementation(broken);
    try {
      expect(receivedBy(await call("up__echo", META))).toEqual(META);
      expect((await call("local")).result).toHaveProperty("structuredContent");
      expect([started, within.mock.calls.length, inject.mock.calls.length]).not.toEqual([0, 0, 0]);
    } finally {
      within.mockRestore();
      inject.mockRestore();
      trace.disable();
    }
  });
});
