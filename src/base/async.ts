/** Waiting: time limits, cancellation, single-flight, bounded parallelism, retries and counting what is in progress. */
import type { CancelSignal } from "../model/source.ts";
import { type Clock, systemClock } from "./clock.ts";

export type { CancelSignal } from "../model/source.ts";

export interface WaitOptions {
  readonly ms?: number;
  readonly signal?: CancelSignal;
  readonly clock?: Clock;
}

/** True if the work ended first, false if the time was up or the signal aborted. A failure of the work rejects. */
export async function endsWithin(
  work: Promise<unknown>,
  { ms, signal, clock = systemClock }: WaitOptions,
): Promise<boolean> {
  const { promise: over, resolve } = Promise.withResolvers<boolean>();
  const giveUp = (): void => resolve(false);
  const stopTimer = ms === undefined ? undefined : clock.after(ms, giveUp);
  if (signal?.aborted === true) giveUp();
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    return await Promise.race([work.then(() => true), over]);
  } finally {
    stopTimer?.();
    signal?.removeEventListener("abort", giveUp);
  }
}

interface TimeoutOptions {
  readonly ms: number;
  readonly late: () => Error;
  readonly clock?: Clock;
  /** Time that does not count. */
  readonly pauses?: Pauses;
}

/** Rejects with `late()` if the work takes longer. The work is not stopped; its later outcome is dropped. */
export async function withTimeout<Value>(
  work: Promise<Value>,
  { ms, late, clock = systemClock, pauses }: TimeoutOptions,
): Promise<Value> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const stopTimer = afterPauses(ms, { clock, pauses, run: () => reject(late()) });
  try {
    return await Promise.race([work, over]);
  } finally {
    stopTimer();
  }
}

/** Adds up the time in which work that has a time limit waits for something that has a limit of its own. */
export class Pauses {
  readonly #clock: Clock;
  #since: number | undefined;
  #ended = 0;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  pause(): void {
    this.#since ??= this.#clock.now();
  }

  resume(): void {
    this.#ended = this.totalMs();
    this.#since = undefined;
  }

  totalMs(): number {
    return this.#ended + (this.#since === undefined ? 0 : this.#clock.now() - this.#since);
  }
}

/** Runs it when the time is over, without the pauses from now on. The returned function takes it back. */
export function afterPauses(
  ms: number,
  { clock, pauses, run }: { readonly clock: Clock; readonly pauses?: Pauses; readonly run: () => void },
): () => void {
  let paused = pauses?.totalMs() ?? 0;
  const wait = (time: number): (() => void) =>
    clock.after(time, () => {
      const total = pauses?.totalMs() ?? 0;
      if (total <= paused) return run();
      const more = total - paused;
      paused = total;
      stop = wait(more);
    });
  let stop = wait(ms);
  return () => stop();
}

/** Rejects with `reason()` as soon as the signal aborts, even if the work ignores it; its later outcome is dropped. */
export async function withAbort<Value>(
  work: Promise<Value>,
  signal: CancelSignal,
  reason: () => Error,
): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(reason());
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Callers that come while the same work is in progress share its outcome. */
export class SingleFlight<Key, Value> {
  readonly #flights = new Map<Key, Promise<Value>>();

  run(key: Key, work: () => Promise<Value>): Promise<Value> {
    const known = this.#flights.get(key);
    if (known !== undefined) return known;
    const flight = work().finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }
}

/** Runs tasks one after another, in the order in which they came. One that fails does not stop the next. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  run<Value>(task: () => Promise<Value>): Promise<Value> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** Like `Promise.all(items.map(task))`, with at most `limit` tasks at a time: open files and processes are limited. */
export async function mapLimit<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = Array.from({ length: items.length });
  // One iterator for all workers: each takes the next free item.
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await task(item, index);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

export interface RetryOptions {
  /** Attempts in all, the first included. */
  readonly attempts: number;
  /** The pause before attempt 2, 3, ...; `failed` counts the attempts so far. */
  readonly delayMs: (failed: number, error: unknown) => number;
  /** False ends it with that error. All errors are retried without it. */
  readonly isWorthRetrying?: (error: unknown) => boolean;
  readonly signal?: CancelSignal;
  readonly clock?: Clock;
}

/** Repeats an attempt that fails; rejects with the last error. An abort ends the pause and the repetition. */
export async function retry<Value>(attempt: (failed: number) => Promise<Value>, options: RetryOptions): Promise<Value> {
  const { attempts, delayMs, isWorthRetrying = () => true, signal, clock } = options;
  const isAborted = (): boolean => signal?.aborted === true;
  for (let failed = 0; ;) {
    try {
      return await attempt(failed);
    } catch (error) {
      failed += 1;
      if (failed >= attempts || isAborted() || !isWorthRetrying(error)) throw error;
      await pause(delayMs(failed, error), { signal, clock });
      if (isAborted()) throw error;
    }
  }
}

/** Ends after the time or when the signal aborts, whichever comes first. */
export async function pause(ms: number, { signal, clock }: Omit<WaitOptions, "ms"> = {}): Promise<void> {
  await endsWithin(new Promise(() => {}), { ms, signal, clock });
}

/** Counts what is in progress, for those who wait until nothing is. */
export class InFlight {
  #count = 0;
  #waiters: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  /** Counts the work until it ends, in whichever way. */
  async track<Value>(work: () => Promise<Value>): Promise<Value> {
    this.start();
    try {
      return await work();
    } finally {
      this.end();
    }
  }

  start(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  whenIdle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}

/** An AbortController for one request, and its signal: the real ones are a noticeable share of what a call costs. */
export class CancelController implements CancelSignal {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] = [];

  abort(reason?: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners.splice(0)) {
      try {
        listener();
      } catch (error) {
        // As with an AbortSignal: the others are called, and the fault does not stay hidden.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }

  /** Each listener is called once at most, as with `once`. */
  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}

/** The real thing, for those who need more than a CancelSignal has. It lives as long as the other does. */
export function abortSignalOf(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}
