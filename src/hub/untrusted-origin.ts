import { randomUUID } from "node:crypto";
import type { Untrusted } from "../guard/inspect-result.ts";
import type { CallOptions, CallPath } from "./call-path.ts";

/** How the guard treats what comes from there; undefined for a trusted source. */
export function untrustedOrigin(
  path: CallPath,
  { server, tool }: { readonly server: string; readonly tool: string },
  audience: CallOptions["audience"],
): Untrusted | undefined {
  return path.isTrusted(server) ? undefined : asUntrusted(path, { server: path.calledName(server), tool }, audience);
}

/** For what is known to be untrusted, of a server as people call it. */
export function asUntrusted(
  path: CallPath,
  { server, tool }: { readonly server: string; readonly tool: string },
  audience: CallOptions["audience"],
): Untrusted {
  const { wrap, onSuspicious } = path.guard;
  const wraps = wrap === "all" || (wrap === "agents" && audience === "agent");
  return { server, tool, boundary: wraps ? randomUUID() : "", wrap: wraps, onSuspicious };
}
