/** The thread of the audit log. It has a connection to the database of its own, and writes what grows with the calls. */
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../base/clock.ts";
import { ThreadCalls } from "../../base/thread-calls.ts";
import { openBusyStore } from "../../store/open-store.ts";
import type { BusyStore, StoreAddress, StoredAudit, StoredSession } from "../../store/store.ts";
import { AuditKey, auditKeysOf } from "../../telemetry/audit/key.ts";
import type { SeenFile } from "../../telemetry/audit/record.ts";
import { AuditKeeper, type IntakeScope } from "./audit-keeper.ts";
import type { AuditQuery } from "./query.ts";
import type { StatsQuery } from "./stats.ts";

export interface AuditWork {
  readonly dir: string;
  readonly chain: string;
  readonly fileBytes: number;
  readonly maxBytes: number;
  readonly maxDays?: number | undefined;
  /** Undefined for a hub without a store. */
  readonly address?: StoreAddress | undefined;
  /** What the log is keyed with, and what it may have been keyed with before. */
  readonly key?: AuditKey["secret"] | undefined;
  readonly knownKeys: readonly AuditKey["secret"][];
}

const port = parentPort;
if (port !== null) {
  // As the thread that started this one wrote it.
  const { dir, chain, fileBytes, maxBytes, maxDays, address, key, knownKeys } = workerData as AuditWork;
  const warn = (message: string): void => void parent.call("warn", message);
  let opening: Promise<BusyStore> | undefined;
  const opened = (): Promise<BusyStore> => {
    if (address === undefined) throw new Error("there is no store");
    opening ??= openBusyStore(address, { clock: systemClock, warn });
    // A database that could not be reached is tried again.
    opening.catch(() => (opening = undefined));
    return opening;
  };
  const store: StoredAudit = {
    append: async (block) => (await opened()).audit.append(block),
    files: async () => (await opened()).audit.files(),
    blocks: async (file) => (await opened()).audit.blocks(file),
    wholeBlocks: async (file) => (await opened()).audit.wholeBlocks(file),
    textOf: async (...args) => (await opened()).audit.textOf(...args),
    sums: async (query) => (await opened()).audit.sums(query),
    pruneSums: async (...args) => (await opened()).audit.pruneSums(...args),
    sumUpSome: async (...args) => (await opened()).audit.sumUpSome(...args),
    removeFiles: async (files) => (await opened()).audit.removeFiles(files),
  };
  const journal = {
    chain,
    fileBytes,
    prune: (files: readonly SeenFile[]) => parent.call<boolean>("prune", files),
    renew: () => parent.call<void>("renew"),
  };
  const keys = auditKeysOf(
    key && new AuditKey(key),
    knownKeys.map((each) => new AuditKey(each)),
  );
  const kept = address === undefined ? undefined : store;
  const keeper = new AuditKeeper({ dir, store: kept, keys, journal, clock: systemClock, maxBytes, maxDays, warn });
  const parent = new ThreadCalls(port, {
    takeIn: (scope: IntakeScope) => keeper.takeIn(scope),
    query: (query: AuditQuery) => keeper.query(query),
    stats: (query: StatsQuery) => keeper.stats(query),
    verify: (wroteHere: boolean | undefined) => keeper.verify(wroteHere),
    putSessions: async (sessions: readonly StoredSession[]) => (await opened()).sessions.put(sessions),
    isWaiting: () => keeper.isWaiting,
    async close() {
      await keeper.close();
      await (await opening?.catch(() => undefined))?.close();
    },
  });
}
