import type { OpenWire } from "./connection-deps.ts";
import { SseWire } from "./http/sse-wire.ts";
import { StreamableWire } from "./http/streamable-wire.ts";
import { childEnvironment } from "./stdio/child-environment.ts";
import { StdioWire } from "./stdio/stdio-wire.ts";
import type { Wire } from "./wire.ts";

export const openWire: OpenWire = (kind, spec, resolved, deps, credentials): Wire => {
  const { url = "", headers } = resolved;
  const { clock, reach } = deps;
  if (kind === "http") return new StreamableWire({ url, headers, clock, credentials, reach });
  if (kind === "sse") return new SseWire({ url, headers, clock, credentials, reach });
  deps.stderr?.begin(spec.id);
  return new StdioWire({
    serverId: spec.id,
    onStderr: (chunk) => deps.stderr?.push(spec.id, chunk),
    command: resolved.command ?? "",
    args: resolved.args,
    env: childEnvironment(deps.env, resolved.env),
    ...(resolved.cwd === undefined ? {} : { cwd: resolved.cwd }),
    pids: deps.pids,
    clock,
  });
};
