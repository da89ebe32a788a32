import type { Scope } from "../../model/caller.ts";

/** What a caller must be allowed to do for a request of this method. */
export function requiredScope(method: string): Scope {
  return method === "tools/call" ? "call" : "read";
}
