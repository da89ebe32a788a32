/** Hub events as events of the contract: servers, tools, calls, approvals, sessions, skills, settings. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../../base/clock.ts";
import type { EventName, FieldsOf } from "../../../contract/websocket.ts";
import { summarizeApproval } from "../../../hub/activity/approval-records.ts";
import type { HubEvents } from "../../../hub/hub-events.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { View } from "../../../hub/view/view.ts";
import type { ToolCapability } from "../../../model/capability.ts";
import type { AskRequest } from "../../../model/decision.ts";
import type { ServerInfo, ServerState } from "../../../model/server-state.ts";
import { isOpenclawId } from "../../../skills/registry/skill-id.ts";
import type { StartRecord } from "../../../telemetry/call-record.ts";
import type { DeepReadonly } from "../api/operation-handler.ts";
import { originFields, serverSnapshot, type ServerSnapshot } from "../api/visibility.ts";

export type Fields<Name extends EventName> = DeepReadonly<FieldsOf<Name>>;

export interface Audience {
  /** Only for viewers who see this server, as it was then. */
  readonly server?: ServerSnapshot;
  /** Only for viewers who may see a skill of this name. */
  readonly skill?: string;
  /** Also for the session that caused it. */
  readonly session?: string;
  /** Only for the connection with this session. */
  readonly only?: string;
}

/** Publishes an event, in order. */
export type Publish = <Name extends EventName>(
  type: Name,
  fields: Fields<Name>,
  audience?: Audience,
  /** About its length as JSON, where that is known; else it is counted. */
  size?: number,
) => void;

/** The parts of a hub that events come from; its own session sees everything that can be seen. */
export type FeedHub = Pick<Hub, "session" | "config" | "on" | "view"> & {
  readonly servers: Pick<Hub["servers"], "list">;
  readonly pins: Pick<Hub["pins"], "stateOf">;
};

/** Nothing else makes a connected server idle. */
const DISCONNECT_REASON = "disconnected by request";
const SLEEP_REASON = "asleep until its next use";

export class ServerEvents {
  readonly #hub: FeedHub;
  readonly #publish: Publish;
  /** The reported servers: the config no longer has a removed one. */
  readonly #known = new Map<string, ServerSnapshot>();
  onConnected: (id: string) => void = () => {};

  constructor(hub: FeedHub, publish: Publish) {
    this.#hub = hub;
    this.#publish = publish;
    for (const { id } of hub.servers.list()) this.#known.set(id, serverSnapshot(hub.config, id));
  }

  listen(): (() => void)[] {
    return [
      this.#hub.on("server", (event) => this.#changed(event)),
      this.#hub.on("reload", (event) => this.#reloaded(event)),
    ];
  }

  #reloaded({ report }: HubEvents["reload"]): void {
    const infos = new Map(this.#hub.servers.list().map((info) => [info.id, info]));
    for (const [id, server] of this.#known) {
      if (infos.has(id)) continue;
      this.#known.delete(id);
      this.#publish("mcp.server.removed", { serverId: id }, { server });
    }
    for (const [id, info] of infos) {
      if (!this.#known.has(id)) this.#added(info);
      else if (report.changed.includes(id)) {
        this.#known.set(id, serverSnapshot(this.#hub.config, id));
        this.#publish("mcp.server.changed", { serverId: id, state: info.state, server: info }, this.#audience(id));
      }
    }
  }

  #added(info: ServerInfo): void {
    this.#known.set(info.id, serverSnapshot(this.#hub.config, info.id));
    this.#publish("mcp.server.added", { server: info }, this.#audience(info.id));
  }

  #changed({ info, previous }: HubEvents["server"]): void {
    const { id, state, lastError, hint } = info;
    if (!this.#known.has(id)) {
      // A removed server reports that it closes; its removal is reported by the reload.
      if (state === "closed") return;
      this.#added(info);
    }
    const audience = this.#audience(id);
    this.#publish("mcp.server.changed", { serverId: id, state, server: info }, audience);
    const [was, is] = [isUp(previous), isUp(state)];
    if (is && !was) {
      this.#publish("mcp.server.connected", { serverId: id, server: info }, audience);
      this.onConnected(id);
    }
    if (was && !is) {
      const idleReason = info.sleeping === true ? SLEEP_REASON : DISCONNECT_REASON;
      const reason = lastError ?? (state === "idle" ? idleReason : null);
      this.#publish("mcp.server.disconnected", { serverId: id, reason }, audience);
    }
    if (state === "failed" || (state === "restarting" && !was)) {
      const error = lastError ?? "The server could not be connected.";
      this.#publish("mcp.server.error", { serverId: id, error, hint }, audience);
    }
  }

  #audience(id: string): Audience {
    return { server: this.#known.get(id) ?? serverSnapshot(this.#hub.config, id) };
  }
}

