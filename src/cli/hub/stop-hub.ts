/** Ends a running hub of this user. */
import { findHub, type HubRecord } from "../../hub/activity/hub-records.ts";
import { isProcessAlive } from "../../files/processes.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";

const MAX_STOP_MS = 20_000;

/** Calls in progress finish first. */
export async function stopBackgroundHub(home: string, files: readonly string[]): Promise<void> {
  const hub = findHub(home, files);
  if (hub?.background === true) await stopHub(hub);
}

/** Rejects with `timeout` if it does not end. False if the process of the record is another program by now. */
export async function stopHub(hub: HubRecord): Promise<boolean> {
  if (!(await askToEnd(hub))) return false;
  const until = performance.now() + MAX_STOP_MS;
  while (isProcessAlive(hub.pid)) {
    if (performance.now() > until) {
      throw new ToolcribError("timeout", `The hub (process ${hub.pid}) did not end within ${MAX_STOP_MS / 1000} s.`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}

/** Over its own connection, because process ids are used again and Windows has no signal that lets it finish. */
async function askToEnd({ url, token, pid }: HubRecord): Promise<boolean> {
  const [{ RemoteHub }, { COMMAND_PATH }] = await Promise.all([
    import("../remote-hub.ts"),
    import("./command-frames.ts"),
  ]);
  const hub = new RemoteHub(url, token);
  try {
    await hub.request("GET", "/api/v1/me");
  } catch (error) {
    // A hub whose program was replaced under it answers, but cannot load what it needs to.
    if (asToolcribError(error).code !== "internal") return false;
  }
  // Nor can that one end itself, and a hub of an earlier version knows signals only.
  await hub.request("DELETE", COMMAND_PATH).catch(() => process.kill(pid, "SIGTERM"));
  return true;
}
