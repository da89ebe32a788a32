import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OPERATIONS, type InputOf } from "../../../src/contract/operations.ts";
import { pageOf } from "../../../src/hub/audit/query.ts";
import type { KeptLog } from "../../../src/model/audit-blocks.ts";
import type { HubAudit } from "../../../src/hub/audit/hub-audit.ts";
import { blockOf } from "../../../src/telemetry/audit/files.ts";
import type { CallRecord } from "../../../src/telemetry/call-record.ts";
import { callRecord } from "../../support/call-record.ts";
import { numbered, startRecord } from "../../telemetry/audit-place.ts";
import { DEAD_PID, JournalPlace } from "./journal-place.ts";

const at = (minute: number): string => new Date(Date.parse("2026-11-15T10:00:00.000Z") + minute * 60_000).toISOString();

async function list(audit: HubAudit, wish: InputOf<"listAudit"> = {}): Promise<unknown[]> {
  const { input, output } = OPERATIONS.listAudit;
  const page = output.parse(await audit.query(input.parse(wish)));
  return page.entries.map(({ name, event, type, outcome }) =>
    type === "start" ? `${name} ${outcome}` : (name ?? event),
  );
}

/** All pages, and how many there were. */
async function pages(audit: HubAudit, wish: InputOf<"listAudit">): Promise<{ names: unknown[]; count: number }> {
  const names: unknown[] = [];
  let [cursor, count] = [undefined as string | undefined, 0];
  do {
    const page = await audit.query(OPERATIONS.listAudit.input.parse({ ...wish, ...(cursor && { cursor }) }));
    names.push(...page.entries.map(({ name, seq }) => `${name} ${seq}`));
    ({ nextCursor: cursor } = page);
    count += 1;
  } while (cursor !== undefined);
  return { names, count };
}

