/** Lets a command that changes many things put them back when it is told to end. */
import { constants } from "node:os";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { Output } from "../output.ts";

/** Ctrl-C where a question has the terminal to itself, so that it makes no signal. */
export class Interrupted extends ToolcribError {
  constructor() {
    super("cancelled", "The install was interrupted; everything is as it was before.");
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Ctrl-C and the like abort the task's signal instead of ending the process; what the task throws then is shown, with the
 * exit code that shells expect. A second signal changes nothing: putting back is short, and half of it is worse than none.
 */
export async function untilSignalled(out: Output, task: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const interrupt = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    exitCode ??= 128 + constants.signals[signal];
    interrupt.abort();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    return await task(interrupt.signal);
  } catch (error) {
    if (error instanceof Interrupted) exitCode ??= 128 + constants.signals.SIGINT;
    if (exitCode === undefined) throw error;
    out.error(asToolcribError(error).toObject());
    return exitCode;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}
