/** All open event streams and pending replies, with two timers for all of them. */
import type { OutgoingHttpHeaders } from "node:http";
import type { Clock } from "../../base/clock.ts";
import { ChurnSet } from "../../base/maps.ts";
import type { Caller } from "../../model/caller.ts";
import { type CallerQuota, Quota, type QuotaReached } from "../../policy/quota.ts";
import { type HttpResponse, onceClosed } from "./http-exchange.ts";

/** A reply that may become a stream if it takes long. */
export interface PendingReply {
  /** Called every `TICK_MS` while the reply is pending; the first tick comes early. */
  stillPending(): void;
}

const TICK_MS = 250;
/** After this many the connection was silent for 15 seconds; common proxies give up after 60. */
export const MAX_SILENT_TICKS = 60;

/**
 * A timer is armed when something first needs it and never cancelled by a request that is done: a plain request costs no
 * timer of its own.
 */
export class OpenStreams {
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  readonly #streams = new ChurnSet<SseConnection>();
  readonly #owed = new ChurnSet<PendingReply>();
  #whenRepliesSent: (() => void)[] = [];
  readonly #quota: Quota;
  #stopBeat: (() => void) | undefined;
  #stopTick: (() => void) | undefined;

  constructor(clock: Clock, heartbeatMs: number, limits: CallerQuota) {
    this.#clock = clock;
    this.#heartbeatMs = heartbeatMs;
    this.#quota = new Quota(limits);
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Undefined if the caller may have one more. */
  reachedFor(caller: Caller): QuotaReached | undefined {
    return this.#quota.reachedFor(caller);
  }

  setLimits(limits: CallerQuota): void {
    this.#quota.setLimits(limits);
  }

  add(connection: SseConnection, caller: Caller): void {
    this.#streams.add(connection);
    const giveBack = this.#quota.take(caller);
    connection.onClose(() => {
      this.#streams.delete(connection);
      giveBack();
    });
    this.#stopBeat ??= this.#clock.after(this.#heartbeatMs, () => this.#beat());
  }

  owe(answer: PendingReply): void {
    this.#owed.add(answer);
    this.#stopTick ??= this.#clock.after(TICK_MS, () => this.#tick());
  }

  settle(answer: PendingReply): void {
    this.#owed.delete(answer);
    if (this.#owed.size === 0 && this.#whenRepliesSent.length > 0)
      for (const resolve of this.#whenRepliesSent.splice(0)) resolve();
  }

  /** Resolves when no reply is pending. */
  whenRepliesSent(): Promise<void> {
    return this.#owed.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenRepliesSent.push(resolve));
  }

  /** Ends every stream, with the reason as a comment. */
  endAll(reason: string): void {
    for (const connection of this.#streams) {
      connection.comment(reason);
      connection.end();
    }
    this.#stopBeat?.();
    this.#stopTick?.();
  }

  #beat(): void {
    for (const connection of this.#streams) connection.beat();
    this.#stopBeat = this.#streams.size === 0 ? undefined : this.#clock.after(this.#heartbeatMs, () => this.#beat());
  }

  #tick(): void {
    for (const answer of this.#owed) answer.stillPending();
    this.#stopTick = this.#owed.size === 0 ? undefined : this.#clock.after(TICK_MS, () => this.#tick());
  }
}

interface SseFields {
  readonly event?: string;
  readonly id?: string | undefined;
  /** How long the client waits before it opens a cut stream again. */
  readonly retryMs?: number;
}

/** One text without line breaks, in parts: text, and bytes that were encoded before. */
export type SseData = readonly (string | Buffer)[];

/** The whole as one string, if no part of it is bytes. */
export function textOf(data: SseData): string | undefined {
  let text = "";
  for (const part of data) {
    if (typeof part !== "string") return undefined;
    text += part;
  }
  return text;
}

/** The most that may wait for a client that does not read, plus one message. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

const SSE_HEADERS: OutgoingHttpHeaders = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
  "X-Content-Type-Options": "nosniff",
};

/** One open response that carries server-sent events. */
export class SseConnection {
  readonly #response: HttpResponse;
  readonly #maxBuffered: number;
  #quiet = false;

  constructor(response: HttpResponse, headers?: Readonly<OutgoingHttpHeaders>, maxBuffered = MAX_BUFFERED_BYTES) {
    this.#response = response;
    this.#maxBuffered = maxBuffered;
    response.writeHead(200, headers === undefined ? SSE_HEADERS : { ...SSE_HEADERS, ...headers });
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  onClose(listener: () => void): void {
    onceClosed(this.#response, listener);
  }

  /** For a stream without a first message: the client learns at once that it is open. */
  open(): void {
    this.#response.flushHeaders();
  }

  /** False if it could not be written. */
  send(message: SseData, id?: string): boolean {
    return this.event({ event: "message", id }, message);
  }

  /** An event without data: the client can resume from here, and knows how long to wait before it does. */
  prime(id: string, retryMs: number): void {
    this.event({ id, retryMs }, []);
  }

  /** False if it could not be written. */
  event({ event, id, retryMs }: SseFields, data: SseData): boolean {
    let head = id === undefined ? "" : `id: ${id}\n`;
    if (retryMs !== undefined) head += `retry: ${retryMs}\n`;
    if (event !== undefined) head += `event: ${event}\n`;
    return this.#write(`${head}data: `, data);
  }

  comment(text: string): void {
    this.#write(`: ${text}`, []);
  }

  /**
   * Keeps the connection alive. Adds nothing while data waits for the client: each write restarts the listener's timeout, which
   * must be able to notice a client that does not read.
   */
  beat(): void {
    if (this.#quiet && this.#response.writableLength === 0) this.#write(":", []);
    this.#quiet = true;
  }

  end(): void {
    this.#response.end();
  }

  #write(head: string, data: SseData): boolean {
    const response = this.#response;
    if (!this.isOpen) return false;
    if (response.writableLength > this.#maxBuffered) {
      response.destroy();
      return false;
    }
    this.#quiet = false;
    const text = textOf(data);
    if (text !== undefined) {
      response.write(`${head}${text}\n\n`);
      return true;
    }
    response.cork();
    response.write(head);
    for (const part of data) response.write(part);
    response.write("\n\n");
    response.uncork();
    return true;
  }
}
