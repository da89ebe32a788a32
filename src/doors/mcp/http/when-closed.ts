import type { ServerResponse } from "node:http";

/**
 * Calls once when nothing of the answer can reach the client any more. Node says so only once: a client that left while its
 * token was looked at is gone before anybody listens. Then it is called in the next tick, when the caller is ready for it.
 */
export function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.closed || response.destroyed) process.nextTick(listener);
  else response.once("close", listener);
}
