/** The events as server-sent events, for programs that only listen. */
import { EVENTS_PATH } from "../../../contract/rest.ts";
import type { Caller } from "../../../model/caller.ts";
import { type Clock, systemClock } from "../../../base/clock.ts";
import { type CallerQuota, quotaError } from "../../../policy/quota.ts";
import type { Session } from "../../../sessions/session.ts";
import type { HttpExchange, HttpRoute } from "../http-exchange.ts";
import { notFoundAt, refuseMethodUnless } from "../http-responses.ts";
import { OpenStreams, SseConnection } from "../open-streams.ts";
import { type EventFeed, eventId, filterOfQuery, parseResumePoint, type Receiver } from "./event-feed.ts";

const HEARTBEAT_MS = 15_000;
/** How long a client waits before it reopens a cut stream. */
const RETRY_MS = 1000;

interface StreamParts {
  readonly feed: EventFeed;
  /** The hub session whose view a caller has. */
  readonly sessionOf: (caller: Caller) => Session;
  /** How many there may be. */
  readonly streams: () => CallerQuota;
  readonly clock?: Clock;
}

export class EventStreams {
  readonly #parts: StreamParts;
  readonly #streams: OpenStreams;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#streams = new OpenStreams(parts.clock ?? systemClock, HEARTBEAT_MS, parts.streams());
  }

  readonly routes: readonly HttpRoute[] = [
    { path: EVENTS_PATH, access: "any", handle: (exchange) => this.#handle(exchange) },
  ];

  get size(): number {
    return this.#streams.size;
  }

  close(): void {
    this.#streams.endAll("the hub stops");
  }

  #handle(exchange: HttpExchange): void {
    const { request, response, path, query, caller } = exchange;
    if (path !== EVENTS_PATH) throw notFoundAt(path);
    if (refuseMethodUnless(exchange, ["GET"])) return;
    const { feed, sessionOf, streams } = this.#parts;
    this.#streams.setLimits(streams());
    const full = this.#streams.reachedFor(caller);
    if (full !== undefined) throw quotaError("event streams", full, "streams");
    const lastId = request.headers["last-event-id"];
    const from = parseResumePoint(query, typeof lastId === "string" && lastId !== "" ? lastId : undefined);
    const wants = filterOfQuery(query);
    const session = sessionOf(caller);
    const connection = new SseConnection(response);
    const idOf = (position: number): string => eventId(feed.epoch, position);
    const receiver: Receiver = {
      caller,
      session,
      wants,
      send: ({ type, position, text }) => void connection.event({ event: type, id: idOf(position) }, [text]),
    };
    // A new client can resume from here; one that resumes has a number of its own.
    const id = from === undefined ? idOf(feed.seq) : undefined;
    connection.event({ event: "hello", id, retryMs: RETRY_MS }, [JSON.stringify(feed.hello())]);
    // The first heartbeat comes although there was a greeting.
    connection.beat();
    if (from !== undefined) feed.replay(receiver, from);
    connection.onClose(feed.subscribe(receiver));
    this.#streams.add(connection, caller);
  }
}
