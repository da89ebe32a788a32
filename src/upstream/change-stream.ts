/**
 * The modern era's one stream of changes, `subscriptions/listen`: kept open, opened again when it ends, and replaced by
 * one with another filter when the set of subscribed resources changes.
 */
import type { Clock } from "../model/clock.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { LIST_KINDS } from "./discovery.ts";
import type { Link } from "./link.ts";
import { LISTEN_METHOD } from "./peer.ts";
import type { RequestOptions } from "./request-options.ts";
import { rpcOf } from "./rpc-error.ts";
import { METHOD_NOT_FOUND } from "../model/rpc.ts";

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;
const ACKNOWLEDGED_MS = 10_000;

interface ChangeStreamOptions {
  readonly clock: Clock;
  readonly warn: (text: string) => void;
  /** The stream is back after a gap in which changes may have gone unseen. */
  readonly onReopened: () => void;
}

interface Stream {
  readonly controller: AbortController;
  readonly request: RequestOptions;
  /** Resolves with the filter that the server agreed to. */
  readonly acknowledged: PromiseWithResolvers<JsonObject>;
  stopWaiting: () => void;
}

export class ChangeStream {
  readonly #link: Link;
  readonly #options: ChangeStreamOptions;
  #uris: readonly string[] = [];
  #current: Stream | undefined;
  /** The stream that waits for its acknowledgement: at most one does at a time. */
  #opening: Stream | undefined;
  #stopTimer: () => void = () => {};
  #delayMs = FIRST_DELAY_MS;
  #closed = false;

  constructor(link: Link, options: ChangeStreamOptions) {
    this.#link = link;
    this.#options = options;
  }

  /** Opens the stream if there is anything to hear. Never rejects. */
  async start(uris: readonly string[]): Promise<void> {
    this.#uris = uris;
    await this.#replace().catch((error: unknown) => this.#retryLater(asToolcribError(error)));
  }

  /** Resolves when the server agreed to tell of exactly these resources, besides its lists. */
  async follow(uris: readonly string[]): Promise<void> {
    const before = this.#uris;
    this.#uris = uris;
    try {
      const agreed = await this.#replace();
      const heard = agreed["resourceSubscriptions"];
      const missing = uris.filter((uri) => !before.includes(uri) && !(Array.isArray(heard) && heard.includes(uri)));
      if (missing.length === 0) return;
      throw new ToolcribError("not_found", `The server does not tell of changes of ${missing.join(", ")}.`);
    } catch (error) {
      this.#uris = before;
      throw error;
    }
  }

  /** `notifications/subscriptions/acknowledged` arrived, for this request if it said so. */
  acknowledge(params: JsonObject, request: RequestOptions | undefined): void {
    const stream = this.#opening;
    if (stream === undefined || (request !== undefined && request !== stream.request)) return;
    this.#opening = undefined;
    stream.stopWaiting();
    this.#delayMs = FIRST_DELAY_MS;
    const filter = isJsonObject(params["notifications"]) ? params["notifications"] : {};
    stream.acknowledged.resolve(filter);
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer();
    this.#opening?.controller.abort();
    this.#current?.controller.abort();
  }

  /** The old stream is ended only after the new one is there, so that no change falls between them. */
  async #replace(): Promise<JsonObject> {
    // One after the other: an acknowledgement need not say which stream it belongs to.
    while (this.#opening !== undefined) await this.#opening.acknowledged.promise.catch(() => {});
    const filter = this.#filter();
    const old = this.#current;
    if (Object.keys(filter).length === 0) {
      this.#current = undefined;
      old?.controller.abort();
      return {};
    }
    const stream = this.#open(filter);
    const agreed = await stream.acknowledged.promise;
    this.#current = stream;
    old?.controller.abort();
    return agreed;
  }

  #open(filter: JsonObject): Stream {
    const controller = new AbortController();
    const stream: Stream = {
      controller,
      request: { signal: controller.signal, background: true },
      acknowledged: Promise.withResolvers<JsonObject>(),
      stopWaiting: () => {},
    };
    this.#opening = stream;
    const late = new ToolcribError("timeout", "The server did not acknowledge the stream of changes.");
    stream.stopWaiting = this.#options.clock.after(ACKNOWLEDGED_MS, () => {
      this.#ended(stream, late);
      stream.controller.abort();
    });
    this.#link.peer.request(LISTEN_METHOD, { notifications: filter }, stream.request).then(
      () => this.#ended(stream, new ToolcribError("cancelled", "The server ended the stream of changes.")),
      (error: unknown) => this.#ended(stream, asToolcribError(error)),
    );
    return stream;
  }

  #ended(stream: Stream, error: ToolcribError): void {
    stream.stopWaiting();
    if (this.#opening === stream) {
      this.#opening = undefined;
      stream.acknowledged.reject(error);
      return;
    }
    if (this.#current !== stream) return;
    this.#current = undefined;
    this.#retryLater(error);
  }

  #retryLater(error: ToolcribError): void {
    if (this.#closed || error.details?.["sessionLost"] === true) return;
    if (rpcOf(error)?.code === METHOD_NOT_FOUND) {
      this.#options.warn(
        "The server announces changes but does not know subscriptions/listen: its lists are not live.",
      );
      return;
    }
    const delay = this.#delayMs;
    this.#delayMs = Math.min(delay * 2, LONGEST_DELAY_MS);
    this.#stopTimer = this.#options.clock.after(delay, () => {
      this.#replace().then(
        () => this.#options.onReopened(),
        (again: unknown) => this.#retryLater(asToolcribError(again)),
      );
    });
  }

  #filter(): JsonObject {
    const filter: JsonObject = {};
    for (const kind of LIST_KINDS) {
      const capability = this.#link.agreement.capabilities[kind];
      if (isJsonObject(capability) && capability["listChanged"] === true) filter[`${kind}ListChanged`] = true;
    }
    if (this.#uris.length > 0) filter["resourceSubscriptions"] = [...this.#uris];
    return filter;
  }
}
