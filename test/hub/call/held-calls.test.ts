import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Session, SessionOptions } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-held-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let hub: Hub | undefined;
let runs = 0;
let answers: JsonObject[] = [];
let registry = new ToolRegistry();
afterEach(async () => {
  await hub?.close();
  hub = undefined;
  runs = 0;
  answers = [];
});

function register(description: string): () => void {
  return registry.register({
    name: "wipe",
    description,
    parameters: { type: "object" },
    execute: async () => {
      runs += 1;
      return { content: [], ...answers.shift() };
    },
  });
}

async function start(config: ConfigInput | string = ASK, options: HubOptions = {}): Promise<Hub> {
  registry = new ToolRegistry();
  register("Wipes.");
  hub = await createHub(config, { registry, ...options });
  return hub;
}

const ASK: ConfigInput = { tools: { ask: ["wipe"] } };
const WAITS = { ok: false, error: { code: "denied", message: expect.stringContaining("The operator was asked.") } };

function remote(hub: Hub, options: SessionOptions = {}): Session {
  return hub.openSession({ owner: false, door: "mcp", holdsCalls: true, ...options });
}

const wipe = (hub: Hub, session: Session, disk = "c") => hub.call({ session, name: "wipe", arguments: { disk } });
const heldId = (hub: Hub): string => hub.approvals.pending()[0]?.id ?? "";

