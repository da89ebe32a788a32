import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ParkedCalls, ParkableCall } from "../../../src/doors/mcp/parked-calls.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { everything } from "../../support/servers.ts";
import { doorOn, guest, LegacyClient, ModernClient, type Answer } from "./door-bench.ts";
import { eventually } from "../../support/eventually.ts";

/** Who reads a form before they refuse takes longer than a second. */
const A_PERSON_MS = 1100;
const SAMPLE = { name: "e__trigger-sampling-request", arguments: { prompt: "Say hi", maxTokens: 5 } };
const SAMPLED = { role: "assistant", model: "m", content: { type: "text", text: "hi there" } };
const canSample = { capabilities: { sampling: {} } };

interface Question {
  readonly key: string;
  readonly state: string;
  readonly request: { method: string; params: JsonObject };
}

function questionIn(answer: Answer | null): Question {
  const { inputRequests, requestState, resultType } = answer?.result ?? {};
  expect(resultType).toBe("input_required");
  const [[key, request] = ["", undefined]] = Object.entries(inputRequests as Record<string, Question["request"]>);
  if (request === undefined) throw new Error("nothing was asked");
  return { key, state: String(requestState), request };
}

describe("[gate-02a] a legacy server that asks a modern client in the middle of a call", () => {
  it("gets its answer from a retry with the state", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const client = new ModernClient(door);
    const asked = questionIn(await client.request("tools/call", SAMPLE, canSample));
    expect(asked.request.method).toBe("sampling/createMessage");
    expect(asked.request.params["maxTokens"]).toBe(5);
    const retry = { ...SAMPLE, requestState: asked.state, inputResponses: { [asked.key]: SAMPLED } };
    const answer = await client.request("tools/call", retry, canSample);
    expect(answer?.id).toBe(2);
    expect(JSON.stringify(answer?.result)).toContain("hi there");
    // The state is used up.
    expect((await client.request("tools/call", retry, canSample))?.error?.code).toBe(-32602);
    expect(door.busy).toBe(0);
  });

  it("[whole-39a] may have begun: who comes with a state that is gone is told so", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const client = new ModernClient(door);
    const asked = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const retry = { ...SAMPLE, requestState: `${asked.state}x`, inputResponses: { [asked.key]: SAMPLED } };
    const answer = await client.request("tools/call", retry, canSample);
    expect(answer?.error).toMatchObject({ code: -32602, message: expect.stringContaining("may have begun: see what") });
  });

  it("is asked again for what a retry leaves out, and ignores what nobody asked for", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const client = new ModernClient(door);
    const first = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const incomplete = { ...SAMPLE, requestState: first.state, inputResponses: { other: {} } };
    const second = questionIn(await client.request("tools/call", incomplete, canSample));
    expect(second.key).toBe(first.key);
    expect(second.state).not.toBe(first.state);
    const complete = { ...SAMPLE, requestState: second.state, inputResponses: { [second.key]: SAMPLED } };
    expect((await client.request("tools/call", complete, canSample))?.result?.["resultType"]).toBe("complete");
  });

  it("refuses the state of another caller or another request, and keeps it for the right one", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const client = new ModernClient(door, { caller: guest("ada") });
    const { key, state } = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const retry = { ...SAMPLE, requestState: state, inputResponses: { [key]: SAMPLED } };
    const eve = new ModernClient(door, { caller: guest("eve") });
    expect((await eve.request("tools/call", retry, canSample))?.error?.code).toBe(-32602);
    const other = { ...retry, arguments: { ...SAMPLE.arguments, prompt: "Something else" } };
    expect((await client.request("tools/call", other, canSample))?.error?.code).toBe(-32602);
    expect((await client.request("tools/call", { ...retry, requestState: `${state}x` }, canSample))?.error?.code).toBe(
      -32602,
    );
    expect((await client.request("tools/call", retry, canSample))?.result?.["resultType"]).toBe("complete");
  });

  it("is asked again by a client that never came back to its first question", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const client = new ModernClient(door);
    const forgotten = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const asked = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const retry = (question: Question, model: string): JsonObject => ({
      ...SAMPLE,
      requestState: question.state,
      inputResponses: { [question.key]: { ...SAMPLED, model } },
    });
    const second = await client.request("tools/call", retry(asked, "second"), canSample);
    expect(JSON.stringify(second?.result)).toContain("second");
    const first = await client.request("tools/call", retry(forgotten, "first"), canSample);
    expect(JSON.stringify(first?.result)).toContain("first");
    // Another caller's question must not be taken for one of this caller's.
    const parked = questionIn(await client.request("tools/call", SAMPLE, canSample));
    const other = new ModernClient(door, { caller: guest("eve") });
    expect((await other.request("tools/call", SAMPLE, canSample))?.result?.["isError"]).toBe(true);
    expect((await client.request("tools/call", retry(parked, "third"), canSample))?.result).toBeDefined();
  });

  it("gives the call up when the answer does not come in time", async () => {
    const clock = new FakeClock();
    const { door, hub } = await doorOn({ mcpServers: { e: everything() } }, {}, { clock });
    const outcomes: string[] = [];
    hub.on("call", ({ outcome }) => outcomes.push(outcome));
    const client = new ModernClient(door);
    const { state } = questionIn(await client.request("tools/call", SAMPLE, canSample));
    await clock.advance(11 * 60_000);
    await eventually(() => outcomes.includes("cancelled"));
    const late = { ...SAMPLE, requestState: state, inputResponses: {} };
    expect((await client.request("tools/call", late, canSample))?.error?.code).toBe(-32602);
  });

  it("is refused what the client cannot do, and the client learns what it must declare", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const answer = await new ModernClient(door).request("tools/call", SAMPLE);
    expect(answer?.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } });
  });

  it("[gate-02a] does not park a call whose server took its question back", async () => {
    const key = { caller: "ada", method: "tools/call", params: {} };
    const round = { sink: { send: () => {} }, progressToken: undefined };
    const call = new ParkableCall(new ParkedCalls(new FakeClock()), key, { owner: true }, { sampling: {} }, round);
    const noLonger = new AbortController();
    const answer = await call.run(new AbortController().signal, async () => {
      await delay(0);
      const question = call.client.sample?.({}, { server: "e", signal: noLonger.signal });
      await delay(0);
      noLonger.abort();
      await expect(question).rejects.toMatchObject({ code: "cancelled" });
      return ["answered"];
    });
    expect(answer).toEqual(["answered"]);
  });

  it("does not take a question for roots for the reason why a call failed", async () => {
    const key = { caller: "ada", method: "resources/read", params: { uri: "none://such" } };
    const call = new ParkableCall(
      new ParkedCalls(new FakeClock()),
      key,
      { owner: true },
      {},
      { sink: { send: () => {} }, progressToken: undefined },
    );
    const context = { server: "e", signal: new AbortController().signal };
    await expect(call.client.listRoots?.(context)).rejects.toMatchObject({ code: "denied" });
    expect(call.missingCapability()).toBeUndefined();
    await expect(call.client.sample?.({}, context)).rejects.toMatchObject({ code: "denied" });
    expect(call.missingCapability()?.code).toBe(-32021);
  });
});

