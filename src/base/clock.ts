/** Time as a dependency, so that backoff, limits and timeouts are tested without waiting. */
export interface Clock {
  now(): number;
  /** Runs `task` once after `ms`; the returned function cancels it. The timer must not keep the process alive. */
  after(ms: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, task) => (ms < LIMIT_MS ? afterOnce(ms, task) : afterLimit(ms, task)),
};

function afterOnce(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms);
  timer.unref();
  return () => clearTimeout(timer);
}

/** A longer time is a limit: nearly always taken back, and soon asked for again, by each call. */
const LIMIT_MS = 10_000;
const MAX_SPARE = 32;

interface LimitTimer {
  readonly timeout: NodeJS.Timeout;
  task: (() => void) | undefined;
  /** Counts who had it: one who takes back a limit twice must not take back that of another. */
  uses: number;
}

/** By their time: timers without a task. To set one again costs a fraction of making one and taking it out of the lists of Node. */
const spareTimers = new Map<number, LimitTimer>();

function afterLimit(ms: number, task: () => void): () => void {
  const spare = spareTimers.get(ms);
  const timer = spare?.task === undefined && spare !== undefined ? spare : makeLimitTimer(ms);
  if (timer === spare) timer.timeout.refresh();
  timer.task = task;
  timer.uses += 1;
  const own = timer.uses;
  return () => {
    if (timer.uses !== own || timer.task === undefined) return;
    timer.task = undefined;
    if (!spareTimers.has(ms) && spareTimers.size < MAX_SPARE) spareTimers.set(ms, timer);
    if (spareTimers.get(ms) !== timer) clearTimeout(timer.timeout);
  };
}

function makeLimitTimer(ms: number): LimitTimer {
  const fire = (): void => {
    if (spareTimers.get(ms) === timer) spareTimers.delete(ms);
    const { task } = timer;
    timer.task = undefined;
    task?.();
  };
  const timer: LimitTimer = { timeout: setTimeout(fire, ms), task: undefined, uses: 0 };
  timer.timeout.unref();
  return timer;
}
