import { ToolcribError } from "../model/errors.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ResolvedSpec } from "../secrets/resolve-spec.ts";
import { ContainerHttpWire } from "./cages/container/container-http-wire.ts";
import { type SpecCage, specCage } from "./cages/spec-cage.ts";
import type { ConnectionDeps, OpenWire } from "./connection-deps.ts";
import { SseWire } from "./http/sse-wire.ts";
import { StreamableWire } from "./http/streamable-wire.ts";
import { childEnvironment } from "./stdio/child-environment.ts";
import { StdioWire } from "./stdio/stdio-wire.ts";
import type { Wire } from "./wire.ts";

export const openWire: OpenWire = (kind, spec, resolved, deps, credentials): Wire => {
  const { url = "", headers } = resolved;
  const { clock, reach } = deps;
  const cage = resolved.url === undefined ? specCage(spec, deps) : undefined;
  if (kind === "http" && cage !== undefined) return containerWire(spec, resolved, deps, cage);
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
    // Asked when it is closed.
    get closeGraceMs() {
      return deps.closeGraceMs?.();
    },
    ...(cage === undefined ? {} : { cage }),
    pids: deps.pids,
    clock,
  });
};

function containerWire(spec: ServerSpec, resolved: ResolvedSpec, deps: ConnectionDeps, cage: SpecCage): Wire {
  const { id: serverId } = spec;
  const { command = "", args, cwd, headers } = resolved;
  const { settings, baseDir } = cage;
  if (settings.kind !== "container") {
    throw new ToolcribError("invalid_config", `\`sandbox.port\` is for containers, and its cage is ${settings.kind}.`, {
      hint: 'Set `sandbox.kind` to "container", or leave `port` out.',
      details: { sent: false },
    });
  }
  deps.stderr?.begin(serverId);
  return new ContainerHttpWire({
    program: { serverId, command, args, env: childEnvironment(deps.env, resolved.env), cwd, baseDir },
    settings,
    deps: cage.deps,
    headers,
    pids: deps.pids,
    clock: deps.clock,
    onOutput: (chunk) => deps.stderr?.push(serverId, chunk),
    get closeGraceMs() {
      return deps.closeGraceMs?.();
    },
  });
}
