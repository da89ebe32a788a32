/** Work that must be done in the end, though what it needs may be away for a while. */
import type { Clock } from "../model/clock.ts";

const FIRST_MS = 1000;
const MOST_MS = 30_000;

export interface Retried {
  /** Does it now; what waits to be done again is done by this. */
  readonly begin: () => void;
  readonly stop: () => void;
}

/** Something that is done again after a failure, after longer and longer pauses, until it succeeds. The first failure is told. */
export function retried(clock: Clock, task: () => Promise<void>, onFailure: (thrown: unknown) => void): Retried {
  let stopped = false;
  /** Of the last `begin`: what an earlier one left to be done is done. */
  let round = 0;
  let cancel = (): void => {};
  const attempt = (ofRound: number, pauseMs: number): void => {
    task().catch((thrown: unknown) => {
      if (stopped || ofRound !== round) return;
      if (pauseMs === FIRST_MS) onFailure(thrown);
      cancel = clock.after(pauseMs, () => attempt(ofRound, Math.min(2 * pauseMs, MOST_MS)));
    });
  };
  return {
    begin() {
      cancel();
      round += 1;
      if (!stopped) attempt(round, FIRST_MS);
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}
