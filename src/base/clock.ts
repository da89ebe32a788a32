/** Time as a dependency, so that backoff, limits and timeouts are tested without waiting. */
export interface Clock {
  now(): number;
  /** Runs `task` once after `ms`; the returned function cancels it. The timer must not keep the process alive. */
  after(ms: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