describe("[gate-02a] a legacy server that asks a legacy client", () => {
  it("reaches the client whose call it is, among several", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    const served: string[] = [];
    const clientOf = async (name: string): Promise<LegacyClient> => {
      const client = new LegacyClient(door, {
        serve: (method) => {
          served.push(`${name} ${method}`);
          return { ...SAMPLED, model: name };
        },
      });
      await client.initialize({ sampling: {} });
      return client;
    };
    const [ada, bob] = [await clientOf("ada"), await clientOf("bob")];
    const forBob = await bob.request("tools/call", SAMPLE);
    expect(JSON.stringify(forBob.result)).toContain("bob");
    const forAda = await ada.request("tools/call", SAMPLE);
    expect(JSON.stringify(forAda.result)).toContain("ada");
    expect(served).toEqual(["bob sampling/createMessage", "ada sampling/createMessage"]);
  });

  it("learns the roots of an only client, and their changes", async () => {
    const { door } = await doorOn({ mcpServers: { e: everything() } });
    let roots = [{ uri: "file:///one", name: "one" }];
    const client = new LegacyClient(door, { serve: (method) => (method === "roots/list" ? { roots } : {}) });
    await client.initialize({ roots: { listChanged: true } });
    const listed = async (): Promise<string> => JSON.stringify((await client.call("e__get-roots-list")).result);
    for (;;) if ((await listed()).includes("file:///one")) break;
    roots = [{ uri: "file:///two", name: "two" }];
    client.session.notify({ jsonrpc: "2.0", method: "notifications/roots/list_changed" });
    for (;;) if ((await listed()).includes("file:///two")) break;
    expect(await listed()).not.toContain("file:///one");
  });
});

