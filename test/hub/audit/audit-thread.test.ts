import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { OPERATIONS } from "../../../src/contract/operations.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { auditThread, HubAudit } from "../../../src/hub/audit/hub-audit.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { databaseFile, openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { session } from "../../store/samples.ts";
import { AuditPlace, numbered } from "../../telemetry/audit-place.ts";
import { DEAD_PID, JournalPlace, unrecorded } from "./journal-place.ts";

const source = resolve(import.meta.dirname, "../../../src");
const module = (path: string): string => JSON.stringify(join(source, path));

/** With a store, and a tool that answers in another turn. */
async function hubAt(place: AuditPlace): Promise<Hub> {
  const file = join(place.root, "toolcrib.json");
  writeFileSync(file, JSON.stringify({ mcpServers: {}, limits: { concurrency: 100 } }));
  const hub = await createHub(file, { home: place.root });
  onTestFinished(() => hub.close());
  const execute = async (): Promise<{ content: [] }> => {
    await delay(1);
    return { content: [] };
  };
  hub.registry.register({ name: "say", description: "", parameters: {}, execute });
  return hub;
}

function written(place: AuditPlace): string {
  const files = readdirSync(place.dir).filter((name) => name.endsWith(".jsonl"));
  return files.map((name) => readFileSync(join(place.dir, name), "utf8")).join("");
}

/** Writes calls until it is killed, and prints the id of each when its record is acknowledged. */
function writer(home: string): string {
  return `
    import { writeSync } from "node:fs";
    import { setImmediate as turn } from "node:timers/promises";
    import { randomUUID } from "node:crypto";
    import { openStore } from ${module("store/open-store.ts")};
    import { openAudit } from ${module("hub/audit/hub-audit.ts")};
    import { systemClock as clock } from ${module("base/clock.ts")};
    const home = ${JSON.stringify(home)};
    const store = await openStore({ home });
    const config = { arguments: false, maxBytes: 1e9, oldKeys: [] };
    const { log, audit } = openAudit({ home, config, store, clock, redact: (text) => text, warn: console.error });
    async function call() {
      for (let n = 0; ; n++) {
        const record = { callId: randomUUID(), time: new Date().toISOString(), session: "s", door: "cli", role: null,
          kind: "tool", name: "say", origin: null, decision: "allow", rule: null };
        await log.begin(record);
        writeSync(1, "began " + record.callId + "\\n");
        await turn();
        await log.write({ ...record, outcome: "ok", durationMs: 0, resultBytes: 0, notes: {} });
        writeSync(1, "ended " + record.callId + "\\n");
        if (n % 50 === 0) void audit.flush().catch(() => {});
      }
    }
    for (let n = 0; n < 8; n++) void call();`;
}

let writers = 0;

async function killed(home: string, lines: number): Promise<string[]> {
  // A file takes every write at once; a pipe that is full refuses it.
  const file = join(home, `said-${++writers}`);
  const output = openSync(file, "w");
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", writer(home)], {
    stdio: ["ignore", output, "inherit"],
  });
  const ended = once(child, "close");
  closeSync(output);
  const said = (): string[] => readFileSync(file, "utf8").split("\n").slice(0, -1);
  const look = setInterval(() => said().length >= lines && child.kill("SIGKILL"), 5);
  await ended;
  clearInterval(look);
  return said();
}

describe("[speed-02a] a record is written before what it tells of", () => {
  it("the answer to a call, one at a time and many at once", async () => {
    const place = new AuditPlace();
    const hub = await hubAt(place);
    const call = async (): Promise<number> => {
      const { callId } = await hub.call({ name: "say" });
      const lines = written(place).split("\n");
      return lines.filter((line) => line.includes(callId)).length;
    };
    expect([await call(), await call()]).toEqual([2, 2]);
    expect(new Set(await Promise.all(Array.from({ length: 32 }, call)))).toEqual(new Set([2]));
  });

  it("nothing that was acknowledged is lost when the process is killed, while the store is written too", async () => {
    const place = await JournalPlace.open();
    const kills = 9;
    const said: string[] = [];
    for (let n = 0; n < kills; n += 3) {
      const some = Array.from({ length: Math.min(3, kills - n) }, (_, k) =>
        killed(place.root, 40 + 60 * ((n + k) % 10)),
      );
      said.push(...(await Promise.all(some)).flat());
    }
    expect(said.length).toBeGreaterThan(kills * 40);
    const kept = new Set<string>();
    const texts = [...(await place.storedTexts()).values(), ...place.texts().values()];
    // A kill may cut the last line of a file.
    for (const line of texts.flatMap((text) => text.split("\n").slice(0, -1))) {
      const { type, callId } = JSON.parse(line) as { type?: string; callId?: string };
      kept.add(`${type === "start" ? "began" : "ended"} ${callId}`);
    }
    expect(said.filter((each) => !kept.has(each))).toEqual([]);
    expect((await place.verify()).filter((each) => each.startsWith("error"))).toEqual([]);
    await place.takeIn();
    expect((await place.verify()).filter((each) => each.startsWith("error"))).toEqual([]);
  }, 180_000);
});

