/** The events as server-sent events, for programs that only listen. */
import type { ServerResponse } from "node:http";
import { API_PATH } from "../../../contract/rest.ts";
import type { Caller } from "../../../model/caller.ts";
import { type Clock, systemClock } from "../../../base/clock.ts";
import { type CallerQuota, Quota, quotaError } from "../../../policy/quota.ts";
import type { Session } from "../../../sessions/session.ts";
import type { HttpExchange, HttpRoute } from "../http-exchange.ts";
import { notFoundAt, refuseMethodUnless } from "../http-responses.ts";
import { type EventFeed, eventId, filterOfQuery, parseResumePoint, type Receiver } from "./event-feed.ts";
import type { Frame } from "./feed-event.ts";

const EVENTS_PATH = `${API_PATH}/events`;

/** The most that may wait for a client that does not read, plus one event. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
const HEARTBEAT_MS = 15_000;
/** How long a client waits before it reopens a cut stream. */
const RETRY_MS = 1000;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
};

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
  readonly #open = new Set<ServerResponse>();
  readonly #quota: Quota;
  #stopBeat: (() => void) | undefined;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#quota = new Quota(parts.streams());
  }

  readonly routes: readonly HttpRoute[] = [
    { path: EVENTS_PATH, access: "any", handle: (exchange) => this.#handle(exchange) },
  ];

  get size(): number {
    return this.#open.size;
  }

  close(): void {
    this.#stopBeat?.();
    for (const response of this.#open) response.end(": the hub stops\n\n");
  }

  #handle(exchange: HttpExchange): void {
    const { request, response, path, query, caller } = exchange;
    if (path !== EVENTS_PATH) throw notFoundAt(path);
    if (refuseMethodUnless(exchange, ["GET"])) return;
    const { feed, sessionOf, streams } = this.#parts;
    this.#quota.setLimits(streams());
    const full = this.#quota.reachedFor(caller);
    if (full !== undefined) throw quotaError("event streams", full, "streams");
    const lastId = request.headers["last-event-id"];
    const from = parseResumePoint(query, typeof lastId === "string" && lastId !== "" ? lastId : undefined);
    const receiver: Receiver = {
      caller,
      session: sessionOf(caller),
      wants: filterOfQuery(query),
      send: (frame) => this.#send(response, frame),
    };
    response.writeHead(200, HEADERS);
    const hello = JSON.stringify(feed.hello());
    // A new client can resume from here; one that resumes has a number of its own.
    const id = from === undefined ? `id: ${eventId(feed.epoch, feed.seq)}\n` : "";
    response.write(`retry: ${RETRY_MS}\n${id}event: hello\ndata: ${hello}\n\n`);
    if (from !== undefined) feed.replay(receiver, from);
    const stop = feed.subscribe(receiver);
    this.#open.add(response);
    const giveBack = this.#quota.take(caller);
    response.once("close", () => {
      stop();
      giveBack();
      this.#open.delete(response);
    });
    this.#stopBeat ??= (this.#parts.clock ?? systemClock).after(HEARTBEAT_MS, () => this.#beat());
  }

  #send(response: ServerResponse, { type, position, text }: Frame): void {
    write(response, `id: ${eventId(this.#parts.feed.epoch, position)}\nevent: ${type}\ndata: ${text}\n\n`);
  }

  /** Adds nothing while data waits: the listener's timeout must be able to notice a client that does not read. */
  #beat(): void {
    for (const response of this.#open) if (response.writableLength === 0) write(response, ":\n\n");
    const clock = this.#parts.clock ?? systemClock;
    this.#stopBeat = this.#open.size === 0 ? undefined : clock.after(HEARTBEAT_MS, () => this.#beat());
  }
}

function write(response: ServerResponse, text: string): void {
  if (response.destroyed || response.writableEnded) return;
  if (response.writableLength > MAX_UNSENT_BYTES) response.destroy();
  else response.write(text);
}
