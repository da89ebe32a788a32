import { afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { ToolAuthorizationError, ToolInputError, type Tool } from "../../../src/model/tool.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";

const ANYTHING = { type: "object" };

function tool(name: string, execute: Tool["execute"], extra: Partial<Tool> = {}): Tool {
  return { name, description: `Does ${name}.`, parameters: ANYTHING, execute, ...extra };
}

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

async function hubWith(tools: Tool[], config: ConfigInput = {}, options: HubOptions = {}): Promise<Hub> {
  const registry = new ToolRegistry();
  for (const each of tools) registry.register(each);
  hub = await createHub(config, { registry, ...options });
  return hub;
}

describe("[spine-17a] the call path", () => {
  it("ends a good call in an Outcome with the result and one record", async () => {
    const records: CallRecord[] = [];
    const hub = await hubWith([tool("greet", async (_id, params) => text(`hello ${String(params["who"])}`))]);
    hub.on("call", (record) => records.push(record));

    const outcome = await hub.call({ name: "greet", arguments: { who: "world" } });

    expect(outcome).toMatchObject({ ok: true, result: { content: [{ type: "text", text: "hello world" }] } });
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      callId: outcome.callId,
      session: hub.session.id,
      name: "greet",
      origin: { source: "local", name: "greet" },
      decision: "allow",
      outcome: "ok",
    });
    expect(records[0]?.resultBytes).toBeGreaterThan(10);
    expect(JSON.stringify(records)).not.toContain("world");
  });

  it("gives near matches for an unknown name", async () => {
    const hub = await hubWith([tool("read_file", async () => text("")), tool("write_file", async () => text(""))]);
    const outcome = await hub.call({ name: "read_fil" });
    expect(outcome).toMatchObject({ ok: false, error: { code: "not_found", details: { nearMatches: ["read_file"] } } });
  });

  it("keeps near matches to what the session may see", async () => {
    const hub = await hubWith([tool("read_file", async () => text("")), tool("real_file", async () => text(""))], {
      tools: { deny: ["read_file"] },
    });
    const outcome = await hub.call({ name: "rea_file" });
    expect(JSON.stringify(outcome)).toContain("real_file");
    expect(JSON.stringify(outcome)).not.toContain("read_file");
  });

  it("tells an operator that a tool is denied, and anyone else that it does not exist", async () => {
    const hub = await hubWith([tool("wipe", async () => text("gone"))], { tools: { deny: ["wi*"] } });
    const denied = await hub.call({ name: "wipe" });
    expect(denied).toMatchObject({
      ok: false,
      error: { code: "denied", details: { rule: { level: "hub", list: "deny", pattern: "wi*" } } },
    });

    const guest = hub.openSession({ owner: false });
    const hidden = await hub.call({ session: guest, name: "wipe" });
    const absent = await hub.call({ session: guest, name: "none" });
    expect(hidden).toMatchObject({ ok: false, error: { code: "not_found", message: 'There is no tool "wipe".' } });
    expect(absent).toMatchObject({ ok: false, error: { code: "not_found", message: 'There is no tool "none".' } });
    expect(hub.view(hub.session).tools).toEqual([]);
  });

  it("needs an owner session for ownerOnly tools", async () => {
    const hub = await hubWith([tool("reboot", async () => text("ok"), { ownerOnly: true })]);
    expect(await hub.call({ name: "reboot" })).toMatchObject({ ok: true });
    const guest = hub.openSession({ owner: false });
    expect(hub.view(guest).tools).toEqual([]);
    expect(await hub.call({ session: guest, name: "reboot" })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    });
  });

  it.each([
    ["invalid_arguments", new ToolInputError("no such city")],
    ["denied", new ToolAuthorizationError("not for you")],
  ])("maps a thrown %s error", async (code, error) => {
    const hub = await hubWith([
      tool("fails", async () => {
        throw error;
      }),
    ]);
    const outcome = await hub.call({ name: "fails" });
    expect(outcome).toMatchObject({ ok: false, error: { code, message: expect.stringContaining(error.message) } });
    expect(outcome.result).toBeUndefined();
  });

  it("keeps the result of a tool that reports an error itself", async () => {
    const hub = await hubWith([
      tool("fails", async () => {
        throw new Error("disk full");
      }),
    ]);
    expect(await hub.call({ name: "fails" })).toMatchObject({
      ok: false,
      error: { code: "tool_error", message: "disk full" },
      result: { isError: true, content: [{ type: "text", text: "disk full" }] },
    });
  });

  it("refuses arguments that do not fit before the tool runs", async () => {
    let ran = false;
    const hub = await hubWith([
      tool(
        "add",
        async () => {
          ran = true;
          return text("");
        },
        { parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } },
      ),
    ]);
    expect(await hub.call({ name: "add", arguments: { a: "x" } })).toMatchObject({
      ok: false,
      error: { code: "invalid_arguments" },
    });
    expect(ran).toBe(false);
  });

  it("cancels through the signal, before and during the call, and when the session closes", async () => {
    let seen: AbortSignal | undefined;
    const hub = await hubWith([
      tool("wait", (_id, _params, signal) => {
        seen = signal;
        return new Promise(() => {});
      }),
    ]);
    const controller = new AbortController();
    const pending = hub.call({ name: "wait", signal: controller.signal });
    await expect.poll(() => seen).toBeDefined();
    controller.abort();
    expect(await pending).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(seen?.aborted).toBe(true);
    expect(await hub.call({ name: "wait", signal: controller.signal })).toMatchObject({
      ok: false,
      error: { code: "cancelled" },
    });

    const session = hub.openSession();
    const orphan = hub.call({ session, name: "wait" });
    session.close();
    expect(await orphan).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(await hub.call({ session, name: "wait" })).toMatchObject({
      ok: false,
      error: { message: "The session is closed." },
    });
  });

  it.each([
    ["arguments", { name: "act", arguments: [1] }],
    ["a name", { name: 7 }],
  ])("refuses %s of the wrong type", async (_what, request) => {
    const hub = await hubWith([tool("act", async () => text("fine"))]);
    // What a caller without types may hand over.
    const wrong = request as unknown as { name: string };
    expect(await hub.call(wrong)).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    expect(() => hub.tools({ for: "nobody" as "raw" })).toThrow(/There is no provider/);
  });

  it("passes progress on", async () => {
    const hub = await hubWith([
      tool("work", async (_id, _params, _signal, onUpdate) => {
        onUpdate?.(text("half"));
        return text("done");
      }),
    ]);
    const seen: JsonObject[] = [];
    await hub.call({ name: "work", onProgress: (progress) => seen.push(progress) });
    expect(seen).toMatchObject([{ message: "half" }]);
  });
});

