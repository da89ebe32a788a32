/** Tells listeners what other processes changed, in order of revision and each change once. */
import type { Kysely } from "kysely";
import { ANYTHING } from "./ledger.ts";
import type { ChangedTopic, StoreChange } from "./store.ts";
import type { Tables } from "./tables.ts";

const TOPICS: readonly ChangedTopic[] = ["servers", "skills", "pins", "approvals", "settings"];
const ROWS_AT_ONCE = 1000;

type Listener = (change: StoreChange) => void;

interface FollowersOptions {
  readonly db: Kysely<Tables>;
  /** Whose changes are not told. */
  readonly self: string;
  /** What was there when the store was opened; changes after it are told. */
  readonly seen: number;
  readonly watch: (look: () => void) => () => void;
  readonly warn: (message: string) => void;
}

export class Followers {
  readonly #options: FollowersOptions;
  readonly #listeners = new Set<Listener>();
  #seen: number;
  #stopWatching: (() => void) | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #failed = false;

  constructor(options: FollowersOptions) {
    this.#options = options;
    this.#seen = options.seen;
  }

  add(listener: Listener): () => void {
    // Two uses of one function are two listeners.
    const own: Listener = (change) => listener(change);
    this.#listeners.add(own);
    if (this.#stopWatching === undefined) {
      this.#stopWatching = this.#options.watch(() => this.#look());
      this.#look();
    }
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** Resolves when no look is under way any more. */
  async close(): Promise<void> {
    this.#listeners.clear();
    this.#stop();
    await this.#looking;
  }

  #stop(): void {
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #look(): void {
    this.#lookAgain = true;
    this.#looking ??= this.#lookUntilQuiet().finally(() => {
      this.#looking = undefined;
    });
  }

  async #lookUntilQuiet(): Promise<void> {
    while (this.#lookAgain && this.#listeners.size > 0) {
      this.#lookAgain = false;
      try {
        if (await this.#readNews()) this.#lookAgain = true;
        this.#failed = false;
      } catch (error) {
        // The next look comes by itself; once is enough to be told.
        if (!this.#failed) this.#options.warn(`Changes of other processes cannot be read: ${messageOf(error)}`);
        this.#failed = true;
      }
    }
  }

  /** Resolves with whether there may be more. */
  async #readNews(): Promise<boolean> {
    const { db } = this.#options;
    // Before the rows: what it counts has been written by then, so rows that are missing were pruned.
    const counter = await db.selectFrom("counter").select("value").executeTakeFirstOrThrow();
    const rows = await db
      .selectFrom("outbox")
      .select(["revision", "topic", "subject", "writer"])
      .where("revision", ">", this.#seen)
      .orderBy("revision")
      .limit(ROWS_AT_ONCE)
      .execute();
    const first = rows[0]?.revision ?? counter.value + 1;
    if (first > this.#seen + 1 || counter.value < this.#seen) {
      this.#seen = counter.value;
      for (const topic of TOPICS) this.#tell({ revision: counter.value, topic, subject: ANYTHING, writer: "" });
      return true;
    }
    for (const row of rows) {
      this.#seen = row.revision;
      if (row.writer !== this.#options.self) this.#tell(row);
    }
    return rows.length === ROWS_AT_ONCE;
  }

  #tell(change: StoreChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.warn(`A change of ${change.topic} could not be taken in: ${messageOf(error)}`);
      }
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
