/** Work that several wait for and that is done once: it goes on while anybody waits for it. */
import { ToolcribError } from "../../../model/errors.ts";

interface Work {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  waiters: number;
}

export class SharedWork {
  readonly #underWay = new Map<string, Work>();

  /**
   * Starts `work` unless the same is under way. Rejects with `cancelled` when the signal aborts; the last one who leaves
   * ends the work, and waits until it has.
   */
  async join(key: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw cancelled();
    const joined = this.#underWay.get(key) ?? this.#start(key, work);
    const { promise: left, resolve: leave } = Promise.withResolvers<"left">();
    const onAbort = (): void => leave("left");
    signal.addEventListener("abort", onAbort, { once: true });
    joined.waiters++;
    try {
      if ((await Promise.race([joined.done, left])) !== "left") return;
    } finally {
      signal.removeEventListener("abort", onAbort);
      joined.waiters--;
    }
    if (joined.waiters === 0) {
      // Who comes now starts anew.
      if (this.#underWay.get(key) === joined) this.#underWay.delete(key);
      joined.controller.abort();
      await joined.done.catch(() => {});
    }
    throw cancelled();
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<void>): Work {
    const controller = new AbortController();
    const done = work(controller.signal).finally(() => {
      if (this.#underWay.get(key) === started) this.#underWay.delete(key);
    });
    const started: Work = { done, controller, waiters: 0 };
    this.#underWay.set(key, started);
    // All waiters may have left before it fails.
    done.catch(() => {});
    return started;
  }
}

function cancelled(): ToolcribError {
  return new ToolcribError("cancelled", "waiting for an image was cancelled", { details: { sent: false } });
}