function isUp(state: ServerState["kind"]): boolean {
  return state === "ready" || state === "degraded";
}

type Tools = Fields<"mcp.tools.discovered">["tools"];

/** An event must not carry a whole catalog. */
const MAX_TOOLS = 500;
const MAX_DESCRIPTION_LENGTH = 300;
/** Of the schemas of one event together, in characters of JSON. */
const MAX_SCHEMA_LENGTH = 256 * 1024;
/** Ids with a colon are not servers, and have events of their own. */
const isServer = (source: string): boolean => !source.includes(":");

/** Reports the tools of servers when they connect or change. */
export class ToolEvents {
  readonly #hub: FeedHub;
  readonly #publish: Publish;
  /** The last reported tools of each source. */
  #published: ReadonlyMap<string, readonly ToolCapability[]>;
  readonly #connected = new Set<string>();
  #soon: NodeJS.Immediate | undefined;

  constructor(hub: FeedHub, publish: Publish) {
    this.#hub = hub;
    this.#publish = publish;
    this.#published = bySource(hub.view(hub.session));
  }

  listen(): (() => void)[] {
    return [
      this.#hub.on("catalog", ({ kinds }) => {
        this.#publish("mcp.catalog.changed", { kinds: [...kinds] });
        if (kinds.includes("tool")) this.#lookSoon();
      }),
      this.#hub.on("visibility", () => {
        this.#publish("mcp.catalog.changed", { kinds: [] });
        this.#lookSoon();
      }),
      () => clearImmediate(this.#soon),
    ];
  }

  /** Its tools are reported even if they are the same as before. */
  connected(id: string): void {
    this.#connected.add(id);
    this.#lookSoon();
  }

  /** Several servers that connect at once cause one comparison. */
  #lookSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined;
      this.#look();
    });
  }

  #look(): void {
    const before = this.#published;
    const now = bySource(this.#hub.view(this.#hub.session));
    this.#published = now;
    const changed = [...new Set([...this.#connected, ...now.keys(), ...before.keys()])].filter(
      (source) =>
        isServer(source) &&
        (this.#connected.has(source) || !hasSameTools(before.get(source) ?? [], now.get(source) ?? [])),
    );
    this.#connected.clear();
    if (changed.length === 0) return;
    // The removal of a server has its own event, for clients that saw it.
    const there = new Set(this.#hub.servers.list().map(({ id }) => id));
    for (const source of changed) if (there.has(source)) this.#publishTools(source, now.get(source) ?? []);
  }

  #publishTools(serverId: string, tools: readonly ToolCapability[]): void {
    let room = MAX_SCHEMA_LENGTH;
    const shown = tools.slice(0, MAX_TOOLS).map((tool) => {
      const { inputSchema } = tool.definition;
      room -= JSON.stringify(inputSchema).length;
      return { ...this.#summary(tool), ...(room < 0 ? {} : { inputSchema }) };
    });
    const fields = { serverId, tools: shown, truncated: tools.length > MAX_TOOLS || room < 0 ? true : undefined };
    this.#publish("mcp.tools.discovered", fields, { server: serverSnapshot(this.#hub.config, serverId) });
  }

  #summary({ name, origin, definition, fingerprint }: ToolCapability): Tools[number] {
    const { title, description } = definition;
    return {
      name,
      ...originFields(origin),
      title: title === undefined ? undefined : truncate(title),
      description: description === undefined ? undefined : truncate(description),
      fingerprint,
      pin: this.#hub.pins.stateOf(origin.source, origin.name),
    };
  }
}

function bySource({ tools }: View): Map<string, ToolCapability[]> {
  return Map.groupBy(tools, ({ origin }) => origin.source);
}

function hasSameTools(a: readonly ToolCapability[], b: readonly ToolCapability[]): boolean {
  const isSame = (one: ToolCapability, other: ToolCapability | undefined): boolean =>
    one === other || (one.name === other?.name && one.fingerprint === other.fingerprint);
  return a.length === b.length && a.every((tool, index) => isSame(tool, b[index]));
}

function truncate(text: string, maxLength = MAX_DESCRIPTION_LENGTH): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}…`;
}

/** Of a resource the name is a URI, which can be of any length. */
const MAX_NAME_LENGTH = 500;

/** Calls, questions and sessions. */
export function publishCalls(hub: FeedHub, publish: Publish): (() => void)[] {
  return [
    hub.on("call-start", (record) => {
      const fields = callStart(record);
      publish("call.started", fields, { session: record.session }, callSize(fields));
    }),
    hub.on("call", (record) => {
      const { decision, outcome, durationMs, resultBytes, findings = [] } = record;
      const end = { decision, outcome, durationMs, resultBytes, findings: findings.map(({ code }) => code) };
      const fields = Object.assign(callStart(record), end);
      publish("call.finished", fields, { session: record.session }, callSize(fields) + FINDING_SIZE * findings.length);
    }),
    hub.on("suspicious", ({ server, tool, kinds, places, ...rest }) => {
      const [name, mcpName] = [truncate(rest.name, MAX_NAME_LENGTH), truncate(tool, MAX_NAME_LENGTH)];
      const concern = { session: rest.session };
      publish(
        "guard.suspicious",
        { ...rest, name, serverId: server, mcpName, kinds: [...kinds], places: [...places] },
        concern,
      );
    }),
  ];
}

function callStart(record: StartRecord): Fields<"call.started"> {
  const { callId, time, session, door, role, user = null, client, kind, origin } = record;
  const name = truncate(record.name, MAX_NAME_LENGTH);
  const serverId = origin?.source ?? null;
  return { callId, time, session, door, role, user, client: client?.name, kind, name, serverId };
}

/** Of the keys and of the values that are alike in all of them. */
const CALL_SIZE = 300;
const FINDING_SIZE = 24;

/** Twice per call, so without a look at each key. */
function callSize({ name, role, user, client }: Fields<"call.started">): number {
  return CALL_SIZE + name.length + (role?.length ?? 0) + (user?.length ?? 0) + (client?.length ?? 0);
}

export function publishApprovals(
  hub: FeedHub,
  publish: Publish,
  clock: Clock,
  redactor: { maskAll<Value>(value: Value): Value },
): (() => void)[] {
  const approvalOf = (request: AskRequest): Fields<"approval.requested">["approval"] => {
    const { rule, rules, ...rest } = summarizeApproval(request, (value) => redactor.maskAll(value));
    return {
      ...rest,
      rule: { ...rule },
      rules: rules.map((each) => ({ ...each })),
      status: "pending",
      askedAt: new Date(clock.now()).toISOString(),
      answer: null,
      answeredAt: null,
      answeredBy: null,
    };
  };
  return [
    hub.on("ask", (request) => publish("approval.requested", { approval: approvalOf(request) })),
    hub.on("answer", ({ request: { id, callId }, answer }) => publish("approval.answered", { id, callId, answer })),
  ];
}

export function publishSessions(hub: FeedHub, publish: Publish): (() => void)[] {
  return [
    hub.on("session", ({ session: { id, door, unlisted }, open }) => {
      if (unlisted === true) return;
      publish(open ? "session.opened" : "session.closed", { id, door });
    }),
  ];
}

/** Skills that were imported or removed, under both families of names. */
export function publishSkills(hub: FeedHub, publish: Publish): (() => void)[] {
  return [
    hub.on("skill-import", (event) => void publishImport(event, publish)),
    hub.on("skill-remove", ({ skillId, name }) => {
      publish("skills.import.removed", { skillId, name }, { skill: name });
      if (isOpenclawId(skillId)) publish("openclaw.import.removed", { skillId, name }, { skill: name });
    }),
    hub.on("skills", () => publish("skills.changed", {})),
  ];
}

/** Then sockets get a turn: a client that reads is not cut off as a slow one because thousands were imported. */
const EVENTS_PER_TURN = 100;

/** Events that are called after OpenClaw are about its skills alone. */
async function publishImport({ single, result }: HubEvents["skill-import"], publish: Publish): Promise<void> {
  const { failed, totalScanned } = result;
  const skills: Fields<"skills.batch.imported">["skills"][number][] = [];
  for (const { skillId, name, path, warnings, dependenciesMet } of result.imported) {
    const fields: Fields<"skills.skill.imported"> = { skillId, name, warnings, dependenciesMet };
    publish("skills.skill.imported", fields, { skill: name });
    if (isOpenclawId(skillId)) publish("openclaw.skill.imported", fields, { skill: name });
    if (skills.push({ ...fields, path }) % EVENTS_PER_TURN === 0) await nextTurn();
  }
  if (single) return;
  const others = { failed: failed.length, totalScanned, failures: failed };
  publish("skills.batch.imported", { imported: skills.length, ...others, skills });
  const ofOpenclaw = skills.filter(({ skillId }) => isOpenclawId(skillId));
  if (ofOpenclaw.length > 0 || skills.length === 0)
    publish("openclaw.batch.imported", { imported: ofOpenclaw.length, ...others, skills: ofOpenclaw });
}

/** Pins, the config, and warnings. */
export function publishSettings(hub: FeedHub, publish: Publish): (() => void)[] {
  return [
    hub.on("recording", () => publish("recording.changed", {})),
    hub.on("pins", () => publish("pins.changed", {})),
    hub.on("reload", () => publish("config.reloaded", {})),
    hub.on("warning", ({ server, message }) => publish("warning", { server, message })),
  ];
}
