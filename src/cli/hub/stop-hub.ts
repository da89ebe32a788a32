/** Ends a running hub of this user. */
import { findHub, type HubRecord } from "../../hub/activity/hub-records.ts";
import { isProcessAlive } from "../../files/processes.ts";
import { ToolcribError } from "../../model/errors.ts";

const MAX_STOP_MS = 20_000;

/** Calls in progress finish first. */
export async function stopBackgroundHub(home: string, files: readonly string[]): Promise<void> {
  const hub = findHub(home, files);
  if (hub?.background === true) await stopHub(hub);
}

/** Rejects with `timeout` if it does not end. False if the process of the record is another program by now. */
export async function stopHub(hub: HubRecord): Promise<boolean> {
  if (!(await isHub(hub))) return false;
  process.kill(hub.pid, "SIGTERM");
  const until = performance.now() + MAX_STOP_MS;
  while (isProcessAlive(hub.pid)) {
    if (performance.now() > until) {
      throw new ToolcribError("timeout", `The hub (process ${hub.pid}) did not end within ${MAX_STOP_MS / 1000} s.`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}

/** Process ids are used again: only the hub itself knows its token. */
async function isHub({ url, token }: HubRecord): Promise<boolean> {
  const { RemoteHub } = await import("../remote-hub.ts");
  try {
    await new RemoteHub(url, token).request("GET", "/api/v1/me");
    return true;
  } catch {
    return false;
  }
}