describe("[spine-17d] limits", () => {
  it("[guard-05a] limits calls per minute, with the time to wait", async () => {
    const hub = await hubWith([tool("ping", async () => text("pong"))], { limits: { callsPerMinute: 2 } });
    await hub.call({ name: "ping" });
    await hub.call({ name: "ping" });
    const third = await hub.call({ name: "ping" });
    expect(third).toMatchObject({
      ok: false,
      error: { code: "rate_limited", hint: expect.stringMatching(/^Try again in \d+ s\.$/) },
    });
  });

  it("limits calls under way, and lets the next one in when one ends", async () => {
    const waiting: (() => void)[] = [];
    const hub = await hubWith(
      [tool("hold", () => new Promise((resolve) => waiting.push(() => resolve(text("held")))))],
      { limits: { concurrency: 1 } },
    );
    const first = hub.call({ name: "hold" });
    await expect.poll(() => waiting).toHaveLength(1);
    expect(await hub.call({ name: "hold" })).toMatchObject({ ok: false, error: { code: "rate_limited" } });
    waiting[0]?.();
    expect(await first).toMatchObject({ ok: true });
    const next = hub.call({ name: "hold" });
    await expect.poll(() => waiting).toHaveLength(2);
    waiting[1]?.();
    expect(await next).toMatchObject({ ok: true });
  });

  it("refuses a result above the size limit", async () => {
    const hub = await hubWith([tool("big", async () => text("x".repeat(5000)))], { limits: { resultBytes: 1000 } });
    expect(await hub.call({ name: "big" })).toMatchObject({ ok: false, error: { code: "too_large" } });
  });
});

