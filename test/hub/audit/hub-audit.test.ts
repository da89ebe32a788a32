import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { OPERATIONS } from "../../../src/contract/operations.ts";
import { DEAD_PID, JournalPlace } from "./journal-place.ts";
import { numbered } from "../../telemetry/audit-place.ts";

const source = resolve(import.meta.dirname, "../../../src");
const module = (path: string): string => JSON.stringify(join(source, path));

const home = mkdtempSync(join(tmpdir(), "toolcrib-audit-hub-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("[oper-02c] [oper-03b] the audit of a hub with a store", () => {
  it("loses nothing when the process that takes it in is killed", async () => {
    const place = await JournalPlace.open();
    for (const name of ["a", "b", "c"]) {
      const log = place.log({ pid: DEAD_PID });
      numbered(log, name, 2000);
      log.close();
    }
    const before = place.texts();
    // Writes down each transaction, and is killed while the next ones run.
    const code = `
      import { openStore } from ${module("store/open-store.ts")};
      import { AuditKeeper } from ${module("hub/audit/audit-keeper.ts")};
      import { AuditLog } from ${module("telemetry/audit/log.ts")};
      import { systemClock as clock } from ${module("base/clock.ts")};
      const store = await openStore({ home: ${JSON.stringify(place.root)} });
      const audit = { ...store.audit, append: async (block) => { const done = await store.audit.append(block); console.log(block.lines); return done; } };
      const dir = ${JSON.stringify(place.dir)};
      const { chain, fileBytes } = new AuditLog({ dir, isJournal: true });
      const keys = { known: new Map() };
      const keeper = new AuditKeeper({ dir, store: async () => audit, keys, chain, fileBytes, clock, maxBytes: 1e9, restMs: -1 });
      console.error((await keeper.takeIn("all")).failure);`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let told = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      told += chunk
        .toString()
        .trim()
        .split("\n")
        .reduce((sum, line) => sum + Number(line), 0);
      // In the second file, when the first is in the store.
      if (told > 2500) child.kill("SIGKILL");
    });
    await once(child, "exit");
    expect(told).toBeGreaterThan(2500);
    const taken = (await place.store.audit.files()).reduce((sum, { lines }) => sum + lines, 0);
    expect(taken).toBeGreaterThanOrEqual(told);
    expect(taken).toBeLessThan(6006);
    expect(await place.verify()).toEqual([]);
    await place.takeIn();
    expect(place.files()).toEqual([]);
    expect(await place.storedTexts()).toEqual(before);
    expect(await place.verify()).toEqual([]);
  });

  it("is asked through the hub, and is there for the next one", async () => {
    const file = join(home, "toolcrib.json");
    writeFileSync(file, JSON.stringify({ mcpServers: {} }));
    const wish = OPERATIONS.listAudit.input.parse({ type: "call" });
    const hub = await createHub(file, { home });
    try {
      hub.registry.register({ name: "say", description: "", parameters: {}, execute: async () => ({ content: [] }) });
      await hub.call({ name: "say" });
      await hub.call({ name: "nobody" });
      expect((await hub.audit.query(wish)).entries).toMatchObject([
        { name: "nobody", outcome: "not_found", door: "library", session: hub.session.id },
        { name: "say", outcome: "ok" },
      ]);
      expect(await hub.audit.verify()).toMatchObject({ ok: true, chains: 1 });
    } finally {
      await hub.close();
    }
    const next = await createHub(file, { home });
    try {
      const { entries } = await next.audit.query(wish);
      expect(entries.map(({ name }) => name)).toEqual(["nobody", "say"]);
      expect(next.internals.store?.kind).toBe("sqlite");
    } finally {
      await next.close();
    }
  });

  it("stays in files for a hub without a store", async () => {
    const other = join(home, "without");
    const hub = await createHub({}, { home: other });
    try {
      await hub.call({ name: "nobody" });
      const { entries } = await hub.audit.query(OPERATIONS.listAudit.input.parse({}));
      expect(entries.map(({ name }) => name)).toEqual(["nobody"]);
    } finally {
      await hub.close();
    }
    expect(readdirSync(join(other, "audit")).filter((name) => name.endsWith(".jsonl"))).toHaveLength(1);
    expect(readdirSync(other)).not.toContain("toolcrib.db");
  });
});
