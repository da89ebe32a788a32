import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { writeHubFile } from "../../../src/hub/activity/hub-file.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { settle } from "../../support/fake-clock.ts";
import { type Place, place } from "./place.ts";

const ASKS = { tools: { ask: ["pay"], askTimeout: 60_000 } };
const SECRET = "s3cret-value-of-a-tool";
const PENDING = { limit: 100, status: "pending" } as const;
const ALL = { limit: 100, status: "all" } as const;

function makeAsking(place: Place, options: Parameters<Place["hub"]>[1] = {}): Promise<Hub> {
  const redactor = new Redactor();
  redactor.addCredential(SECRET);
  return place.hub(ASKS, { redactor, ...options });
}

/** A session that nobody answers for at once: its calls are held. */
function holding(hub: Hub): Session {
  return hub.openSession({ door: "mcp", user: "ann", holdsCalls: true });
}

async function held(hub: Hub, session: Session, args: Record<string, unknown>): Promise<string> {
  const known = new Set(hub.approvals.pending().map(({ id }) => id));
  await hub.call({ session, name: "pay", arguments: args });
  const request = hub.approvals.pending().find(({ id }) => !known.has(id));
  if (request === undefined) throw new Error("nothing is held");
  return request.id;
}

describe("approvals", () => {
  it.each(["in the store", "in memory"])("are listed while they wait and when they are answered: %s", async (where) => {
    const here = await place();
    const hub = await makeAsking(here, where === "in memory" ? { store: false } : {});
    const session = holding(hub);
    const id = await held(hub, session, { to: "bob" });
    expect(await hub.internals.activity.approvals(PENDING)).toEqual({
      approvals: [
        expect.objectContaining({
          id,
          status: "pending",
          held: true,
          name: "pay",
          arguments: { to: "bob" },
          session: { id: session.id, door: "mcp", user: "ann" },
          askedAt: "1970-01-01T00:16:40.000Z",
          expiresAt: "1970-01-01T00:17:40.000Z",
          answer: null,
        }),
      ],
      total: 1,
    });
    expect(hub.internals.activity.overview().pendingApprovals).toBe(1);

    await here.clock.advance(1000);
    expect(await hub.internals.activity.answer(id, "once", "the boss")).toEqual({ id, answer: "once" });
    expect((await hub.internals.activity.approvals(PENDING)).total).toBe(0);
    expect((await hub.internals.activity.approvals({ ...ALL, status: "answered" })).approvals).toMatchObject([
      { id, status: "answered", answer: "once", answeredBy: "the boss", answeredAt: "1970-01-01T00:16:41.000Z" },
    ]);
    expect((await hub.call({ session, name: "pay", arguments: { to: "bob" } })).ok).toBe(true);
    await expect(hub.internals.activity.answer(id, "once", null)).rejects.toMatchObject({ code: "not_found" });
  });

  it("are stored after the note that their hub is alive, and asked at once", async () => {
    const here = await place();
    const { settings, approvals } = here.store;
    const hub = await makeAsking(here);
    const noted = Promise.withResolvers<void>();
    const set = settings.set.bind(settings);
    vi.spyOn(settings, "set").mockImplementation(async (key, value) => {
      if (key.startsWith("hub.")) await noted.promise;
      return set(key, value);
    });
    const put = vi.spyOn(approvals, "put");
    const id = await held(hub, holding(hub), {});
    expect(hub.approvals.pending()).toMatchObject([{ id }]);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(put).not.toHaveBeenCalled();
    noted.resolve();
    await vi.waitFor(() => expect(put).toHaveBeenCalledWith(expect.objectContaining({ id, status: "pending" })));
  });

  it("of a call that waits are answered with a name as well", async () => {
    const here = await place();
    const hub = await makeAsking(here);
    const session = hub.openSession({ door: "mcp", onAsk: () => new Promise(() => {}) });
    const outcome = hub.call({ session, name: "pay" });
    await settle();
    const [request] = hub.approvals.pending();
    await hub.internals.activity.answer(request?.id ?? "", "no", "ann", "rest");
    expect(await outcome).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(await hub.internals.activity.approval(request?.id ?? "")).toMatchObject({
      status: "answered",
      held: false,
      answer: "no",
      answeredBy: "ann",
    });
    const { entries } = await hub.audit.query({ limit: 10, order: "newest", type: "decision" });
    expect(entries).toMatchObject([{ answer: "no", door: "mcp", answeredBy: "ann", answeredThrough: "rest" }]);
  });

  it.each([
    ["held", holding],
    ["under way", (hub: Hub) => hub.openSession({ door: "mcp", user: "ann", onAsk: () => new Promise(() => {}) })],
  ])("are withdrawn, which is nobody's no, when whoever asked goes away: %s", async (_name, open) => {
    const here = await place();
    const hub = await makeAsking(here);
    const answers: string[] = [];
    hub.on("answer", ({ answer }) => answers.push(answer));
    const session = open(hub);
    const outcome = hub.call({ session, name: "pay" });
    await settle();
    const id = hub.approvals.pending()[0]?.id ?? "";
    session.close();
    await outcome;
    expect(answers).toEqual(["withdrawn"]);
    const withdrawn = { id, status: "expired", answer: "withdrawn", answeredBy: null };
    expect(await hub.internals.activity.approval(id)).toMatchObject(withdrawn);
    expect((await hub.internals.activity.approvals({ ...ALL, status: "expired" })).approvals).toMatchObject([
      withdrawn,
    ]);
    const { entries } = await hub.audit.query({ limit: 10, order: "newest", type: "decision" });
    expect(entries).toMatchObject([{ decision: "withdrawn", answer: "withdrawn" }]);
    expect(entries[0]).not.toHaveProperty("answeredBy");
  });

  it("expire by themselves", async () => {
    const here = await place();
    const hub = await makeAsking(here);
    const id = await held(hub, holding(hub), {});
    await here.clock.advance(61_000);
    expect((await hub.internals.activity.approvals({ ...ALL, status: "expired" })).approvals).toMatchObject([
      { id, status: "expired", answer: "timeout", answeredBy: null },
    ]);
  });

  it("never hold a secret, in a list, in an answer or on disk", async () => {
    const here = await place();
    const hub = await makeAsking(here);
    const id = await held(hub, holding(hub), { key: SECRET, nested: [`x ${SECRET}`] });
    const seen = [
      await hub.internals.activity.approvals(PENDING),
      await hub.internals.activity.approval(id),
      await here.store.approvals.get(id),
    ];
    await hub.internals.activity.answer(id, "no", null);
    seen.push(await hub.internals.activity.approvals(ALL), await here.store.approvals.get(id));
    expect(JSON.stringify(seen)).not.toContain(SECRET);
    expect(await hub.internals.activity.approval(id)).toMatchObject({
      arguments: { key: "(not kept)", nested: "(not kept)" },
    });
  });

  it("show the operator what is asked, without what looks like a credential, and forget it with the answer", async () => {
    const here = await place();
    const hub = await makeAsking(here);
    const args = { to: "bob", key: "ISSUE-7", db: { password: "hunter2-a", names: ["x"] }, api_token: "hunter2-b" };
    const shown = { ...args, db: { password: "[redacted]", names: ["x"] }, api_token: "[redacted]" };
    const id = await held(hub, holding(hub), args);
    expect((await hub.internals.activity.approvals(PENDING)).approvals).toMatchObject([{ arguments: shown }]);
    expect(await hub.internals.activity.approval(id)).toMatchObject({ arguments: shown });
    const keys = { to: "(not kept)", key: "(not kept)", db: "(not kept)", api_token: "(not kept)" };
    expect((await here.store.approvals.get(id))?.request).toMatchObject({ name: "pay", arguments: keys });
    await hub.internals.activity.answer(id, "no", null);
    expect(await hub.internals.activity.approval(id)).toMatchObject({ status: "answered", arguments: keys });
    const left = await held(hub, holding(hub), { to: "carol" });
    await here.clock.advance(61_000);
    expect(await hub.internals.activity.approval(left)).toMatchObject({
      status: "expired",
      arguments: { to: "(not kept)" },
    });
  });

  it("keep the arguments if the audit log does, masked all the same", async () => {
    const here = await place();
    const hub = await here.hub({ ...ASKS, audit: { arguments: true } });
    const id = await held(hub, holding(hub), { to: "bob", password: "hunter2" });
    await hub.internals.activity.answer(id, "no", null);
    expect(await hub.internals.activity.approval(id)).toMatchObject({
      arguments: { to: "bob", password: "[redacted]" },
    });
    expect(JSON.stringify(await here.store.approvals.get(id))).not.toContain("hunter2");
  });

  it("with large arguments are short in lists, and whole by id", async () => {
    const here = await place();
    const hub = await here.hub({ ...ASKS, audit: { arguments: true } });
    const text = "long ".repeat(2000);
    const id = await held(hub, holding(hub), { text });
    for (const answered of [false, true]) {
      if (answered) await hub.internals.activity.answer(id, "no", null);
      const { approvals } = await hub.internals.activity.approvals(ALL);
      expect(approvals).toMatchObject([{ id, shortened: true }]);
      expect(JSON.stringify(approvals).length).toBeLessThan(2000);
      expect(await hub.internals.activity.approval(id)).toMatchObject({ arguments: { text } });
    }
  });

  it("come in pages, the newest first", async () => {
    const here = await place();
    const hub = await makeAsking(here);
    const session = holding(hub);
    const ids: string[] = [];
    for (const to of ["a", "b", "c"]) {
      ids.unshift(await held(hub, session, { to }));
      await here.clock.advance(1000);
    }
    for (const status of ["pending", "all"] as const) {
      const first = await hub.internals.activity.approvals({ status, limit: 2 });
      expect(first.total).toBe(3);
      const second = await hub.internals.activity.approvals({ status, limit: 2, cursor: first.nextCursor });
      expect([...first.approvals, ...second.approvals].map(({ id }) => id)).toEqual(ids);
      expect(second.nextCursor).toBeUndefined();
    }
  });

  it("of another living hub are told apart and refused; of a dead one they are expired", async () => {
    const here = await place();
    const [hub, other] = [await makeAsking(here), await makeAsking(here)];
    const id = await held(other, holding(other), {});
    await settle();
    expect([
      (await hub.internals.activity.approvals(PENDING)).total,
      hub.internals.activity.overview().pendingApprovals,
    ]).toEqual([0, 0]);
    expect((await hub.internals.activity.approvals(ALL)).approvals).toMatchObject([{ id, status: "pending" }]);
    const remove = await writeHubFile(here.home, { url: "http://127.0.0.1:4701", pid: process.pid, token: "t" });
    await expect(hub.internals.activity.answer(id, "once", null)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("(http://127.0.0.1:4701)") as string,
    });
    await remove();

    const stored = await here.store.approvals.get(id);
    if (stored === undefined) throw new Error("not stored");
    await here.store.approvals.put({ ...stored, id: "left-over", hub: "a-hub-that-died" });
    const next = await makeAsking(here);
    expect(await next.internals.activity.approval("left-over")).toMatchObject({ status: "expired", answer: null });
    expect(await next.internals.activity.approval(id)).toMatchObject({ status: "pending" });
  });

  it("[speed-03c] are written together when many are asked or answered at once", async () => {
    const here = await place();
    const amounts: number[] = [];
    const put: typeof here.store.approvals.put = (...approvals) => {
      amounts.push(approvals.length);
      return here.store.approvals.put(...approvals);
    };
    const hub = await makeAsking(here, { store: { ...here.store, approvals: { ...here.store.approvals, put } } });
    const session = holding(hub);
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => hub.call({ session, name: "pay", arguments: { to: `bob ${n}` } })),
    );
    const asked = hub.approvals.pending().map(({ id }) => id);
    expect(asked).toHaveLength(20);
    expect((await hub.internals.activity.approvals(ALL)).total).toBe(20);
    expect(amounts.length).toBeLessThan(10);
    amounts.length = 0;
    await Promise.all(asked.map((id) => hub.internals.activity.answer(id, "no", "the boss")));
    expect(amounts.length).toBeLessThan(10);
    const stored = await Promise.all(asked.map((id) => here.store.approvals.get(id)));
    expect(stored).toEqual(asked.map((id) => expect.objectContaining({ id, answer: "no", answeredBy: "the boss" })));
  });

  it("can be listed and answered although the store fails", async () => {
    const here = await place();
    const fail = (): Promise<never> => Promise.reject(new Error("disk full"));
    const failing = { ...here.store, approvals: { ...here.store.approvals, put: fail, list: fail } };
    const hub = await makeAsking(here, { store: failing });
    const id = await held(hub, holding(hub), {});
    expect((await hub.internals.activity.approvals(PENDING)).approvals).toMatchObject([{ id }]);
    expect(await hub.internals.activity.answer(id, "once", null)).toEqual({ id, answer: "once" });
    expect(hub.warnings().filter(({ message }) => message.includes("disk full"))).toHaveLength(1);
  });
});
