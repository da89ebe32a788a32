/** `toolcrib pins`: lists, compares, approves and resets pinned definitions. */
import { join } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { openPins, pinLocation } from "../../hub/pins/open-pins.ts";
import {
  describeCounts,
  describeNames,
  kindDetail,
  MAX_NAMED,
  type PinDiff,
  type PinEntry,
  type PinEvent,
  type PinName,
  pinTitle,
} from "../../hub/pins/pin-reports.ts";
import type { PinChoice, Pins } from "../../hub/pins/pins.ts";
import type { View } from "../../hub/view/view.ts";
import type { Capability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { serverSkills } from "../../skills/offer/offered-skill.ts";
import type { Store } from "../../store/store.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";
import { loadCommandConfig } from "../command-config.ts";
import { commandAuditKeys } from "../command-home.ts";
import { commandStore } from "../command-store.ts";
import { type Invocation, unknownAction } from "../command.ts";
import { findCapability, type RunningHub, withHub } from "../running-hub.ts";
import type { Column } from "../table.ts";

/** Enough of a fingerprint to compare by eye. */
const SHORT_FINGERPRINT = 12;

export async function run(invocation: Invocation): Promise<number> {
  const [action, ...names] = invocation.args;
  const config = await loadCommandConfig(invocation);
  switch (action) {
    case "list":
      return withPins(invocation, config, { create: false }, async (pins) => list(invocation, pins));
    case "diff":
      return diff(invocation, config, names);
    case "approve":
      return approve(invocation, config, names);
    case "reset":
      return withPins(invocation, config, { create: true }, (pins) => reset(invocation, config, pins, names));
    default:
      throw unknownAction("pins", action ?? "", "Use list, diff, approve or reset.");
  }
}

const COLUMNS: readonly Column<PinEntry>[] = [
  { title: "SERVER", cell: (pin) => pin.server },
  { title: "TOOL", cell: (pin) => (pin.kind === "tool" ? pin.tool : pinTitle(pin)) },
  { title: "FINGERPRINT", cell: (pin) => pin.fingerprint.slice(0, SHORT_FINGERPRINT) },
  { title: "PINNED", cell: (pin) => pin.pinnedAt },
];

/** Shows only the file: no server is connected. */
function list({ out }: Invocation, pins: Pins): number {
  const entries = pins.list();
  const nothing = `Nothing is pinned in ${pins.file}. Definitions are pinned when they are first seen.`;
  if (out.json) out.value(entries.map(({ state: _state, ...entry }) => entry));
  else out.list(COLUMNS, entries, nothing);
  return 0;
}

function diff(invocation: Invocation, config: LoadedConfig, names: readonly string[]): Promise<number> {
  const { out } = invocation;
  return withOffered(invocation, config, async (running, pins) => {
    const chosen = await chosenThings(invocation, running, pins, names);
    const diffs = chosen.flatMap(({ server, thing }) => pins.diff(server, thing));
    const gone = pins.list().filter((pin) => pin.state === "gone" && isChosen(chosen, pin));
    if (out.json) {
      const missing = gone.map(({ server, kind, tool, fingerprint }) => ({
        name: ownName({ server, kind, tool }),
        state: "gone",
        server,
        kind,
        tool,
        before: fingerprint,
        after: null,
        diff: [],
      }));
      out.value([...diffs.map((each) => named(running, each)), ...missing]);
      return 0;
    }
    for (const each of diffs) showDiff(invocation, running, each);
    for (const pin of gone) out.line(`${out.paint("bold", ownName(pin))} is no longer offered`);
    if (diffs.length + gone.length === 0) out.note("Nothing differs from the pins.");
    return 0;
  });
}

function approve(invocation: Invocation, config: LoadedConfig, names: readonly string[]): Promise<number> {
  const { out, flags } = invocation;
  if ((names.length === 0) !== flags.has("all")) {
    throw new ToolcribError("invalid_arguments", "Name what to approve, or use --all.", {
      hint: "Run toolcrib pins diff to see what is new or has changed.",
    });
  }
  return withOffered(invocation, config, async (running, pins) => {
    const approved: PinDiff[] = [];
    for (const { server, thing } of await chosenThings(invocation, running, pins, names)) {
      approved.push(...(await pins.approve(server, thing)));
    }
    if (approved.length > 0) recordEvents(invocation, config, "pin.approved", approved);
    if (out.json) out.value(approved.map((each) => named(running, each)));
    else if (approved.length === 0) out.line("Nothing to approve: nothing differs from the pins.");
    for (const each of out.json ? [] : approved) {
      showDiff(invocation, running, each);
      out.line(
        `  approved: ${each.before?.slice(0, SHORT_FINGERPRINT) ?? "(not pinned)"} → ${each.after.slice(0, SHORT_FINGERPRINT)}`,
      );
    }
    return 0;
  });
}

async function reset(
  invocation: Invocation,
  config: LoadedConfig,
  pins: Pins,
  names: readonly string[],
): Promise<number> {
  const { out } = invocation;
  const [server] = names;
  if (names.length > 1) throw new ToolcribError("invalid_arguments", "Name one server, or none to delete all pins.");
  if (server !== undefined && !pins.list().some((pin) => pin.server === server)) {
    throw new ToolcribError("not_found", `There are no pins for a server "${server}".`, {
      hint: "Run toolcrib pins list to see the pins.",
    });
  }
  const removed = await pins.reset(server);
  if (removed.length > 0) recordEvents(invocation, config, "pin.reset", removed);
  if (out.json) out.value({ file: pins.file, removed });
  else
    out.line(
      `Deleted ${removed.length} ${removed.length === 1 ? "pin" : "pins"} from ${pins.file}. Each definition is pinned again when it is next seen.`,
    );
  return 0;
}

function withOffered(
  invocation: Invocation,
  config: LoadedConfig,
  use: (running: RunningHub, pins: Pins) => Promise<number>,
): Promise<number> {
  return withPins(invocation, config, { create: true }, (pins) =>
    withHub(invocation, (running) => use(running, pins), { config: withoutHidingRules(config) }),
  );
}

async function chosenThings(
  invocation: Invocation,
  running: RunningHub,
  pins: Pins,
  names: readonly string[],
): Promise<Chosen[]> {
  if (names.length === 0) return chooseAll(invocation, running, pins);
  const chosen: Chosen[] = [];
  for (const name of names) chosen.push(...(await chooseByName(running, pins, name)));
  return chosen;
}

function isChosen(chosen: readonly Chosen[], pin: PinEntry): boolean {
  return chosen.some(
    ({ server, thing }) =>
      server === pin.server && (thing === undefined || (thing.kind === pin.kind && thing.name === pin.tool)),
  );
}

function named(running: RunningHub, { server, kind, tool, ...rest }: PinDiff): object {
  return { name: publicName(running, { server, kind, tool }), server, kind, tool, ...rest };
}

function showDiff({ out }: Invocation, running: RunningHub, pin: PinDiff): void {
  const { server, kind, tool, state, diff } = pin;
  const title = kind === "tool" ? tool : pinTitle(pin);
  const news = state === "new" ? ", new" : "";
  out.line(`${out.paint("bold", publicName(running, pin))}  (${title} of ${server}${news})`);
  for (const line of diff) out.line(`  ${out.paintChange(line)}`);
}

/** Keys of the audit log, looked up in advance because events are recorded synchronously. */
const auditKeys = new WeakMap<Invocation, AuditKeys>();

/**
 * Opens the pins of the config for one command. A store is created only if the command writes. Rejects if the pins cannot be
 * used.
 */
async function withPins<T>(
  invocation: Invocation,
  config: LoadedConfig,
  { create }: { readonly create: boolean },
  use: (pins: Pins) => Promise<T>,
): Promise<T> {
  const shared = invocation.attached?.hub.internals.pins;
  if (shared !== undefined && shared.mode !== "off") {
    if (shared.problem !== undefined) throw shared.problem;
    return use(shared);
  }
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
  const place = pinLocation(config, toolcribHome(env));
  const problems: string[] = [];
  const pins = await openPins(
    // The commands compare even if pinning is off.
    { ...place, mode: place.mode === "off" ? "warn" : place.mode },
    {
      store,
      mask: out.redactor.maskContent,
      pinsResources: (server) => config.servers.find(({ id }) => id === server)?.pinResources !== false,
      onEvent: (event) => {
        if (event.type === "problem") problems.push(`${event.message} ${event.hint}`);
        reportPinEvent(invocation, config, event);
      },
    },
  );
  if (pins.problem !== undefined) throw pins.problem;
  // About a project's lock file; the pins of the home can be used.
  for (const problem of problems) out.warn(problem);
  return pins;
}

function reportPinEvent(invocation: Invocation, config: LoadedConfig, event: PinEvent): void {
  const { out } = invocation;
  switch (event.type) {
    case "removed":
      out.warn(`${event.file} was removed. Its ${event.pins} pins still apply and are written again.`);
      return recordAuditEvents(invocation, config, [
        { event: "pin.file_removed", details: { file: event.file, tools: event.pins } },
      ]);
    case "edited": {
      const { changed, forgotten } = event;
      const named = { changed: changed.slice(0, MAX_NAMED), forgotten: forgotten.slice(0, MAX_NAMED) };
      const details = { ...named, count: changed.length + forgotten.length };
      return recordAuditEvents(invocation, config, [{ event: "pin.file_changed", details }]);
    }
    case "recorded": {
      const { server, pins, later } = event;
      if (!later) return out.note(`${server}: ${describeCounts(pins)} pinned for the first time`);
      out.warn(`${server}: new since the server was first seen, now pinned: ${describeNames(pins)}`);
      return recordEvents(invocation, config, "pin.recorded", pins);
    }
    case "too-many":
      return out.warn(
        `${event.server} lists ${event.count} resources; only the first ${event.most} are pinned. If its resources change often, set "pinResources": false in its entry.`,
      );
    case "masked":
      return out.warn(
        `${event.server}: the server's own definitions contain a secret (${describeNames(event.pins)}). It is masked in ${event.file}, which is now readable only by you.`,
      );
    default:
      return;
  }
}

/** The same config without rules that hide tools. No calls are made with it. */
function withoutHidingRules(config: LoadedConfig): LoadedConfig {
  const { allow: _allow, deny: _deny, ask: _ask, max: _max, ...tools } = config.config.tools;
  const guard = { ...config.config.guard, pins: "off", definitions: "ignore", taint: "off" } as const;
  const { project } = config;
  return {
    ...config,
    ...(project === undefined ? {} : { project: { ...project, rules: {} } }),
    config: { ...config.config, tools, guard, roles: {}, plugins: [] },
    servers: config.servers.map(({ tools: _tools, roles: _roles, ...spec }) => spec),
  };
}

/** One definition, or all of a server. */
interface Chosen {
  readonly server: string;
  /** By the server's own name; undefined for all. */
  readonly thing: PinChoice | undefined;
}

/**
 * Connects the servers that `name` needs. It is a public name or URI, a server id, `server/instructions`, or by the server's
 * own names `server/tool` or `server/kind/name`. A name that several kinds share means all of them.
 */
async function chooseByName(running: RunningHub, pins: Pins, name: string): Promise<Chosen[]> {
  const { hub } = running;
  const known = hub.config.servers.map((spec) => spec.id);
  const pinned = pins.list().find((pin) => ownNames(pin).includes(name));
  const server = known.find((id) => id === name) ?? pinned?.server ?? known.find((id) => name.startsWith(`${id}/`));
  if (server !== undefined) {
    await running.connectOne(server);
    checkServer(running, pins, server);
    if (server === name) return [{ server, thing: undefined }];
    const listed = pins.list().filter((pin) => pin.server === server);
    const named = listed.find((pin) => ownNames(pin).includes(name));
    const thing = named ?? { kind: "tool" as const, tool: name.slice(server.length + 1) };
    return [{ server, thing: { kind: thing.kind, name: thing.tool } }];
  }
  const found = await findCapability(running, name, () => offeredIn(allOf(running)));
  if (found === undefined) {
    const why = hub.internals.missing(hub.session, name);
    if (why.code !== "not_found") throw why;
    throw new ToolcribError("not_found", why.message, {
      hint: "Run toolcrib pins list to see the pins. Definitions that are gone are named server/tool or server/kind/name.",
    });
  }
  // What is approved is what the server says, and not what it said when it last ran.
  if (known.includes(found.origin.source)) await running.connectOne(found.origin.source);
  checkServer(running, pins, found.origin.source);
  return offeredIn(allOf(running))
    .filter((each) => each.name === name && each.origin.source === found.origin.source)
    .map(({ kind, origin }) => ({ server: origin.source, thing: { kind, name: origin.name } }));
}

/** All that servers offer, with the part that the rules of a shared hub hide. A hub of the command's own has no such rules. */
function allOf({ hub, isShared }: RunningHub): Lists {
  return isShared ? hub.internals.catalog() : hub.view(hub.session);
}

type Lists = Pick<View, "tools" | "prompts" | "resources" | "templates">;

function offeredIn({ tools, prompts, resources, templates }: Lists): Capability[] {
  return [...tools, ...prompts, ...resources, ...templates];
}

/** All names of a definition by the server's own names; the first is displayed. */
function ownNames({ server, kind, tool }: PinName): string[] {
  if (kind === "instructions") return [`${server}/instructions`];
  return kind === "tool" ? [`${server}/${tool}`, `${server}/tool/${tool}`] : [`${server}/${kind}/${tool}`];
}

/** Every server that connects automatically, also lazy ones. Reports those that are down. */
async function chooseAll(invocation: Invocation, running: RunningHub, pins: Pins): Promise<Chosen[]> {
  running.connect(running.sleeping());
  running.connectAuto();
  await running.settled();
  for (const { info, reason } of running.unreachable()) invocation.out.note(`not connected: ${info.id}: ${reason}`);
  const connected = running.hub.servers.list().filter((info) => info.status === "connected");
  // The skills of a server are pinned separately.
  const sources = connected.flatMap(({ id }) => [id, serverSkills(id)]);
  for (const source of sources) checkServer(running, pins, source);
  return sources.map((server) => ({ server, thing: undefined }));
}

/** The public name, or the server's own name for a definition that it does not offer now. */
function publicName(running: RunningHub, pin: PinName): string {
  const isIt = ({ kind, origin }: Capability): boolean =>
    kind === pin.kind && origin.source === pin.server && origin.name === pin.tool;
  return offeredIn(allOf(running)).find(isIt)?.name ?? ownName(pin);
}

function ownName(pin: PinName): string {
  return ownNames(pin)[0] ?? pin.tool;
}

/** Approvals are recorded in the audit log, as calls are. */
function recordEvents(
  invocation: Invocation,
  config: LoadedConfig,
  event: "pin.approved" | "pin.recorded" | "pin.reset",
  changes: readonly (PinName & { readonly before?: string | null; readonly after?: string })[],
): void {
  const records = changes.map(({ server, kind, tool, before, after }) => ({
    event,
    origin: { source: server, name: tool },
    details: { ...kindDetail(kind), ...(after === undefined ? {} : { before, after }) },
  }));
  recordAuditEvents(invocation, config, records);
}

function recordAuditEvents(
  invocation: Invocation,
  config: LoadedConfig,
  records: readonly Pick<EventRecord, "event" | "origin" | "details">[],
): void {
  const { env, out, attached } = invocation;
  if (attached !== undefined) {
    const { caller, hub } = attached;
    for (const each of records) hub.audit.note({ door: "cli", user: caller.user ?? null, ...each });
    return;
  }
  const keys = auditKeys.get(invocation);
  const log = new AuditLog({
    keys,
    dir: join(toolcribHome(env), "audit"),
    maxBytes: config.config.audit.maxBytes,
    onProblem: (message) => out.warn(message),
  });
  for (const each of records) log.event({ time: new Date().toISOString(), door: "cli", ...each });
  log.close();
}

function checkServer(running: RunningHub, pins: Pins, server: string): void {
  const problem = pins.problemOf(server);
  if (problem !== undefined) throw problem;
  const { hub } = running;
  // The hub's own know what it offers.
  if (pins === hub.internals.pins) return;
  const { session } = hub;
  const offered = offeredIn(allOf(running)).filter(({ origin }) => origin.source === server);
  const instructions = hub.internals.instructions(session).find((each) => each.server === server)?.text ?? null;
  pins.check(server, offered, instructions);
}
