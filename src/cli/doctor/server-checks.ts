/** What `doctor` finds out about each server once it was started. */
import type { ServerInfo } from "../../model/server-state.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { loginNote } from "../auth/login-note.ts";
import type { RunningHub } from "../running-hub.ts";
import type { Check } from "./machine-checks.ts";

export function serverChecks(running: RunningHub): Check[] {
  const { hub, took } = running;
  const reasons = new Map(running.unreachable().map(({ info, reason }) => [info.id, reason]));
  const specs = new Map(hub.config.servers.map((spec) => [spec.id, spec]));
  return hub.servers().flatMap((info) => {
    const reason = reasons.get(info.id) ?? (info.state === "failed" ? info.lastError : undefined) ?? undefined;
    const first =
      reason === undefined ? goodCheck(info, took.get(info.id)) : badCheck(info, reason, specs.get(info.id));
    return [first, ...warningsOf(info), ...quarantineOf(running, info.id)];
  });
}

function goodCheck(info: ServerInfo, ms: number | undefined): Check {
  const base = { area: "server", server: info.id } as const;
  if (info.state === "disabled") {
    return { ...base, status: "ok", message: "disabled", hint: `toolcrib enable ${info.id} switches it on.` };
  }
  const version = info.serverVersion === null ? "" : `, version ${info.serverVersion}`;
  return {
    ...base,
    status: "ok",
    message: `${info.transport}, ${info.toolCount} tools, ${ms ?? "?"} ms, protocol ${info.protocolVersion ?? "unknown"}${version}`,
    details: {
      ms,
      transport: info.transport,
      era: info.era,
      protocolVersion: info.protocolVersion,
      toolCount: info.toolCount,
      serverVersion: info.serverVersion,
    },
  };
}

function badCheck(info: ServerInfo, reason: string, spec: ServerSpec | undefined): Check {
  const hint = info.hint ?? advice(spec);
  return {
    area: "server",
    server: info.id,
    status: "fail",
    message: reason,
    hint,
    details: { state: info.state, transport: info.transport, origin: info.origin.file },
  };
}

/** Only words that the config itself holds: references in it are not resolved, so no secret can show. */
function advice(spec: ServerSpec | undefined): string | undefined {
  if (spec === undefined) return undefined;
  if (spec.command === undefined) return `Check the url of ${spec.id} in ${spec.origin.file}, and its credentials.`;
  return `Check command, args and env of ${spec.id} in ${spec.origin.file}; to see it fail, start ${spec.command} by hand.`;
}

/** What a first start in a container has to say is no trouble. */
const PROGRESS = /^An image is being made for /;

function warningsOf(info: ServerInfo): Check[] {
  const login = loginNote(info);
  const base = { area: "server", server: info.id } as const;
  return [
    ...(login === undefined ? [] : [{ ...base, status: "warn" as const, ...login }]),
    ...info.warnings.map((message) => ({ ...base, status: statusOf(message), message })),
  ];
}

function statusOf(message: string): Check["status"] {
  return PROGRESS.test(message) ? "ok" : "warn";
}

/** A server's warning is told as it comes, and again with the server: only the latter stays. */
export function withoutRepeats(checks: readonly Check[]): Check[] {
  const ofServers = new Set(
    checks.flatMap(({ server, message }) => (server === undefined ? [] : `${server}: ${message}`)),
  );
  return checks.filter(({ area, message }) => area !== "hub" || !ofServers.has(message));
}

function quarantineOf({ hub }: RunningHub, id: string): Check[] {
  return hub
    .quarantined()
    .filter(({ source }) => source === id)
    .map(({ kind, name, reason }) => ({
      area: "server",
      server: id,
      status: "warn",
      message: `The ${kind} ${name === "" ? "without a name" : `"${name}"`} is left out: ${reason}`,
      hint: "The server's author can mend this; its other tools are not affected.",
    }));
}