describe("[gate-10b] a call that needs a yes where nobody can be asked", () => {
  it("[trust-07a] is refused at once, and says that the operator was asked, not how to approve it", async () => {
    const hub = await start();
    const session = remote(hub);
    const outcome = await wipe(hub, session);
    expect(hub.approvals.pending()).toMatchObject([
      { held: true, name: "wipe", arguments: { disk: "c" }, session: { id: session.id, door: "mcp" } },
    ]);
    const id = heldId(hub);
    expect(outcome).toMatchObject({
      ...WAITS,
      error: {
        hint: "Make the same call again once it is approved.",
        // Rules and files are the owner's business.
        details: { pendingApproval: true },
      },
    });
    expect(id).not.toBe("");
    for (const told of [id, "toolcrib", "ask list"]) expect(JSON.stringify(outcome)).not.toContain(told);
    const own = await wipe(hub, remote(hub, { owner: true }));
    expect(own).toMatchObject({ error: { details: { rule: { list: "ask", pattern: "wipe" } } } });
    expect(runs).toBe(0);
  });

  it("keeps its id while it is held, and tells of the question once", async () => {
    const hub = await start();
    const session = remote(hub);
    let asked = 0;
    hub.on("ask", () => asked++);
    const first = await hub.call({ session, name: "wipe", arguments: { disk: "c", force: true } });
    const second = await hub.call({ session, name: "wipe", arguments: { force: true, disk: "c" } });
    expect(second.ok || second.error.details).toEqual(first.ok || first.error.details);
    expect(asked).toBe(1);
    await wipe(hub, session, "d");
    await wipe(hub, remote(hub), "d");
    expect(hub.approvals.pending()).toHaveLength(3);
    expect(asked).toBe(3);
  });

  it("goes through once after `once`: the same session, name and arguments, and nothing else", async () => {
    const hub = await start();
    const [session, other] = [remote(hub), remote(hub)];
    await wipe(hub, session);
    const answered: unknown[] = [];
    hub.on("answer", ({ answer, request }) => answered.push([answer, request.held]));
    expect(hub.approvals.answer(heldId(hub), "once")).toBe(true);
    expect(answered).toEqual([["once", true]]);
    expect(await wipe(hub, session, "d")).toMatchObject(WAITS);
    expect(await wipe(hub, other)).toMatchObject(WAITS);
    expect(await wipe(hub, session)).toMatchObject({ ok: true });
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(1);
  });

  it("of two at the same time one goes through", async () => {
    const hub = await start();
    const session = remote(hub);
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    const outcomes = await Promise.all([wipe(hub, session), wipe(hub, session)]);
    expect(outcomes.map(({ ok }) => ok).toSorted()).toEqual([false, true]);
    expect(runs).toBe(1);
  });

  it("is dropped by `no` and by what is no answer, and cannot be answered again", async () => {
    const hub = await start();
    const session = remote(hub);
    for (const answer of ["no", "yes please"]) {
      await wipe(hub, session);
      const id = heldId(hub);
      // What a program without types may give.
      expect(hub.approvals.answer(id, answer as "no")).toBe(true);
      expect(hub.approvals.answer(id, "once")).toBe(false);
      expect(hub.approvals.pending()).toEqual([]);
    }
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(0);
  });

  it("goes through for the session after `session`", async () => {
    const hub = await start();
    const session = remote(hub);
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "session");
    expect(await wipe(hub, session, "other")).toMatchObject({ ok: true });
    expect(await wipe(hub, remote(hub))).toMatchObject(WAITS);
  });

  it("goes through for everybody after the operator's `always`, which is written down", async () => {
    const file = join(dir, "toolcrib.json");
    writeFileSync(file, JSON.stringify(ASK));
    const hub = await start(file);
    await wipe(hub, remote(hub));
    hub.approvals.answer(heldId(hub), "always");
    expect(await wipe(hub, remote(hub))).toMatchObject({ ok: true });
    await expect
      .poll(() => JSON.parse(readFileSync(file, "utf8")))
      .toEqual({ tools: { ask: ["wipe", "!=tool:wipe"] } });
  });

  it("waits no longer than a question may: the question, and the yes for its call", async () => {
    const clock = new FakeClock();
    const hub = await start({ tools: { ask: ["wipe"], askTimeout: 1000 } }, { clock });
    const session = remote(hub);
    const answered: unknown[] = [];
    hub.on("answer", ({ answer }) => answered.push(answer));
    await wipe(hub, session);
    await clock.advance(1001);
    expect(hub.approvals.pending()).toEqual([]);
    expect(answered).toEqual(["timeout"]);
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    await clock.advance(1001);
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(0);
  });

  it("is held back anew if the tool is another one by then", async () => {
    const hub = await start({ ...ASK, guard: { pins: "off" } });
    const session = remote(hub);
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    registry.unregister("wipe");
    register("Wipes more.");
    expect(await wipe(hub, session)).toMatchObject(WAITS);
  });

  it("[gate-08e] is bounded: a caller's oldest make room for its own", async () => {
    const hub = await start({ ...ASK, limits: { callsPerMinute: 10_000 } });
    await wipe(hub, remote(hub, { user: "quiet" }), "quiet");
    for (let n = 0; n < 21; n++) await wipe(hub, remote(hub), `anybody ${n}`);
    expect(hub.approvals.pending()).toHaveLength(22);
    // All sessions of a user count together.
    for (let n = 0; n < 21; n++) await wipe(hub, remote(hub, { user: "loud" }), String(n));
    const loud = hub.approvals.pending().filter(({ session }) => session.user === "loud");
    expect(loud).toHaveLength(20);
    expect(loud[0]?.arguments).toEqual({ disk: "1" });
    const one = remote(hub);
    for (let n = 0; n < 21; n++) await wipe(hub, one, String(n));
    expect(hub.approvals.pending().filter(({ session }) => session.id === one.id)).toHaveLength(20);
    expect(hub.approvals.pending()[0]?.arguments).toEqual({ disk: "quiet" });
    hub.approvals.answer(heldId(hub), "no");
    expect(hub.approvals.pending()).toHaveLength(61);
  });

  it("[gate-08e] is bounded: above all, those make room who hold most", async () => {
    const hub = await start({ ...ASK, limits: { callsPerMinute: 10_000 } });
    await wipe(hub, remote(hub), "quiet");
    for (let s = 0; s < 52; s++) {
      const session = remote(hub);
      for (let n = 0; n < 20; n++) await wipe(hub, session, String(n));
    }
    expect(hub.approvals.pending()).toHaveLength(1000);
    expect(hub.approvals.pending()[0]?.arguments).toEqual({ disk: "quiet" });
    expect(hub.approvals.pending().at(-1)?.arguments).toEqual({ disk: "19" });
  });

  it("[gate-08e] is not held if nobody would read it: it is too large to be shown", async () => {
    const hub = await start();
    const session = remote(hub);
    const refused = await wipe(hub, session, "z".repeat(64 * 1024));
    expect(refused).toMatchObject({
      ok: false,
      error: { code: "denied", message: expect.stringMatching(/^wipe needs approval\. .*too large to be shown/) },
    });
    expect(JSON.stringify(refused)).not.toContain("approve ");
    expect(hub.approvals.pending()).toEqual([]);
    expect(await wipe(hub, session, "z".repeat(60 * 1024))).toMatchObject(WAITS);
    // Whoever is there to be asked decides about that, too.
    expect(await wipe(hub, remote(hub, { onAsk: () => "once" }), "z".repeat(70 * 1024))).toMatchObject({ ok: true });
    // Without a way to approve there is no size that would do.
    const without = await wipe(hub, hub.openSession({ owner: false }), "z".repeat(70 * 1024));
    expect(without).toMatchObject({ error: { message: expect.stringContaining("No one is connected") } });
  });

  it("is forgotten with its session", async () => {
    const hub = await start();
    const session = remote(hub);
    await wipe(hub, session);
    const id = heldId(hub);
    const answered: unknown[] = [];
    hub.on("answer", ({ answer }) => answered.push(answer));
    session.close();
    expect(hub.approvals.pending()).toEqual([]);
    expect(answered).toEqual(["withdrawn"]);
    expect(hub.approvals.answer(id, "once")).toBe(false);
  });

  it("is asked of whoever can be asked instead, if anybody can", async () => {
    const hub = await start(ASK, { onAsk: () => "once" });
    expect(await wipe(hub, remote(hub))).toMatchObject({ ok: true });
    expect(await wipe(hub, remote(hub, { onAsk: () => "no" }))).toMatchObject({ ok: false });
    expect(hub.approvals.pending()).toEqual([]);
  });
});

