import { appendFileSync, truncateSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listFiles } from "../../src/telemetry/audit/files.ts";
import { AuditTail } from "../../src/telemetry/audit/read.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { callRecord } from "../support/call-record.ts";
import { AuditPlace, numbered, startRecord } from "./audit-place.ts";

/** Minutes after the time at which the fake clock stands. */
const clock = new FakeClock();
const at = (minute: number): string => new Date(clock.now() + minute * 60_000).toISOString();

describe("[guard-18c] reading", () => {
  it("filters by time, name, session, server and refusal", async () => {
    const place = new AuditPlace();
    const log = place.log({ clock });
    void log.write(callRecord({ name: "files__read", time: at(0) }));
    void log.write(
      callRecord({ name: "git__push", time: at(10), session: "other", origin: { source: "git", name: "push" } }),
    );
    void log.write(callRecord({ name: "files__delete", time: at(20), decision: "deny", outcome: "denied" }));
    void log.write(callRecord({ name: "files__fetch", time: at(30), outcome: "blocked" }));
    log.close();
    const since = at(10);
    expect(await place.names({ since })).toEqual(["git__push", "files__delete", "files__fetch"]);
    expect(await place.names({ since, until: at(20) })).toEqual(["git__push", "files__delete"]);
    expect(await place.names({ name: "git*" })).toEqual(["git__push"]);
    expect(await place.names({ sessionPrefix: "oth" })).toEqual(["git__push"]);
    expect(await place.names({ server: "git" })).toEqual(["git__push"]);
    expect(await place.names({ denied: true })).toEqual(["files__delete", "files__fetch"]);
  });

  it("orders by the time at which calls ended, over all chains and files", async () => {
    const place = new AuditPlace();
    const [one, two] = [place.log({ maxBytes: 8192, clock }), place.log({ clock })];
    void one.write(callRecord({ name: "short", time: at(1), durationMs: 10 }));
    void two.write(callRecord({ name: "long", time: at(0), durationMs: 120_000 }));
    void one.write(callRecord({ name: "last", time: at(3), durationMs: 10 }));
    one.close();
    two.close();
    expect(await place.names()).toEqual(["short", "long", "last"]);
  });

  it("passes over torn lines, foreign lines and other files", async () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "n\u2028", 3);
    log.flush();
    const path = join(place.dir, place.files()[0] ?? "");
    truncateSync(path, readFileSync(path).length - 100);
    appendFileSync(path, "\nnonsense\n{}\nnull");
    writeFileSync(join(place.dir, "notes.txt"), "{}");
    expect(await place.names()).toEqual(["n\u20281", "n\u20282"]);
    log.close();
  });

  it("a call that ended in a later file of the chain is not unfinished, and following shows ends alone", async () => {
    const place = new AuditPlace();
    const log = place.log({ maxBytes: 8192, clock });
    const tail = new AuditTail(place.dir, []);
    const start = startRecord({ name: "slow", time: at(0) });
    void log.begin(start);
    numbered(log, "n", 20);
    void log.write(callRecord({ callId: start.callId, name: "slow", time: at(0), durationMs: 1000 }));
    log.close();
    expect(place.files().length).toBeGreaterThan(1);
    expect((await place.read()).filter(({ record }) => record.outcome === "unfinished")).toEqual([]);
    expect(await place.names({ name: "slow" })).toEqual(["slow"]);
    expect(tail.poll().filter(({ record }) => record.type === "start")).toEqual([]);
  });

  it("none where there is no log", async () => {
    expect(await new AuditPlace().names()).toEqual([]);
  });
});

describe("[guard-18c] following", () => {
  it("gives what is added to files that were there and to new ones, each once, and waits for whole lines", () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "old", 2);
    log.flush();
    const tail = new AuditTail(place.dir, listFiles(place.dir));
    const names = (): (string | undefined)[] => tail.poll().map(({ record }) => record.name);
    expect(names()).toEqual([]);
    numbered(log, "new", 2);
    log.flush();
    const other = place.log();
    numbered(other, "other", 1);
    other.flush();
    expect(names().toSorted()).toEqual(["new1", "new2", "other1"]);
    expect(names()).toEqual([]);

    const path = join(place.dir, listFiles(place.dir).find((file) => file.chain === log.chain)?.name ?? "");
    const line = place.lines(path.split("/").at(-1))[1] ?? "";
    appendFileSync(path, line.slice(0, 50));
    expect(names()).toEqual([]);
    appendFileSync(path, `${line.slice(50)}\n`);
    expect(names()).toEqual(["old1"]);
    log.close();
    other.close();
  });

  it("begins before a line that was half written when the files were listed", () => {
    const place = new AuditPlace();
    const log = place.log();
    numbered(log, "n", 1);
    log.close();
    const path = join(place.dir, place.files()[0] ?? "");
    const line = place.lines()[1] ?? "";
    appendFileSync(path, line.slice(0, 40));
    const tail = new AuditTail(place.dir, listFiles(place.dir));
    appendFileSync(path, `${line.slice(40)}\n`);
    expect(tail.poll()).toHaveLength(1);
  });
});
