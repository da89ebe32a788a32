import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AskAnswer, AskRequest } from "../../../src/model/decision.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { type Bench, missingParts, startBench, type TestCluster, type TestNode } from "./shared-bench.ts";
import { eventually } from "../../support/eventually.ts";

const missing = missingParts();
const ASK = { tools: { ask: ["wipe", "drop"] } };
const PAGE = { limit: 50, status: "pending" } as const;

describe.skipIf(missing !== undefined)("[scale-08c] questions and callers at two nodes", () => {
  let bench: Bench;
  let cluster: TestCluster;
  let one: TestNode;
  let two: TestNode;
  beforeAll(async () => {
    bench = await startBench();
  });
  afterAll(() => bench.stop());
  beforeEach(async () => {
    cluster = await bench.cluster();
    [one, two] = [await cluster.start("one", ASK), await cluster.start("two", ASK)];
    await eventually(
      () => [one, two].every(({ hub }) => hub.internals.cluster?.nodes().length === 2),
      "both see each other",
    );
  });
  afterEach(() => cluster.close());

  const pendingAt = async ({ hub }: TestNode): Promise<string[]> =>
    (await hub.internals.activity.approvals(PAGE)).approvals.map(({ id }) => id);
  const answerAt = ({ hub }: TestNode, id: string, answer: AskAnswer): Promise<object> =>
    hub.internals.activity.answer(id, answer, null);
  /** The same caller at a node, as a door opens it. */
  const callerAt = ({ hub }: TestNode): Session => hub.openSession({ user: "ann", sharedKey: "ann", holdsCalls: true });

  it("what waits at one is listed, told of and answered at the other", async () => {
    const heard: string[] = [];
    two.hub.on("ask", ({ id, node }) => heard.push(`asked ${node} ${id}`));
    two.hub.on("answer", ({ request, answer }) => heard.push(`${answer} ${request.id}`));
    const asked = Promise.withResolvers<AskRequest>();
    const session = one.hub.openSession({ onAsk: (request) => (asked.resolve(request), new Promise<never>(() => {})) });
    const call = one.hub.call({ session, name: "wipe", arguments: { disk: "c" } });
    const { id } = await asked.promise;
    await eventually(async () => (await pendingAt(two)).includes(id), "listed");
    expect(await two.hub.internals.activity.approval(id)).toMatchObject({ name: "wipe", arguments: { disk: "c" } });
    expect(two.hub.internals.activity.overview().pendingApprovals).toBe(1);
    expect(await two.hub.internals.activity.answer(id, "once", "boss", "rest")).toEqual({ id, answer: "once" });
    expect(await call).toMatchObject({ ok: true });
    await eventually(async () => (await pendingAt(two)).length === 0, "no longer listed");
    expect(heard).toEqual([`asked one ${id}`, `once ${id}`]);
    await one.hub.audit.flush();
    const { entries } = await two.hub.audit.query({ limit: 10, order: "newest", type: "decision" });
    expect(entries[0]).toMatchObject({ answer: "once", answeredBy: "boss", answeredThrough: "rest" });
    await expect(two.hub.internals.activity.answer(id, "once", null)).rejects.toMatchObject({ code: "not_found" });
  });

  it("[trust-07b] nobody approves their own call at another node either", async () => {
    const session = one.hub.openSession({ caller: "token:1", user: "ann", sharedKey: "ann", holdsCalls: true });
    expect(await one.hub.call({ session, name: "wipe" })).toMatchObject({ ok: false });
    const id = one.hub.approvals.pending()[0]?.id ?? "";
    await eventually(async () => (await pendingAt(two)).includes(id), "listed");
    for (const [user, caller] of [
      [null, "token:1"],
      ["ann", "token:2"],
    ] as const) {
      const own = two.hub.internals.activity.answer(id, "once", user, "rest", caller);
      await expect(own).rejects.toMatchObject({ code: "denied", message: expect.stringContaining("own") });
    }
    expect(await one.hub.call({ session, name: "wipe" })).toMatchObject({ ok: false });
    expect(await two.hub.internals.activity.answer(id, "once", "bob", "rest", "token:3")).toEqual({
      id,
      answer: "once",
    });
    expect(await one.hub.call({ session, name: "wipe" })).toMatchObject({ ok: true });
  });

  it("a question of before is seen by a node that comes later, and goes with the node that asked", async () => {
    expect(await one.hub.call({ session: callerAt(one), name: "wipe" })).toMatchObject({ ok: false });
    const [request] = one.hub.approvals.pending();
    const three = await cluster.start("three", ASK);
    await eventually(async () => (await pendingAt(three)).includes(request?.id ?? ""), "listed");
    await one.hub.close();
    await eventually(async () => (await pendingAt(three)).length === 0, "gone");
  });

  it("a yes for once, given anywhere, lets one call through in the whole cluster", async () => {
    const [atOne, atTwo] = [callerAt(one), callerAt(two)];
    const wipe = { name: "wipe", arguments: { disk: "c" } };
    expect(await one.hub.call({ ...wipe, session: atOne })).toMatchObject({ ok: false, error: { code: "denied" } });
    const id = one.hub.approvals.pending()[0]?.id ?? "";
    await eventually(async () => (await pendingAt(two)).includes(id), "listed");
    const answers = await Promise.allSettled([answerAt(two, id, "once"), answerAt(two, id, "no")]);
    // Whoever is second is told that it was answered, not that it waits elsewhere.
    expect(answers).toMatchObject([{ status: "fulfilled" }, { reason: { code: "not_found" } }]);
    const outcomes = await Promise.all([
      two.hub.call({ ...wipe, session: atTwo }),
      one.hub.call({ ...wipe, session: atOne }),
      two.hub.call({ ...wipe, session: atTwo }),
    ]);
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
    expect(one.runs() + two.runs()).toBe(1);
  });

  it("a yes for the session holds at every node, for that caller alone", async () => {
    const [atOne, atTwo] = [callerAt(one), callerAt(two)];
    await one.hub.call({ session: atOne, name: "drop" });
    await one.hub.internals.activity.answer(one.hub.approvals.pending()[0]?.id ?? "", "session", null);
    await eventually(() => atTwo.granted.size === 1, "known at the other node");
    expect(await two.hub.call({ session: atTwo, name: "drop" })).toMatchObject({ ok: true });
    expect(await two.hub.call({ session: callerAt(two), name: "drop" })).toMatchObject({ ok: true });
    const other = two.hub.openSession({ user: "bob", sharedKey: "bob" });
    expect(await two.hub.call({ session: other, name: "drop" })).toMatchObject({ ok: false });
    const alone = two.hub.openSession({ user: "ann" });
    expect(await two.hub.call({ session: alone, name: "drop" })).toMatchObject({ ok: false });
  });

  it("taint is known elsewhere when the result is back", async () => {
    const [atOne, atTwo] = [callerAt(one), callerAt(two)];
    atOne.markTainted({ server: "web", callId: "c", name: "web", read: [], at: 1 });
    await one.hub.call({ session: atOne, name: "read" });
    expect(atOne.telling).toBeUndefined();
    // The store has it: a node hears of it a moment later.
    await eventually(() => atTwo.taint?.callId === "c", "heard");
    expect(callerAt(two).taint).toMatchObject({ name: "web" });
  });

  it("with NATS away each node goes on with what it knows, and tells the rest later", async () => {
    const [atOne, atTwo] = [callerAt(one), callerAt(two)];
    await bench.nats.kill();
    await eventually(
      () => one.hub.internals.cluster?.isUp === false && two.hub.internals.cluster?.isUp === false,
      "down",
    );
    atOne.markTainted({ server: "web", callId: "c", name: "web", read: [], at: 1 });
    expect(await one.hub.call({ session: atOne, name: "read" })).toMatchObject({ ok: true });
    const wipe = { name: "wipe" };
    await one.hub.call({ ...wipe, session: atOne });
    await one.hub.internals.activity.answer(one.hub.approvals.pending()[0]?.id ?? "", "once", null);
    expect(await one.hub.call({ ...wipe, session: atOne })).toMatchObject({ ok: true });
    expect(await one.hub.call({ ...wipe, session: atOne })).toMatchObject({ ok: false });
    await eventually(() => atTwo.taint !== null, "told by the store");
    await atOne.clearTaint();
    await eventually(() => atTwo.taint === null, "cleared at every node");
  }, 30_000);
});