describe("[gate-10b] a yes for once", () => {
  it("lets the rounds of one call through, and not a second call", async () => {
    const hub = await start();
    const session = remote(hub);
    answers = [{ resultType: "input_required" }, { resultType: "input_required" }, { resultType: "complete" }];
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    for (let round = 0; round < 3; round++) expect(await wipe(hub, session)).toMatchObject({ ok: true });
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(3);
  });

  it("lasts no longer for the rounds of a call than it was given for", async () => {
    const clock = new FakeClock();
    const hub = await start({ tools: { ask: ["wipe"], askTimeout: 1000 } }, { clock });
    const session = remote(hub);
    answers = Array.from({ length: 9 }, () => ({ resultType: "input_required" }));
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    for (let round = 0; round < 2; round++) {
      await clock.advance(400);
      expect(await wipe(hub, session)).toMatchObject({ ok: true });
    }
    await clock.advance(400);
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(2);
  });

  it("is not good for endless rounds", async () => {
    const hub = await start();
    const session = remote(hub);
    answers = Array.from({ length: 20 }, () => ({ resultType: "input_required" }));
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "once");
    // The first, and ten more.
    for (let round = 0; round < 11; round++) expect(await wipe(hub, session)).toMatchObject({ ok: true });
    expect(await wipe(hub, session)).toMatchObject(WAITS);
    expect(runs).toBe(11);
  });

  it("given by a person who was asked holds for all rounds of the call", async () => {
    let asked = 0;
    const hub = await start(ASK, { onAsk: () => (asked++, "once") });
    answers = [{ resultType: "input_required" }];
    await wipe(hub, hub.session);
    await wipe(hub, hub.session);
    expect([asked, runs]).toEqual([1, 2]);
    await wipe(hub, hub.session);
    expect(asked).toBe(2);
  });

  it("is not used up by a call that a limit stopped", async () => {
    const clock = new FakeClock();
    const hub = await start({ ...ASK, limits: { callsPerMinute: 1 } }, { clock });
    const session = remote(hub);
    await wipe(hub, session);
    hub.approvals.answer(heldId(hub), "session");
    expect(await wipe(hub, session)).toMatchObject({ ok: true });
    const other = remote(hub);
    await wipe(hub, other);
    hub.approvals.answer(heldId(hub), "once");
    expect(await wipe(hub, other)).toMatchObject({ ok: true });
    await wipe(hub, other);
    hub.approvals.answer(heldId(hub), "once");
    expect(await wipe(hub, other)).toMatchObject({ ok: false, error: { code: "rate_limited" } });
    await clock.advance(60_001);
    expect(await wipe(hub, other)).toMatchObject({ ok: true });
  });

  it("is not used up while another reason still needs one", async () => {
    const hub = await start({ ...ASK, guard: { taint: "ask" } });
    const session = remote(hub, { owner: true });
    session.markTainted({ server: "web", callId: "1", name: "web__read", read: [], at: 0 });
    expect(await wipe(hub, session)).toMatchObject({ ...WAITS, error: { details: { rule: { list: "ask" } } } });
    hub.approvals.answer(heldId(hub), "once");
    expect(await wipe(hub, session)).toMatchObject({ ...WAITS, error: { details: { rule: { list: "taint" } } } });
    hub.approvals.answer(heldId(hub), "once");
    expect(await wipe(hub, session)).toMatchObject({ ok: true });
    expect(await wipe(hub, session)).toMatchObject({ ...WAITS, error: { details: { rule: { list: "ask" } } } });
    expect(runs).toBe(1);
  });
});
