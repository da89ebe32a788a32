/** Ctrl-C and other reasons to stop, for one turn or for the whole program. */
import { constants } from "node:os";
import { ToolcribError } from "../../model/errors.ts";
import { exitCodeOf } from "../exit-code.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

interface InterruptOptions {
  /** Ctrl-C during a turn ends the turn and not the program. */
  readonly keepsOn: boolean;
  readonly timeoutMs?: number | undefined;
}

export class Interrupts {
  readonly #keepsOn: boolean;
  readonly #ending = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  #turn: AbortController | undefined;
  #signal: NodeJS.Signals | undefined;
  #timedOut: ToolcribError | undefined;

  constructor({ keepsOn, timeoutMs }: InterruptOptions) {
    this.#keepsOn = keepsOn;
    for (const name of SIGNALS) process.on(name, this.#onSignal);
    if (timeoutMs === undefined) return;
    this.#timer = setTimeout(() => {
      this.#timedOut = new ToolcribError("timeout", `Not done within ${timeoutMs} ms.`, {
        hint: "--timeout sets the time allowed.",
      });
      this.#ending.abort(this.#timedOut);
    }, timeoutMs);
  }

  /** Aborts when the program is to end. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  get timedOut(): ToolcribError | undefined {
    return this.#timedOut;
  }

  /** Of a program that was told to end. */
  get exitCode(): number | undefined {
    if (this.#signal !== undefined) return 128 + constants.signals[this.#signal];
    return this.#timedOut && exitCodeOf(this.#timedOut.code);
  }

  /** Aborts when the turn is to end. */
  beginTurn(): AbortSignal {
    this.#turn = new AbortController();
    return AbortSignal.any([this.#turn.signal, this.#ending.signal]);
  }

  endTurn(): void {
    this.#turn = undefined;
  }

  /** As Ctrl-C does; a terminal that is being read hands it over as a key and not as a signal. */
  interrupt(): void {
    this.#onSignal("SIGINT");
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    if (signal === "SIGINT" && this.#keepsOn && this.#turn?.signal.aborted === false) {
      this.#turn.abort();
      return;
    }
    // Who says it again does not want to wait. Children are killed on the way out.
    if (this.#signal !== undefined) process.exit(128 + constants.signals[signal]);
    this.#signal = signal;
    this.#ending.abort();
  };
}
