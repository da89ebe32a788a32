/**
 * One limit over several processes. Each takes what it may use in portions from a pool that all share, and decides on its
 * own as long as it has some in hand. Time is cut into spans, the same for all whose clocks agree; what was taken in one is
 * used in it or given back, so that in any 60 seconds no more than the limit is used in all.
 */
import { withTimeout } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";

const SPAN_MS = 5000;
export const WINDOW_MS = 60_000;
/** Those that any 60 seconds can touch. */
const SPANS = WINDOW_MS / SPAN_MS + 1;
/** The largest portion is this part of the limit. */
const MAX_PORTION_DIVISOR = 20;
/** A pool that takes longer is as good as away. */
const POOL_TIMEOUT_MS = 1000;
const RETRY_MS = 2000;
/** How long a refusal is not asked again: others may return tokens. */
const REFUSED_MS = 500;
const SWEEP_ABOVE = 1024;

export interface TokenPool {
  take(want: {
    readonly key: string;
    readonly span: number;
    readonly since: number;
    readonly limit: number;
    readonly want: number;
  }): Promise<{ readonly given: number; readonly oldest: number }>;
  giveBack(key: string, span: number, tokens: number): Promise<void>;
  prune(before: number): Promise<void>;
}

interface SharedWindowsOptions {
  readonly clock: Clock;
  readonly pool: TokenPool;
  /** The pool has become unreachable, or can be reached again. */
  readonly onAway?: (isAway: boolean) => void;
}

/** Milliseconds to wait, 0 if the call may be made; undefined while the pool cannot be reached. */
type Answer = number | undefined;

interface Allotment {
  span: number;
  tokens: number;
  portion: number;
  /** Used without the pool: it is paid back when there is one again. */
  debt: number;
  debtAt: number;
  /** Until when the last refusal applies, and when there may be tokens again. */
  refusedUntil: number;
  retryAt: number;
  /** The limit that refused; a higher one is asked about at once. */
  refusedAt: number;
  waiting: number;
  fetching: Promise<void> | undefined;
}

export class SharedWindows {
  readonly #options: SharedWindowsOptions;
  readonly #hands = new Map<string, Allotment>();
  #isAway = false;
  #probeAt = 0;
  /** How many answers of the pool are awaited, also those that came too late. */
  #unanswered = 0;
  #prunedAt: number;

  constructor(options: SharedWindowsOptions) {
    this.#options = options;
    this.#prunedAt = options.clock.now();
  }

