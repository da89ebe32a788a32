import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { AuditKeeper } from "../../src/hub/audit/audit-keeper.ts";
import { systemClock } from "../../src/base/clock.ts";
import { databaseFile, openStore } from "../../src/store/open-store.ts";
import { parseTime } from "../../src/telemetry/audit/read.ts";
import { NO_KEYS } from "../../src/telemetry/audit/key.ts";
import { AuditLog } from "../../src/telemetry/audit/log.ts";
import type { StoredRecord } from "../../src/telemetry/audit/record.ts";
import type { AuditReport } from "../../src/telemetry/audit/verify.ts";
import { callRecord } from "../support/call-record.ts";
import { startRecord } from "../telemetry/audit-place.ts";
import { type Workspace, workspace } from "./run-cli.ts";

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
const denial = {
  decision: "deny",
  outcome: "denied",
  rule: { level: "hub", list: "deny", pattern: "*__delete", where: "toolcrib.json" },
} as const;

function auditDir(place: Workspace): string {
  return join(place.home, "audit");
}

/** A log with a call an hour ago, one of another session just now, and a denied one. */
function filled(): Workspace {
  const place = workspace();
  place.configure({});
  const log = new AuditLog({ dir: auditDir(place) });
  void log.write(callRecord({ name: "files__read", time: minutesAgo(60) }), { arguments: { path: "x" } });
  void log.write(
    callRecord({
      name: "git__push",
      session: "abcdef-2",
      origin: { source: "git", name: "push" },
      time: minutesAgo(1),
    }),
  );
  void log.write(callRecord({ name: "files__delete", time: minutesAgo(0), ...denial }));
  log.close();
  return place;
}

async function names(place: Workspace, ...args: string[]): Promise<(string | undefined)[]> {
  const { code, json } = await place.runHere(["audit", "--json", ...args]);
  expect(code).toBe(0);
  return json<StoredRecord[]>().map((record) => record.name);
}

describe("[guard-18c] toolcrib audit", () => {
  it("shows a table, and all fields with --json", async () => {
    const place = filled();
    const table = await place.runHere(["audit"]);
    expect(table).toMatchObject({ code: 0, stderr: "" });
    const lines = table.stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^TIME +SESSION +CLIENT +ROLE +DOOR +NAME +DECISION +OUTCOME/);
    expect(lines[3]).toMatch(/files__delete +deny +denied .*deny "\*__delete" in toolcrib\.json$/);
    const records = (await place.runHere(["audit", "--json"])).json<StoredRecord[]>();
    expect(records[0]).toMatchObject({
      type: "call",
      seq: 1,
      name: "files__read",
      argumentBytes: 12,
      decision: "allow",
    });
    expect(records[0]).toHaveProperty("chain");
  });

  it("leaves out that tools of two servers have similar names, which no one is warned of, and says so", async () => {
    const place = filled();
    const log = new AuditLog({ dir: auditDir(place) });
    for (const severity of ["low", "low", "medium"]) {
      const origin = { source: "b", name: severity };
      log.event({ time: minutesAgo(0), event: "definition.shadowing", origin, details: { severity } });
    }
    log.close();
    const { stdout, stderr } = await place.runHere(["audit", "--limit", "4"]);
    expect(stdout).toContain("definition.shadowing b medium");
    expect(stdout).not.toContain("b low");
    expect(stdout).toContain("files__read");
    expect(stderr).toBe(
      "2 records of similar names of tools left out. --json has them, toolcrib doctor names the servers.\n",
    );
    expect(await names(place)).toHaveLength(6);
  });

  it("filters", async () => {
    const place = filled();
    expect(await names(place, "--since", "10m")).toEqual(["git__push", "files__delete"]);
    expect(await names(place, "--until", "10m")).toEqual(["files__read"]);
    expect(await names(place, "--since", minutesAgo(61), "--until", minutesAgo(59))).toEqual(["files__read"]);
    expect(await names(place, "--tool", "files__*")).toEqual(["files__read", "files__delete"]);
    expect(await names(place, "--session", "abc")).toEqual(["git__push"]);
    expect(await names(place, "--server", "git")).toEqual(["git__push"]);
    expect(await names(place, "--denied")).toEqual(["files__delete"]);
    expect(await names(place, "--limit", "1")).toEqual(["files__delete"]);
    const cut = await place.runHere(["audit", "--limit", "1"]);
    expect(cut.stderr).toContain("2 older records are not shown");
  });

  it("refuses what it does not understand with exit 2, and says so when there is nothing", async () => {
    const place = workspace();
    place.configure({});
    for (const wrong of [["--since", "yesterday"], ["--limit", "x"], ["veryfi"]]) {
      expect((await place.runHere(["audit", ...wrong])).code).toBe(2);
    }
    expect(await place.runHere(["audit"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("No matching records") as string,
    });
    expect(await names(place)).toEqual([]);
  });

  it("-f shows the newest and then what is written, and ends on a signal", async () => {
    const place = filled();
    const { child, finished } = place.start(["audit", "-f", "--json", "--limit", "1", "--tool", "files__*"]);
    let shown = "";
    child.stdout?.on("data", (chunk: Buffer) => (shown += chunk.toString()));
    await vi.waitFor(() => expect(shown).toContain("files__delete"), { timeout: 60_000, interval: 20 });
    const log = new AuditLog({ dir: auditDir(place) });
    void log.write(callRecord({ name: "files__later", time: minutesAgo(0) }));
    void log.write(callRecord({ name: "git__later", time: minutesAgo(0) }));
    log.flush();
    await vi.waitFor(() => expect(shown).toContain("files__later"), { timeout: 60_000, interval: 20 });
    child.kill("SIGINT");
    expect((await finished).code).toBe(0);
    log.close();
    const lines = shown
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as StoredRecord);
    expect(lines.map((record) => record.name)).toEqual(["files__delete", "files__later"]);
  });

  it("[guard-18b] verify exits 0 for a sound log and 1 for a changed one, and says where", async () => {
    const place = filled();
    expect(await place.runHere(["audit", "verify"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok: 1 chain, 5 lines in (?!.*store)/) as string,
    });
    const [file = ""] = readdirSync(auditDir(place));
    const path = join(auditDir(place), file);
    writeFileSync(path, readFileSync(path, "utf8").replace("git__push", "git__pull"));
    const broken = await place.runHere(["audit", "verify"]);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain(`changed: ${file}:3: `);
    const json = await place.runHere(["audit", "verify", "--json"]);
    expect(json.code).toBe(1);
    expect(json.json<AuditReport>()).toMatchObject({
      ok: false,
      chains: [{ problems: [{ what: "changed", line: 3 }] }],
    });
  });
});

