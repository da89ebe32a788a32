/** What happens in the hub, as numbered events of the contract. It remembers the last ones for those who were away. */
import { randomBytes } from "node:crypto";
import type { EventName, Hello } from "../../../contract/socket.ts";
import { type Clock, systemClock } from "../../../model/clock.ts";
import { VERSION } from "../../../model/version.ts";
import type { Masking } from "../api/operation.ts";
import { tellApprovals, tellCalls, tellSessions } from "./activity-events.ts";
import type { EventFilter } from "./event-filter.ts";
import { EventRing, RING } from "./event-ring.ts";
import type { Concern, FeedEvent, Fields } from "./feed-event.ts";
import type { FeedHub } from "./feed-hub.ts";
import { type Beholder, Frame, NumberedEvent } from "./numbered-event.ts";
import { type NodeNews, OtherNodes } from "./other-nodes.ts";
import type { ResumePoint } from "./resume-point.ts";
import { ServerEvents } from "./server-events.ts";
import { tellSettings } from "./setting-events.ts";
import { tellSkills } from "./skill-events.ts";
import { ToolEvents } from "./tool-events.ts";

export interface Receiver extends Beholder {
  readonly wants: EventFilter;
  /** Must not throw. */
  send(frame: Frame): void;
}

interface FeedOptions {
  readonly clock?: Clock;
  readonly ring?: typeof RING;
  /** Of a cluster: calls and sessions of other nodes are told as well. */
  readonly nodes?: NodeNews | undefined;
}

export class EventFeed {
  /** Another one with every run: numbers of an earlier run mean nothing in this one. */
  readonly epoch = randomBytes(9).toString("base64url");
  readonly #hub: FeedHub;
  readonly #redactor: Masking;
  readonly #ring: EventRing<NumberedEvent>;
  readonly #receivers = new Set<Receiver>();
  readonly #stops: readonly (() => void)[];
  readonly #untold: NumberedEvent[] = [];
  readonly #others: OtherNodes | undefined;
  #isTelling = false;
  #seq = 0;

  constructor(hub: FeedHub, redactor: Masking, { clock = systemClock, ring = RING, nodes }: FeedOptions = {}) {
    this.#hub = hub;
    this.#redactor = redactor;
    this.#ring = new EventRing(ring);
    const tell = this.tell.bind(this);
    const isWatched = (): boolean => this.#receivers.size > 0;
    this.#others = nodes && new OtherNodes({ nodes, clock, redactor, tell, isWatched });
    const tellAll = this.#others?.tellAll ?? tell;
    const servers = new ServerEvents(hub, tell);
    const tools = new ToolEvents(hub, tell);
    servers.onConnected = (id) => tools.connected(id);
    this.#stops = [
      ...servers.listen(),
      ...tools.listen(),
      ...tellApprovals(hub, tell, clock, redactor),
      ...tellCalls(hub, tellAll),
      ...tellSessions(hub, tellAll),
      ...tellSkills(hub, tell),
      ...tellSettings(hub, tell),
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

  tell<Name extends EventName>(type: Name, fields: Fields<Name>, concern: Concern = {}): void {
    // The three belong together by this method's own types.
    const event = { type, fields: this.#redactor.maskAll(fields), concern } as FeedEvent;
    const numbered = new NumberedEvent(++this.#seq, event);
    this.#ring.add(numbered);
    this.#untold.push(numbered);
    this.#tellAll();
  }

  /** Live events until the returned function is called. */
  subscribe(receiver: Receiver): () => void {
    this.#receivers.add(receiver);
    if (this.#receivers.size === 1) this.#others?.remind();
    return () => this.#receivers.delete(receiver);
  }

  /** What somebody missed, in order; `events.lost` first if some of it is no longer known. */
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

  /** Telling can make more happen, as when it turns out that a receiver is gone: that comes after, for everybody. */
  #tellAll(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let event = this.#untold.shift(); event !== undefined; event = this.#untold.shift()) {
      for (const receiver of [...this.#receivers]) this.#send(receiver, event);
    }
    this.#isTelling = false;
  }

  #send(receiver: Receiver, event: NumberedEvent): void {
    if (!receiver.wants(event.type)) return;
    const frame = event.for(receiver, this.#hub);
    if (frame !== undefined) receiver.send(frame);
  }
}
