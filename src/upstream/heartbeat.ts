/** Asks an idle server whether it is still there. */
import type { Clock } from "../model/clock.ts";
import { asToolcribError, type ToolcribError } from "../model/errors.ts";
import type { Peer } from "./peer.ts";
import { rpcOf } from "./rpc-error.ts";

export const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;

interface HeartbeatOptions {
  readonly clock: Clock;
  readonly onMissed: (missed: number, error: ToolcribError) => void;
  /** After one or more missed pings something was heard again. */
  readonly onRecovered: () => void;
}

export class Heartbeat {
  readonly #peer: Peer;
  readonly #options: HeartbeatOptions;
  #missed = 0;
  #lastAskedAt = 0;
  #stopped = false;
  #stopTimer: () => void = () => {};

  constructor(peer: Peer, options: HeartbeatOptions) {
    this.#peer = peer;
    this.#options = options;
    this.#schedule(PING_INTERVAL_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #schedule(ms: number): void {
    if (!this.#stopped) this.#stopTimer = this.#options.clock.after(ms, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const silence = this.#options.clock.now() - this.#peer.lastReceivedAt;
    if (this.#missed > 0 && this.#peer.lastReceivedAt > this.#lastAskedAt) this.#heard();
    if (silence < PING_INTERVAL_MS) return this.#schedule(PING_INTERVAL_MS - silence);
    // A server at work on a call may be too busy to answer; the call has a timeout of its own.
    if (this.#peer.busy) return this.#schedule(PING_INTERVAL_MS);
    await this.#ping();
    this.#schedule(PING_INTERVAL_MS);
  }

  async #ping(): Promise<void> {
    this.#lastAskedAt = this.#options.clock.now();
    try {
      await this.#peer.request(this.#peer.modern ? "server/discover" : "ping", {}, { timeoutMs: PING_TIMEOUT_MS });
    } catch (error) {
      if (this.#stopped) return;
      // An error answer is an answer too.
      if (rpcOf(error) === undefined) {
        this.#missed++;
        this.#options.onMissed(this.#missed, asToolcribError(error));
        return;
      }
    }
    this.#heard();
  }

  #heard(): void {
    if (this.#missed === 0 || this.#stopped) return;
    this.#missed = 0;
    this.#options.onRecovered();
  }
}
