/** The store over an engine. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../model/clock.ts";
import type { Engine } from "./engine.ts";
import { Followers } from "./followers.ts";
import { Ledger } from "./ledger.ts";
import { storedApprovals } from "./parts/approvals.ts";
import { storedAudit } from "./parts/audit.ts";
import { storedConversations } from "./parts/conversations.ts";
import { storedLimits } from "./parts/limits.ts";
import { storedPins } from "./parts/pins.ts";
import { sealedValues } from "./parts/sealed-values.ts";
import { storedServers } from "./parts/servers.ts";
import { storedSessions } from "./parts/sessions.ts";
import { storedSettings } from "./parts/settings.ts";
import { storedSkillFiles } from "./parts/skill-files.ts";
import { storedSkills } from "./parts/skills.ts";
import type { Store } from "./store.ts";

/** For those who wait until a program has ended. */
const END_MS = 4000;

interface DatabaseStoreOptions {
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** The engine's tables must be of the current version. */
export async function databaseStore(engine: Engine, { clock, warn }: DatabaseStoreOptions): Promise<Store> {
  const { db, kind, place } = engine;
  const id = randomUUID();
  const ledger = new Ledger(engine, id, clock);
  const { value: seen } = await db.selectFrom("counter").select("value").executeTakeFirstOrThrow();
  const followers = new Followers({ db, self: id, seen, watch: (look) => engine.watch(look), warn });
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