describe("[gate-09a] what a server asks outside of any call", () => {
  /** Counts how often a client that has roots is asked for them, before it has called anything. */
  const countAsked = async (origin: object): Promise<() => number> => {
    const { door } = await doorOn({ mcpServers: { e: everything() }, roles: { none: { servers: [] } } });
    let asked = 0;
    const serve = (): JsonObject => {
      asked += 1;
      return { roots: [] };
    };
    await new LegacyClient(door, { origin, serve }).initialize({ roots: { listChanged: true } });
    return () => asked;
  };

  it("reaches an only client of the hub's own user that sees the server", async () => {
    const asked = await countAsked({});
    expect(await eventually(() => asked() > 0)).toBe(true);
  });

  it("reaches no guest, and nobody who does not see the server", async () => {
    const asked = await Promise.all([{ caller: guest("eve") }, { scope: { role: "none" } }].map(countAsked));
    // One that may be asked has been asked long before.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(asked.map((count) => count())).toEqual([0, 0]);
  });
});

describe("[gate-10a] a call that needs a yes", () => {
  const config = { mcpServers: { e: everything() }, tools: { ask: ["e__echo"] } };
  const call = { name: "e__echo", arguments: { message: "careful" } };

  it("is asked about in a legacy client", async () => {
    const { door } = await doorOn(config);
    const forms: JsonObject[] = [];
    let content: JsonObject = { answer: "no" };
    const client = new LegacyClient(door, {
      serve: async (method, params) => {
        expect(method).toBe("elicitation/create");
        forms.push(params);
        if (content["answer"] === "no") await delay(A_PERSON_MS);
        return { action: "accept", content };
      },
    });
    await client.initialize({ elicitation: {} });
    expect((await client.request("tools/call", call)).error).toMatchObject({ data: { code: "denied" } });
    expect(forms[0]?.["message"]).toBe('Allow e__echo of the server "e" with\n  "message": "careful"\n?');
    // An owner whose caller is an operator may answer for good; the form says so.
    expect(JSON.stringify(forms[0])).toContain("always");
    content = { answer: "once" };
    expect(JSON.stringify((await client.request("tools/call", call)).result)).toContain("Echo: careful");
    content = { answer: "session" };
    await client.request("tools/call", call);
    expect((await client.request("tools/call", call)).error).toBeUndefined();
    expect(forms).toHaveLength(3);
  });

  it("shows every argument, and what is hidden in it", async () => {
    const { door } = await doorOn(config);
    const forms: string[] = [];
    const serve = async (_method: string, params: JsonObject): Promise<JsonObject> => {
      forms.push(String(params["message"]));
      await delay(A_PERSON_MS);
      return { action: "accept", content: { answer: "no" } };
    };
    const client = new LegacyClient(door, { serve });
    await client.initialize({ elicitation: {} });
    await client.call("e__echo", { message: "a".repeat(1200), evil: "rm -rf / \u202e" });
    expect(forms[0]).toContain('"evil": "rm -rf / \\u{202E}"');
    expect(forms[0]).toMatch(/a… \(\d+ more characters\)/);
    // Nobody reads so many: it is not asked about, and not run.
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`key${index}`, "x".repeat(100)]));
    expect((await client.call("e__echo", many)).error).toMatchObject({ data: { code: "denied" } });
    expect(forms).toHaveLength(1);
  });

  it("cannot be allowed for good by a caller without the admin scope, even as the hub's own user", async () => {
    const { door, hub } = await doorOn(config);
    const caller = { key: "local", owner: true, scopes: new Set(["read", "call"] as const) };
    let asked = 0;
    const serve = (): JsonObject => {
      asked += 1;
      return { action: "accept", content: { answer: "always" } };
    };
    const client = new LegacyClient(door, { origin: { caller }, serve });
    await client.initialize({ elicitation: {} });
    expect((await client.request("tools/call", call)).result).toBeDefined();
    client.session.close();
    const next = new LegacyClient(door, { origin: { caller }, serve });
    await next.initialize({ elicitation: {} });
    await next.request("tools/call", call);
    expect(asked).toBe(2);
    expect(hub.approvals.pending()).toEqual([]);
  });

  it("is asked about in a modern client by input_required", async () => {
    const { door } = await doorOn(config);
    const caller = { key: "local", owner: true, scopes: new Set(["read", "call"] as const) };
    const client = new ModernClient(door, { caller });
    const canElicit = { capabilities: { elicitation: { form: {} } } };
    const { key, state, request } = questionIn(await client.request("tools/call", call, canElicit));
    expect(request.method).toBe("elicitation/create");
    // Without the admin scope nobody answers for good.
    expect(JSON.stringify(request.params)).not.toContain("always");
    const yes = { action: "accept", content: { answer: "once" } };
    const retry = { ...call, requestState: state, inputResponses: { [key]: yes } };
    expect(JSON.stringify((await client.request("tools/call", retry, canElicit))?.result)).toContain("Echo: careful");
    const no = questionIn(await client.request("tools/call", call, canElicit));
    await delay(A_PERSON_MS);
    const refused = { ...call, requestState: no.state, inputResponses: { [no.key]: { action: "decline" } } };
    expect((await client.request("tools/call", refused, canElicit))?.error).toMatchObject({ data: { code: "denied" } });
  });

  it.each([
    ["at once", { action: "cancel" }],
    ["at once", { action: "decline" }],
    ["at once", { action: "accept", content: {} }],
    ["at once", { action: "accept", content: { answer: "no" } }],
    ["later", { action: "cancel" }],
  ])("[whole-32a] waits for the operator when a legacy client answers %s %j", async (when, said) => {
    const { door, hub } = await doorOn(config);
    const serve = async (): Promise<JsonObject> => {
      if (when === "later") await delay(A_PERSON_MS);
      return said;
    };
    const client = new LegacyClient(door, { serve });
    await client.initialize({ elicitation: {} });
    const answer = client.request("tools/call", call);
    let isOver = false;
    void answer.then(() => (isOver = true));
    expect(await eventually(() => hub.approvals.pending().length === 1)).toBe(true);
    // Long enough for the client to have answered.
    await delay(A_PERSON_MS * 1.5);
    expect(isOver).toBe(false);
    const [waiting] = hub.approvals.pending();
    await hub.internals.activity.answer(waiting?.id ?? "", "once", null);
    expect(JSON.stringify((await answer).result)).toContain("Echo: careful");
  });

  it("[whole-32a] waits for the operator when a modern client declines at once", async () => {
    const { door, hub } = await doorOn(config);
    const client = new ModernClient(door);
    const canElicit = { capabilities: { elicitation: { form: {} } } };
    const asked = questionIn(await client.request("tools/call", call, canElicit));
    const declined = { ...call, requestState: asked.state, inputResponses: { [asked.key]: { action: "decline" } } };
    const answer = client.request("tools/call", declined, canElicit);
    await delay(A_PERSON_MS / 2);
    const [waiting] = hub.approvals.pending();
    await hub.internals.activity.answer(waiting?.id ?? "", "once", null);
    expect(JSON.stringify((await answer)?.result)).toContain("Echo: careful");
  });

  it.each(["legacy", "modern"])("[trust-07b] is not approved by the form of a caller with a token, %s", async (era) => {
    const { door, hub } = await doorOn(config, {}, { holdsCalls: true });
    let asked = 0;
    const serve = (): JsonObject => {
      asked += 1;
      return { action: "accept", content: { answer: "session" } };
    };
    const canElicit = { capabilities: { elicitation: { form: {} } } };
    const legacy = new LegacyClient(door, { origin: { caller: guest("ada") }, serve });
    const modern = new ModernClient(door, { caller: guest("ada") });
    if (era === "legacy") await legacy.initialize({ elicitation: {} });
    const answer =
      era === "legacy" ? await legacy.request("tools/call", call) : await modern.request("tools/call", call, canElicit);
    expect(answer?.error).toMatchObject({ data: { code: "denied", details: { pendingApproval: true } } });
    expect(asked).toBe(0);
    expect(hub.approvals.pending()).toHaveLength(1);
  });

  it("[gate-10b] [trust-07a] is refused where nobody can be asked, without a way to approve it, and passes after a yes", async () => {
    const { door, hub } = await doorOn(config, {}, { holdsCalls: true });
    for (const client of [new ModernClient(door, { caller: guest("ada") }), new LegacyClient(door)]) {
      if (client instanceof LegacyClient) await client.initialize();
      const { error } = (await client.request("tools/call", call)) ?? {};
      const id = hub.approvals.pending().at(-1)?.id ?? "none";
      expect(error?.message).toContain("The operator was asked.");
      for (const told of [id, "toolcrib ", "approve ", "ask list"]) expect(JSON.stringify(error)).not.toContain(told);
      expect(hub.approvals.answer(id, "once")).toBe(true);
      const passed = await client.request("tools/call", call);
      expect(JSON.stringify(passed?.result)).toContain("Echo: careful");
      expect((await client.request("tools/call", call))?.error).toMatchObject({ data: { code: "denied" } });
    }
  });
});
