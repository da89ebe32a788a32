/** Closes sessions and approvals that dead hubs left open in the store, and deletes old ones. */
import type { Clock } from "../../base/clock.ts";
import { isProcessAlive } from "../../files/processes.ts";
import { isJsonObject } from "../../model/json.ts";
import { CALLER, CONVERSATION } from "../call/taints.ts";
import type { PageOptions, Store } from "../../store/store.ts";

const DAY_MS = 24 * 60 * 60_000;
const KEEP_SESSIONS_MS = 7 * DAY_MS;
const KEEP_APPROVALS_MS = 30 * DAY_MS;
/** Since they were last used. */
const KEEP_CONVERSATIONS_MS = 90 * DAY_MS;
/** Of callers whose hub died; otherwise it ends with their last session. */
const KEEP_TAINT_OF_CALLERS_MS = DAY_MS;
const KEEP_LISTS_MS = 90 * DAY_MS;
/** A hub that died shortly before this one started may still count as alive in the first run. */
const SECOND_RUN_MS = 2 * 60_000;
const RUN_EVERY_MS = 60 * 60_000;
const PAGE_SIZE = 1000;

interface HousekeepingOptions {
  readonly store: Pick<Store, "sessions" | "approvals" | "conversations" | "sealed" | "lists" | "taints">;
  readonly hubs: HubHeartbeats;
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
    return this.#look(SECOND_RUN_MS);
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
      this.#stopTimer = this.#options.clock.after(nextMs, () => void this.#look(RUN_EVERY_MS));
    }
    return this.#looking;
  }

  async #tidy(): Promise<void> {
    const { store, hubs, clock } = this.#options;
    const [open, pending] = [new Set<string>(), new Set<string>()];
    for await (const { hub } of allPages((page) => store.sessions.list({ ...page, state: "open" }))) open.add(hub);
    for await (const { hub } of allPages((page) => store.approvals.list({ ...page, status: "pending" })))
      pending.add(hub);
    const mentioned = new Set([...open, ...pending]);
    const living = await hubs.among(mentioned);
    const dead = [...mentioned].filter((hub) => !living.includes(hub));
    if (dead.length > 0) {
      await store.approvals.expire(living);
      await store.sessions.closeLeftOver(living, isoTime(clock.now()));
      await hubs.forget(dead);
    }
    await store.sessions.prune(isoTime(clock.now() - KEEP_SESSIONS_MS));
    await store.approvals.prune(isoTime(clock.now() - KEEP_APPROVALS_MS));
    await store.conversations.prune(isoTime(clock.now() - KEEP_CONVERSATIONS_MS));
    await store.taints.prune(CONVERSATION, isoTime(clock.now() - KEEP_CONVERSATIONS_MS));
    await store.taints.prune(CALLER, isoTime(clock.now() - KEEP_TAINT_OF_CALLERS_MS));
    await store.lists.prune(isoTime(clock.now() - KEEP_LISTS_MS));
    await this.#dropSealed(isoTime(clock.now() - DAY_MS));
  }

  /** Removes sealed servers of conversations that are gone. A new conversation is not stored at once, so recent ones stay. */
  async #dropSealed(before: string): Promise<void> {
    const { sealed, conversations } = this.#options.store;
    for (const name of await sealed.names()) {
      const id = conversationOfSealedName(name);
      if (id === undefined || (await conversations.get(id)) !== undefined) continue;
      const value = await sealed.get(name);
      if (value !== undefined && value.updatedAt < before) await sealed.remove(name);
    }
  }
}

async function* allPages<Entry>(
  list: (page: PageOptions) => Promise<{ readonly entries: readonly Entry[]; readonly nextCursor?: string }>,
): AsyncIterable<Entry> {
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE_SIZE, cursor });
    yield* page.entries;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * Which of the hubs that share a store are alive. Each leaves a note in the settings and renews it; a note that was not
 * renewed in time is that of a hub that died. All users of an SQLite file are on one machine, so there a dead process is
 * known at once, and notes are renewed seldom: a hub at rest should not wake the disk.
 */

const RENEW_MS = { sqlite: 5 * 60_000, postgres: 30_000 } as const;
/** A hub counts as dead after this many missed renewals. */
const MAX_MISSED_RENEWALS = 3;

interface Heartbeat {
  readonly pid: number;
  readonly at: number;
}

interface HubHeartbeatsOptions {
  readonly store: Pick<Store, "kind" | "settings">;
  /** This hub. */
  readonly hub: string;
  readonly clock: Clock;
  /** A note could not be written. */
  readonly onProblem: (error: unknown) => void;
}

export class HubHeartbeats {
  readonly #options: HubHeartbeatsOptions;
  #stopTimer = (): void => {};
  #ended = false;

  constructor(options: HubHeartbeatsOptions) {
    this.#options = options;
  }

  async begin(): Promise<void> {
    await this.#write();
    this.#renewLater();
  }

  /** Those of the given hubs that are alive; this one is. */
  async among(hubs: Iterable<string>): Promise<string[]> {
    const { settings } = this.#options.store;
    const living = [this.#options.hub];
    for (const hub of new Set(hubs)) {
      if (hub === this.#options.hub) continue;
      const note = parseHeartbeat(await settings.get(settingOf(hub)));
      if (note !== undefined && this.#isFresh(note)) living.push(hub);
    }
    return living;
  }

  /** The process id of a hub on this machine. */
  async processOf(hub: string): Promise<number | undefined> {
    const { kind, settings } = this.#options.store;
    return kind === "sqlite" ? parseHeartbeat(await settings.get(settingOf(hub)))?.pid : undefined;
  }

  /** Takes away notes of hubs that are gone. */
  async forget(hubs: Iterable<string>): Promise<void> {
    for (const hub of hubs) await this.#options.store.settings.remove(settingOf(hub));
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#stopTimer();
    await this.forget([this.#options.hub]);
  }

  #renewLater(): void {
    const { clock, store, onProblem } = this.#options;
    this.#stopTimer = clock.after(RENEW_MS[store.kind], () => {
      this.#write().catch(onProblem);
      this.#renewLater();
    });
  }

  async #write(): Promise<void> {
    const { store, clock, hub } = this.#options;
    const note: Heartbeat = { pid: process.pid, at: clock.now() };
    if (!this.#ended) await store.settings.set(settingOf(hub), JSON.stringify(note));
  }

  #isFresh({ pid, at }: Heartbeat): boolean {
    const { store, clock } = this.#options;
    if (clock.now() - at > MAX_MISSED_RENEWALS * RENEW_MS[store.kind]) return false;
    return store.kind !== "sqlite" || isProcessAlive(pid);
  }
}

function settingOf(hub: string): string {
  return `hub.${hub}`;
}

function parseHeartbeat(text: string | undefined): Heartbeat | undefined {
  if (text === undefined) return undefined;
  try {
    const { pid, at } = asObject(JSON.parse(text));
    return typeof pid === "number" && typeof at === "number" ? { pid, at } : undefined;
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

/** Under which name the servers that a conversation had are sealed in the store. */
const SEALED_NAME = /^sessions\/([^/]+)\/servers$/;

export function sealedServersName(conversationId: string): string {
  return `sessions/${conversationId}/servers`;
}

/** The way back; undefined for what is sealed for another reason. */
function conversationOfSealedName(name: string): string | undefined {
  return SEALED_NAME.exec(name)?.[1];
}
