/** Connection: the link to one MCP server over its whole life, with its state, its lists and its calls. */
import { Emitter } from "../model/emitter.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo, ServerState, TransportKind } from "../model/server-state.ts";
import type { Definitions, Source, Use, UseContext } from "../model/source.ts";
import { isLoginNeeded, loginNeeded } from "../secrets/oauth/failures.ts";
import { maskError, unavailable } from "./call-failure.ts";
import { isSessionLost, isUnreachable, remedyFor } from "./call-remedy.ts";
import { runOn } from "./calls.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { ConnectionEvents } from "./connection-events.ts";
import { describeFailure, type Failure } from "./failure-reason.ts";
import type { Agreement } from "./handshake.ts";
import { firstTransport, type Link, openLink } from "./link.ts";
import { LinkCare } from "./link-care.ts";
import { LinkClosings } from "./link-closings.ts";
import { LiveLists } from "./live-lists.ts";
import { RecentWarnings } from "./recent-warnings.ts";
import { ResourceSubscriptions } from "./resource-subscriptions.ts";
import { Restarts } from "./restarts.ts";
import { serverInfo } from "./server-info.ts";
import { readNotice } from "./server-notice.ts";
import { answerServer, sessionFor } from "./server-requests.ts";
import { waitFor } from "./wait-for.ts";

export type { ConnectionDeps } from "./connection-deps.ts";
export type { ConnectionEvents } from "./connection-events.ts";

const MISSED_PINGS_ALLOWED = 2;

interface Attempt {
  readonly controller: AbortController;
  /** Never rejects: resolves when the attempt is over, whichever way. */
  readonly done: Promise<void>;
}

export class Connection implements Source {
  readonly kind = "server";
  readonly id: string;
  readonly spec: ServerSpec;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #lists: LiveLists;
  readonly #restarts: Restarts;
  readonly #subscriptions = new ResourceSubscriptions();
  readonly #closings = new LinkClosings();
  readonly #warnings = new RecentWarnings();
  #state: ServerState;
  #attempt: Attempt | undefined;
  #link: Link | undefined;
  #care: LinkCare | undefined;
  /** Kept while reconnecting, for `info()`. */
  #agreement: Agreement | null = null;
  #transport: TransportKind;
  #lastError: string | null = null;
  #stopTimer: () => void = () => {};

