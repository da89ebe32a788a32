/** Commands that wait for their reply. */
import type { ProgressFrame } from "../contract/socket.ts";
import type { ErrorObject } from "../model/errors.ts";
import { givenUp, isObject, ToolcribApiError } from "./api-error.ts";

export interface CommandOptions {
  readonly onProgress?: (progress: ProgressFrame["progress"]) => void;
  /** Gives the command up. What changes the hub is finished all the same, and its reply is not waited for. */
  readonly signal?: AbortSignal;
}

interface Pending extends CommandOptions {
  readonly resolve: (output: object) => void;
  readonly reject: (error: ToolcribApiError) => void;
  readonly settle: () => void;
}

export class PendingCommands {
  readonly #pending = new Map<number, Pending>();
  #last = 0;

  /** @param send Puts a frame on the wire. */
  run(type: string, fields: object, options: CommandOptions, send: (frame: object) => void): Promise<object> {
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(givenUp(signal.reason));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        send({ type: "cancel", command: id });
        this.#take(id)?.reject(givenUp(signal?.reason));
      };
      signal?.addEventListener("abort", giveUp);
      const settle = (): void => signal?.removeEventListener("abort", giveUp);
      this.#pending.set(id, { ...options, resolve, reject, settle });
      send({ ...fields, id, type });
    });
  }

  /** False for a frame that is no reply to anything here. */
  answer(frame: Readonly<Record<string, unknown>>): boolean {
    const { id, ok, ...output } = frame;
    if (typeof id !== "number") return false;
    if (ok === true) this.#take(id)?.resolve(output);
    // A reply that is not ok has an error of the table.
    else if (ok === false) this.#take(id)?.reject(new ToolcribApiError(frame["error"] as ErrorObject));
    else if (isProgress(frame["progress"])) this.#pending.get(id)?.onProgress?.(frame["progress"]);
    else return false;
    return true;
  }

  rejectAll(error: ToolcribApiError): void {
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.settle();
    return pending;
  }
}

function isProgress(value: unknown): value is ProgressFrame["progress"] {
  return isObject(value) && typeof value["progress"] === "number";
}
