/** What holds for every store, whatever database is behind it. */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenStoreOptions } from "../../src/store/open-store.ts";
import type { CountedCall, Store, StoreChange } from "../../src/store/store.ts";
import { blockOf } from "../../src/telemetry/audit/files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { conversationBehaviour } from "./conversations.ts";
import { approval, auditBlock, formerLines, pin, session } from "./samples.ts";
import { eventually } from "../support/eventually.ts";

/** After `formerAudit` was brought to the present version. */
export async function expectFormerLines({ audit }: Store): Promise<void> {
  for (const [file, lines] of Object.entries(formerLines())) {
    expect(await audit.textOf(file)).toBe(lines.map((line) => `${line}\n`).join(""));
    let next = 0;
    for (const block of await audit.blocks(file)) {
      const text = await audit.textOf(file, block.firstLine);
      const place = { name: file, chain: "chain-1" };
      expect({ ...block, text }).toEqual(blockOf(place, next, text));
      next += block.lines;
    }
    expect(await audit.append(auditBlock(file, next))).toBe(true);
  }
  expect((await audit.blocks("a")).length).toBeGreaterThan(2);
}

/** A database of its own for one test. */
export interface Place {
  /** Each call opens the same database anew, as another process would. */
  open(options?: Partial<OpenStoreOptions>): Promise<Store | undefined>;
}

