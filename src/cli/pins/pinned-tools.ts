/** What the pins commands share: the pins of the config, and what servers offer now, hidden tools included. */
import { join } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { openPins, pinPlace } from "../../hub/pins/open-pins.ts";
import type { Pins } from "../../hub/pins/pins.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Store } from "../../store/store.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";
import { commandAuditKeys } from "../audit/command-keys.ts";
import type { Invocation } from "../command.ts";
import { commandStore } from "../command-store.ts";
import { findCapability } from "../find-capability.ts";
import type { RunningHub } from "../running-hub.ts";

/** Of the audit log, looked up before anything is done: what is recorded later is recorded at once. */
const auditKeys = new WeakMap<Invocation, AuditKeys>();

/** In a record; the rest is counted. */
const MOST_NAMED = 20;

/**
 * The pins of the config for the length of a command; for one that changes nothing no store is made. Rejects if they cannot be
 * used: a command about pins has nothing to say then.
 */
export async function withPins<T>(
  invocation: Invocation,
  config: LoadedConfig,
  { create }: { readonly create: boolean },
  use: (pins: Pins) => Promise<T>,
): Promise<T> {
  const lazy = commandStore(invocation);
  try {
    auditKeys.set(invocation, await commandAuditKeys(invocation, config));
    const pins = await pinsOf(invocation, config, await lazy.open({ create }));
    try {
      return await use(pins);
    } finally {
      await pins.close();
    }
  } finally {
    await lazy.close();
  }
}

async function pinsOf(invocation: Invocation, config: LoadedConfig, store: Store | undefined): Promise<Pins> {
  const { env, out } = invocation;
  // The commands only look and write; what is done with a changed tool is up to the hub.
  const place = { ...pinPlace(config, toolcribHome(env)), mode: "warn" } as const;
  const pins = await openPins(place, {
    store,
    onEvent: (event) => {
      if (event.type === "removed") {
        out.warn(`${event.file} was removed. Its ${event.tools} pins still hold and are written again.`);
        record(invocation, config, [{ event: "pin.file_removed", details: { file: event.file, tools: event.tools } }]);
      }
      if (event.type === "edited") {
        const { changed, forgotten } = event;
        const named = { changed: changed.slice(0, MOST_NAMED), forgotten: forgotten.slice(0, MOST_NAMED) };
        const details = { ...named, count: changed.length + forgotten.length };
        record(invocation, config, [{ event: "pin.file_changed", details }]);
      }
      if (event.type !== "recorded") return;
      const { server, tools, later } = event;
      if (!later) return out.note(`${server}: ${tools.length} tools pinned for the first time`);
      out.warn(`${server}: new since it was first seen, and pinned as offered now: ${tools.join(", ")}`);
      recordEvents(
        invocation,
        config,
        "pin.recorded",
        tools.map((tool) => ({ server, tool })),
      );
    },
  });
  if (pins.problem !== undefined) throw pins.problem;
  return pins;
}

/** The same servers without any rule that hides a tool. Nothing is called through it. */
export function hidingNothing(config: LoadedConfig): LoadedConfig {
  const { allow: _allow, deny: _deny, ask: _ask, max: _max, ...tools } = config.config.tools;
  const guard = { ...config.config.guard, pins: "off", definitions: "ignore", taint: "off" } as const;
  return {
    ...config,
    config: { ...config.config, tools, guard, roles: {}, plugins: [] },
    servers: config.servers.map(({ tools: _tools, roles: _roles, ...spec }) => spec),
  };
}

/** One tool, or all of a server. */
export interface Chosen {
  readonly server: string;
  /** The server's own name for it; undefined for all. */
  readonly tool: string | undefined;
}

/** Connects what `name` needs. It is a public name, a server id, or `server/tool` in the server's own words. */
export async function choose(running: RunningHub, pins: Pins, name: string): Promise<Chosen> {
  const { hub } = running;
  const known = hub.config.servers.map((spec) => spec.id);
  const pinned = pins.list().find((pin) => `${pin.server}/${pin.tool}` === name);
  const server = known.find((id) => id === name) ?? pinned?.server ?? known.find((id) => name.startsWith(`${id}/`));
  if (server !== undefined) {
    await connectOne(running, server);
    checkServer(running, pins, server);
    return { server, tool: server === name ? undefined : name.slice(server.length + 1) };
  }
  const found = await findCapability(running, name, (view) => view.tools);
  if (found === undefined) {
    const why = hub.missing(hub.session, name);
    if (why.code !== "not_found") throw why;
    throw new ToolcribError("not_found", why.message, {
      hint: "toolcrib pins list shows what is pinned. A tool that is gone is named server/tool.",
    });
  }
  checkServer(running, pins, found.origin.source);
  return { server: found.origin.source, tool: found.origin.name };
}

/** Every server that connects by itself; those that are down are told of. */
export async function chooseAll(invocation: Invocation, running: RunningHub, pins: Pins): Promise<Chosen[]> {
  running.connectAuto();
  await running.settled();
  for (const { info, reason } of running.unreachable()) invocation.out.note(`not connected: ${info.id}: ${reason}`);
  const connected = running.hub.servers().filter((info) => info.status === "connected");
  for (const { id } of connected) checkServer(running, pins, id);
  return connected.map(({ id }) => ({ server: id, tool: undefined }));
}

/** The public name, or `server/tool` for one that the server does not offer now. */
export function publicName({ hub }: RunningHub, server: string, tool: string): string {
  const isIt = ({ origin }: ToolCapability): boolean => origin.source === server && origin.name === tool;
  return hub.view(hub.session).tools.find(isIt)?.name ?? `${server}/${tool}`;
}

/** Approvals belong into the audit log as much as calls do. */
export function recordEvents(
  invocation: Invocation,
  config: LoadedConfig,
  event: "pin.approved" | "pin.recorded" | "pin.reset",
  changes: readonly { server: string; tool: string; before?: string | null; after?: string }[],
): void {
  const records = changes.map(({ server, tool, ...details }) => ({
    event,
    origin: { source: server, name: tool },
    details,
  }));
  record(invocation, config, records);
}

function record(
  invocation: Invocation,
  config: LoadedConfig,
  records: readonly Pick<EventRecord, "event" | "origin" | "details">[],
): void {
  const { env, out } = invocation;
  const keys = auditKeys.get(invocation);
  const log = new AuditLog({
    ...(keys === undefined ? {} : { keys }),
    dir: join(toolcribHome(env), "audit"),
    maxBytes: config.config.audit.maxBytes,
    onProblem: (message) => out.warn(message),
  });
  for (const each of records) log.event({ time: new Date().toISOString(), door: "cli", ...each });
  log.close();
}

async function connectOne(running: RunningHub, server: string): Promise<void> {
  running.connect([server]);
  await running.settled();
  running.assertTime();
  const down = running.unreachable().find(({ info }) => info.id === server);
  if (down === undefined) return;
  throw new ToolcribError("server_unavailable", `The server "${server}" is not connected: ${down.reason}`, {
    hint: "toolcrib doctor checks it.",
    details: { server },
  });
}

function checkServer({ hub }: RunningHub, pins: Pins, server: string): void {
  pins.check(
    server,
    hub.view(hub.session).tools.filter(({ origin }) => origin.source === server),
  );
}
