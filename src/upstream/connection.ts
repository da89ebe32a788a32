/** Connection: the link to one MCP server over its whole life, with its state, its lists and its calls. */
import { type CancelSignal, endsWithin, InFlight, Pauses, withAbort, withTimeout } from "../base/async.ts";
import { Emitter, type Listeners } from "../base/emitter.ts";
import { isDeeperThan, resultBytes } from "../base/json-bytes.ts";
import { formatBytes } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { isTaskReport, type LogMessage, type Result } from "../model/protocol.ts";
import { idleMsOf, isLazy, serverDisplayName, type ServerSpec } from "../model/server-spec.ts";
import type { AuthInfo, ServerInfo, ServerState, TransportKind } from "../model/server-state.ts";
import {
  type Definitions,
  followedTask,
  type SessionContext,
  type Source,
  type Use,
  type UseContext,
} from "../model/source.ts";
import { isLoginNeeded, loginNeededError } from "../secrets/oauth/login-errors.ts";
import { cancelledByCaller, maxCallMs, runOnLink } from "./link-calls.ts";
import type { ConnectionDeps, ConnectionEvents } from "./connection-deps.ts";
import {
  describeFailure,
  type Failure,
  isSessionLost,
  isUnreachable,
  maskError,
  readablePart,
  recoveryFor,
  removedError,
  unavailableError,
} from "./connection-failures.ts";
import { asleep, DEFAULT_GRACE_MS, GracePeriod, isSameLink, Restarts, serverInfo } from "./connection-state.ts";
import type { Agreement } from "./handshake.ts";
import { type ListMemory, offersAnything, type ServerLists } from "./known-lists.ts";
import { LinkMaintenance, ResourceSubscriptions } from "./link-maintenance.ts";
import { firstTransport, type Link, openLink } from "./link.ts";
import { LIST_KINDS, LiveLists, type SkillOffer, skillOffer } from "./live-lists.ts";
import type { IncomingContext, RequestOptions } from "./peer.ts";
import { answerServer, capabilitiesFor, clientFor, withOfferedRoots } from "./server-requests.ts";
import { TaskMemory } from "./task-forms.ts";

const MAX_MISSED_PINGS = 2;
/** Of a notification that belongs to no task. They are read for attacks at once, where a large result waits for a thread. */
const MAX_NOTICE_BYTES = 64 * 1024;
/** Nothing that people or programs write nests deeper; what walks or encodes it without a call to fail would end the hub. */
const MAX_NOTICE_DEPTH = 100;
const MAX_LOG_BEGINNING = 4096;
const DROPPED = `Notifications longer than ${formatBytes(MAX_NOTICE_BYTES)} are dropped.`;
const TOO_DEEP = `Notifications nested more than ${MAX_NOTICE_DEPTH} deep are dropped.`;
/** Clients get it as it is. */
const NOTICE_METHOD = /^[\w$./:-]{1,128}$/;
const UNNAMED = "Notifications whose method is not a short name are dropped.";
/** Of those that `info()` shows. */
const MAX_WARNINGS = 20;

interface Attempt {
  readonly controller: AbortController;
  /** Time that is not part of the attempt's own. */
  readonly pauses: Pauses;
  /** Never rejects: resolves when the attempt is over, whichever way. */
  readonly done: Promise<void>;
}

export class Connection implements Source {
  readonly kind = "server";
  readonly id: string;
  readonly #deps: ConnectionDeps;
  readonly #events = new Emitter<ConnectionEvents>();
  readonly #lists: LiveLists;
  readonly #calls = new InFlight();
  readonly #grace: GracePeriod;
  readonly #restarts: Restarts;
  readonly #subscriptions = new ResourceSubscriptions();
  readonly #tasks: TaskMemory;
  readonly #closingLinks = new ClosingLinks();
  readonly #memory: ListMemory | undefined;
  #warnings: readonly string[] = [];
  #spec: ServerSpec;
  #state: ServerState;
  #attempt: Attempt | undefined;
  #link: Link | undefined;
  #maintenance: LinkMaintenance | undefined;
  /** Kept while reconnecting, for `info()`. */
  #agreement: Agreement | null = null;
  #transport: TransportKind;
  #lastError: string | null = null;
  #logLevel: string | undefined;
  #retiring: Promise<void> | undefined;
  /** The lists of an eager server from an earlier run, until its first attempt. */
  #fromEarlierRun: ServerLists | undefined;
  /** Whether that is what is listed. */
  #isRecalled = false;
  #stopTimer: () => void = () => {};
  #stopIdleTimer: () => void = () => {};