  constructor(spec: ServerSpec, deps: ConnectionDeps) {
    this.id = spec.id;
    this.spec = spec;
    this.#deps = deps;
    this.#state = spec.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#transport = firstTransport(spec);
    this.#restarts = new Restarts(spec.restart, deps.clock);
    this.#lists = new LiveLists({
      clock: deps.clock,
      timeoutMs: spec.timeout,
      warn: (text) => this.#warn(text),
      onChange: () => this.#events.emit("changed", undefined),
    });
  }

  get state(): ServerState {
    return this.#state;
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("changed", listener);
  }

  definitions(): Definitions {
    return this.#lists.definitions;
  }

  /** The server's advice on how to use it. */
  instructions(): string | null {
    return this.#agreement?.instructions ?? null;
  }

  info(): ServerInfo {
    return serverInfo({
      spec: this.spec,
      state: this.#state,
      transport: this.#transport,
      agreement: this.#agreement,
      toolCount: this.#lists.definitions.tools.length,
      lastError: this.#lastError,
      warnings: this.#warnings.list,
      auth: this.#deps.oauth?.info(this.id, this.#deps.user),
    });
  }

  /** Resolves when the server is ready or this attempt has failed; `state` says which. Never rejects. */
  async connect(): Promise<void> {
    switch (this.#state.kind) {
      case "idle":
      case "failed":
      case "restarting":
        this.#restarts.reset();
        return this.#begin();
      case "connecting":
        return this.#attempt?.done;
      case "ready":
      case "degraded":
      case "disabled":
      case "closed":
        return;
    }
  }

  /** Ends the link; `connect()` may make a new one. */
  async disconnect(): Promise<void> {
    if (this.#state.kind === "disabled" || this.#state.kind === "closed") return;
    await this.#stop({ kind: "idle" });
  }

  /** Ends the link for good. */
  async close(): Promise<void> {
    if (this.#state.kind !== "closed") await this.#stop({ kind: "closed" });
    await this.#closings.closeAll();
  }

  /** Reads all lists again, if there is a server to read them from. */
  async refresh(): Promise<void> {
    if (this.#state.kind === "connecting") await this.#attempt?.done;
    else if (this.#link !== undefined) await this.#lists.readAll();
  }

  /** Tells a legacy server that roots changed; a modern one asks each time. */
  async rootsChanged(): Promise<void> {
    if (this.#link?.agreement.era !== "legacy" || !this.#deps.offers.roots) return;
    await this.#link.peer.notify("notifications/roots/list_changed").catch(() => {});
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    try {
      const link = await this.#usableLink(context.signal);
      try {
        return await this.#runOn(link, use, context);
      } catch (error) {
        if (isLoginNeeded(error) && this.#link === link) this.#linkLost(asToolcribError(error));
        const again = await this.#linkForRetry(link, use, error);
        if (again === undefined) throw error;
        return await this.#runOn(again, use, context).catch((second: unknown) => {
          if (isUnreachable(second) && !again.peer.busy) void this.#reconnect(again);
          throw second;
        });
      }
    } catch (error) {
      throw maskError(error, this.id, this.#mask);
    }
  }

  endSession(sessionId: string): void {
    const unfollowed = this.#subscriptions.drop(sessionId);
    if (unfollowed.length > 0) void this.#care?.unfollow(unfollowed, this.#subscriptions.uris);
  }

  // --- life ---------------------------------------------------------------------------------------------------------

  #begin(): Promise<void> {
    this.#stopTimer();
    this.#warnings.clear();
    const controller = new AbortController();
    const done = this.#open(controller.signal, this.#attempt?.done);
    this.#attempt = { controller, done };
    // Told last: a listener may close the connection, and must find the attempt that it ends.
    this.#setState({ kind: "connecting" });
    return done;
  }

  async #open(signal: AbortSignal, previous: Promise<void> | undefined): Promise<void> {
    let link: Link | undefined;
    const endRequests = (): void => link?.peer.end(new ToolcribError("cancelled", "the connection was closed"));
    try {
      await previous;
      await this.#closings.settled();
      signal.throwIfAborted();
      link = await openLink({
        spec: this.spec,
        deps: this.#deps,
        signal,
        peerOptions: {
          clock: this.#deps.clock,
          onRequest: (method, params, incoming) => {
            const session = sessionFor(incoming.session, link?.peer.callers() ?? [], this.#deps.hubSession);
            return answerServer(this.id, session, method, params, incoming.signal);
          },
          onNotification: (method, params) => this.#notified(method, params),
          onLost: (error) => {
            if (this.#link !== undefined && this.#link === link) this.#linkLost(error);
          },
          onWarning: (text) => this.#warn(text),
        },
      });
      signal.throwIfAborted();
      signal.addEventListener("abort", endRequests, { once: true });
      await this.#adopt(link);
      if (link.peer.lost !== undefined) throw link.peer.lost;
      if (this.info().auth?.state === "login_needed") throw loginNeeded({ server: this.id, user: this.#deps.user });
      signal.throwIfAborted();
      this.#becomeReady(link);
    } catch (error) {
      if (link !== undefined) this.#discard(link);
      if (!signal.aborted) this.#goDown(describeFailure(error, this.#mask));
    }
  }

  /** Changes are listened for before the lists are read, so that none falls between. */
  async #adopt(link: Link): Promise<void> {
    this.#agreement = link.agreement;
    this.#transport = link.wire.transport;
    this.#care = new LinkCare(link, {
      clock: this.#deps.clock,
      logLevel: this.#deps.logLevel,
      timeoutMs: this.spec.timeout,
      warn: (text) => this.#warn(text),
      onMissedPing: (missed, error) => this.#pingMissed(missed, error),
      onRecovered: () => this.#recovered(),
      onStreamReopened: () => void this.#lists.readAll(),
    });
    await this.#care.listen(this.#subscriptions.uris);
    await this.#lists.adopt(link);
  }

  #becomeReady(link: Link): void {
    this.#link = link;
    this.#care?.watch();
    this.#lastError = null;
    this.#restarts.up();
    this.#setState({ kind: "ready", since: this.#deps.clock.now() });
  }

  #linkLost(error: ToolcribError): void {
    if (this.#link !== undefined) this.#discard(this.#link);
    // The server is there and only forgot us: no reason to wait.
    if (isSessionLost(error)) return void this.#begin();
    this.#goDown(describeFailure(error, this.#mask));
  }

  #goDown({ heals, ...why }: Failure): void {
    this.#lastError = why.reason;
    this.#restarts.down();
    const next = heals ? this.#restarts.next() : null;
    if (next === null) {
      this.#lists.clear();
      this.#setState({ kind: "failed", ...why });
      return;
    }
    const { attempt, delayMs } = next;
    this.#stopTimer = this.#deps.clock.after(delayMs, () => void this.#begin());
    const nextAt = this.#deps.clock.now() + delayMs;
    this.#setState({ kind: "restarting", attempt, nextAt, ...why });
  }

  /** A new link at once, without a pause: used where the old one is known to be useless. */
  #reconnect(link: Link, sessionLost = false): Promise<void> {
    if (this.#link !== link) return this.#attempt?.done ?? Promise.resolve();
    if (sessionLost) {
      this.#detach();
      this.#closings.drain(link);
    } else {
      this.#discard(link);
    }
    return this.#begin();
  }

  #discard(link: Link): void {
    this.#detach();
    this.#closings.close(link);
  }

  /** Lets go of the link in use; what is listed stays. */
  #detach(): void {
    this.#care?.stop();
    this.#care = undefined;
    this.#link = undefined;
    this.#lists.release();
  }

  async #stop(state: ServerState): Promise<void> {
    this.#stopTimer();
    this.#restarts.reset();
    this.#attempt?.controller.abort();
    if (this.#link !== undefined) this.#discard(this.#link);
    this.#setState(state);
    this.#lists.clear();
    await this.#attempt?.done;
    await this.#closings.closeAll();
  }

  #pingMissed(missed: number, error: ToolcribError): void {
    const link = this.#link;
    if (link === undefined) return;
    if (isLoginNeeded(error)) return this.#linkLost(error);
    const { reason } = describeFailure(error, this.#mask);
    if (isSessionLost(error)) return void this.#reconnect(link, true);
    if (missed <= MISSED_PINGS_ALLOWED) {
      this.#setState({ kind: "degraded", since: this.#since(), missedPings: missed, reason });
      return;
    }
    if (this.spec.restart !== false) return void this.#reconnect(link);
    this.#linkLost(new ToolcribError("server_unavailable", `${missed} pings in a row were missed: ${reason}`));
  }

  #recovered(): void {
    if (this.#state.kind === "degraded") this.#setState({ kind: "ready", since: this.#since() });
  }

  #since(): number {
    return "since" in this.#state ? this.#state.since : this.#deps.clock.now();
  }

  #setState(state: ServerState): void {
    const previous = this.#state;
    this.#state = state;
    this.#events.emit("state", { previous, state });
  }

  // --- calls --------------------------------------------------------------------------------------------------------

  /** Waits for an attempt under way; a server that is down or resting between restarts is not waited for. */
  async #usableLink(signal: AbortSignal): Promise<Link> {
    const { kind } = this.#state;
    const mended = kind === "failed" && (await this.#deps.oauth?.loggedInSince(this.id, this.#deps.user)) === true;
    if (kind === "idle" || kind === "connecting" || mended) {
      await waitFor(this.connect(), { clock: this.#deps.clock, timeoutMs: this.spec.timeout, signal });
    }
    if (this.#link === undefined) throw unavailable(this.info(), this.#state, this.#deps.user);
    return this.#link;
  }

  #runOn(link: Link, use: Use, context: UseContext): Promise<JsonObject> {
    const send = (): Promise<JsonObject> =>
      runOn(link, use, context, {
        spec: this.spec,
        findTool: (name) => this.#lists.findTool(name),
        readTools: () => this.#lists.readNow("tools"),
      });
    if (use.kind !== "subscribe" && use.kind !== "unsubscribe") return send();
    return this.#subscriptions.change(use, context.session.id, async (uris) => {
      if (link.agreement.era === "legacy") return send();
      await this.#care?.follow(uris);
      return {};
    });
  }

  /** The link to run a failed use on once more, if that is safe and makes sense. */
  async #linkForRetry(link: Link, use: Use, error: unknown): Promise<Link | undefined> {
    const tool = use.kind === "tool" ? this.#lists.findTool(use.name) : undefined;
    const remedy = remedyFor(error, { use, tool, transport: link.wire.transport, restart: this.spec.restart });
    const reconnected = remedy.reconnect ? this.#reconnect(link, isSessionLost(error)) : undefined;
    if (!remedy.retry) return undefined;
    await reconnected;
    return remedy.reconnect || this.#link === link ? this.#link : undefined;
  }

  // --- what the server says on its own ------------------------------------------------------------------------------

  #notified(method: string, params: JsonObject): void {
    const notice = readNotice(method, params);
    switch (notice.kind) {
      case "list-changed":
        return this.#lists.announce(notice.list);
      case "log":
        return this.#events.emit("log", { message: notice.message });
      case "resource-updated":
        return this.#events.emit("resource-updated", { uri: notice.uri });
      case "stream-acknowledged":
        return this.#care?.acknowledge(params);
      case "unknown":
        return;
    }
  }

  readonly #mask = (text: string): string => this.#deps.redactor.mask(text);

  #warn(text: string): void {
    const masked = this.#mask(text);
    this.#warnings.add(masked);
    this.#events.emit("warning", masked);
  }
}
