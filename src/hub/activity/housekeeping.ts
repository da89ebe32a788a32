/** Ends what hubs that died left open in the store, and forgets what is long over. */
import type { Clock } from "../../model/clock.ts";
import type { PageOptions, Store } from "../../store/store.ts";
import { conversationOfSealed } from "../sealed-servers.ts";
import type { LivingHubs } from "./living-hubs.ts";

const DAY_MS = 24 * 60 * 60_000;
const KEEP_SESSIONS_MS = 7 * DAY_MS;
const KEEP_APPROVALS_MS = 30 * DAY_MS;
/** Since they were last used. */
const KEEP_CONVERSATIONS_MS = 90 * DAY_MS;
/** A hub that died shortly before this one began may still count as alive at first. */
const SECOND_LOOK_MS = 2 * 60_000;
const LOOK_EVERY_MS = 60 * 60_000;
const PAGE = 1000;

interface HousekeepingOptions {
  readonly store: Pick<Store, "sessions" | "approvals" | "conversations" | "sealed">;
  readonly hubs: LivingHubs;
  readonly clock: Clock;
  readonly onProblem: (error: unknown) => void;
}

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  #stopTimer = (): void => {};
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  /** Resolves after the first look. */
  begin(): Promise<void> {
    return this.#look(SECOND_LOOK_MS);
  }

  /** Resolves when nothing is written any more. */
  end(): Promise<void> {
    this.#stopped = true;
    this.#stopTimer();
    return this.#looking;
  }

  #look(nextMs: number): Promise<void> {
    this.#looking = this.#tidy().catch(this.#options.onProblem);
    if (!this.#stopped) {
      this.#stopTimer = this.#options.clock.after(nextMs, () => void this.#look(LOOK_EVERY_MS));
    }
    return this.#looking;
  }

  async #tidy(): Promise<void> {
    const { store, hubs, clock } = this.#options;
    const [open, pending] = [new Set<string>(), new Set<string>()];
    for await (const { hub } of all((page) => store.sessions.list({ ...page, state: "open" }))) open.add(hub);
    for await (const { hub } of all((page) => store.approvals.list({ ...page, status: "pending" }))) pending.add(hub);
    const mentioned = new Set([...open, ...pending]);
    const living = await hubs.among(mentioned);
    const dead = [...mentioned].filter((hub) => !living.includes(hub));
    if (dead.length > 0) {
      await store.approvals.expire(living);
      await store.sessions.closeLeftOver(living, timeOf(clock.now()));
      await hubs.forget(dead);
    }
    await store.sessions.prune(timeOf(clock.now() - KEEP_SESSIONS_MS));
    await store.approvals.prune(timeOf(clock.now() - KEEP_APPROVALS_MS));
    await store.conversations.prune(timeOf(clock.now() - KEEP_CONVERSATIONS_MS));
    await this.#dropSealed(timeOf(clock.now() - DAY_MS));
  }

  /** Whatever removed a conversation, the keys of its servers go too. One that begins has nothing stored for a while. */
  async #dropSealed(before: string): Promise<void> {
    const { sealed, conversations } = this.#options.store;
    for (const name of await sealed.names()) {
      const id = conversationOfSealed(name);
      if (id === undefined || (await conversations.get(id)) !== undefined) continue;
      const value = await sealed.get(name);
      if (value !== undefined && value.updatedAt < before) await sealed.remove(name);
    }
  }
}

async function* all<Entry>(
  list: (page: PageOptions) => Promise<{ readonly entries: readonly Entry[]; readonly nextCursor?: string }>,
): AsyncIterable<Entry> {
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, cursor });
    yield* page.entries;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