describe.each([{ withStore: true }, { withStore: false }])(
  "[oper-02c] asking for audit records, $withStore",
  ({ withStore }) => {
    it("filters, and orders by time", async () => {
      const place = await JournalPlace.open();
      const log = place.log();
      const audit = place.audit(log, { withStore });
      void log.write(callRecord({ name: "files__read", time: at(0), user: "ann", session: "s1" }));
      void log.write(
        callRecord({ name: "git__push", time: at(10), session: "s2", origin: { source: "git", name: "push" } }),
      );
      void log.write(
        callRecord({ name: "files__delete", time: at(20), decision: "deny", outcome: "denied", door: "mcp" }),
      );
      log.event({ time: at(30), event: "pin.approved", origin: { source: "git", name: "push" }, user: "Bob" });
      const last = callRecord({ name: "files__fetch", time: at(40), outcome: "blocked" });
      void log.write(last);
      expect(await list(audit)).toEqual(["files__fetch", "pin.approved", "files__delete", "git__push", "files__read"]);
      expect(await list(audit, { order: "oldest", limit: 2 })).toEqual(["files__read", "git__push"]);
      expect(await list(audit, { since: at(10), until: at(30) })).toEqual([
        "pin.approved",
        "files__delete",
        "git__push",
      ]);
      expect(await list(audit, { type: "event" })).toEqual(["pin.approved"]);
      expect(await list(audit, { server: "git" })).toEqual(["pin.approved", "git__push"]);
      expect(await list(audit, { name: "files__*" })).toEqual(["files__fetch", "files__delete", "files__read"]);
      expect(await list(audit, { session: "s2" })).toEqual(["git__push"]);
      expect(await list(audit, { user: "ann" })).toEqual(["files__read"]);
      expect(await list(audit, { door: "mcp" })).toEqual(["files__delete"]);
      expect(await list(audit, { outcome: "failed" })).toEqual(["files__fetch", "files__delete"]);
      expect(await list(audit, { outcome: "denied" })).toEqual(["files__delete"]);
      expect(await list(audit, { callId: last.callId })).toEqual(["files__fetch"]);
      expect(await list(audit, { q: "BOB" })).toEqual(["pin.approved"]);
      expect(await list(audit, { q: "_", type: "call", limit: 1 })).toEqual(["files__fetch"]);
      expect(await list(audit, { since: "1s" })).toEqual([]);
      await expect(list(audit, { since: "yesterday" })).rejects.toThrow("`since`");
      const { entries } = await audit.query(OPERATIONS.listAudit.input.parse({ limit: 1 }));
      expect(entries).toMatchObject([{ chain: log.chain, seq: 5, origin: { source: "files" } }]);
      await audit.close();
    });

    it("takes what is asked for as it is", async () => {
      const place = await JournalPlace.open();
      const log = place.log();
      const audit = place.audit(log, { withStore });
      const write = (minute: number, change: Partial<CallRecord>): void =>
        void log.write(callRecord({ time: at(minute), client: { name: "agent" }, ...change }));
      write(1, { name: "files__read_file", callId: "call-1" });
      write(2, { name: "files__READ_file", outcome: "denied", user: 'Ada "the\\first"', callId: "call-2" });
      write(3, { name: "filesX_read_[x]?", outcome: "timeout", session: "oth\u00e9r", door: "rest", callId: "call-3" });
      log.event({ time: at(4), event: "pins approved 100%_" });
      write(5, {
        name: "git__log",
        origin: { source: "git", name: "log" },
        callId: "beef",
        client: { name: "Cursor" },
      });
      const all = ["git__log", "pins approved 100%_", "filesX_read_[x]?", "files__READ_file", "files__read_file"];
      expect(await list(audit)).toEqual(all);
      const cases: [InputOf<"listAudit">, number[]][] = [
        [{ name: "files__*" }, [3, 4]],
        [{ name: "files__read*" }, [4]],
        [{ name: "*_[x]?" }, [2]],
        [{ name: "files__read_file" }, [4]],
        [{ name: "*" }, [0, 2, 3, 4]],
        [{ name: "*_*_*e" }, [3, 4]],
        [{ outcome: "failed" }, [2, 3]],
        [{ outcome: "ok" }, [0, 4]],
        [{ session: "oth\u00e9r", door: "rest" }, [2]],
        [{ session: "oth" }, []],
        [{ user: 'Ada "the\\first"' }, [3]],
        [{ user: "Ada" }, []],
        [{ client: "Cursor" }, [0]],
        [{ server: "log" }, []],
        [{ callId: "beef" }, [0]],
        [{ q: "0%_" }, [1]],
        [{ q: 'ADA "' }, [3]],
        [{ q: "read_FILE" }, [3, 4]],
        [{ q: "CALL-" }, [2, 3, 4]],
        [{ q: "cursor" }, [0]],
        [{ q: "durationMs" }, []],
        [{ q: "\u00c9" }, []],
      ];
      for (const [wish, found] of cases)
        expect(await list(audit, wish), JSON.stringify(wish)).toEqual(found.map((index) => all[index]));
      await audit.close();
    });

    it("finds what is wanted among many blocks, and reads from where a page ended", async () => {
      const place = await JournalPlace.open();
      const log = place.log({ isJournal: withStore, maxBytes: 16 * 1024 * 1024 });
      const audit = place.audit(log, { withStore });
      for (let number = 0; number < 3000; number += 1) {
        const name = number % 500 === 7 ? `rare${number}` : `n${number}`;
        // Long calls: their ends are far from the other records of their time.
        const time = at(number % 100 === 0 ? Math.max(0, number - 900) : number);
        void log.write(callRecord({ name, time, durationMs: 60_000 }));
      }
      await audit.flush();
      const rare = [2507, 2007, 1507, 1007, 507, 7].map((number) => `rare${number}`);
      expect(await list(audit, { name: "rare*" })).toEqual(rare);
      expect(await list(audit, { q: "RARE", order: "oldest" })).toEqual(rare.toReversed());
      expect(await list(audit, { name: "rare*", since: at(1000), until: at(2010) })).toEqual(rare.slice(1, 4));
      const { names } = await pages(audit, { limit: 300 });
      expect(new Set(names).size).toBe(3000);
      const times = (await audit.query(OPERATIONS.listAudit.input.parse({ limit: 500, order: "oldest" }))).entries;
      expect(times.map(({ time }) => time)).toEqual(times.map(({ time }) => time).toSorted());
      expect((await pages(audit, { limit: 500, order: "oldest" })).names).toEqual(names.toReversed());
      await audit.close();
    });

    it("gives every record once, page by page, both ways", async () => {
      const place = await JournalPlace.open();
      place.leaveBehind(["a", "b"], 7);
      const log = place.log();
      const audit = place.audit(log, { withStore });
      for (let number = 1; number <= 7; number += 1) {
        const start = startRecord({ name: `c${number}`, time: at(number) });
        void log.begin(start);
        void log.write(callRecord({ callId: start.callId, name: `c${number}`, time: at(number), durationMs: 90_000 }));
      }
      const { names, count } = await pages(audit, { limit: 5 });
      expect(count).toBeGreaterThan(4);
      expect(new Set(names).size).toBe(21);
      expect(names).toHaveLength(21);
      const upwards = await pages(audit, { limit: 4, order: "oldest" });
      expect(upwards.names).toEqual(names.toReversed());
      await expect(list(audit, { cursor: "nonsense" })).rejects.toThrow("cursor");
      await audit.close();
    });

    it("shows a call that has no end as unfinished, and none that has one anywhere", async () => {
      const place = await JournalPlace.open();
      const killed = place.log({ pid: DEAD_PID });
      void killed.begin(startRecord({ name: "killed", time: at(0) }));
      killed.flush();
      const log = place.log();
      const audit = place.audit(log, { withStore });
      const [slow, withheld] = [
        startRecord({ name: "slow", time: at(1) }),
        startRecord({ name: "secret", time: at(2) }),
      ];
      void log.begin(slow);
      void log.begin(withheld);
      expect(await list(audit)).toEqual(["secret unfinished", "slow unfinished", "killed unfinished"]);
      log.withhold(withheld.callId);
      numbered(log, "n", 5);
      expect(await list(audit, { outcome: "unfinished" })).toEqual(["slow unfinished", "killed unfinished"]);
      void log.write(callRecord({ callId: slow.callId, name: "slow", time: at(1), durationMs: 60_000 }));
      expect(await list(audit, { type: "start" })).toEqual(["killed unfinished"]);
      expect(await list(audit, { name: "slow" })).toEqual(["slow"]);
      expect(await list(audit, { outcome: "ok", limit: 1 })).toEqual(["slow"]);
      await audit.close();
      killed.close();
    });

    it("exports everything that fits as JSON lines, oldest first", async () => {
      const place = await JournalPlace.open();
      const log = place.log();
      const audit = place.audit(log, { withStore });
      for (let number = 0; number < 1100; number += 1)
        void log.write(callRecord({ name: `n${number}`, time: at(number) }));
      const lines: string[] = [];
      for await (const line of audit.exportLines({ name: "n*", since: at(1) })) lines.push(line);
      expect(lines.every((line) => line.endsWith("}\n"))).toBe(true);
      const names = lines.map((line) => (JSON.parse(line) as { name: string }).name);
      expect(names).toEqual(Array.from({ length: 1099 }, (_, index) => `n${index + 1}`));
      await audit.close();
    });
  },
);

