/** The store over an engine. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { DatabaseEngine } from "./database.ts";
import { ChangeFeed, Outbox } from "./outbox.ts";
import { storedApprovals, storedConversations, storedSessions } from "./parts/activity-tables.ts";
import { storedAudit } from "./parts/audit.ts";
import { sealedValues, storedLimits, storedSettings } from "./parts/setting-tables.ts";
import { storedPins, storedServers, storedSkillFiles, storedSkills } from "./parts/catalog-tables.ts";
import type { Store } from "./store.ts";

/** For those who wait until a program has ended. */
const END_MS = 4000;

interface DatabaseStoreOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** The engine's tables must be of the current version. */
export async function databaseStore(engine: DatabaseEngine, { clock, warn }: DatabaseStoreOptions): Promise<Store> {
  const { db, kind, place } = engine;
  const id = randomUUID();
  const ledger = new Outbox(engine, id, clock);
  const { value: seen } = await db.selectFrom("counter").select("value").executeTakeFirstOrThrow();
  const followers = new ChangeFeed({ db, self: id, seen, watch: (look) => engine.watch(look), warn });
  let closing: Promise<void> | undefined;
  let ending: NodeJS.Timeout | undefined;
  const endSoon = (): void => {
    if (engine.giveUp !== undefined) ending ??= setTimeout(() => engine.giveUp?.(), END_MS);
  };
  const close = async (): Promise<void> => {
    endSoon();
    try {
      await followers.close();
      await engine.close();
    } finally {
      clearTimeout(ending);
    }
  };
  return {
    kind,
    id,
    place,
    get trouble() {
      return engine.trouble;
    },
    servers: storedServers(engine, ledger),
    skills: storedSkills(engine, ledger),
    skillFiles: storedSkillFiles(engine, () => ledger.now()),
    pins: storedPins(engine, ledger),
    approvals: storedApprovals(engine, ledger),
    sessions: storedSessions(engine),
    audit: storedAudit(engine),
    sealed: sealedValues(engine),
    conversations: storedConversations(engine, () => ledger.now()),
    settings: storedSettings(engine, ledger),
    limits: storedLimits(engine),
    follow: (listener) => followers.add(listener),
    backup: (file) => engine.copyTo(file),
    endSoon,
    close: () => (closing ??= close()),
  };
}
