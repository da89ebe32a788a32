/** The events of the hub, numbered. The last ones are kept for clients that resume. */
import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../../base/clock.ts";
import type { Cluster } from "../../../cluster/cluster.ts";
import { EVENT_SCOPES, type EventName } from "../../../contract/event-scopes.ts";
import type { Hello, HubEvent } from "../../../contract/websocket.ts";
import type { View } from "../../../hub/view/view.ts";
import type { Caller } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { LoadedConfig } from "../../../model/loaded-config.ts";
import { VERSION } from "../../../model/version.ts";
import type { Session } from "../../../sessions/session.ts";
import type { Masker } from "../api/operation-handler.ts";
import { canSeeServer, canSeeSkill } from "../api/visibility.ts";
import {
  type Audience,
  type FeedHub,
  type Fields,
  type Publish,
  publishApprovals,
  publishCalls,
  publishSessions,
  publishSettings,
  publishSkills,
  ServerEvents,
  ToolEvents,
} from "./event-sources.ts";
export interface Receiver extends EventViewer {
  readonly wants: EventFilter;
  /** Must not throw. */
  send(frame: Frame): void;
}

interface FeedOptions {
  readonly clock?: Clock;
  readonly ring?: typeof REPLAY_LIMITS;
  /** In a cluster: the source of calls and sessions of other nodes. */
  readonly nodes?: ClusterBus | undefined;
}

export class EventFeed {
  /** New with every start: event numbers are valid within one run. */
  readonly epoch = randomBytes(9).toString("base64url");
  readonly #hub: FeedHub;
  readonly #redactor: Masker;
  readonly #ring: EventRing;
  readonly #receivers = new Set<Receiver>();
  readonly #stops: readonly (() => void)[];
  readonly #undelivered: NumberedEvent[] = [];
  readonly #others: ClusterEvents | undefined;
  #isDelivering = false;
  #wasWatched = false;
  #seq = 0;

