import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, parse, resolve, sep } from "node:path";
import { ToolcribError } from "../model/errors.ts";
import { SESSION_ORIGIN, type ServerSpec } from "../model/server-spec.ts";
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
  const folder = resolved.cwd ?? (cage === undefined ? startFolder(spec, deps) : undefined);
  return new StdioWire({
    serverId: spec.id,
    onStderr: (chunk) => deps.stderr?.push(spec.id, chunk),
    command: resolved.command ?? "",
    args: resolved.args,
    env: childEnvironment(deps.env, resolved.env),
    cwd: folder,
    // Asked when it is closed.
    get closeGraceMs() {
      return deps.closeGraceMs?.();
    },
    cage,
    pids: deps.pids,
    clock,
  });
};

/**
 * Where a program without a `cwd` starts: in the folder of the config that names it, or in the user's own folder where that is
 * Toolcrib's home. The folder in which a command happens to be run is not used: `npx` and `python -m` load what lies there. What a
 * session brings starts where its client is.
 */
function startFolder({ baseDir, origin }: ServerSpec, { cages, env }: ConnectionDeps): string | undefined {
  if (origin.file === SESSION_ORIGIN.file) return undefined;
  const isInHome = cages !== undefined && `${baseDir}${sep}`.startsWith(`${cages.home}${sep}`);
  const folder = isInHome ? (env["HOME"] ?? env["USERPROFILE"] ?? homedir()) : baseDir;
  return isAbsolute(folder) && existsSync(folder) ? folder : parse(resolve("/")).root;
}

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
