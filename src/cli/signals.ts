/** The signals that end a command, as an AbortSignal and as the exit code that shells expect. */
import { constants } from "node:os";
import { ToolcribError } from "../model/errors.ts";

export interface StopSignals {
  readonly signal: AbortSignal;
  /** The first signal; undefined before there was one. */
  readonly name: NodeJS.Signals | undefined;
  readonly exitCode: number | undefined;
  /** Ends the command as SIGTERM would; Windows has no such signal. */
  stop(): void;
  dispose(): void;
}

export interface StopSignalOptions {
  readonly names?: readonly NodeJS.Signals[];
  /** `exit` ends the process at once: whoever sends a signal twice does not want to wait. */
  readonly onSecond: "exit" | "ignore";
}

export function listenForStopSignals({ names = ["SIGINT", "SIGTERM"], onSecond }: StopSignalOptions): StopSignals {
  const controller = new AbortController();
  let first: NodeJS.Signals | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    if (first !== undefined && onSecond === "exit") process.exit(signalExitCode(name));
    first ??= name;
    controller.abort();
  };
  for (const name of names) process.on(name, onSignal);
  return {
    signal: controller.signal,
    get name() {
      return first;
    },
    get exitCode() {
      return first && signalExitCode(first);
    },
    stop: () => onSignal("SIGTERM"),
    dispose() {
      for (const name of names) process.off(name, onSignal);
    },
  };
}

export function signalExitCode(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}

/** Aborts with a `timeout` error when `--timeout` is over. */
export class CommandTimeout {
  readonly ms: number | undefined;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  #error: ToolcribError | undefined;

  constructor(ms: number | undefined) {
    this.ms = ms;
    if (ms === undefined) return;
    this.#timer = setTimeout(() => {
      this.#error = new ToolcribError("timeout", `The command did not finish within ${ms} ms.`, {
        hint: "Set the time limit with --timeout.",
      });
      this.#controller.abort(this.#error);
    }, ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Undefined while there is time left. */
  get error(): ToolcribError | undefined {
    return this.#error;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