describe("[guard-18d] a call that never ended", () => {
  it("is shown as unfinished, and verify has nothing against it", async () => {
    const place = filled();
    const log = new AuditLog({ dir: auditDir(place) });
    void log.begin(startRecord({ name: "files__wipe", time: minutesAgo(0) }));
    log.close();
    const { stdout } = await place.runHere(["audit", "--since", "1h"]);
    expect(stdout).toMatch(/files__wipe +allow +unfinished +- +-/);
    expect(await place.runHere(["audit", "verify"])).toMatchObject({ code: 0 });
  });
});

describe("[guard-18b] files that are gone", () => {
  it("the newest, or all of them, are missed", async () => {
    const place = filled();
    const files = readdirSync(auditDir(place)).filter((name) => name.endsWith(".jsonl"));
    for (const file of files) rmSync(join(auditDir(place), file));
    const { code, stdout } = await place.runHere(["audit", "verify"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`removed: ${files[0]}: the file is missing; heads.json knows it`);
  });
});

describe("[oper-02c] [oper-03b] a log that is in the store", () => {
  /** As a hub does it that runs a while later. */
  async function takenIn(): Promise<Workspace> {
    const place = filled();
    const store = await openStore({ home: place.home });
    if (store === undefined) throw new Error("no store");
    const journal = new AuditLog({ dir: auditDir(place), isJournal: true });
    const { chain, fileBytes } = journal;
    const options = { dir: auditDir(place), chain, fileBytes, clock: systemClock, maxBytes: 1e8, restMs: -1 };
    const keeper = new AuditKeeper({ ...options, keys: NO_KEYS, store: async () => store.audit });
    expect(await keeper.takeIn("all")).toMatchObject({ warnings: [], failure: undefined });
    journal.close();
    await store.close();
    expect(readdirSync(auditDir(place))).toEqual(["heads.json"]);
    // What other processes write meanwhile is still in the folder.
    const log = new AuditLog({ dir: auditDir(place) });
    void log.write(callRecord({ name: "files__later", time: minutesAgo(0) }));
    log.close();
    return place;
  }

  it("is shown, filtered and verified together with what is in the folder", async () => {
    const place = await takenIn();
    const shown = await place.runHere(["audit", "--json"]);
    const all = shown.json<StoredRecord[]>().map(({ name }) => name);
    expect(all).toEqual(["files__read", "git__push", "files__delete", "files__later"]);
    const since = await place.runHere(["audit", "--json", "--since", "10m", "--tool", "files__*"]);
    expect(since.json<StoredRecord[]>().map(({ name }) => name)).toEqual(["files__delete", "files__later"]);
    expect(await place.runHere(["audit", "verify"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok: 2 chains, 8 lines in .* and in the store$/m) as string,
    });
    const database = new Sqlite(databaseFile(place.home));
    database.exec("update audit_blocks set text = replace(text, 'git__push', 'git__pull')");
    database.close();
    const broken = await place.runHere(["audit", "verify"]);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toMatch(/changed: .*:3: the line is not what was written/);
  });
});

describe("times", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");

  it("are spans back from now, or points in time", () => {
    expect(parseTime("--since", "90s", now)).toBe(now - 90_000);
    expect(parseTime("--since", "2h", now)).toBe(now - 7_200_000);
    expect(parseTime("--since", "1w", now)).toBe(now - 604_800_000);
    expect(parseTime("--since", "2026-11-15T09:30:00Z", now)).toBe(Date.parse("2026-11-15T09:30:00Z"));
    expect(parseTime("--since", "2026-11-15", now)).toBe(Date.parse("2026-11-15T00:00"));
    for (const wrong of ["", "2", "h", "2026-13-45", "-2h", "2y"]) {
      expect(() => parseTime("--since", wrong, now), wrong).toThrow("--since");
    }
  });
});