describe("[speed-02b] the log is kept by a thread of its own", () => {
  it("which takes it in, searches and verifies it, and leaves the event loop alone", { retry: 2 }, async () => {
    const place = new AuditPlace();
    for (let n = 0; n < 8; n += 1) {
      const log = place.log({ pid: DEAD_PID });
      numbered(log, `old${n}-`, 2000);
      log.close();
    }
    const hub = await hubAt(place);
    await hub.call({ name: "say" });
    const [thread, all] = [process.threadCpuUsage(), process.cpuUsage()];
    await hub.audit.flush();
    const found = await hub.audit.query(OPERATIONS.listAudit.input.parse({ q: "old7-2000", limit: 5 }));
    const verdict = await hub.audit.verify();
    const [ours, total] = [process.threadCpuUsage(thread), process.cpuUsage(all)];
    expect(found.entries.map(({ name }) => name)).toEqual(["old7-2000"]);
    expect(verdict).toMatchObject({ ok: true, chains: 9, records: 8 * 2002 + 3 });
    expect(ours.user + ours.system).toBeLessThan((total.user + total.system) / 4);
  });

  it("[speed-03a] and which writes the sessions, whose records change with each call, while it runs", async () => {
    const place = await JournalPlace.open();
    const log = place.log({ isJournal: true });
    const work = {
      dir: place.dir,
      chain: log.chain,
      fileBytes: log.fileBytes,
      maxBytes: 1e9,
      address: place.store.address,
      knownKeys: [],
    };
    const keeper = auditThread(work);
    const warn = (message: string): void => expect.fail(message);
    const { sessions } = place.store;
    const put: number[] = [];
    const stored = {
      ...sessions,
      put: (some: Parameters<typeof sessions.put>[0]) => {
        put.push(some.length);
        return sessions.put(some);
      },
    };
    const recording = unrecorded(log, systemClock);
    const audit = new HubAudit({
      ...{ dir: place.dir, log, clock: systemClock, store: place.store, keeper, recording, warn },
    });
    const threaded = audit.sessionsOf(stored);
    await threaded.put([session("before")]);
    await audit.flush();
    await threaded.put(Array.from({ length: 1200 }, (_, n) => session(`s${n}`, { calls: n })));
    expect(put).toEqual([1]);
    expect(await place.store.sessions.get("s1199")).toMatchObject({ calls: 1199 });
    await audit.close();
    await threaded.put([session("after")]);
    expect(put).toEqual([1, 1]);
    expect((await place.store.sessions.list({ limit: 1 })).total).toBe(1202);
  });

  it("and which ends when it has nothing to do, and is there again when someone asks", async () => {
    const place = await JournalPlace.open();
    const log = place.log({ isJournal: true });
    numbered(log, "n", 3);
    log.flush();
    const { address } = place.store;
    const work = { dir: place.dir, chain: log.chain, fileBytes: log.fileBytes, maxBytes: 1e9, address, knownKeys: [] };
    const thread = auditThread(work, 20);
    onTestFinished(() => thread.close());
    await thread.takeIn("all");
    // Each look keeps it for a while.
    await expect.poll(() => thread.putSessions([]), { interval: 300 }).toBe(false);
    numbered(log, "m", 2);
    log.flush();
    await thread.takeIn("all");
    expect((await thread.query({ limit: 10 })).entries).toHaveLength(5);
    expect(await place.storedTexts()).toEqual(place.texts());
    log.close();
  });

  it("and which starts again, and goes on where it was, after a database that could not be opened", async () => {
    const place = new AuditPlace();
    const warnings: string[] = [];
    const log = place.log({ isJournal: true });
    numbered(log, "n", 3);
    log.flush();
    const work = {
      dir: place.dir,
      chain: log.chain,
      fileBytes: log.fileBytes,
      maxBytes: 1e9,
      address: { file: databaseFile(place.root) },
      knownKeys: [],
    };
    const thread = auditThread(work);
    const warn = (message: string): void => void warnings.push(message);
    const settings = { get: async () => undefined, setOnce: async () => log.chain } as unknown as Store["settings"];
    const recording = unrecorded(log, systemClock);
    const audit = new HubAudit({
      dir: place.dir,
      log,
      clock: systemClock,
      store: { kind: "sqlite", settings },
      keeper: thread,
      recording,
      warn,
    });
    onTestFinished(() => audit.close());
    await expect(audit.flush()).rejects.toMatchObject({ name: "ToolcribError" });
    expect(warnings).toEqual([
      expect.stringMatching(/^Audit records could not be put into the store: .*[^.]\. They stay in /),
    ]);
    const store = await openStore({ home: place.root });
    onTestFinished(() => store?.close());
    await audit.flush();
    const page = await thread.query({ limit: 10 });
    expect(page.entries.map(({ name }) => name).toSorted()).toEqual(["n1", "n2", "n3"]);
    expect(await store?.audit.files()).toMatchObject([{ chain: log.chain, lines: 4 }]);
    log.close();
  });
});
