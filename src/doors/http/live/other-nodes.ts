/**
 * Calls and sessions of the other nodes of a cluster, for whoever watches at this one. They are told only while somebody
 * watches: most of the time nobody does, and each call would cost two messages.
 */
import type { Cluster } from "../../../cluster/cluster.ts";
import { EVENTS } from "../../../contract/socket.ts";
import type { Clock } from "../../../model/clock.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { Masking } from "../api/operation.ts";
import type { Concern, Tell } from "./feed-event.ts";

const NEWS = "feed-news";
const WATCHED = "feed-watched";
const REMIND_MS = 5000;
/** As long as one reminder may be lost. */
const WATCHED_MS = 12_000;

const PASSED = ["call.started", "call.finished", "session.opened", "session.closed"] as const;

export type NodeNews = Pick<Cluster, "publish" | "subscribe">;

interface OtherNodesOptions {
  readonly nodes: NodeNews;
  readonly clock: Clock;
  readonly redactor: Masking;
  /** Takes what happened elsewhere. */
  readonly tell: Tell;
  readonly isWatched: () => boolean;
}

export class OtherNodes {
  readonly #options: OtherNodesOptions;
  readonly #stops: readonly (() => void)[];
  #stopTimer: () => void = () => {};
  #watchedUntil = 0;

  constructor(options: OtherNodesOptions) {
    this.#options = options;
    const { nodes, clock } = options;
    this.#stops = [
      nodes.subscribe(NEWS, (news) => this.#take(news)),
      nodes.subscribe(WATCHED, () => (this.#watchedUntil = clock.now() + WATCHED_MS)),
    ];
    this.remind();
  }

  /** Lets others know that somebody watches here. */
  remind(): void {
    const { nodes, clock, isWatched } = this.#options;
    this.#stopTimer();
    if (isWatched()) nodes.publish(WATCHED, {});
    this.#stopTimer = clock.after(REMIND_MS, () => this.remind());
  }

  /** Tells here, and where somebody watches. */
  readonly tellAll: Tell = (type, fields, concern = {}) => {
    const { nodes, clock, tell, redactor } = this.#options;
    tell(type, fields, concern);
    if (clock.now() >= this.#watchedUntil) return;
    nodes.publish(NEWS, { type, fields: asJson(redactor.maskAll(fields)), concern: asJson(concern) });
  };

  close(): void {
    this.#stopTimer();
    for (const stop of this.#stops) stop();
  }

  #take({ type, fields, concern }: JsonObject): void {
    const name = PASSED.find((each) => each === type);
    if (name === undefined || !this.#options.isWatched()) return;
    const checked = EVENTS[name].fields.safeParse(fields);
    // Of a node with another version.
    if (!checked.success) return;
    this.#options.tell(name, checked.data, ofSession(concern));
  }
}

/** Events are plain data, without anything that JSON lacks. */
function asJson(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

function ofSession(concern: unknown): Concern {
  const session = isJsonObject(concern) ? concern["session"] : undefined;
  return typeof session === "string" ? { session } : {};
}
