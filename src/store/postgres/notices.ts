/**
 * Hears of changes by LISTEN. A notice can be lost with its connection, so there is also a look after each reconnect, and now
 * and then. A connection that only listens may die without a sign, so it is asked whether it lives.
 */
import type { Client } from "pg";
import type { Clock } from "../../model/clock.ts";

export const CHANNEL = "toolcrib";
const LOOK_EVERY_MS = 30_000;
const CHECK_EVERY_MS = 5000;
const CHECK_ANSWER_MS = 4000;
const RETRY_MS = 1000;
const RETRY_MAX_MS = 30_000;

interface NoticesOptions {
  readonly connect: () => Promise<Client>;
  readonly clock: Clock;
  readonly look: () => void;
  readonly onListening?: () => void;
  /** The connection was lost, or could not be had. */
  readonly onFailure?: (error: unknown) => void;
}

export function followNotices({ connect, clock, look, onListening, onFailure }: NoticesOptions): () => void {
  let stopped = false;
  let client: Client | undefined;
  let failures = 0;
  let stopRetry = (): void => {};
  let stopChecking = (): void => {};
  let stopLooking = clock.after(LOOK_EVERY_MS, lookNowAndThen);

  function lookNowAndThen(): void {
    stopLooking = clock.after(LOOK_EVERY_MS, lookNowAndThen);
    look();
  }

  async function listen(): Promise<void> {
    try {
      const opened = await connect();
      if (stopped) {
        await opened.end();
        return;
      }
      client = opened;
      opened.on("error", () => {});
      opened.on("end", ended);
      opened.on("notification", look);
      await opened.query(`listen ${CHANNEL}`);
      if (client !== opened) return;
      failures = 0;
      onListening?.();
      look();
      checkLater(opened);
    } catch (error) {
      fail(error);
    }
  }

  function checkLater(listening: Client): void {
    stopChecking = clock.after(CHECK_EVERY_MS, () => {
      const failed = (error: unknown): void => {
        if (client === listening) fail(error);
      };
      stopChecking = clock.after(CHECK_ANSWER_MS, () => failed(new Error("Connection terminated after a timeout")));
      listening.query("select 1").then(() => {
        if (client !== listening) return;
        stopChecking();
        checkLater(listening);
      }, failed);
    });
  }

  function fail(error: unknown): void {
    const failed = client;
    if (!stopped) onFailure?.(error);
    lost();
    void failed?.end().catch(() => {});
  }

  function ended(): void {
    if (!stopped) onFailure?.(new Error("Connection terminated"));
    lost();
  }

  function lost(): void {
    client?.off("end", ended);
    client = undefined;
    stopChecking();
    if (stopped) return;
    stopRetry();
    stopRetry = clock.after(Math.min(RETRY_MS * 2 ** failures, RETRY_MAX_MS), () => void listen());
    failures += 1;
  }

  void listen();
  return () => {
    stopped = true;
    stopRetry();
    stopLooking();
    stopChecking();
    void client?.end().catch(() => {});
  };
}
