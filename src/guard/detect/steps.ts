/**
 * Work that can pause. A long text is read by the same code as a short one, in pieces; whoever drives it decides
 * whether to rest between the pieces, so both ways find the same.
 */

/** Yields what the piece just done has cost, in characters of a plain scan. */
export type Steps<Value> = Generator<number, Value, void>;

/** All steps at once. */
export function finish<Value>(steps: Steps<Value>): Value {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Some milliseconds of work. Texts of less than about 64 KiB stay below it. */
const BUDGET = 3_000_000;

/** The steps with a pause each time that some milliseconds of work are done. */
export async function finishInPieces<Value>(steps: Steps<Value>, pause: () => Promise<void>): Promise<Value> {
  let spent = 0;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    spent += step.value;
    if (spent < BUDGET) continue;
    spent = 0;
    // oxlint-disable-next-line no-await-in-loop -- pausing between the pieces is the purpose
    await pause();
  }
}
