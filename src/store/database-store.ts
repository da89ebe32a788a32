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
  const outbox = new Outbox(engine, id, clock);
  const { value: seen } = await db.selectFrom("counter").select("value").executeTakeFirstOrThrow();
  const feed = new ChangeFeed({ db, self: id, seen, watch: (look) => engine.watch(look), warn });
  let closing: Promise<void> | undefined;
  let ending: NodeJS.Timeout | undefined;
  const endSoon = (): void => {
    if (engine.giveUp !== undefined) ending ??= setTimeout(() => engine.giveUp?.(), END_MS);
  };
  const close = async (): Promise<void> => {
    endSoon();
    try {
      await feed.close();
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
    servers: storedServers(engine, outbox),
    skills: storedSkills(engine, outbox),
    skillFiles: storedSkillFiles(engine, () => outbox.now()),
    pins: storedPins(engine, outbox),
    approvals: storedApprovals(engine, outbox),
    sessions: storedSessions(engine),
    audit: storedAudit(engine),
    sealed: sealedValues(engine),
    conversations: storedConversations(engine, () => outbox.now()),
    settings: storedSettings(engine, outbox),
    limits: storedLimits(engine),
    follow: (listener) => feed.add(listener),
    backup: (file) => engine.copyTo(file),
    endSoon,
    close: () => (closing ??= close()),
  };
}