describe("[spine-17b] hooks", () => {
  it("refuse before the tool runs, and fail closed when they throw", async () => {
    let ran = 0;
    const hub = await hubWith([tool("act", async () => (ran++, text("done")))]);
    const remove = hub.use({ before: () => ({ refuse: "not on Sundays" }) });
    expect(await hub.call({ name: "act" })).toMatchObject({
      ok: false,
      error: { code: "denied", message: expect.stringContaining("not on Sundays") },
    });
    remove();
    const removeThrowing = hub.use({
      before() {
        throw new Error("hook bug");
      },
    });
    expect(await hub.call({ name: "act" })).toMatchObject({ ok: false, error: { code: "denied" } });
    removeThrowing();
    expect(ran).toBe(0);
    expect(await hub.call({ name: "act" })).toMatchObject({ ok: true });
  });

  it("narrow arguments and content, and annotate result and record", async () => {
    let got: JsonObject = {};
    const records: CallRecord[] = [];
    const hub = await hubWith([
      tool("act", async (_id, params) => {
        got = params;
        return {
          content: [
            { type: "text", text: "keep" },
            { type: "image", data: "AA==", mimeType: "image/png" },
          ],
        };
      }),
    ]);
    hub.on("call", (record) => records.push(record));
    hub.use({
      before: () => ({ omitArguments: ["secret"], annotate: { ticket: 7 } }),
      after: () => ({ keepContent: (block) => block.type === "text" }),
      persist: () => ({ annotate: { kept: true } }),
    });
    const outcome = await hub.call({ name: "act", arguments: { secret: 1, open: 2 } });
    expect(got).toEqual({ open: 2 });
    expect(outcome).toMatchObject({
      ok: true,
      result: { content: [{ type: "text", text: "keep" }], _meta: { "toolcrib/notes": { ticket: 7 } } },
    });
    expect(records[0]?.notes).toEqual({ ticket: 7, kept: true });
  });

  it("see copies: what they change reaches neither the tool nor the caller", async () => {
    let got: JsonObject = {};
    const hub = await hubWith([tool("act", async (_id, params) => ((got = params), text("fine")))]);
    hub.use({
      before: (call) => void Reflect.set(call.arguments, "a", 99),
      after: (_call, result) => void Reflect.set(result, "isError", true),
    });
    expect(await hub.call({ name: "act", arguments: { a: 1 } })).toMatchObject({ ok: true });
    expect(got).toEqual({ a: 1 });
  });

  it("that throw in persist lose no record and no result", async () => {
    const records: CallRecord[] = [];
    const hub = await hubWith([tool("act", async () => text("fine"))]);
    hub.on("call", (record) => records.push(record));
    hub.use({
      persist() {
        throw new Error("hook bug");
      },
    });
    expect(await hub.call({ name: "act" })).toMatchObject({ ok: true });
    expect(records).toMatchObject([{ notes: { persistHookFailed: "hook bug" } }]);
  });

  it("withhold a result as blocked, and keep a record back", async () => {
    const records: CallRecord[] = [];
    const hub = await hubWith([tool("act", async () => text("leak"))]);
    hub.on("call", (record) => records.push(record));
    hub.use({ after: () => ({ refuse: "looks bad" }), persist: () => ({ refuse: true }) });
    const outcome = await hub.call({ name: "act" });
    expect(outcome).toMatchObject({ ok: false, error: { code: "blocked" } });
    expect(JSON.stringify(outcome)).not.toContain("leak");
    expect(records).toEqual([]);
  });
});
