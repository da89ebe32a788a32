/** Keeps a link working besides its calls: keep-alive, the stream of changes, subscriptions, the log level. */
import type { Clock } from "../base/clock.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, METHOD_NOT_FOUND } from "../model/protocol.ts";
import { followedTask } from "../model/source.ts";
import type { Link } from "./link.ts";
import { LIST_KINDS } from "./live-lists.ts";
import { LISTEN_METHOD, type Peer, type RequestOptions } from "./peer.ts";
import { rpcOf } from "./rpc-error.ts";
import { withTasks } from "./task-forms.ts";

interface LinkMaintenanceOptions {
  readonly clock: Clock;
  readonly logLevel: () => string | undefined;
  readonly timeoutMs: number;
  readonly warn: (text: string) => void;
  readonly onMissedPing: (missed: number, error: ToolcribError) => void;
  readonly onRecovered: () => void;
  readonly onStreamReopened: () => void;
}

export class LinkMaintenance {
  readonly #link: Link;
  readonly #options: LinkMaintenanceOptions;
  readonly #stream: ChangeStream | undefined;
  #heartbeat: KeepAlive | undefined;
  #isStopped = false;

  constructor(link: Link, options: LinkMaintenanceOptions) {
    this.#link = link;
    this.#options = options;
    const { clock, warn, onStreamReopened } = options;
    if (link.agreement.era === "modern")
      this.#stream = new ChangeStream(link, { clock, warn, onReopened: onStreamReopened });
    this.#tellModern();
  }

