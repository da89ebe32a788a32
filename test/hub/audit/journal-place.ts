/** A home with a journal and a real store; everything is closed and gone after the test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { onTestFinished } from "vitest";
import { AuditKeeper } from "../../../src/hub/audit/audit-keeper.ts";
import { AuditIntake, type IntakeOptions } from "../../../src/hub/audit/intake.ts";
import { HubAudit } from "../../../src/hub/audit/hub-audit.ts";
import { Recording } from "../../../src/hub/audit/recording.ts";
import { verifyAll } from "../../../src/hub/audit/verify.ts";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { databaseFile, openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { NO_KEYS } from "../../../src/telemetry/audit/key.ts";
import type { AuditLog } from "../../../src/telemetry/audit/log.ts";
import { AuditPlace, numbered } from "../../telemetry/audit-place.ts";

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

  /** Files that have ended go at once. */
  intake(journal: AuditLog, options: Partial<IntakeOptions> = {}): AuditIntake {
    const { dir, store } = this;
    return new AuditIntake({
      dir,
      store: store.audit,
      journal,
      clock: systemClock,
      maxBytes: 100 * 1024 * 1024,
      warn: (message) => this.warnings.push(message),
      restMs: -1,
      ...options,
    });
  }

  /** In this thread, unlike that of a hub. */
  audit(log: AuditLog, { withStore = true, clock = systemClock, store = this.store.audit } = {}): HubAudit {
    const stored = withStore ? { audit: store, intake: this.intake(log, { store, clock }) } : undefined;
    const keeper = new AuditKeeper({ dir: this.dir, keys: NO_KEYS, stored });
    const recording = unrecorded(log, clock);
    return new HubAudit({ dir: this.dir, log, clock, store: withStore ? this.store : undefined, keeper, recording });
  }

  /** The text of each file in the folder. */
  texts(): Map<string, string> {
    return new Map(this.files().map((file) => [file, readFileSync(join(this.dir, file), "utf8")]));
  }

  /** The text of each file as it is in the store. */
  async storedTexts(): Promise<Map<string, string>> {
    const texts = new Map<string, string>();
    for (const { file } of await this.store.audit.files()) {
      const lines = await this.store.audit.linesOf(file);
      texts.set(file, lines.map((line) => `${line}\n`).join(""));
    }
    return new Map([...texts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Takes in everything, on behalf of a process that writes nothing itself. */
  async takeIn(): Promise<void> {
    const log = this.log({ isJournal: true });
    const intake = this.intake(log);
    await intake.takeIn();
    log.close();
    await intake.close();
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