  /** @param memory Of what the server lists; without it, it is not listed before it is connected. */
  constructor(spec: ServerSpec, deps: ConnectionDeps, memory?: ListMemory) {
    this.id = spec.id;
    this.#spec = spec;
    this.#deps = deps;
    this.#memory = memory;
    this.#tasks = new TaskMemory(deps.clock);
    this.#state = spec.enabled ? { kind: "idle" } : { kind: "disabled" };
    this.#transport = firstTransport(spec);
    this.#restarts = new Restarts(() => this.#spec.restart, deps.clock);
    this.#logLevel = deps.logLevel;
    this.#lists = new LiveLists({
      clock: deps.clock,
      timeoutMs: () => this.#spec.timeout,
      warn: (text) => {
        this.#events.emit("list-warning", readablePart(this.#mask(text)));
        this.#warn(text);
      },
      mask: (lists) => deps.redactor.maskContent(lists),
      onChange: () => {
        this.#remember();
        this.#events.emit("changed", undefined);
      },
      onSameAgain: (kind) => this.#events.emit("notice", { method: `notifications/${kind}/list_changed`, params: {} }),
    });
    this.#grace = new GracePeriod(deps.clock, deps.graceMs ?? DEFAULT_GRACE_MS, () => this.#lists.clear());
    const known = spec.enabled && spec.problem === undefined ? memory?.known : undefined;
    if (known === undefined) return;
    if (isLazy(spec)) {
      this.#recall(known);
      this.#grace.earn();
    } else if (spec.isolation === "shared") this.#fromEarlierRun = known;
  }

  get spec(): ServerSpec {
    return this.#spec;
  }

  get state(): ServerState {
    return this.#state;
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  listen(listeners: Listeners<ConnectionEvents>): () => void {
    return this.#events.listen(listeners);
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
      spec: this.#spec,
      state: this.#state,
      transport: this.#transport,
      agreement: this.#agreement,
      toolCount: this.#lists.definitions.tools.length,
      sleeping: asleep(this.#state, this.#lists.definitions),
      lastError: this.#lastError,
      warnings: this.#warnings,
      auth: this.#auth(),
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

  /** Ends the link; `connect()` may make a new one. A lazy server stays listed, and its next use makes one. */
  async disconnect(): Promise<void> {
    if (this.#state.kind === "disabled" || this.#state.kind === "closed") return;
    if (isLazy(this.#spec)) await this.#sleep();
    else await this.#end({ kind: "idle" });
  }

  /** Ends the link for good. */
  async close(): Promise<void> {
    if (this.#state.kind !== "closed") await this.#end({ kind: "closed" });
    await this.#closingLinks.closeAll();
  }

  retire(): Promise<void> {
    const { clock } = this.#deps;
    this.#retiring ??= endsWithin(this.#calls.whenIdle(), { ms: maxCallMs(this.#spec), clock }).then(() =>
      this.close(),
    );
    return this.#retiring;
  }

  respec(spec: ServerSpec): boolean {
    if (!isSameLink(this.#spec, spec)) return false;
    this.#spec = spec;
    this.#remember();
    this.#awaitIdle();
    return true;
  }

  /** Reads all lists again, if there is a server to read them from. */
  async refresh(): Promise<void> {
    if (this.#state.kind === "connecting") await this.#attempt?.done;
    else if (this.#link !== undefined) await this.#lists.readAll();
  }

  async setLogLevel(level: string): Promise<void> {
    this.#logLevel = level;
    await this.#maintenance?.logLevelChanged();
  }

  async rootsChanged(): Promise<void> {
    const { roots } = capabilitiesFor(this.#deps.offers, this.#spec);
    // A list of the entry's own stays as it is.
    const canChange = isJsonObject(roots) && roots["listChanged"] === true;
    if (this.#link?.agreement.era !== "legacy" || !canChange) return;
    await this.#link.peer.notify("notifications/roots/list_changed").catch(() => {});
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    if (this.#retiring !== undefined) throw removedError(this.id);
    this.#calls.start();
    try {
      const link = this.#link ?? (await this.#awaitLink(context));
      try {
        return await this.#runOn(link, use, context);
      } catch (error) {
        return await this.#runAgain(link, use, context, error);
      }
    } catch (error) {
      throw maskError(error, this.id, this.#mask);
    } finally {
      this.#calls.end();
      this.#awaitIdle();
    }
  }

  endSession(sessionId: string): void {
    this.#subscriptions.drop(sessionId, this.#maintenance);
    this.#awaitIdle();
  }

  resume(session: SessionContext, uris: readonly string[]): void {
    this.#subscriptions.resume(uris, session.id, this.#maintenance);
  }

  skillOffer(): SkillOffer | undefined {
    return skillOffer(this.#link, this.#spec.timeout);
  }

  /** Only remote servers have logins. */
  #auth(): AuthInfo | undefined {
    return this.#spec.url === undefined ? undefined : this.#deps.oauth?.info(this.id, this.#deps.user);
  }

  #begin(): Promise<void> {
    this.#stopTimer();
    this.#grace.hold();
    this.#warnings = [];
    const controller = new AbortController();
    const pauses = new Pauses(this.#deps.clock);
    const done = this.#open(controller.signal, pauses, this.#attempt?.done);
    this.#attempt = { controller, done, pauses };
    const recalls = this.#recallForStart();
    // Emitted last: a listener may close the connection, and must find the attempt that it ends.
    this.#setState({ kind: "connecting" });
    if (recalls) this.#events.emit("changed", undefined);
    return done;
  }

  async #open(signal: AbortSignal, pauses: Pauses, previous: Promise<void> | undefined): Promise<void> {
    let link: Link | undefined;
    const endRequests = (): void => link?.peer.end(new ToolcribError("cancelled", "the connection was closed"));
    try {
      await previous;
      await this.#closingLinks.settled();
      signal.throwIfAborted();
      link = await openLink({
        spec: this.#spec,
        deps: this.#logLevel === undefined ? this.#deps : { ...this.#deps, logLevel: this.#logLevel },
        signal,
        pauses,
        onProgress: (text) => this.#progressed(text, signal),
        peerOptions: {
          clock: this.#deps.clock,
          onRequest: (method, params, incoming) => this.#answer(link, method, params, incoming),
          onNotification: (method, params, request) => this.#notified(method, params, request),
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
      if (this.#auth()?.state === "login_needed") throw loginNeededError({ server: this.id, user: this.#deps.user });
      signal.throwIfAborted();
      this.#becomeReady(link);
    } catch (error) {
      if (link !== undefined) this.#discard(link);
      if (!signal.aborted) this.#goDown(describeFailure(error, this.#mask));
    } finally {
      // From here on the requests are those of callers, who did not cancel them.
      signal.removeEventListener("abort", endRequests);
    }
  }

  #progressed(text: string | null, { aborted }: AbortSignal): void {
    if (aborted || this.#state.kind !== "connecting") return;
    const progress = text === null ? undefined : this.#mask(text);
    if (this.#state.progress === progress) return;
    this.#setState(progress === undefined ? { kind: "connecting" } : { kind: "connecting", progress });
  }

  #answer(link: Link | undefined, method: string, params: JsonObject, incoming: IncomingContext): Promise<JsonObject> {
    const { idleClient, guarded, user, session, hubSession } = this.#deps;
    const idle = idleClient?.(this.id, user, session) ?? hubSession.client;
    // The client of a call passes the guard of that call.
    const offered = withOfferedRoots(guarded?.(this.id, idle) ?? idle, this.#spec, this.#deps);
    const client = clientFor(incoming.client, link?.peer.callers() ?? [], offered);
    return answerServer(serverDisplayName(this.#spec), client, method, params, incoming.signal);
  }

  /** @param request The request that the notification belongs to, if that is known. */
  #notified(method: string, params: JsonObject, request: RequestOptions | undefined): void {
    const list = LIST_KINDS.find((kind) => method === `notifications/${kind}/list_changed`);
    if (list !== undefined) return this.#lists.announce(list);
    if (method === "notifications/message") {
      const message = logMessage(params);
      return this.#events.emit("log", { message, ...this.#tellCaller(method, message, request) });
    }
    if (method === "notifications/subscriptions/acknowledged") return this.#maintenance?.acknowledge(params, request);
    const isLong = !isTaskReport(method) && resultBytes(params, MAX_NOTICE_BYTES) > MAX_NOTICE_BYTES;
    const isDeep = isDeeperThan(MAX_NOTICE_DEPTH, params);
    if (isLong || isDeep || !NOTICE_METHOD.test(method)) {
      const why = isLong ? DROPPED : isDeep ? TOO_DEEP : UNNAMED;
      // Once for each connection: a server can send any number of them.
      if (!this.#warnings.includes(why)) this.#warn(why);
      return;
    }
    if (method === "notifications/resources/updated" && typeof params["uri"] === "string") {
      return this.#events.emit("resource-updated", { uri: params["uri"], params });
    }
    if (this.#tellCaller(method, params, request) === undefined) this.#events.emit("notice", { method, params });
  }

  /** Undefined if it belongs to no call, or to one whose caller does not want it. */
  #tellCaller(method: string, params: JsonObject, request?: RequestOptions): { callId: string } | undefined {
    if (request?.onNotice === undefined) return undefined;
    try {
      request.onNotice(method, params);
    } catch (error) {
      this.#warn(`A listener for notifications failed: ${String(error)}`);
    }
    return { callId: request.callId ?? "" };
  }

  /** Changes are listened for before the lists are read, so that none falls between. */
  async #adopt(link: Link): Promise<void> {
    // For people and models only; the link goes on with what the server said.
    this.#agreement = this.#deps.redactor.maskContent(withShortCapabilities(link.agreement));
    this.#transport = link.wire.transport;
    this.#maintenance = new LinkMaintenance(link, {
      clock: this.#deps.clock,
      logLevel: () => this.#logLevel,
      timeoutMs: this.#spec.timeout,
      warn: (text) => this.#warn(text),
      onMissedPing: (missed, error) => this.#pingMissed(missed, error),
      onRecovered: () => this.#recovered(),
      onStreamReopened: () => void this.#lists.readAll(),
    });
    await this.#maintenance.listen(this.#subscriptions.uris);
    await this.#lists.adopt(link);
  }

  #becomeReady(link: Link): void {
    this.#link = link;
    this.#isRecalled = false;
    this.#maintenance?.watch();
    this.#lastError = null;
    this.#restarts.up();
    this.#grace.earn();
    this.#remember();
    this.#awaitIdle();
    this.#setState({ kind: "ready", since: this.#deps.clock.now() });
  }

  #recall({ transport, agreement, definitions }: ServerLists): void {
    this.#lists.recall(definitions);
    this.#agreement = agreement;
    this.#transport = transport;
  }

  /** While a server starts, it is listed as it was when it last ran: clients that list only once see it. */
  #recallForStart(): boolean {
    const known = this.#fromEarlierRun;
    this.#fromEarlierRun = undefined;
    if (known === undefined || this.#agreement !== null) return false;
    this.#recall(known);
    this.#isRecalled = true;
    return true;
  }

  /** It does not come up as it did before. */
  #forgetRecalled(): void {
    if (!this.#isRecalled) return;
    this.#isRecalled = false;
    this.#agreement = null;
    this.#lists.clear();
  }

  /** Before the link is ready, and when a list could not be read, what was known before is better. */
  #remember(): void {
    if (this.#link === undefined || this.#agreement === null || !this.#lists.isComplete) return;
    // What is said to one user or session is kept only where it is needed.
    if (this.#spec.isolation !== "shared" && !isLazy(this.#spec)) return;
    const { definitions } = this.#lists;
    this.#memory?.save({ transport: this.#transport, agreement: this.#agreement, definitions });
  }

  /** Puts it to sleep when it has not been used for the time that its spec allows. */
  #awaitIdle(): void {
    this.#stopIdleTimer();
    const ms = idleMsOf(this.#spec);
    if (ms === undefined || !this.#isUnused()) return;
    // A task that goes on in it would end with it.
    this.#stopIdleTimer = this.#deps.clock.after(Math.max(ms, this.#tasks.busyMs), () => {
      if (this.#tasks.busyMs > 0) this.#awaitIdle();
      else if (this.#isUnused()) void this.#sleep();
    });
  }

  /** A server that lists nothing is excepted: no use could wake it. */
  #isUnused(): boolean {
    if (this.#link === undefined || this.#calls.count > 0 || this.#subscriptions.uris.length > 0) return false;
    return offersAnything(this.#lists.definitions);
  }

  /** Ends a link that is not in use, whatever its spec says; what is listed stays, and the next use starts it again. */
  sleep(): void {
    if (this.#isUnused() && this.#tasks.busyMs === 0) void this.#sleep();
  }

  async #sleep(): Promise<void> {
    const stopped = this.#stop({ kind: "idle" });
    this.#grace.earn();
    await stopped;
  }

  #linkLost(error: ToolcribError): void {
    if (this.#link !== undefined) this.#discard(this.#link);
    // The server is there and only forgot us: no reason to wait.
    if (isSessionLost(error)) return void this.#begin();
    this.#goDown(describeFailure(error, this.#mask));
  }

  #goDown({ heals, ...why }: Failure): void {
    this.#lastError = why.reason;
    this.#forgetRecalled();
    this.#restarts.down();
    const next = heals ? this.#restarts.next() : null;
    if (next === null) {
      this.#grace.begin();
      const attempts = heals && this.#restarts.used > 0 ? this.#restarts.used : undefined;
      this.#setState({ kind: "failed", ...why, attempts });
      return;
    }
    const { attempt, delayMs } = next;
    this.#stopTimer = this.#deps.clock.after(delayMs, () => void this.#begin());
    const nextAt = this.#deps.clock.now() + delayMs;
    this.#setState({ kind: "restarting", attempt, nextAt, delayMs, ...why });
  }

  /** A new link at once, without a pause: used where the old one is known to be useless. */
  #reconnect(link: Link, sessionLost = false): Promise<void> {
    if (this.#link !== link) return this.#attempt?.done ?? Promise.resolve();
    if (sessionLost) {
      this.#detach();
      this.#closingLinks.drain(link);
    } else {
      this.#discard(link);
    }
    return this.#begin();
  }

  #discard(link: Link): void {
    this.#detach();
    this.#closingLinks.close(link);
  }

  /** Lets go of the link in use; what is listed stays. */
  #detach(): void {
    this.#stopIdleTimer();
    this.#maintenance?.stop();
    this.#maintenance = undefined;
    this.#link = undefined;
    this.#lists.release();
  }

  async #end(state: ServerState): Promise<void> {
    await this.#stop(state, () => this.#lists.clear());
  }

  /** @param forget Before the state is told: an idle server that still lists something is taken for a sleeping one. */
  async #stop(state: ServerState, forget?: () => void): Promise<void> {
    this.#stopTimer();
    this.#restarts.reset();
    this.#grace.forget();
    this.#attempt?.controller.abort();
    if (this.#link !== undefined) this.#discard(this.#link);
    this.#lists.release();
    this.#forgetRecalled();
    forget?.();
    this.#setState(state);
    await this.#attempt?.done;
    await this.#closingLinks.closeAll();
  }

  #pingMissed(missed: number, error: ToolcribError): void {
    const link = this.#link;
    if (link === undefined) return;
    if (isLoginNeeded(error)) return this.#linkLost(error);
    const { reason } = describeFailure(error, this.#mask);
    if (isSessionLost(error)) return void this.#reconnect(link, true);
    if (missed <= MAX_MISSED_PINGS) {
      this.#setState({ kind: "degraded", since: this.#since(), missedPings: missed, reason });
      return;
    }
    if (this.#spec.restart !== false) return void this.#reconnect(link);
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

  #runOn(link: Link, use: Use, context: UseContext): Promise<JsonObject> {
    const settings = { spec: this.#spec, deps: this.#deps, lists: this.#lists, tasks: this.#tasks };
    if (use.kind !== "subscribe" && use.kind !== "unsubscribe") return runOnLink(link, use, context, settings);
    return this.#subscriptions.change(use, context.session.id, async (uris) => {
      // A legacy server reports on its tasks by itself.
      if (link.agreement.era === "legacy") {
        return followedTask(use.uri) === undefined ? runOnLink(link, use, context, settings) : {};
      }
      await this.#maintenance?.follow(uris);
      return {};
    });
  }

  async #runAgain(link: Link, use: Use, context: UseContext, error: unknown): Promise<JsonObject> {
    if (isLoginNeeded(error) && this.#link === link) this.#linkLost(asToolcribError(error));
    const again = await this.#linkForRetry(link, use, error);
    if (again === undefined) throw error;
    return this.#runOn(again, use, context).catch((second: unknown) => {
      if (isUnreachable(second) && !again.peer.busy) void this.#reconnect(again);
      throw second;
    });
  }

  /** The link to run a failed use on once more, if that is safe and makes sense. */
  async #linkForRetry(link: Link, use: Use, error: unknown): Promise<Link | undefined> {
    const tool = use.kind === "tool" ? this.#lists.findTool(use.name) : undefined;
    const { transport } = link.wire;
    const recovery = recoveryFor(error, { use, tool, transport, restart: this.#spec.restart });
    const reconnected = recovery.reconnect ? this.#reconnect(link, isSessionLost(error)) : undefined;
    if (!recovery.retry) return undefined;
    await reconnected;
    return recovery.reconnect || this.#link === link ? this.#link : undefined;
  }

  async #awaitLink({ signal, confirm }: UseContext): Promise<Link> {
    await this.#usableLink(signal);
    await confirm?.();
    return this.#link ?? this.#usableLink(signal);
  }

  /**
   * Waits for an attempt in progress, but not for a server that is down or pauses between restarts. A lazy one that failed is
   * tried again: that no one did so since is its nature.
   */
  async #usableLink(signal: CancelSignal): Promise<Link> {
    const { kind } = this.#state;
    const mended =
      kind === "failed" &&
      (isLazy(this.#spec) || (await this.#deps.oauth?.loggedInSince(this.id, this.#deps.user)) === true);
    if (kind === "idle" || kind === "connecting" || mended) {
      const ready = withTimeout(this.connect(), {
        ms: this.#spec.timeout,
        late: notReadyInTime,
        clock: this.#deps.clock,
        pauses: this.#attempt?.pauses,
      });
      await withAbort(ready, signal, cancelledByCaller);
    }
    if (this.#link === undefined) throw unavailableError(this.info(), this.#state, this.#deps.user);
    return this.#link;
  }

  readonly #mask = (text: string): string => this.#deps.redactor.mask(text);

  #warn(text: string): void {
    const shown = readablePart(this.#mask(text));
    if (!this.#warnings.includes(shown)) this.#warnings = [...this.#warnings, shown].slice(-MAX_WARNINGS);
    this.#events.emit("warning", shown);
  }
}

/** The ends of links that a Connection no longer uses. */
class ClosingLinks {
  readonly #closing = new Set<Promise<void>>();
  readonly #draining = new Set<Link>();

  /** Ends the requests in progress on it, and then the link. */
  close(link: Link): void {
    this.#draining.delete(link);
    link.peer.end(new ToolcribError("server_unavailable", "the connection was closed", { details: { sent: true } }));
    const closing = link.wire.close().then(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /**
   * Closes it when the requests in progress on it have ended. When a server forgot a session each call of that session is told
   * so by itself, and that it was not run; ending them here would leave that open.
   */
  drain(link: Link): void {
    this.#draining.add(link);
    void link.peer.whenIdle().then(() => this.#draining.has(link) && this.close(link));
  }

  /** A new child must not meet the old one, so an attempt waits for this; links that drain are no children. */
  async settled(): Promise<void> {
    await Promise.all(this.#closing);
  }

  async closeAll(): Promise<void> {
    for (const link of this.#draining) this.close(link);
    await this.settled();
  }
}

/** They are in every list of servers. */
function withShortCapabilities(agreement: Agreement): Agreement {
  const isLong = resultBytes(agreement.capabilities, MAX_NOTICE_BYTES) > MAX_NOTICE_BYTES;
  return isLong ? { ...agreement, capabilities: {} } : agreement;
}

/** As it came, if it has a level and is a message rather than a document. */
function logMessage(params: JsonObject): LogMessage {
  const { level: given, data } = params;
  const level = typeof given === "string" ? given : "info";
  const isLong = resultBytes(params, MAX_NOTICE_BYTES) > MAX_NOTICE_BYTES;
  if (!isLong && !isDeeperThan(MAX_NOTICE_DEPTH, params)) return { ...params, level };
  const beginning = typeof data === "string" ? data.slice(0, MAX_LOG_BEGINNING).toWellFormed() : "";
  const why = isLong ? `is longer than ${formatBytes(MAX_NOTICE_BYTES)}` : "is nested too deeply";
  const text = `${beginning}[cut: the message ${why}]`;
  return { level: level.length <= MAX_LOG_BEGINNING ? level : "info", data: text };
}

function notReadyInTime(): ToolcribError {
  return new ToolcribError("timeout", "The server did not become ready in time.", { details: { sent: false } });
}
