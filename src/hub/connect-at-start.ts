/** Which servers connect by themselves, and how long anybody waits for them. */
import type { Clock } from "../model/clock.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { HubOptions } from "./hub-options.ts";

const DEFAULT_WAIT_MS = 10_000;

/** Not to wait at the start is no reason to wait for ever later. */
export async function waitAtMost(connecting: Promise<unknown>, wait: HubOptions["wait"], clock: Clock): Promise<void> {
  if (wait === true) return void (await connecting);
  let stop = (): void => {};
  const over = new Promise<void>((done) => {
    stop = clock.after(typeof wait === "number" ? wait : DEFAULT_WAIT_MS, done);
  });
  await Promise.race([connecting, over]);
  stop();
}

export function isChosen({ id, enabled, autoConnect }: ServerSpec, connect: HubOptions["connect"] = "auto"): boolean {
  if (connect === "none") return false;
  return connect === "auto" ? enabled && autoConnect : connect.includes(id);
}
