/** The slow work on the log: taking it into the store, answering queries, verifying it. */
import type { Stats } from "../../contract/stats-schemas.ts";
import type { AuditQuery, StoredAudit, StoredSession } from "../../store/store.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import type { AuditIntake, IntakeScope } from "./intake.ts";
import { type AuditPage, pageOfFiles, pageOfStore } from "./query.ts";
import { type StatsQuery, statsOf, sumsOfFiles } from "./stats.ts";
import { verifyStored, type WholeReport } from "./verify.ts";

export interface AuditKeeping {
  /** Whether work costs no more than itself; if not, a thread must be started for it. */
  readonly isReady: boolean;
  /** Rejects if anything could not be taken in. */
  takeIn(scope: IntakeScope): Promise<void>;
  query(query: AuditQuery): Promise<AuditPage>;
  stats(query: StatsQuery): Promise<Stats>;
  /** @param wroteHere As of `verifyAudit`. */
  verify(wroteHere: boolean | undefined): Promise<WholeReport>;
  /** Sessions are written here too, because their records change with each call. False if they are not. */
  putSessions(sessions: readonly StoredSession[]): Promise<boolean>;
  /** The log is closed. */
  close(): Promise<void>;
}

interface AuditKeeperOptions {
  readonly dir: string;
  readonly keys: AuditKeys;
  /** Undefined for a hub without a store. */
  readonly stored?: { readonly audit: StoredAudit; readonly intake: AuditIntake } | undefined;
}

/** In the thread of its caller. */
export class AuditKeeper implements AuditKeeping {
  readonly isReady = true;
  readonly #options: AuditKeeperOptions;

  constructor(options: AuditKeeperOptions) {
    this.#options = options;
  }

  async takeIn(scope: IntakeScope): Promise<void> {
    await this.#options.stored?.intake.takeIn(scope);
  }

  query(query: AuditQuery): Promise<AuditPage> {
    const { dir, stored } = this.#options;
    return stored === undefined ? pageOfFiles(dir, query) : pageOfStore(stored.audit, query);
  }

  stats(query: StatsQuery): Promise<Stats> {
    const { dir, stored } = this.#options;
    return statsOf(query, stored === undefined ? (wanted) => sumsOfFiles(dir, wanted) : stored.audit.sums);
  }

  verify(wroteHere: boolean | undefined): Promise<WholeReport> {
    const { dir, keys, stored } = this.#options;
    return verifyStored(dir, stored?.audit, { keys, wroteHere });
  }

  async putSessions(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {
    await this.#options.stored?.intake.close();
  }
}
