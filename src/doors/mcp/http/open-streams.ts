/** All open event streams and all answers that are still owed, under two timers for all of them. */
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { TurnoverSet } from "../../../model/turnover.ts";
import { type CallerQuota, Quota, type QuotaReached } from "../../../policy/quota.ts";
import type { SseConnection } from "./sse-connection.ts";

/** An answer that may become a stream if it takes long. */
export interface Owed {
  /** Called every `TICK_MS` while the answer is owed; the first time comes early. */
  stillOwed(): void;
}

const TICK_MS = 250;
/** After so many the connection was silent for 15 seconds; common proxies give up after 60. */
export const SILENT_TICKS = 60;

/**
 * A timer is armed when something first needs it and never cancelled by a request that is done: a plain request costs no
 * timer of its own.
 */
export class OpenStreams {
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  readonly #streams = new TurnoverSet<SseConnection>();
  readonly #owed = new TurnoverSet<Owed>();
  #whenPaid: (() => void)[] = [];
  readonly #quota: Quota;
  #stopBeat: (() => void) | undefined;
  #stopTick: (() => void) | undefined;

  constructor(clock: Clock, heartbeatMs: number, limits: CallerQuota) {
    this.#clock = clock;
    this.#heartbeatMs = heartbeatMs;
    this.#quota = new Quota(limits);
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Undefined if the caller may have one more. */
  reachedFor(caller: Caller): QuotaReached | undefined {
    return this.#quota.reachedFor(caller);
  }

  setLimits(limits: CallerQuota): void {
    this.#quota.setLimits(limits);
  }

  add(connection: SseConnection, caller: Caller): void {
    this.#streams.add(connection);
    const giveBack = this.#quota.take(caller);
    connection.onClose(() => {
      this.#streams.delete(connection);
      giveBack();
    });
    this.#stopBeat ??= this.#clock.after(this.#heartbeatMs, () => this.#beat());
  }

  owe(answer: Owed): void {
    this.#owed.add(answer);
    this.#stopTick ??= this.#clock.after(TICK_MS, () => this.#tick());
  }

  settle(answer: Owed): void {
    this.#owed.delete(answer);
    if (this.#owed.size === 0 && this.#whenPaid.length > 0) for (const resolve of this.#whenPaid.splice(0)) resolve();
  }

  /** Resolves when no answer is owed. */
  whenPaid(): Promise<void> {
    return this.#owed.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenPaid.push(resolve));
  }

  /** Says why on every stream, and ends it. */
  endAll(reason: string): void {
    for (const connection of this.#streams) {
      connection.comment(reason);
      connection.end();
    }
    this.#stopBeat?.();
    this.#stopTick?.();
  }

  #beat(): void {
    for (const connection of this.#streams) connection.beat();
    this.#stopBeat = this.#streams.size === 0 ? undefined : this.#clock.after(this.#heartbeatMs, () => this.#beat());
  }

  #tick(): void {
    for (const answer of this.#owed) answer.stillOwed();
    this.#stopTick = this.#owed.size === 0 ? undefined : this.#clock.after(TICK_MS, () => this.#tick());
  }
}
