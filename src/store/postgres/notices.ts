/** Hears of changes by LISTEN. A notice can be lost with its connection, so there is also a look after each reconnect, and now and then. */
import type { Client } from "pg";
import type { Clock } from "../../model/clock.ts";

export const CHANNEL = "toolcrib";
const LOOK_EVERY_MS = 30_000;
const RETRY_MS = 1000;
const RETRY_MAX_MS = 30_000;

interface NoticesOptions {
  readonly connect: () => Promise<Client>;
  readonly clock: Clock;
  readonly look: () => void;
}

export function followNotices({ connect, clock, look }: NoticesOptions): () => void {
  let stopped = false;
  let client: Client | undefined;
  let failures = 0;
  let stopRetry = (): void => {};
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
      opened.on("end", lost);
      opened.on("notification", look);
      await opened.query(`listen ${CHANNEL}`);
      failures = 0;
      look();
    } catch {
      const failed = client;
      lost();
      await failed?.end().catch(() => {});
    }
  }

  function lost(): void {
    client?.off("end", lost);
    client = undefined;
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
    void client?.end().catch(() => {});
  };
}