it("[oper-02c] what was written is in the store after flush, and a store that is down hides nothing", async () => {
  const place = await JournalPlace.open();
  const log = place.log({ isJournal: true });
  const audit = place.audit(log);
  numbered(log, "n", 2);
  await audit.flush();
  expect(await place.storedTexts()).toEqual(place.texts());
  const { append } = place.store.audit;
  Object.assign(place.store.audit, { append: () => Promise.reject(new Error("full")) });
  numbered(log, "m", 1);
  await expect(audit.flush()).rejects.toThrow("full");
  expect(await list(audit)).toHaveLength(3);
  Object.assign(place.store.audit, { append });
  expect(await list(audit)).toHaveLength(3);
  await audit.close();
});

it("[oper-02c] no block is read more than twice, however many calls have no end", async () => {
  const place = await JournalPlace.open();
  const killed = place.log({ pid: DEAD_PID });
  for (let round = 0; round < 12; round += 1) {
    void killed.begin(startRecord({ name: `open${round}`, time: at(round) }));
    numbered(killed, "n", 99);
  }
  killed.flush();
  const { audit } = place.store;
  const [[name = "", text = ""] = []] = place.texts();
  const lines = text.split(/(?<=\n)/);
  for (let line = 0; line < lines.length; line += 100)
    await audit.append(blockOf({ name, chain: killed.chain }, line, lines.slice(line, line + 100).join("")));
  rmSync(join(place.dir, name));
  expect((await audit.blocks()).length).toBeGreaterThan(8);
  const reads = new Map<number | undefined, number>();
  const kept: KeptLog = {
    ...audit,
    textOf: (file, firstLine) => {
      reads.set(firstLine, (reads.get(firstLine) ?? 0) + 1);
      return audit.textOf(file, firstLine);
    },
  };
  const { entries } = await pageOf(place.dir, kept, { limit: 100, outcome: "unfinished", order: "oldest" });
  expect(entries.map((each) => each.name)).toEqual(Array.from({ length: 12 }, (_, round) => `open${round}`));
  expect(Math.max(...reads.values())).toBeLessThanOrEqual(2);
  killed.close();
});

describe("[oper-02c] records of files that go into the store while they are read", () => {
  it.each(["newest", "oldest"] as const)("are there, %s first", async (order) => {
    const place = await JournalPlace.open();
    place.leaveBehind(["a", "b"], 20);
    let isTaken = false;
    const kept: KeptLog = {
      ...place.store.audit,
      async blocks(file) {
        const found = await place.store.audit.blocks(file);
        if (!isTaken) await place.takeIn();
        isTaken = true;
        return found;
      },
    };
    const { entries } = await pageOf(place.dir, kept, { limit: 100, order });
    expect(place.files()).toEqual([]);
    expect(new Set(entries.map(({ name }) => name)).size).toBe(40);
  });
});
