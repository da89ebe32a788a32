/** A home with a journal and a real store; everything is closed and gone after the test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { onTestFinished } from "vitest";
import { AuditKeeper, type AuditKeeperOptions } from "../../../src/hub/audit/audit-keeper.ts";
import { type AuditKeeping, HubAudit } from "../../../src/hub/audit/hub-audit.ts";
import { Recording } from "../../../src/hub/audit/recording.ts";
import { verifyAll } from "../../../src/hub/audit/verify.ts";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { databaseFile, openStore } from "../../../src/store/open-store.ts";
import type { Store, StoredAudit } from "../../../src/store/store.ts";
import { blockOf, parseFileName } from "../../../src/telemetry/audit/files.ts";
import { NO_KEYS } from "../../../src/telemetry/audit/key.ts";
import type { AuditLog } from "../../../src/telemetry/audit/log.ts";
import { AuditPlace, numbered } from "../../telemetry/audit-place.ts";

interface KeeperOptions extends Partial<Omit<AuditKeeperOptions, "store">> {
  readonly withStore?: boolean;
  readonly isReady?: boolean;
  readonly store?: StoredAudit;
}

/** No process has it. */
export const DEAD_PID = 4_194_999;

export class JournalPlace extends AuditPlace {
  readonly warnings: string[] = [];
  #store: Store | undefined;

  static async open(): Promise<JournalPlace> {
    const place = new JournalPlace();
    const store = await openStore({ home: place.root });
    place.#store = store;
    onTestFinished(() => store?.close());
    return place;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error("no store");
    return this.#store;
  }

  /** Takes in when it is told to. Files that have ended go at once. */
  keeper(log: AuditLog, options: KeeperOptions = {}): { takeIn(): Promise<void>; close(): Promise<void> } {
    const audit = this.audit(log, options);
    return { takeIn: () => audit.flush(), close: () => audit.close() };
  }

  /** In this thread, unlike that of a hub. */
  audit(
    log: AuditLog,
    { withStore = true, isReady = true, clock = systemClock, store, ...options }: KeeperOptions = {},
  ): HubAudit {
    const { dir } = this;
    const warn = (message: string): void => void this.warnings.push(message);
    const bounds = { maxBytes: 100 * 1024 * 1024, restMs: -1, chain: log.chain, fileBytes: log.fileBytes };
    const opened = withStore ? async () => store ?? this.store.audit : undefined;
    const own = new AuditKeeper({ dir, store: opened, keys: NO_KEYS, clock, ...bounds, ...options });
    const keeper: AuditKeeping = {
      isReady,
      takeIn: (scope) => own.takeIn(scope),
      remove: (names) => own.remove(names),
      query: (query) => own.query(query),
      stats: (query) => own.stats(query),
      verify: (wroteHere) => own.verify(wroteHere),
      putSessions: async () => false,
      close: async () => void (withStore && (await own.takeIn("last"))),
    };
    const recording = unrecorded(log, clock);
    return new HubAudit({ dir, log, clock, store: withStore ? this.store : undefined, keeper, recording, warn });
  }

  /** The text of each file in the folder. */
  texts(): Map<string, string> {
    return new Map(this.files().map((file) => [file, readFileSync(join(this.dir, file), "utf8")]));
  }

  /** The text of each file as it is in the store. */
  async storedTexts(): Promise<Map<string, string>> {
    const texts = new Map<string, string>();
    for (const { file } of await this.store.audit.files()) {
      texts.set(file, await this.store.audit.textOf(file));
    }
    return new Map([...texts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Takes in everything, on behalf of a process that writes nothing itself. */
  async takeIn(): Promise<void> {
    const log = this.log({ isJournal: true });
    const keeper = this.keeper(log);
    await keeper.takeIn();
    log.close();
    await keeper.close();
  }

  /** Straight into the database, as somebody would who wants to hide something. */
  edit(change: string, ...values: (string | number)[]): void {
    const database = new Sqlite(databaseFile(this.root));
    try {
      if (database.prepare(change).run(...values).changes === 0) throw new Error(`nothing changed: ${change}`);
    } finally {
      database.close();
    }
  }

  /** The same with the lines of a file, the first if none is named, whose block is made to fit them. */
  async rewriteStored(change: (lines: string[]) => string[], name?: string): Promise<void> {
    const file = name ?? (await this.store.audit.files())[0]?.file ?? "";
    const lines = change((await this.store.audit.textOf(file)).split("\n").slice(0, -1));
    const place = { chain: "", ...parseFileName(file), name: file };
    const block = blockOf(place, 0, lines.map((line) => `${line}\n`).join(""));
    this.edit("delete from audit_blocks where file = ?", file);
    const { chain, firstLine, bytes, firstTime, lastTime, text } = block;
    this.edit(
      "insert into audit_blocks (file, chain, first_line, lines, bytes, first_time, last_time, text) values (?, ?, ?, ?, ?, ?, ?, ?)",
      ...[file, chain, firstLine, block.lines, bytes, firstTime, lastTime, text],
    );
  }

  async verify(): Promise<string[]> {
    const report = await verifyAll(this.dir, this.store);
    const all = [...report.problems, ...report.chains.flatMap((chain) => chain.problems)];
    return all.map(({ severity, what, line }) => `${severity} ${what} ${line}`);
  }

  /** Chains of processes that are gone, with the records `a1`, `a2` … each. */
  leaveBehind(names: readonly string[], amount = 3): void {
    for (const name of names) {
      const log = this.log({ pid: DEAD_PID });
      numbered(log, name, amount);
      log.close();
    }
  }
}

export function unrecorded(log: AuditLog, clock: Clock): Recording {
  const config = { arguments: false, results: false };
  return new Recording({ clock, config, note: (record) => log.event(record), onChange: () => {} });
}
