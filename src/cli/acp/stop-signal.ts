/** The end of a program on stdio: told by a signal, and over within a time. */
import { constants } from "node:os";
import type { Readable } from "node:stream";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface StopSignal {
  readonly signal: AbortSignal;
  /** What a shell expects of a process that ended for the signal; undefined if there was none. */
  readonly exitCode: number | undefined;
  dispose(): void;
}

/** A second signal ends the process at once. */
export function stopSignal(): StopSignal {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    if (exitCode !== undefined) process.exit(exitCode);
    exitCode = 128 + constants.signals[name];
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return {
    signal: controller.signal,
    get exitCode() {
      return exitCode;
    },
    dispose: () => {
      for (const name of SIGNALS) process.off(name, onSignal);
    },
  };
}

interface Closing {
  readonly signal: AbortSignal;
  readonly input: Readable;
  /** From the signal or the end of the input on; each by its time in milliseconds. */
  readonly steps: Readonly<Record<number, () => void>>;
}

/** Runs the steps in time unless the returned function is called before. */
export function closeInTime({ signal, input, steps }: Closing): () => void {
  let timers: NodeJS.Timeout[] | undefined;
  const begin = (): void => {
    timers ??= Object.entries(steps).map(([ms, step]) => setTimeout(step, Number(ms)));
  };
  signal.addEventListener("abort", begin, { once: true });
  input.once("end", begin);
  return () => {
    timers?.forEach(clearTimeout);
    signal.removeEventListener("abort", begin);
    input.off("end", begin);
  };
}