  /** Takes one, at once if any is in hand. */
  take(key: string, limit: number): Answer | Promise<Answer> {
    const hand = this.#hand(key);
    if (hand.tokens > 0) {
      hand.tokens -= 1;
      // The next portion is there before this one is used up.
      if (hand.tokens < hand.portion / 2 && hand.portion > 1) void this.#fetch(key, hand, limit);
      return 0;
    }
    const now = this.#now();
    if (hand.refusedUntil > now && hand.refusedAt >= limit) return Math.max(1, hand.retryAt - now);
    if (!this.#isAway) return this.#wait(key, hand, limit);
    if (now >= this.#probeAt && this.#unanswered === 0) void this.#fetch(key, hand, limit);
    return undefined;
  }

  /** The present one, in which what is taken now can be used. */
  get span(): number {
    return spanAt(this.#now());
  }

  /** A token of that span, which was not needed after all. */
  putBack(key: string, span: number): void {
    const hand = this.#hand(key);
    if (hand.span === span) hand.tokens += 1;
    else this.#giveBack(key, span, 1);
  }

  /** One was used although the pool could not be asked. */
  owe(key: string): void {
    const hand = this.#hand(key);
    hand.debt += 1;
    hand.debtAt = this.#now();
  }

  async #wait(key: string, hand: Allotment, limit: number): Promise<Answer> {
    hand.waiting += 1;
    try {
      await this.#fetch(key, hand, limit);
    } finally {
      hand.waiting -= 1;
    }
    return this.take(key, limit);
  }

  #fetch(key: string, hand: Allotment, limit: number): Promise<void> {
    hand.fetching ??= this.#ask(key, hand, limit).finally(() => {
      hand.fetching = undefined;
    });
    return hand.fetching;
  }

  async #ask(key: string, hand: Allotment, limit: number): Promise<void> {
    const { pool } = this.#options;
    const now = this.#now();
    this.#probeAt = now + RETRY_MS;
    if (now - hand.debtAt >= WINDOW_MS) hand.debt = 0;
    const span = spanAt(now);
    const wanted = Math.min(limit, Math.max(hand.portion, hand.waiting) + hand.debt);
    try {
      const request = { key, span, since: span - SPANS + 1, limit, want: wanted };
      const { given, oldest } = await this.#inTime(request);
      this.#setAway(false);
      const paid = Math.min(hand.debt, given);
      hand.debt -= paid;
      if (given > paid && spanAt(this.#now()) === span) {
        this.#roll(key, hand);
        hand.tokens += given - paid;
        hand.portion = Math.min(hand.portion * 2, Math.max(1, Math.floor(limit / MAX_PORTION_DIVISOR)));
      } else if (given > paid) {
        // It came too late to be used.
        this.#giveBack(key, span, given - paid);
      } else if (given < wanted) {
        // If all of it went into debts made meanwhile, it is not a refusal.
        hand.retryAt = (oldest + SPANS) * SPAN_MS;
        hand.refusedUntil = this.#now() + REFUSED_MS;
        hand.refusedAt = limit;
      }
    } catch {
      this.#setAway(true);
    }
    if (now - this.#prunedAt > WINDOW_MS) {
      this.#prunedAt = now;
      void pool.prune(span - 2 * SPANS).catch(() => {});
    }
  }

  #inTime(request: Parameters<TokenPool["take"]>[0]): ReturnType<TokenPool["take"]> {
    const { pool, clock } = this.#options;
    let isLate = false;
    const late = (): Error => {
      isLate = true;
      return new Error("The pool of limits does not answer.");
    };
    this.#unanswered += 1;
    const answered = pool.take(request).finally(() => (this.#unanswered -= 1));
    const onAnswer = ({ given }: { readonly given: number }): void => {
      if (!isLate) return;
      // It came too late, and others can use it.
      this.#giveBack(request.key, request.span, given);
      this.#setAway(false);
    };
    answered.then(onAnswer, () => {});
    return withTimeout(answered, { ms: POOL_TIMEOUT_MS, late, clock });
  }

  #giveBack(key: string, span: number, tokens: number): void {
    if (tokens > 0) void this.#options.pool.giveBack(key, span, tokens).catch(() => {});
  }

  #setAway(isAway: boolean): void {
    if (this.#isAway === isAway) return;
    this.#isAway = isAway;
    this.#options.onAway?.(isAway);
  }

  #hand(key: string): Allotment {
    let hand = this.#hands.get(key);
    if (hand === undefined) {
      if (this.#hands.size >= SWEEP_ABOVE) this.#sweep();
      hand = {
        ...{ span: spanAt(this.#now()), tokens: 0, portion: 1, debt: 0, debtAt: 0 },
        ...{ refusedUntil: 0, retryAt: 0, refusedAt: 0, waiting: 0, fetching: undefined },
      };
      this.#hands.set(key, hand);
    }
    this.#roll(key, hand);
    return hand;
  }

  /** Returns unused tokens of a past span, and makes the next portion smaller if little was used. */
  #roll(key: string, hand: Allotment): void {
    const span = spanAt(this.#now());
    if (hand.span === span) return;
    this.#giveBack(key, hand.span, hand.tokens);
    hand.portion = hand.span === span - 1 ? Math.max(1, Math.floor(hand.portion / 2)) : 1;
    hand.tokens = 0;
    hand.span = span;
  }

  #sweep(): void {
    const old = spanAt(this.#now()) - SPANS;
    for (const [key, hand] of this.#hands) {
      if (hand.span < old && hand.fetching === undefined) this.#hands.delete(key);
    }
  }

  #now(): number {
    return this.#options.clock.now();
  }
}

function spanAt(now: number): number {
  return Math.floor(now / SPAN_MS);
}

/**
 * The times of the last `limit` calls in a ring: at most `limit` calls in any span of 60 seconds, exactly, at constant
 * cost. Grows only as far as it is used.
 */
export class CallWindow {
  #limit: number;
  #times: number[] = [];
  /** Index of the oldest time once the ring is full. */
  #oldest = 0;
  #newest = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Milliseconds until a call may be made; 0 if now. */
  wait(now: number): number {
    if (this.#times.length < this.#limit) return 0;
    const oldest = this.#times[this.#oldest] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, oldest + WINDOW_MS - now);
  }

  /** The same under a smaller limit. */
  waitWithin(limit: number, now: number): number {
    const { length } = this.#times;
    if (length < limit) return 0;
    // Before it is full the ring begins at 0, so that the newest is before `oldest` in either case.
    const time = this.#times[(this.#oldest + length - limit) % length] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, time + WINDOW_MS - now);
  }

  record(now: number): void {
    this.#newest = now;
    if (this.#times.length < this.#limit) {
      this.#times.push(now);
      return;
    }
    this.#times[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#limit;
  }

  /** Another limit; the calls made so far still count. */
  resize(limit: number): void {
    const inOrder = [...this.#times.slice(this.#oldest), ...this.#times.slice(0, this.#oldest)];
    this.#times = inOrder.slice(-limit);
    this.#oldest = 0;
    this.#limit = limit;
  }

  get quietSince(): number {
    return this.#newest;
  }
}
