/** The audit log of a hub for those who ask: in the store if there is one, else in its files. */
import type { AuditVerdict } from "../../contract/activity-schemas.ts";
import type { OutputOf } from "../../contract/operations.ts";
import type { Clock } from "../../base/clock.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";
import { readAudit } from "../../telemetry/audit/read.ts";
import { entryOf } from "./entry.ts";
import { pageOfFiles } from "./file-pages.ts";
import type { AuditIntake } from "./intake.ts";
import { pageOfStore } from "./store-pages.ts";
import { type AuditStore, verdictOf, verifyAll } from "./verify.ts";
import { type AuditInput, matcher, wishOf } from "./wanted.ts";

const EXPORTED_AT_ONCE = 500;
const WAIT_MS = 2000;

export interface HubAuditOptions {
  readonly dir: string;
  readonly log: AuditLog;
  readonly clock: Clock;
  /** With its intake; undefined for a hub without a store. */
  readonly store: AuditStore | undefined;
  readonly intake: AuditIntake | undefined;
  readonly keys?: AuditKeys;
}

export class HubAudit {
  readonly #options: HubAuditOptions;
  #closed: Promise<void> | undefined;

  constructor(options: HubAuditOptions) {
    this.#options = options;
    options.intake?.soon();
  }

  /** The newest first unless asked otherwise. A page may be shorter than its limit and not be the last. */
  async query(input: AuditInput): Promise<OutputOf<"listAudit">> {
    const { dir, clock } = this.#options;
    const store = this.#options.store?.audit;
    const { limit, cursor, order } = input;
    const query = { ...wishOf(input, clock.now()), limit, order, ...(cursor === undefined ? {} : { cursor }) };
    await this.#takeIn();
    return store === undefined ? pageOfFiles(dir, query) : pageOfStore(store, query);
  }

  /** Writes a record of something that was done, other than a call. */
  note(record: Omit<EventRecord, "time">): void {
    const { log, clock } = this.#options;
    log.event({ ...record, time: new Date(clock.now()).toISOString() });
  }

  async verify(): Promise<AuditVerdict> {
    const { dir, log, store, keys } = this.#options;
    log.flush();
    return verdictOf(await verifyAll(dir, store, keys));
  }

  /** JSON, one entry and a line break each, the oldest first. */
  async *exportLines(input: Partial<Omit<AuditInput, "limit" | "cursor" | "order">> = {}): AsyncGenerator<string> {
    const { dir, clock } = this.#options;
    const store = this.#options.store?.audit;
    const wish = wishOf(input, clock.now());
    await this.#takeIn();
    if (store === undefined) {
      const matches = matcher(wish);
      for await (const { chain, record } of readAudit(dir)) {
        if (matches(record)) yield `${JSON.stringify(entryOf(chain, record))}\n`;
      }
      return;
    }
    let cursor: string | undefined;
    do {
      const place = cursor === undefined ? {} : { cursor };
      const page = await pageOfStore(store, { ...wish, ...place, limit: EXPORTED_AT_ONCE, order: "oldest" });
      for (const entry of page.entries) yield `${JSON.stringify(entry)}\n`;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }

  /** Resolves when everything that was written so far can be queried. Rejects if the store cannot take it. */
  async flush(): Promise<void> {
    this.#options.log.flush();
    await this.#options.intake?.takeIn();
  }

  /** Ends the log. Safe to call twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /**
   * What cannot be taken in now is taken in later; what is in the store can be asked for all the same. So whoever asks
   * while the files of years are taken in does not wait for all of them.
   */
  async #takeIn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#options.clock.after(WAIT_MS, resolve);
    this.flush().then(resolve, resolve);
    await promise;
    stop();
  }

  async #close(): Promise<void> {
    const { log, intake } = this.#options;
    log.flush();
    await intake?.expectHeads().catch(() => {});
    log.close();
    await intake?.close();
  }
}
