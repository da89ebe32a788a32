import type { ServerSpec } from "../model/server-spec.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { ResolvedSpec } from "../secrets/resolve-spec.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { SseWire } from "./http/sse-wire.ts";
import { StreamableWire } from "./http/streamable-wire.ts";
import { childEnvironment } from "./stdio/child-environment.ts";
import { StdioWire } from "./stdio/stdio-wire.ts";
import type { Wire } from "./wire.ts";

export function openWire(kind: TransportKind, spec: ServerSpec, resolved: ResolvedSpec, deps: ConnectionDeps): Wire {
  const { url = "", headers } = resolved;
  const { clock } = deps;
  if (kind === "http") return new StreamableWire({ url, headers, clock });
  if (kind === "sse") return new SseWire({ url, headers, clock });
  return new StdioWire({
    serverId: spec.id,
    command: resolved.command ?? "",
    args: resolved.args,
    env: childEnvironment(deps.env, resolved.env),
    ...(resolved.cwd === undefined ? {} : { cwd: resolved.cwd }),
    pids: deps.pids,
    clock,
  });
}
