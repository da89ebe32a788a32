import { randomUUID } from "node:crypto";
import type { Untrusted } from "../guard/inspect-result.ts";
import type { CallOptions, CallPath } from "./call-path.ts";

/** How the guard treats what comes from there; undefined for a trusted source. */
export function untrustedOrigin(
  path: CallPath,
  { server, tool }: { readonly server: string; readonly tool: string },
  audience: CallOptions["audience"],
): Untrusted | undefined {
  if (path.isTrusted(server)) return undefined;
  const { wrap, onSuspicious } = path.guard;
  const wraps = wrap === "all" || (wrap === "agents" && audience === "agent");
  return { server, tool, boundary: wraps ? randomUUID() : "", wrap: wraps, onSuspicious };
}
