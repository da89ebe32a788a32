/** Every change that other processes must hear of: the change, its revision and its outbox row in one transaction. */
import type { Transaction } from "kysely";
import type { Clock } from "../model/clock.ts";
import type { Engine } from "./engine.ts";
import type { ChangedTopic } from "./store.ts";
import type { Tables } from "./tables.ts";

const KEPT_ROWS = 10_000;
const PRUNED_EVERY = 1000;
/** A change of more subjects than this is told as one of everything. */
const SUBJECTS_TOLD = 500;
/** Subject of a change that may concern everything of its topic. */
export const ANYTHING = "*";

export interface Change<Result> {
  readonly result: Result;
  /** What changed; nothing is written down for an empty list. */
  readonly subjects: readonly string[];
  /** Whose stamp changes with it. */
  readonly stamp?: string;
}

export type Trx = Transaction<Tables>;

export class Ledger {
  readonly #engine: Engine;
  readonly #writer: string;
  readonly #clock: Clock;

  constructor(engine: Engine, writer: string, clock: Clock) {
    this.#engine = engine;
    this.#writer = writer;
    this.#clock = clock;
  }

  now(): string {
    return new Date(this.#clock.now()).toISOString();
  }

  /**
   * The counter is taken first and held until the commit. So writers come one after another, revisions have no gaps, and
   * whoever sees a revision sees every lower one.
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
      const told = subjects.length > SUBJECTS_TOLD ? [ANYTHING] : subjects;
      const revision = before + told.length;
      await this.#writeDown(trx, topic, told, before);
      await trx.updateTable("counter").set({ value: revision }).where("id", "=", 1).execute();
      if (stamp !== undefined) await setStamp(trx, topic, stamp, revision);
      if (Math.floor(revision / PRUNED_EVERY) > Math.floor(before / PRUNED_EVERY)) {
        await trx
          .deleteFrom("outbox")
          .where("revision", "<=", revision - KEPT_ROWS)
          .execute();
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

  async #writeDown(trx: Trx, topic: ChangedTopic, subjects: readonly string[], before: number): Promise<void> {
    const writtenAt = this.now();
    const rows = subjects.map((subject, index) => ({
      revision: before + 1 + index,
      topic,
      subject,
      writer: this.#writer,
      writtenAt,
    }));
    await trx.insertInto("outbox").values(rows).execute();
  }
}

async function setStamp(trx: Trx, topic: ChangedTopic, subject: string, revision: number): Promise<void> {
  await trx
    .insertInto("stamps")
    .values({ topic, subject, revision })
    .onConflict((conflict) => conflict.columns(["topic", "subject"]).doUpdateSet({ revision }))
    .execute();
}
