/** Changes that other processes must learn of: each with its revision and its outbox row in one transaction. */
import type { Kysely, Transaction } from "kysely";
import type { Clock } from "../base/clock.ts";
import { asToolcribError } from "../model/errors.ts";
import { type DatabaseEngine, type Tables, upsert } from "./database.ts";
import type { ChangedTopic, StoreChange } from "./store.ts";

const MAX_OUTBOX_ROWS = 10_000;
const PRUNED_EVERY = 1000;
/** A change of more subjects than this is reported as one of everything. */
const MAX_SUBJECTS = 500;
/** Subject of a change that may concern everything of its topic. */
export const ANY_SUBJECT = "*";

interface Change<Result> {
  readonly result: Result;
  /** The ids of what changed; nothing is recorded for an empty list. */
  readonly subjects: readonly string[];
  /** Whose stamp changes with it. */
  readonly stamp?: string;
}

export type Trx = Transaction<Tables>;

export class Outbox {
  readonly #engine: DatabaseEngine;
  readonly #writer: string;
  readonly #clock: Clock;

  constructor(engine: DatabaseEngine, writer: string, clock: Clock) {
    this.#engine = engine;
    this.#writer = writer;
    this.#clock = clock;
  }

  now(): string {
    return new Date(this.#clock.now()).toISOString();
  }

  /**
   * The counter is taken first and held until the commit. So writers come one after another, revisions have no gaps, and
   * a reader that sees a revision sees every lower one.
   */
  write<Result>(topic: ChangedTopic, change: (trx: Trx, revision: number) => Promise<Change<Result>>): Promise<Result> {
    return this.#engine.db.transaction().execute(async (trx) => {
      const { value: before } = await trx
        .updateTable("counter")
        .set((eb) => ({ value: eb.ref("value") }))
        .where("id", "=", 1)
        .returning("value")
        .executeTakeFirstOrThrow();
      const { result, subjects, stamp } = await change(trx, before + 1);
      if (subjects.length === 0) return result;
      const reported = subjects.length > MAX_SUBJECTS ? [ANY_SUBJECT] : subjects;
      const revision = before + reported.length;
      const writtenAt = this.now();
      const rows = reported.map((subject, index) => {
        return { revision: before + 1 + index, topic, subject, writer: this.#writer, writtenAt };
      });
      await trx.insertInto("outbox").values(rows).execute();
      await trx.updateTable("counter").set({ value: revision }).where("id", "=", 1).execute();
      if (stamp !== undefined) {
        await upsert(trx, "stamps", ["topic", "subject"], [{ topic, subject: stamp, revision }]);
      }
      if (Math.floor(revision / PRUNED_EVERY) > Math.floor(before / PRUNED_EVERY)) {
        const oldest = revision - MAX_OUTBOX_ROWS;
        await trx.deleteFrom("outbox").where("revision", "<=", oldest).execute();
      }
      await this.#engine.announce(trx, revision);
      return result;
    });
  }

  async stamp(topic: ChangedTopic, subject: string): Promise<string> {
    const row = await this.#engine.db
      .selectFrom("stamps")
      .select("revision")
      .where("topic", "=", topic)
      .where("subject", "=", subject)
      .executeTakeFirst();
    return String(row?.revision ?? 0);
  }
}

const TOPICS: readonly ChangedTopic[] = ["servers", "skills", "pins", "approvals", "settings", "taints"];
const FEED_BATCH_ROWS = 1000;

type Listener = (change: StoreChange) => void;

interface FollowersOptions {
  readonly db: Kysely<Tables>;
  /** The writer whose changes are not reported. */
  readonly self: string;
  /** The revision when the store was opened; later changes are reported. */
  readonly seen: number;
  readonly watch: (look: () => void) => () => void;
  readonly warn: (message: string) => void;
}

/** Tells listeners what other processes changed, in order of revision and each change once. */
export class ChangeFeed {
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

  /** Resolves when no read is in progress. */
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
        // The next read comes by itself; one warning is enough.
        if (!this.#failed)
          this.#options.warn(`Changes of other processes cannot be read: ${asToolcribError(error).message}`);
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
      .limit(FEED_BATCH_ROWS)
      .execute();
    const first = rows[0]?.revision ?? counter.value + 1;
    if (first > this.#seen + 1 || counter.value < this.#seen) {
      this.#seen = counter.value;
      for (const topic of TOPICS) this.#notify({ revision: counter.value, topic, subject: ANY_SUBJECT, writer: "" });
      return true;
    }
    for (const row of rows) {
      this.#seen = row.revision;
      if (row.writer !== this.#options.self) this.#notify(row);
    }
    return rows.length === FEED_BATCH_ROWS;
  }

  #notify(change: StoreChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.warn(`A change of ${change.topic} could not be taken in: ${asToolcribError(error).message}`);
      }
    }
  }
}