  constructor(hub: FeedHub, redactor: Masker, { clock = systemClock, ring = REPLAY_LIMITS, nodes }: FeedOptions = {}) {
    this.#hub = hub;
    this.#redactor = redactor;
    this.#ring = new EventRing(ring);
    const publish = this.publish.bind(this);
    const isWatched = (): boolean => this.#receivers.size > 0;
    this.#others = nodes && new ClusterEvents({ nodes, clock, redactor, publish, isWatched });
    const publishAll = this.#others?.publishAll ?? publish;
    const servers = new ServerEvents(hub, publish);
    const tools = new ToolEvents(hub, publish);
    servers.onConnected = (id) => tools.connected(id);
    this.#stops = [
      ...servers.listen(),
      ...tools.listen(),
      ...publishApprovals(hub, publish, clock, redactor),
      ...publishCalls(hub, publishAll),
      ...publishSessions(hub, publishAll),
      ...publishSkills(hub, publish),
      ...publishSettings(hub, publish),
    ];
  }

  /** Number of the last event. */
  get seq(): number {
    return this.#seq;
  }

  get receivers(): number {
    return this.#receivers.size;
  }

  hello(): Hello {
    return { type: "hello", epoch: this.epoch, seq: this.#seq, version: VERSION };
  }

  publish<Name extends EventName>(
    type: Name,
    fields: Fields<Name>,
    audience: Audience = {},
    size: number = jsonSize(fields),
  ): void {
    // The types of this method keep the three together.
    const event = new NumberedEvent(++this.#seq, { type, fields, audience } as FeedEvent, size, this.#redactor);
    this.#ring.add(event, this.#wasWatched ? Number.POSITIVE_INFINITY : MAX_UNWATCHED_CALLS);
    if (this.#receivers.size === 0) return;
    this.#undelivered.push(event);
    this.#deliver();
  }

  /** For the connection with this session alone. */
  notify({ type, ...fields }: HubEvent, only: string): void {
    this.publish(type, fields, { only });
  }

  /** Live events until the returned function is called. */
  subscribe(receiver: Receiver): () => void {
    this.#wasWatched = true;
    this.#receivers.add(receiver);
    if (this.#receivers.size === 1) this.#others?.remind();
    return () => this.#receivers.delete(receiver);
  }

  /** Sends missed events in order; `events.lost` first if some are no longer kept. */
  replay(receiver: Receiver, { after, epoch = this.epoch }: ResumePoint): void {
    if (epoch !== this.epoch || after > this.#seq) {
      receiver.send(Frame.lost(0, this.#seq));
      return;
    }
    const first = this.#ring.first ?? this.#seq + 1;
    if (after + 1 < first) receiver.send(Frame.lost(after + 1, first - 1));
    for (const event of this.#ring.after(after)) this.#send(receiver, event);
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#others?.close();
    this.#receivers.clear();
  }

  /** Sending can cause more events, such as when a receiver turns out to be gone: they come after, for all. */
  #deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    for (let event = this.#undelivered.shift(); event !== undefined; event = this.#undelivered.shift()) {
      for (const receiver of [...this.#receivers]) this.#send(receiver, event);
    }
    this.#isDelivering = false;
  }

  #send(receiver: Receiver, event: NumberedEvent): void {
    if (!receiver.wants(event.type)) return;
    const frame = event.for(receiver, this.#hub);
    if (frame !== undefined) receiver.send(frame);
  }
}

export type EventFilter = (type: EventName) => boolean;

/** Every client is notified of lost events. */
const ALWAYS_SENT: EventName = "events.lost";

const ALL_EVENTS: EventFilter = () => true;

/** Names, and `mcp.*` or `mcp.server.*` for a group; all if none is named. */
export function eventFilter(names: readonly string[] | undefined): EventFilter {
  if (names === undefined || names.includes("*")) return ALL_EVENTS;
  for (const name of names) {
    if (/^[a-z]+(?:\.[a-z]+)*(?:\.\*)?$/i.test(name)) continue;
    throw new ToolcribError("invalid_arguments", "This is not the name of an event.", {
      hint: "For example mcp.server.connected, or mcp.* for a group.",
    });
  }
  const exact = new Set(names);
  const groups = names.filter((name) => name.endsWith(".*")).map((name) => name.slice(0, -1));
  return (type) => type === ALWAYS_SENT || exact.has(type) || groups.some((group) => type.startsWith(group));
}

/** As in an address: `events=mcp.*,call.finished`, once or several times. */
export function filterOfQuery(query: URLSearchParams): EventFilter {
  const given = query.getAll("events").flatMap((text) => text.split(","));
  return eventFilter(given.length === 0 ? undefined : given.map((name) => name.trim()));
}

export interface ResumePoint {
  /** The last number that they have. */
  readonly after: number;
  /** The run of the hub that the number belongs to; this one if absent. */
  readonly epoch?: string;
}

/** `Last-Event-ID: <epoch>:<seq>`, else `?after=<seq>&epoch=<epoch>` or `?after=<epoch>:<seq>`. */
export function parseResumePoint(query: URLSearchParams, lastEventId?: string): ResumePoint | undefined {
  const text = lastEventId ?? query.get("after") ?? "";
  if (text === "") return undefined;
  const [, ofId, digits] = /^(?:([\w-]{1,100}):)?(\d{1,15})$/.exec(text) ?? [];
  if (digits === undefined) {
    throw new ToolcribError("invalid_arguments", "`after` must be an event number.", {
      hint: "Leave it out to get new events only.",
    });
  }
  const epoch = ofId ?? query.get("epoch") ?? undefined;
  return { after: Number(digits), epoch };
}

export function eventId(epoch: string, seq: number): string {
  return `${epoch}:${seq}`;
}

/** A replay is sent at once, so the size stays well below what may wait for a slow reader. */
const REPLAY_LIMITS = { events: 4096, bytes: 2 * 1024 * 1024 };
/**
 * Events of calls, before the first client: it has no number from which it could resume, and a hub that no one watches may make
 * thousands in a second. Those that die young cost V8 next to nothing.
 */
const MAX_UNWATCHED_CALLS = 256;

/** The last events, within a count and a size, for clients that resume. */
class EventRing {
  readonly #most: typeof REPLAY_LIMITS;
  /** Oldest first, without gaps. */
  readonly #events: NumberedEvent[] = [];
  /** Where the oldest is: cutting the front off each time would move everything. */
  #start = 0;
  #bytes = 0;
  #calls = 0;

  constructor(most = REPLAY_LIMITS) {
    this.#most = most;
  }

  add(event: NumberedEvent, maxCalls: number): void {
    this.#events.push(event);
    this.#bytes += event.size;
    if (event.isOfCall) this.#calls += 1;
    const { events, bytes } = this.#most;
    for (let count = this.#events.length - this.#start; count > 0; count -= 1) {
      if (count <= events && this.#bytes <= bytes && this.#calls <= maxCalls) return;
      this.#dropOldest();
    }
  }

  /** Oldest first. */
  after(seq: number): NumberedEvent[] {
    const first = this.#events[this.#start];
    return first === undefined ? [] : this.#events.slice(this.#start + Math.max(0, seq + 1 - first.seq));
  }

  /** Number of the oldest that is still known. */
  get first(): number | undefined {
    return this.#events[this.#start]?.seq;
  }

  #dropOldest(): void {
    const oldest = this.#events[this.#start];
    this.#bytes -= oldest?.size ?? 0;
    if (oldest?.isOfCall === true) this.#calls -= 1;
    this.#start += 1;
    if (this.#start < 1024 && this.#start * 2 < this.#events.length) return;
    this.#events.splice(0, this.#start);
    this.#start = 0;
  }
}

const EVENT_TOPIC = "feed-news";
const WATCHED_TOPIC = "feed-watched";
const REMIND_MS = 5000;
/** As long as one reminder may be lost. */
const WATCHED_MS = 12_000;

const SHARED_EVENTS = ["call.started", "call.finished", "session.opened", "session.closed"] as const;

type ClusterBus = Pick<Cluster, "publish" | "subscribe">;

interface ClusterEventsOptions {
  readonly nodes: ClusterBus;
  readonly clock: Clock;
  readonly redactor: Masker;
  /** Takes what happened elsewhere. */
  readonly publish: Publish;
  readonly isWatched: () => boolean;
}

/**
 * Calls and sessions of the other nodes of a cluster, for clients that watch at this one. Nodes send them only while a client
 * watches: usually none does, and each call would cost two messages.
 */
class ClusterEvents {
  readonly #options: ClusterEventsOptions;
  readonly #stops: readonly (() => void)[];
  #stopTimer: () => void = () => {};
  #watchedUntil = 0;

  constructor(options: ClusterEventsOptions) {
    this.#options = options;
    const { nodes, clock } = options;
    this.#stops = [
      // One that cannot be read is left out: a rejection that no one handles would end the process.
      nodes.subscribe(EVENT_TOPIC, (news) => void this.#take(news).catch(() => {})),
      nodes.subscribe(WATCHED_TOPIC, () => (this.#watchedUntil = clock.now() + WATCHED_MS)),
    ];
    this.remind();
  }

  /** Notifies other nodes that a client watches here. */
  remind(): void {
    const { nodes, clock, isWatched } = this.#options;
    this.#stopTimer();
    if (isWatched()) nodes.publish(WATCHED_TOPIC, {});
    this.#stopTimer = clock.after(REMIND_MS, () => this.remind());
  }

  /** Publishes here, and at nodes where a client watches. */
  readonly publishAll: Publish = (type, fields, audience = {}, size) => {
    const { nodes, clock, publish, redactor } = this.#options;
    publish(type, fields, audience, size);
    if (clock.now() >= this.#watchedUntil) return;
    nodes.publish(EVENT_TOPIC, { type, fields: toJson(redactor.maskAll(fields)), concern: toJson(audience) });
  };

  close(): void {
    this.#stopTimer();
    for (const stop of this.#stops) stop();
  }

  async #take({ type, fields, concern }: JsonObject): Promise<void> {
    const name = SHARED_EVENTS.find((each) => each === type);
    if (name === undefined || !this.#options.isWatched()) return;
    // Loaded here: a client that watches has loaded it.
    const { EVENTS } = await import("../../../contract/websocket.ts");
    const checked = EVENTS[name].fields.safeParse(fields);
    // Of a node with another version.
    if (!checked.success) return;
    this.#options.publish(name, checked.data, sessionAudience(concern));
  }
}

/** Events are plain data, without anything that JSON lacks. */
function toJson(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

function sessionAudience(audience: unknown): Audience {
  const session = isJsonObject(audience) ? audience["session"] : undefined;
  return typeof session === "string" ? { session } : {};
}

type FeedEvent<Name extends EventName = EventName> = {
  [Each in Name]: { readonly type: Each; readonly fields: Fields<Each>; readonly audience: Audience };
}[Name];

/** One frame, ready for a wire. */
export class Frame {
  readonly type: EventName;
  readonly text: string;
  /** The number from which a receiver of this frame can resume. */
  readonly position: number;
  #bytes: Buffer | undefined;

  private constructor(type: EventName, fields: object, position: number, seq?: number) {
    this.type = type;
    this.position = position;
    this.text = JSON.stringify(seq === undefined ? { type, ...fields } : { seq, type, ...fields });
  }

  static numbered(seq: number, type: EventName, fields: object): Frame {
    return new Frame(type, fields, seq, seq);
  }

  /** For one receiver, so it has no number of its own. */
  static lost(from: number, to: number): Frame {
    const fields: Fields<"events.lost"> = { from, to };
    return new Frame("events.lost", fields, to);
  }

  /** The same bytes for every socket. */
  get bytes(): Buffer {
    return (this.#bytes ??= Buffer.from(this.text));
  }
}

interface EventViewer {
  readonly caller: Caller;
  readonly session: Session;
}

interface ViewSource {
  readonly config: LoadedConfig;
  view(session: Session): View;
}

/** A numbered event, encoded once for all clients that get the same content. Usually no client listens: then it is not. */
class NumberedEvent {
  readonly seq: number;
  /** In bytes, about. */
  readonly size: number;
  readonly #redactor: Masker;
  #event: FeedEvent;
  #encoded: Frame | undefined;
  #parts: Map<string, Frame> | undefined;
  /** By view, which sessions that see the same share. Few kinds of events need it, and thousands of events are kept. */
  #byView: WeakMap<View, Frame> | undefined;

  constructor(seq: number, event: FeedEvent, size: number, redactor: Masker) {
    this.seq = seq;
    this.size = size;
    this.#event = event;
    this.#redactor = redactor;
  }

  get type(): EventName {
    return this.#event.type;
  }

  get isOfCall(): boolean {
    return this.type === "call.started" || this.type === "call.finished";
  }

  get #whole(): Frame {
    if (this.#encoded === undefined) {
      const fields = this.#redactor.maskAll(this.#event.fields);
      // Masked fields are of the same type.
      this.#event = { ...this.#event, fields } as FeedEvent;
      this.#encoded = Frame.numbered(this.seq, this.#event.type, fields);
    }
    return this.#encoded;
  }

  /** The frame for a viewer; undefined if the event is not for it. */
  for(beholder: EventViewer, sight: ViewSource): Frame | undefined {
    const { type, audience } = this.#event;
    const { caller, session } = beholder;
    if (audience.only !== undefined && audience.only !== session.id) return undefined;
    const whole = this.#whole;
    const isOperator = caller.scopes.has("admin");
    const scope = EVENT_SCOPES[type];
    if (scope !== "read") {
      if (caller.scopes.has(scope)) return whole;
      return audience.session === session.id ? this.#ofOwn(session, sight) : undefined;
    }
    if (!caller.scopes.has("read")) return undefined;
    if (audience.server !== undefined && !canSeeServer(sight.config, session, audience.server)) return undefined;
    if (audience.skill !== undefined && !canSeeSkill(sight.config, session, audience.skill)) return undefined;
    if (type === "mcp.tools.discovered") return this.#ofTools(this.#event.fields, sight.view(session));
    if (type === "skills.batch.imported" || type === "openclaw.batch.imported") {
      return isOperator && session.role === undefined ? whole : this.#ofBatch(this.#event.fields, session, sight);
    }
    return whole;
  }

  /** A caller gets the same event for a call to a hidden tool as for a call to a missing one. */
  #ofOwn(session: Session, { config }: ViewSource): Frame {
    const event = this.#event;
    if (event.type !== "call.started" && event.type !== "call.finished") return this.#whole;
    const { fields } = event;
    const isMissing = "outcome" in fields && fields.outcome === "not_found";
    const spec = config.servers.find(({ id }) => id === fields.serverId);
    const isHidden = spec !== undefined && !canSeeServer(config, session, { id: spec.id, spec });
    if (!isHidden && !isMissing) return this.#whole;
    const shown = { ...fields, serverId: null, ...("decision" in fields ? { decision: "none" } : {}) };
    return Frame.numbered(this.seq, this.type, shown);
  }

  #ofTools(fields: Fields<"mcp.tools.discovered">, view: View): Frame {
    let frame = this.#byView?.get(view);
    if (frame === undefined) {
      const visible = toolNamesIn(view);
      const tools = fields.tools.filter(({ name }) => visible.has(name));
      frame =
        tools.length === fields.tools.length ? this.#whole : Frame.numbered(this.seq, this.type, { ...fields, tools });
      (this.#byView ??= new WeakMap()).set(view, frame);
    }
    return frame;
  }

  /** Failures and paths are for the operator alone. */
  #ofBatch(fields: Fields<"skills.batch.imported">, session: Session, { config }: ViewSource): Frame | undefined {
    const skills = fields.skills.filter(({ name }) => canSeeSkill(config, session, name));
    const imported = skills.length;
    if (imported === 0) return undefined;
    const key = JSON.stringify(skills.map(({ skillId }) => skillId));
    let frame = this.#parts?.get(key);
    if (frame === undefined) {
      const shown = { imported, failed: 0, totalScanned: imported, skills, failures: [] };
      frame = Frame.numbered(this.seq, this.type, shown);
      (this.#parts ??= new Map()).set(key, frame);
    }
    return frame;
  }
}

/** About the size as JSON. The fields of an event are plain data. */
function jsonSize(value: unknown): number {
  if (typeof value === "string") return value.length + 3;
  if (typeof value !== "object" || value === null) return 5;
  let size = 2;
  for (const [key, member] of Object.entries(value)) size += key.length + 3 + jsonSize(member);
  return size;
}

const toolNames = new WeakMap<View, ReadonlySet<string>>();

function toolNamesIn(view: View): ReadonlySet<string> {
  let known = toolNames.get(view);
  if (known === undefined) toolNames.set(view, (known = new Set(view.tools.map(({ name }) => name))));
  return known;
}