  /** Asks for changes of the lists and of these resources. Never rejects. */
  async listen(uris: readonly string[]): Promise<void> {
    if (this.#stream !== undefined) return this.#stream.start(uris);
    await Promise.all([
      ...ofResources(uris).map((uri) => this.#ask("resources/subscribe", { uri })),
      this.logLevelChanged(),
    ]);
  }

  /** Sends the wanted log level. Never rejects. */
  async logLevelChanged(): Promise<void> {
    const level = this.#options.logLevel();
    if (this.#stream !== undefined) return this.#tellModern();
    const logs = isJsonObject(this.#link.agreement.capabilities["logging"]);
    if (logs && level !== undefined) await this.#ask("logging/setLevel", { level });
  }

  /** The level may have changed since the handshake began. */
  #tellModern(): void {
    const level = this.#options.logLevel();
    if (level !== undefined) this.#link.peer.extendEnvelope({ [LOG_LEVEL_KEY]: level });
  }

  async follow(uris: readonly string[]): Promise<void> {
    await this.#stream?.follow(uris);
  }

  /** Subscribes to `news` for sessions that were subscribed before. Never rejects. */
  async followAgain(news: readonly string[], all: readonly string[]): Promise<void> {
    if (this.#stream !== undefined) return this.#stream.start(all);
    await Promise.all(ofResources(news).map((uri) => this.#ask("resources/subscribe", { uri })));
  }

  /** Ends the subscriptions `gone`; `left` are those that remain. Never rejects. */
  async unfollow(gone: readonly string[], left: readonly string[]): Promise<void> {
    if (this.#stream !== undefined) await this.#stream.follow(left).catch(() => {});
    else await Promise.all(ofResources(gone).map((uri) => this.#ask("resources/unsubscribe", { uri })));
  }

  /** From now on the link is pinged when it is idle. */
  watch(): void {
    const { clock, onMissedPing, onRecovered } = this.#options;
    this.#heartbeat = new KeepAlive(this.#link.peer, { clock, onMissed: onMissedPing, onRecovered });
  }

  acknowledge(params: JsonObject, request: RequestOptions | undefined): void {
    this.#stream?.acknowledge(params, request);
  }

  stop(): void {
    this.#isStopped = true;
    this.#heartbeat?.stop();
    this.#stream?.close();
  }

  async #ask(method: string, params: JsonObject): Promise<void> {
    try {
      await this.#link.peer.request(method, params, { timeoutMs: this.#options.timeoutMs });
    } catch (error) {
      // Of a link that is let go, nothing is asked any more.
      if (!this.#isStopped) this.#options.warn(`${method} failed: ${asToolcribError(error).message}`);
    }
  }
}

interface SubscriptionChange {
  readonly kind: "subscribe" | "unsubscribe";
  readonly uri: string;
}

interface Followed {
  readonly sessions: Set<string>;
  /** The request in progress; sessions that come in the meantime share its outcome. */
  telling?: Promise<JsonObject>;
}

type Tell = (uris: string[]) => Promise<JsonObject>;

/** Without tasks, on which a legacy server reports by itself. */
function ofResources(uris: readonly string[]): string[] {
  return uris.filter((uri) => followedTask(uri) === undefined);
}

/** Changes that no caller waits for: neither rejects. */
interface SubscriptionSender {
  followAgain(news: readonly string[], all: readonly string[]): Promise<void>;
  unfollow(gone: readonly string[], left: readonly string[]): Promise<void>;
}

/** Which sessions follow which resource of one server, so that the server hears of the first and the last only. */
export class ResourceSubscriptions {
  readonly #followed = new Map<string, Followed>();

  get uris(): string[] {
    return [...this.#followed.keys()];
  }

  /** @param tell Tells the server; called only if the change makes a difference to it. */
  async change({ kind, uri }: SubscriptionChange, session: string, tell: Tell): Promise<JsonObject> {
    if (kind === "subscribe") return this.#subscribe(uri, session, tell);
    return this.#remove(uri, session) ? tell(this.uris) : {};
  }

  /** The session goes on following these. Without a link, the next one begins with them. */
  resume(uris: readonly string[], session: string, link: SubscriptionSender | undefined): void {
    const news = uris.filter((uri) => {
      const followed = this.#followed.get(uri);
      if (followed === undefined) this.#followed.set(uri, { sessions: new Set([session]) });
      else followed.sessions.add(session);
      return followed === undefined;
    });
    if (news.length > 0) void link?.followAgain(news, this.uris);
  }

  /** Forgets a session. */
  drop(session: string, link: SubscriptionSender | undefined): void {
    const gone = this.uris.filter((uri) => this.#remove(uri, session));
    if (gone.length > 0) void link?.unfollow(gone, this.uris);
  }

  async #subscribe(uri: string, session: string, tell: Tell): Promise<JsonObject> {
    const known = this.#followed.get(uri);
    if (known === undefined) return this.#first(uri, session, tell);
    known.sessions.add(session);
    try {
      return (await known.telling) ?? {};
    } catch (error) {
      // That the first one no longer wants it says nothing about what the server would have answered.
      if (error instanceof ToolcribError && error.code === "cancelled") return this.#subscribe(uri, session, tell);
      throw error;
    }
  }

  async #first(uri: string, session: string, tell: Tell): Promise<JsonObject> {
    const followed: Followed = { sessions: new Set([session]) };
    this.#followed.set(uri, followed);
    try {
      followed.telling = tell(this.uris);
      return await followed.telling;
    } catch (error) {
      // For all who joined: they hear the same error. Meanwhile it may have been given up, and taken up again.
      if (this.#followed.get(uri) === followed) this.#followed.delete(uri);
      throw error;
    } finally {
      delete followed.telling;
    }
  }

  /** True if that was the last session. */
  #remove(uri: string, session: string): boolean {
    const followed = this.#followed.get(uri);
    if (followed === undefined || !followed.sessions.delete(session) || followed.sessions.size > 0) return false;
    return this.#followed.delete(uri);
  }
}

const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;
const ACKNOWLEDGE_TIMEOUT_MS = 10_000;

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

/**
 * The modern era's one stream of changes, `subscriptions/listen`: kept open, opened again when it ends, and replaced by
 * one with another filter when the set of subscribed resources changes.
 */
class ChangeStream {
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
      const isHeard = (uri: string): boolean => {
        const task = followedTask(uri);
        const heard = agreed[task === undefined ? "resourceSubscriptions" : "taskIds"];
        return Array.isArray(heard) && heard.includes(task ?? uri);
      };
      const missing = uris.filter((uri) => !before.includes(uri) && !isHeard(uri));
      if (missing.length === 0) return;
      throw new ToolcribError("not_found", `The server does not report changes of ${missing.join(", ")}.`);
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
      request: {
        signal: controller.signal,
        background: true,
        // Only who declares the extension hears of tasks.
        ...(filter["taskIds"] === undefined ? {} : { envelope: { [CLIENT_CAPABILITIES_KEY]: withTasks({}) } }),
      },
      acknowledged: Promise.withResolvers<JsonObject>(),
      stopWaiting: () => {},
    };
    this.#opening = stream;
    const late = new ToolcribError("timeout", "The server did not acknowledge the stream of changes.");
    stream.stopWaiting = this.#options.clock.after(ACKNOWLEDGE_TIMEOUT_MS, () => {
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
    this.#delayMs = Math.min(delay * 2, MAX_DELAY_MS);
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
    const resources = ofResources(this.#uris);
    if (resources.length > 0) filter["resourceSubscriptions"] = resources;
    const taskIds = this.#uris.flatMap((uri) => followedTask(uri) ?? []);
    if (taskIds.length > 0) filter["taskIds"] = taskIds;
    return filter;
  }
}

const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;

interface KeepAliveOptions {
  readonly clock: Clock;
  readonly onMissed: (missed: number, error: ToolcribError) => void;
  /** After one or more missed pings something was heard again. */
  readonly onRecovered: () => void;
}

/** Asks an idle server whether it is still there. */
class KeepAlive {
  readonly #peer: Peer;
  readonly #options: KeepAliveOptions;
  #missed = 0;
  #lastAskedAt = 0;
  #stopped = false;
  #stopTimer: () => void = () => {};

  constructor(peer: Peer, options: KeepAliveOptions) {
    this.#peer = peer;
    this.#options = options;
    this.#schedule(PING_INTERVAL_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #schedule(ms: number): void {
    if (!this.#stopped) this.#stopTimer = this.#options.clock.after(ms, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const silence = this.#options.clock.now() - this.#peer.lastReceivedAt;
    if (this.#missed > 0 && this.#peer.lastReceivedAt > this.#lastAskedAt) this.#heard();
    if (silence < PING_INTERVAL_MS) return this.#schedule(PING_INTERVAL_MS - silence);
    // A server at work on a call may be too busy to answer; the call has a timeout of its own.
    if (this.#peer.busy) return this.#schedule(PING_INTERVAL_MS);
    await this.#ping();
    this.#schedule(PING_INTERVAL_MS);
  }

  async #ping(): Promise<void> {
    this.#lastAskedAt = this.#options.clock.now();
    try {
      await this.#peer.request(this.#peer.modern ? "server/discover" : "ping", {}, { timeoutMs: PING_TIMEOUT_MS });
    } catch (error) {
      if (this.#stopped) return;
      // An error answer is an answer too.
      if (rpcOf(error) === undefined) {
        this.#missed++;
        this.#options.onMissed(this.#missed, asToolcribError(error));
        return;
      }
    }
    this.#heard();
  }

  #heard(): void {
    if (this.#missed === 0 || this.#stopped) return;
    this.#missed = 0;
    this.#options.onRecovered();
  }
}
