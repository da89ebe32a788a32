/** The thread of the audit log. It has a connection to the database of its own, and writes what grows with the calls. */
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../base/clock.ts";
import { offerFunctions } from "../../base/thread-calls.ts";
import { openBusyStore } from "../../store/open-store.ts";
import type { BusyStore, StoreAddress, StoredSession } from "../../store/store.ts";
import { AuditKey, auditKeysOf } from "../../telemetry/audit/key.ts";
import { AuditKeeper, type AuditKeeperOptions, type IntakeScope } from "./audit-keeper.ts";
import type { AuditQuery } from "./query.ts";
import type { StatsQuery } from "./stats.ts";

export interface AuditWork extends Omit<AuditKeeperOptions, "store" | "keys" | "clock"> {
  /** Undefined for a hub without a store. */
  readonly address?: StoreAddress | undefined;
  /** What the log is keyed with, and what it may have been keyed with before. */
  readonly key?: AuditKey["secret"] | undefined;
  readonly knownKeys: readonly AuditKey["secret"][];
}

const port = parentPort;
if (port !== null) {
  // As the thread that started this one wrote it.
  const { address, key, knownKeys, ...work } = workerData as AuditWork;
  let opening: Promise<BusyStore> | undefined;
  const opened = (): Promise<BusyStore> => {
    if (address === undefined) throw new Error("there is no store");
    opening ??= openBusyStore(address, { clock: systemClock, warn: (message) => keeper.warn(message) });
    // A database that could not be reached is tried again.
    opening.catch(() => (opening = undefined));
    return opening;
  };
  const known = knownKeys.map((each) => new AuditKey(each));
  const keys = auditKeysOf(key && new AuditKey(key), known);
  const store = address === undefined ? undefined : async () => (await opened()).audit;
  const keeper = new AuditKeeper({ ...work, store, keys, clock: systemClock });
  offerFunctions(port, {
    takeIn: (scope: IntakeScope) => keeper.takeIn(scope),
    remove: (names: readonly string[]) => keeper.remove(names),
    query: (query: AuditQuery) => keeper.query(query),
    stats: (query: StatsQuery) => keeper.stats(query),
    verify: (wroteHere: boolean | undefined) => keeper.verify(wroteHere),
    putSessions: async (sessions: readonly StoredSession[]) => (await opened()).sessions.put(sessions),
    async close() {
      if (address !== undefined) await keeper.takeIn("last");
      await (await opening?.catch(() => undefined))?.close();
    },
  });
}