export function storeBehaviour(makePlace: () => Promise<Place>): void {
  let place: Place;
  const stores: Store[] = [];
  let store: Store;

  async function open(options?: Partial<OpenStoreOptions>): Promise<Store> {
    const opened = await place.open(options);
    if (opened === undefined) throw new Error("no store");
    stores.push(opened);
    return opened;
  }

  beforeEach(async () => {
    place = await makePlace();
    store = await open();
  });
  afterEach(async () => {
    for (const each of stores.splice(0)) await each.close();
  });

  describe("servers", () => {
    it("[oper-01a] are inserted, changed and removed, and come back from another store object", async () => {
      const entry = { command: "npx", env: { TOKEN: "secret://env/TOKEN" }, deep: [{ a: null }] };
      const inserted = await store.servers.insert({ id: "files", entry, source: "api" });
      expect(inserted).toMatchObject({ id: "files", entry, source: "api" });
      const other = await open();
      expect(await other.servers.get("files")).toEqual(inserted);
      const updated = await other.servers.update("files", { url: "https://example.com/mcp" });
      expect(updated.revision).toBeGreaterThan(inserted.revision);
      expect(await store.servers.list()).toEqual([updated]);
      await store.servers.remove("files");
      expect(await other.servers.list()).toEqual([]);
      expect(await other.servers.get("files")).toBeUndefined();
    });

    it("[oper-01a] keep times of the clock, and the time of creation through changes", async () => {
      const clock = new FakeClock();
      const timed = await open({ clock });
      const { createdAt } = await timed.servers.insert({ id: "a", entry: {}, source: "api" });
      expect(createdAt).toBe(new Date(clock.now()).toISOString());
      await clock.advance(60_000);
      const updated = await timed.servers.update("a", {});
      expect(updated.createdAt).toBe(createdAt);
      expect(Date.parse(updated.updatedAt) - Date.parse(createdAt)).toBe(60_000);
    });

    it("[oper-01a] conflict where an id is taken or a revision is old, and a revision never comes back", async () => {
      const first = await store.servers.insert({ id: "a", entry: {}, source: "api" });
      await expect(store.servers.insert({ id: "a", entry: {}, source: "api" })).rejects.toMatchObject({
        code: "conflict",
      });
      const second = await store.servers.update("a", { n: 2 }, first.revision);
      await expect(store.servers.update("a", { n: 3 }, first.revision)).rejects.toMatchObject({ code: "conflict" });
      await expect(store.servers.remove("a", first.revision)).rejects.toMatchObject({ code: "conflict" });
      await store.servers.remove("a", second.revision);
      const again = await store.servers.insert({ id: "a", entry: {}, source: "api" });
      expect([first.revision, second.revision]).not.toContain(again.revision);
      await expect(store.servers.update("b", {})).rejects.toMatchObject({ code: "not_found" });
      await expect(store.servers.remove("b")).rejects.toMatchObject({ code: "not_found" });
    });

    it("[oper-01a] lose no update when many change one at the same time", async () => {
      const other = await open();
      const { revision } = await store.servers.insert({ id: "a", entry: {}, source: "api" });
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? store : other).servers.update("a", { n }, revision)),
      );
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });
  });

  describe("skills and pins", () => {
    it("[oper-01a] skills are put and removed in one step, and their stamp tells", async () => {
      const other = await open();
      const empty = await other.skills.stamp();
      await store.skills.change(
        [
          { id: "b", manifest: { v: 1 } },
          { id: "a", manifest: {} },
          { id: "Z", manifest: {} },
        ],
        [],
      );
      const filled = await other.skills.stamp();
      expect(filled).not.toBe(empty);
      expect((await other.skills.list()).map(({ id }) => id)).toEqual(["Z", "a", "b"]);
      await store.skills.change([{ id: "b", manifest: { v: 2 } }], ["a", "Z", "absent"]);
      expect(await other.skills.list()).toEqual([{ id: "b", manifest: { v: 2 } }]);
      const last = await other.skills.stamp();
      expect([empty, filled]).not.toContain(last);
      await store.skills.change([], []);
      await store.settings.set("x", "1");
      expect(await other.skills.stamp()).toBe(last);
    });

    it("[oper-01a] thousands of skills go in at once", async () => {
      const many = Array.from({ length: 3000 }, (_, n) => ({ id: `skill-${n}`, manifest: { n } }));
      await store.skills.change(many, []);
      expect(await store.skills.list()).toHaveLength(3000);
      await store.skills.change(
        [],
        many.map(({ id }) => id),
      );
      expect(await store.skills.list()).toEqual([]);
    });

    it("[oper-01a] pins belong to their scope, and each scope has its stamp", async () => {
      await store.pins.change("/a/toolcrib.lock", [pin("files", "read"), pin("files", "write"), pin("git", "log")], []);
      await store.pins.change("/b/toolcrib.lock", [pin("files", "read", "sha256-b")], []);
      const [a, b] = [await store.pins.stamp("/a/toolcrib.lock"), await store.pins.stamp("/b/toolcrib.lock")];
      await store.pins.change(
        "/a/toolcrib.lock",
        [pin("files", "read", "sha256-2")],
        [{ server: "files", kind: "tool", tool: "write" }],
      );
      expect(await store.pins.list("/a/toolcrib.lock")).toEqual([pin("files", "read", "sha256-2"), pin("git", "log")]);
      expect(await store.pins.list("/b/toolcrib.lock")).toEqual([pin("files", "read", "sha256-b")]);
      expect(await store.pins.stamp("/a/toolcrib.lock")).not.toBe(a);
      expect(await store.pins.stamp("/b/toolcrib.lock")).toBe(b);
      expect(await store.pins.list("/c")).toEqual([]);
    });

    it("[counter-06f] lists of servers belong to a server and its spec, come back as written, and are forgotten", async () => {
      const text = '{"b":1,"a":"\\u0000","long":"' + "x".repeat(100_000) + '"}';
      await store.lists.put([{ server: "files", spec: "one", lists: "old" }]);
      await store.lists.put([
        { server: "files", spec: "one", lists: text },
        { server: "files", spec: "two", lists: "{}" },
        { server: "git", spec: "one", lists: "{}" },
      ]);
      const keys = [
        { server: "files", spec: "one" },
        { server: "git", spec: "two" },
      ];
      expect(await store.lists.get(keys)).toEqual([{ server: "files", spec: "one", lists: text }]);
      expect(await store.lists.get([])).toEqual([]);
      await store.lists.prune("2000-01-01T00:00:00.000Z");
      expect(await store.lists.get(keys)).toHaveLength(1);
      await store.lists.prune("3000-01-01T00:00:00.000Z");
      expect(await store.lists.get(keys)).toEqual([]);
    });

    it("[oper-01a] names that are no proper text stay apart and come back exactly", async () => {
      const names = ["a\0b", "\ud800", "\udfff", "\u0001x", '\u0001"x"', "'; drop table pins; --", "%", "日本", ""];
      await store.pins.change(
        "/s",
        names.map((name) => pin("files", name)),
        [],
      );
      expect((await store.pins.list("/s")).map(({ tool }) => tool).toSorted()).toEqual(names.toSorted());
      await store.pins.change("/s", [], [{ server: "files", kind: "tool", tool: "\ud800" }]);
      expect((await store.pins.list("/s")).map(({ tool }) => tool)).not.toContain("\ud800");
      expect(await store.pins.list("/s")).toHaveLength(names.length - 1);
    });
  });

  describe("approvals and sessions", () => {
    it("[oper-01a] approvals are replaced by id, expired for hubs that are gone, and forgotten", async () => {
      await store.approvals.put(approval("1"));
      await store.approvals.put(approval("2", { hub: "hub-2", askedAt: "2026-01-02T00:00:00.000Z" }));
      const answered = approval("1", {
        status: "answered",
        answer: "once",
        answeredAt: "2026-01-03",
        answeredBy: "ops",
      });
      await store.approvals.put(answered);
      expect(await store.approvals.get("1")).toEqual(answered);
      expect(await store.approvals.get("3")).toBeUndefined();
      await store.approvals.put(approval("4", { askedAt: "2026-01-04T00:00:00.000Z" }));
      expect(await store.approvals.expire(["hub-1"])).toBe(1);
      expect((await store.approvals.list({ limit: 9, status: "pending" })).entries.map(({ id }) => id)).toEqual(["4"]);
      expect((await store.approvals.get("2"))?.status).toBe("expired");
      expect(await store.approvals.expire([])).toBe(1);
      expect(await store.approvals.prune("2026-01-02T00:00:00.000Z")).toBe(1);
      expect((await store.approvals.list({ limit: 9 })).entries.map(({ id }) => id)).toEqual(["4", "2"]);
    });

    it("[oper-01a] pages go from the newest to the oldest, with equal times, while others write", async () => {
      for (let n = 0; n < 7; n++) await store.approvals.put(approval(`a${n}`));
      const first = await store.approvals.list({ limit: 3 });
      expect(first).toMatchObject({ total: 7, entries: [{ id: "a6" }, { id: "a5" }, { id: "a4" }] });
      await store.approvals.put(approval("b", { askedAt: "2026-02-01T00:00:00.000Z" }));
      const ids = await allIds((cursor) => store.approvals.list({ limit: 3, ...cursor }), first.nextCursor);
      expect(ids).toEqual(["a3", "a2", "a1", "a0"]);
      await expect(store.approvals.list({ limit: 3, cursor: "nonsense" })).rejects.toMatchObject({
        code: "invalid_arguments",
      });
    });

    it("[oper-01a] sessions are written in batches and closed for hubs that are gone", async () => {
      const full = session("1", {
        owner: true,
        user: "Ada",
        role: "r",
        taint: { by: "web" },
        calls: 3,
        lastCallAt: "2026-01-01T01:00:00.000Z",
      });
      await store.sessions.put([session("1"), full, session("2", { hub: "hub-2", door: "rest" })]);
      expect(await store.sessions.get("1")).toEqual(full);
      expect(await store.sessions.closeLeftOver(["hub-1", "hub-3"], "2026-01-05T00:00:00.000Z")).toBe(1);
      expect((await store.sessions.list({ limit: 5, state: "open" })).entries).toEqual([full]);
      expect((await store.sessions.list({ limit: 5, state: "closed" })).entries).toMatchObject([{ id: "2" }]);
      expect(await store.sessions.list({ limit: 5, door: "rest" })).toMatchObject({ total: 1, entries: [{ id: "2" }] });
      expect(await store.sessions.prune("2026-01-05T00:00:00.001Z")).toBe(1);
      expect(await store.sessions.get("2")).toBeUndefined();
      await store.sessions.put(Array.from({ length: 1200 }, (_, n) => session(`s${n}`)));
      const page = await store.sessions.list({ limit: 500 });
      expect(page.total).toBe(1201);
      expect(await allIds((cursor) => store.sessions.list({ limit: 500, ...cursor }), page.nextCursor)).toHaveLength(
        701,
      );
    });
  });

  describe("audit", () => {
    it("[joy-05c] sums up calls, each once, whoever adds and counts them", async () => {
      const time = "2026-01-01T00:00:00.000Z";
      const names = { callId: null, server: "files", client: null, role: null, outcome: "ok" };
      const figures = { kind: "tool", durationMs: 100, resultBytes: 10, isWaiting: false, findings: [] };
      const read = (line: string): CountedCall | undefined => {
        const { number } = JSON.parse(line) as { number: number };
        return number === 2901 ? undefined : { time, ...names, ...figures, name: `files__${number % 2}` };
      };
      const other = await open();
      const count = async ({ audit }: Store): Promise<void> => {
        while (await audit.sumUpSome(read, Date.parse(time)));
      };
      const first = await Promise.all([
        store.audit.append(auditBlock("sums.jsonl", 0, 1100)),
        other.audit.append(auditBlock("sums.jsonl", 0, 1100)),
      ]);
      expect(first.toSorted()).toEqual([false, true]);
      for (let line = 1100; line < 2900; line += 600) await store.audit.append(auditBlock("sums.jsonl", line, 600));
      await Promise.all([count(store), count(other)]);
      await Promise.all([store.audit.append(auditBlock("sums.jsonl", 2900, 2)), count(other), count(store)]);
      await count(other);
      const named = { prefix: '["tool",', name: "files__1" };
      const query = { step: 60, since: 0, subjects: [{ prefix: '["all"]' }, named] };
      const found = await other.audit.sums(query);
      expect(found.map(({ subject, sum }) => [JSON.parse(subject)[0], sum.calls]).toSorted()).toEqual([
        ["all", 2901],
        ["tool", 1450],
      ]);
      expect(await store.audit.sums({ ...query, since: 2_000_000_000 })).toEqual([]);
      expect(await store.audit.sumUpSome(() => expect.fail(), 0)).toBe(false);
      await store.audit.pruneSums(Date.parse("2026-03-01T00:00:00.000Z"));
      expect(await store.audit.sums(query)).toEqual([]);
      await store.audit.removeFiles(["sums.jsonl"]);
    });

    it("[oper-01a] lines come back byte for byte, and taking them in twice changes nothing", async () => {
      const whole = auditBlock("a.jsonl", 0, 2100);
      expect(await store.audit.append(auditBlock("a.jsonl", 1, 700))).toBe(false);
      expect(await store.audit.append(auditBlock("a.jsonl", 0, 1700))).toBe(true);
      const rest = auditBlock("a.jsonl", 1700, 400);
      const twice = await Promise.all([store.audit.append(rest), (await open()).audit.append(rest)]);
      expect(twice.toSorted()).toEqual([false, true]);
      for (const line of [0, 300, 1700, 2099, 2101])
        expect(await store.audit.append(auditBlock("a.jsonl", line, 500))).toBe(false);
      expect(await store.audit.textOf("a.jsonl")).toBe(whole.text);
      expect(await store.audit.textOf("a.jsonl", 1700)).toBe(rest.text);
      expect(await store.audit.textOf("a.jsonl", 1)).toBe("");
      const { firstLine: _line, text: _text, ...file } = whole;
      expect(await store.audit.files()).toEqual([file]);
      await store.audit.append({ ...auditBlock("b.jsonl", 0), firstTime: "2025-01-01T00:00:00.000Z" });
      expect((await store.audit.files()).map((each) => each.file)).toEqual(["b.jsonl", "a.jsonl"]);
      expect(await store.audit.blocks("b.jsonl")).toHaveLength(1);
      expect((await store.audit.blocks()).map((each) => [each.file, each.firstLine, each.lines])).toEqual([
        ["a.jsonl", 0, 1700],
        ["a.jsonl", 1700, 400],
        ["b.jsonl", 0, 1],
      ]);
      await store.audit.removeFiles(["a.jsonl", "absent"]);
      expect((await store.audit.files()).map((each) => each.file)).toEqual(["b.jsonl"]);
      expect([await store.audit.textOf("a.jsonl"), await store.audit.blocks("a.jsonl")]).toEqual(["", []]);
    });

    it("[oper-01a] a few lines at a time become few blocks", async () => {
      for (let line = 0; line < 3000; line += 30) await store.audit.append(auditBlock("few.jsonl", line, 30));
      const whole = auditBlock("few.jsonl", 0, 3000);
      expect(await store.audit.textOf("few.jsonl")).toBe(whole.text);
      const blocks = await store.audit.blocks("few.jsonl");
      expect(blocks.length).toBeLessThan(6);
      for (const { firstLine, lines, ...rest } of blocks) {
        const { text, ...expected } = auditBlock("few.jsonl", firstLine, lines);
        expect({ firstLine, lines, ...rest }).toEqual(expected);
        expect(await store.audit.textOf("few.jsonl", firstLine)).toBe(text);
      }
      await store.audit.removeFiles(["few.jsonl"]);
    });
  });

  describe("settings and sealed values", () => {
    it("[scale-08a] of those who exchange a setting at once one succeeds, and others hear of it", async () => {
      const other = await open();
      const told: string[] = [];
      other.follow(({ subject }) => told.push(subject));
      const raced = await Promise.all([
        store.settings.exchange("doc", undefined, "a"),
        other.settings.exchange("doc", undefined, "b"),
      ]);
      expect(raced.toSorted()).toEqual([false, true]);
      const now = (await store.settings.get("doc")) ?? "";
      expect(now).toBe(raced[0] ? "a" : "b");
      expect(await store.settings.exchange("doc", "else", "c")).toBe(false);
      expect(await store.settings.exchange("doc", now, "c")).toBe(true);
      expect(await other.settings.get("doc")).toBe("c");
      await eventually(() => told.includes("doc"));
    });

    it("[scale-08b] takers at the same time get no more than the limit together", async () => {
      const other = await open();
      const want = { key: "k", span: 100, since: 88, limit: 50, want: 7 };
      const given = await Promise.all(
        Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? store : other).limits.take(want)),
      );
      expect(given.reduce((sum, each) => sum + each.given, 0)).toBe(50);
      expect(await store.limits.take({ ...want, span: 101, since: 89 })).toEqual({ given: 0, oldest: 100 });
      await other.limits.giveBack("k", 100, 3);
      expect(await store.limits.take({ ...want, span: 101, since: 89 })).toEqual({ given: 3, oldest: 100 });
      expect(await store.limits.take({ ...want, span: 113, since: 101 })).toEqual({ given: 7, oldest: 101 });
      await store.limits.prune(113);
      expect(await store.limits.take({ ...want, span: 113, since: 101, want: 50 })).toEqual({ given: 43, oldest: 113 });
    });

    it("[scale-08b] takers whose clocks differ get no more than the limit together", async () => {
      const other = await open();
      const want = { key: "k", since: 88, limit: 100, want: 30 };
      const given = await Promise.all(
        [100, 101, 99, 103, 100, 102].map((span, index) =>
          (index % 2 === 0 ? store : other).limits.take({ ...want, span }),
        ),
      );
      expect(given.reduce((sum, each) => sum + each.given, 0)).toBe(100);
      expect(await other.limits.take({ ...want, span: 98 })).toMatchObject({ given: 0 });
    });

    it("[guard-20d] taints are changed from what is there, listed by the beginning of their key, and pruned", async () => {
      const store = await open();
      const other = await open();
      const origin = { server: "web", at: 1_700_000_000_000 };
      await Promise.all(
        [store, other].map((each, n) =>
          each.taints.change("memory notes", (before) => {
            return { origins: [...(before?.origins ?? []), { ...origin, n }], clearedAt: 1_700_000_000_000 };
          }),
        ),
      );
      expect((await store.taints.get("memory notes"))?.origins).toHaveLength(2);
      expect(await store.taints.get("memory notes")).toMatchObject({ clearedAt: 1_700_000_000_000 });
      await other.taints.change("caller ann", () => ({ origins: [], clearedAt: 0 }));
      expect((await store.taints.list("memory ")).map(({ key }) => key)).toEqual(["memory notes"]);
      expect(await store.taints.prune("caller ", "9999")).toBe(1);
      expect(await other.taints.get("caller ann")).toBeUndefined();
      await store.taints.remove("memory notes");
      expect(await other.taints.list("")).toEqual([]);
    });

    it("[oper-01a] settings are set, set once, and removed", async () => {
      const other = await open();
      const raced = await Promise.all([store.settings.setOnce("id", "a"), other.settings.setOnce("id", "b")]);
      expect(new Set(raced).size).toBe(1);
      expect(await other.settings.get("id")).toBe(raced[0]);
      await store.settings.set("id", "c");
      expect(await other.settings.setOnce("id", "d")).toBe("c");
      expect(await store.settings.remove("id")).toBe(true);
      expect(await store.settings.remove("id")).toBe(false);
      expect(await store.settings.get("id")).toBeUndefined();
    });

    it("[oper-01a] sealed values are kept by name", async () => {
      const value = {
        name: "A",
        nonce: "bm9uY2U=",
        ciphertext: "eA==",
        tag: "dA==",
        keyId: "k1",
        updatedAt: "2026-01-01",
      };
      await store.sealed.put(value);
      await store.sealed.put({ ...value, keyId: "k2" });
      expect(await store.sealed.get("A")).toEqual({ ...value, keyId: "k2" });
      expect(await store.sealed.names()).toEqual(["A"]);
      expect(await store.sealed.remove("A")).toBe(true);
      expect(await store.sealed.remove("A")).toBe(false);
    });
  });

  describe("following", () => {
    it("[oper-01a] others' changes are told once, in order and with their subject; own ones are not", async () => {
      const writer = await open();
      const told: StoreChange[] = [];
      const stop = store.follow((change) => told.push(change));
      await writer.servers.insert({ id: "a", entry: {}, source: "api" });
      await store.servers.insert({ id: "own", entry: {}, source: "api" });
      await writer.skills.change([{ id: "s", manifest: {} }], ["t"]);
      await writer.pins.change("/lock", [pin("a", "b")], []);
      await writer.approvals.put(approval("1"));
      await writer.settings.set("k", "v");
      await eventually(() => told.length >= 6);
      expect(told.map(({ topic, subject }) => `${topic} ${subject}`)).toEqual([
        "servers a",
        "skills t",
        "skills s",
        "pins /lock",
        "approvals 1",
        "settings k",
      ]);
      expect(told.every((change) => change.writer === writer.id)).toBe(true);
      expect(told.map(({ revision }) => revision)).toEqual(
        told.map(({ revision }) => revision).toSorted((a, b) => a - b),
      );
      stop();
      await writer.settings.set("k", "w");
      await delay(50);
      expect(told).toHaveLength(6);
    });

    it("[oper-01a] what changed between opening and listening is told too", async () => {
      const writer = await open();
      await writer.settings.set("early", "1");
      const told: StoreChange[] = [];
      store.follow((change) => told.push(change));
      await eventually(() => told.length > 0);
      expect(told).toMatchObject([{ topic: "settings", subject: "early" }]);
    });

    it("[oper-01a] a change that failed leaves nothing to tell", async () => {
      const writer = await open();
      const told: StoreChange[] = [];
      store.follow((change) => told.push(change));
      await expect(writer.servers.remove("absent")).rejects.toMatchObject({ code: "not_found" });
      expect(await writer.approvals.expire([])).toBe(0);
      await writer.settings.set("k", "v");
      await eventually(() => told.length > 0);
      expect(told).toMatchObject([{ topic: "settings", subject: "k" }]);
    });

    it("[oper-01a] writers at the same time leave no gap and nobody out", async () => {
      const writers = await Promise.all([open(), open(), open()]);
      const told: StoreChange[] = [];
      store.follow((change) => told.push(change));
      await Promise.all(
        writers.flatMap((writer, w) => Array.from({ length: 20 }, (_, n) => writer.settings.set(`${w}.${n}`, "x"))),
      );
      await eventually(() => told.length >= 60);
      const revisions = told.map(({ revision }) => revision);
      expect(revisions).toEqual(Array.from({ length: 60 }, (_, n) => (revisions[0] ?? 0) + n));
      expect(new Set(told.map(({ subject }) => subject)).size).toBe(60);
    });

    it("[oper-01a] whoever slept longer than changes are kept is told to look at everything", async () => {
      const writer = await open();
      const clock = new FakeClock();
      const sleeper = await open({ clock });
      // Each change has 500 subjects at most, so this many changes are more than are kept.
      const batch = Array.from({ length: 500 }, (_, n) => ({ id: `s${n}`, manifest: {} }));
      for (let n = 0; n < 23; n++) await writer.skills.change(batch, []);
      const told: StoreChange[] = [];
      sleeper.follow((change) => told.push(change));
      await eventually(() => told.length >= 6);
      expect(told.map(({ topic, subject }) => `${topic} ${subject}`)).toEqual([
        "servers *",
        "skills *",
        "pins *",
        "approvals *",
        "settings *",
        "taints *",
      ]);
      const before = told.length;
      await delay(50);
      expect(told).toHaveLength(before);
    });
  });

  conversationBehaviour({ store: () => store, open });

  describe("opening", () => {
    it("[oper-01b] many at once migrate once", async () => {
      place = await makePlace();
      expect(await place.open({ create: false })).toBeUndefined();
      const opened = await Promise.all(Array.from({ length: 6 }, () => open()));
      expect(await Promise.all(opened.map((each) => each.servers.list()))).toEqual(opened.map(() => []));
      const late = await open({ create: false });
      expect(late.place).toBe(opened[0]?.place);
    });

    it("[oper-01a] closing twice is fine, and closes behind what is under way", async () => {
      const closed = await open();
      const writing = Promise.all(Array.from({ length: 5 }, (_, n) => closed.settings.set(`k${n}`, "v")));
      await Promise.all([closed.close(), closed.close()]);
      await Promise.allSettled([writing]);
      const [first, last] = [await store.settings.get("k0"), await store.settings.get("k4")];
      expect([first, last]).toEqual(["v", "v"]);
      await writing;
    });
  });
}

async function allIds(
  list: (cursor: { cursor?: string }) => Promise<{ entries: { id: string }[]; nextCursor?: string }>,
  from: string | undefined,
): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = from; cursor !== undefined;) {
    const page = await list({ cursor });
    ids.push(...page.entries.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  return ids;
}
