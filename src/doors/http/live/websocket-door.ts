/** The WebSocket door at `/ws`. The listener has authenticated the caller; the `ws` package is loaded with the first connection. */
import type { WebSocket, WebSocketServer } from "ws";
import { endsWithin } from "../../../base/async.ts";
import { type Clock, systemClock } from "../../../base/clock.ts";
import { CONTROLS } from "../../../contract/websocket.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import type { Caller } from "../../../model/caller.ts";
import { asToolcribError, ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import { type CallerQuota, Quota, quotaError } from "../../../policy/quota.ts";
import type { Session } from "../../../sessions/session.ts";
import { httpClientInfo } from "../http-client-info.ts";
import { CLIENT_PARAM, SOCKET_PATH } from "../../../contract/rest.ts";
import {
  addPeer,
  namedSession,
  openCallerSession,
  type SessionExtras,
  type SessionOpener,
} from "../api/caller-sessions.ts";
import type { Masker } from "../api/operation-handler.ts";
import type { Operations } from "../api/run-operation.ts";
import { localSessionId, withLocalSessionIds } from "../api/session-ids.ts";
import { refuseUpgrade } from "../http-connections.ts";
import type { HttpRoute, HttpUpgrade } from "../http-exchange.ts";
import { notFoundAt, sendError } from "../http-responses.ts";
import { RateLimit } from "../rate-limit.ts";
import {
  type EventFeed,
  type EventFilter,
  eventFilter,
  filterOfQuery,
  type Frame,
  parseResumePoint,
  type Receiver,
  type ResumePoint,
} from "./event-feed.ts";
import { ExtraTools } from "./extra-tool-calls.ts";
import { type CommandId, commandId, parseFrame, SocketCommands, toErrorObject } from "./socket-commands.ts";

/** The protocol that a client has to offer if it offers any. A browser offers its token too, as `bearer.<token>`. */
const PROTOCOL = "toolcrib.v1";

const CREDENTIALS_MS = 15_000;
/** Every second look at the credentials is a heartbeat too. */
const CHECKS_PER_HEARTBEAT = 2;
const SHUTDOWN_GRACE_MS = 1000;

export interface SocketLimits {
  /** Size of a frame. */
  readonly bodyBytes: number;
  /** Open sockets. */
  readonly streams: CallerQuota;
  /** Frames of one caller. */
  readonly requestsPerMinute: number;
  /** The refusal of a caller who has used them up. */
  readonly tooMany: (waitMs: number) => ToolcribError;
}

interface SocketParts extends SessionExtras {
  readonly hub: SessionOpener & { readonly internals: Pick<Hub["internals"], "sessions"> };
  readonly feed: EventFeed;
  readonly operations: Pick<Operations, "run">;
  /** In a cluster: ids that name the node that has the session. */
  readonly ids?: Pick<RoutableIds, "findAtOnce"> | undefined;
  readonly redactor: Masker;
  /** Asked for with every socket that comes, and every few seconds. */
  readonly limits: () => SocketLimits;
  readonly warn: (message: string) => void;
  readonly clock?: Clock;
}

export class WebSocketDoor {
  readonly #parts: SocketParts;
  readonly #clock: Clock;
  readonly #rate: RateLimit;
  readonly #open = new Set<LiveSocket>();
  /** Those whose handshake is in progress count too. */
  readonly #quota: Quota;
  #server: { readonly frameBytes: number; readonly made: WebSocketServer } | undefined;
  #stopWatch: (() => void) | undefined;
  #looks = 0;
  #limits: SocketLimits;
  #closed: Promise<void> | undefined;

  constructor(parts: SocketParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? systemClock;
    this.#limits = parts.limits();
    this.#quota = new Quota(this.#limits.streams);
    this.#rate = new RateLimit(this.#clock, this.#limits.requestsPerMinute);
  }

  readonly route: HttpRoute = {
    path: SOCKET_PATH,
    access: "any",
    handle: ({ path, response }) => {
      if (path !== SOCKET_PATH) throw notFoundAt(path);
      const error = new ToolcribError("invalid_arguments", "This address is for WebSockets.");
      sendError(response, error, { status: 426, headers: { upgrade: "websocket" } });
    },
    upgrade: (upgrade) => void this.#take(upgrade),
  };

  get size(): number {
    return this.#open.size;
  }

  /** @param graceMs The time for running commands. */
  close(graceMs = SHUTDOWN_GRACE_MS): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    this.#stopWatch?.();
    const open = [...this.#open];
    const clock = this.#clock;
    await endsWithin(Promise.all(open.map((socket) => socket.finish())), { ms: graceMs, clock });
    for (const socket of open) socket.close(...CLOSE.goingAway);
    const closed = Promise.all(open.map((socket) => socket.closed));
    await endsWithin(closed, { ms: SHUTDOWN_GRACE_MS, clock });
    for (const socket of open) socket.terminate();
    await closed;
  }

  async #take(upgrade: HttpUpgrade): Promise<void> {
    const { request, socket, head, query } = upgrade;
    // The client may go away while the package is loaded.
    const onError = (): void => void socket.destroy();
    socket.on("error", onError);
    let giveBack: (() => void) | undefined;
    try {
      this.#readLimits();
      this.#assertRoom(upgrade.caller);
      giveBack = this.#quota.take(upgrade.caller);
      // However it ends, also before the handshake.
      socket.once("close", giveBack);
      const [wants, from] = [filterOfQuery(query), parseResumePoint(query)];
      const server = await this.#serverOf(this.#limits.bodyBytes);
      if (socket.destroyed || this.#closed !== undefined) {
        socket.destroy();
        giveBack();
        return;
      }
      server.handleUpgrade(request, socket, head, (made) => this.#begin(made, upgrade, wants, from));
    } catch (error) {
      giveBack?.();
      refuseUpgrade(upgrade, asToolcribError(error));
    } finally {
      socket.off("error", onError);
    }
  }

  #begin(socket: WebSocket, upgrade: HttpUpgrade, wants: EventFilter, from: ResumePoint | undefined): void {
    const { hub, feed, ids, redactor, warn } = this.#parts;
    const { caller } = upgrade;
    let session: Session;
    try {
      const clientInfo = httpClientInfo(upgrade.request, caller, upgrade.query.get(CLIENT_PARAM));
      session = openCallerSession(hub, caller, "websocket", this.#parts, { clientInfo });
      addPeer(session, upgrade.request);
    } catch {
      socket.close(...CLOSE.goingAway);
      return;
    }
    const live = new LiveSocket(
      {
        feed,
        redactor,
        warn,
        clock: this.#clock,
        operations: withLocalSessionIds(ids, this.#parts.operations),
        sessionOf: (id) => namedSession(hub.internals, caller, localSessionId(ids, id), { anyWithAdmin: true }),
        rate: () => this.#rate.take(caller.key),
        tooMany: (waitMs) => this.#limits.tooMany(waitMs),
      },
      { socket, upgrade, session, wants, from },
    );
    this.#open.add(live);
    void live.closed.then(() => this.#open.delete(live));
    this.#watch();
  }

  #readLimits(): void {
    this.#limits = this.#parts.limits();
    this.#quota.setLimits(this.#limits.streams);
    this.#rate.perMinute = this.#limits.requestsPerMinute;
  }

  #assertRoom(caller: Caller): void {
    if (this.#closed !== undefined) throw new ToolcribError("server_unavailable", "The hub is shutting down.");
    const full = this.#quota.reachedFor(caller);
    if (full !== undefined) throw quotaError("WebSocket connections", full, "streams");
  }

  /** The size of a frame belongs to the server; a changed one makes another. */
  async #serverOf(frameBytes: number): Promise<WebSocketServer> {
    if (this.#server?.frameBytes === frameBytes) return this.#server.made;
    const { WebSocketServer } = await import("ws");
    const made = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: frameBytes,
      // It costs memory for every connection, and events are short.
      perMessageDeflate: false,
      // It would answer every ping, also of a client that never reads.
      autoPong: false,
      handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    });
    this.#server = { frameBytes, made };
    return made;
  }

  /** One timer for all of them, and none while there are none. */
  #watch(): void {
    this.#stopWatch ??= this.#clock.after(CREDENTIALS_MS, () => {
      this.#stopWatch = undefined;
      this.#looks += 1;
      this.#readLimits();
      const isBeat = this.#looks % CHECKS_PER_HEARTBEAT === 0;
      for (const socket of this.#open) {
        socket.checkCredentials();
        if (isBeat) socket.beat();
      }
      if (this.#open.size > 0) this.#watch();
    });
  }
}

/** The most that may wait for a client that does not read, plus one frame. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** The error code of ws for a frame above `maxPayload`. */
const FRAME_TOO_LARGE = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
/** How long a client has to answer that the connection is closed. */
const CLOSE_TIMEOUT_MS = 2000;

/** Numbers of RFC 6455, and what they say here. */
const CLOSE = {
  goingAway: [1001, "The hub is shutting down."],
  noText: [1003, "Frames must be text."],
  notAdmitted: [1008, "The credentials have expired."],
  sessionEnded: [1008, "The session was ended."],
  slow: [1013, "Too much is unread. Reconnect and resume."],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;

interface LiveSocketParts extends Pick<SocketParts, "feed" | "operations" | "redactor" | "warn"> {
  readonly clock: Clock;
  /** Another session that the caller may give tools to. */
  readonly sessionOf: (id: string) => Session | undefined;
  /** Milliseconds to wait before the next frame of the caller is accepted; 0 if it is. */
  readonly rate: () => number;
  readonly tooMany: (waitMs: number) => ToolcribError;
}

interface Connection {
  readonly socket: WebSocket;
  readonly upgrade: HttpUpgrade;
  readonly session: Session;
  readonly wants: EventFilter;
  readonly from: ResumePoint | undefined;
}

/** One WebSocket: commands come in, replies and events go out, and a client that does not read is let go. */
class LiveSocket {
  readonly #parts: LiveSocketParts;
  readonly #socket: WebSocket;
  readonly #upgrade: HttpUpgrade;
  readonly #commands: SocketCommands;
  readonly #extraTools: ExtraTools;
  readonly #receiver: Receiver & { wants: EventFilter };
  readonly #closed: Promise<void>;
  readonly #unsubscribe: () => void;
  #isAlive = true;
  #isGathering = false;

  constructor(parts: LiveSocketParts, { socket, upgrade, session, wants, from }: Connection) {
    const { sessionOf, operations, feed, clock } = parts;
    const { caller, base: baseUrl, redirectBase } = upgrade;
    this.#parts = parts;
    this.#socket = socket;
    this.#upgrade = upgrade;
    this.#receiver = { caller, session, wants, send: (frame: Frame) => this.#write(frame.bytes) };
    this.#commands = new SocketCommands({
      operations,
      context: { caller, session, baseUrl, redirectBase, tell: (type, fields) => this.#send({ type, ...fields }) },
      send: (frame) => this.#send(frame),
      fail: (id, thrown) => this.#fail(id, thrown),
    });
    const group = `socket:${session.id}`;
    const send = (frame: object): void => this.#send(frame);
    this.#extraTools = new ExtraTools({ group, caller, session, sessionOf, send, clock });
    this.#send(feed.hello());
    if (from !== undefined) feed.replay(this.#receiver, from);
    this.#unsubscribe = feed.subscribe(this.#receiver);
    session.closing.addEventListener("abort", () => this.close(...CLOSE.sessionEnded), { once: true });
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#leave();
        resolve();
      });
    });
    socket.on("message", (data, isBinary) => {
      // Texts come as one Buffer, as `binaryType` is left at its default.
      if (!isBinary) return this.#take((data as Buffer).toString("utf8"));
      this.#fail(null, new ToolcribError("invalid_arguments", "Frames must be text."));
      this.close(...CLOSE.noText);
    });
    socket.on("pong", () => (this.#isAlive = true));
    socket.on("ping", (data) => this.#pong(data));
    // What is wrong with a frame is the client's affair; the package closes with the right number.
    socket.on("error", (error) => {
      if ("code" in error && error.code === FRAME_TOO_LARGE) this.#extraTools.refuseFrame();
    });
  }

  get closed(): Promise<void> {
    return this.#closed;
  }

  /** Ends a connection that has not answered since the last heartbeat. */
  beat(): void {
    if (!this.#isAlive) {
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    if (this.#isOpen) this.#socket.ping();
  }

  /** Ends a connection whose credentials have ended. */
  checkCredentials(): void {
    if (!this.#upgrade.stillAdmitted()) this.close(...CLOSE.notAdmitted);
  }

  /** Resolves when its commands are answered; what comes from now on is refused. */
  finish(): Promise<void> {
    return this.#commands.finish();
  }

  close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#socket.close(code, reason);
    this.#leave();
    this.#parts.clock.after(CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #leave(): void {
    this.#unsubscribe();
    this.#extraTools.close();
    this.#commands.cancelAll();
    this.#receiver.session.close();
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  #take(text: string): void {
    let id: CommandId | null = null;
    try {
      const frame = this.#read(text);
      id = commandId(frame) ?? null;
      // An answer that the hub asked for is not a command.
      if (!this.#extraTools.awaits(frame)) this.#count();
      if (this.#control(frame)) return;
      const reply = this.#extraTools.take(frame);
      if (reply === undefined) this.#commands.take(frame);
      else if (reply instanceof Promise) void this.#answerLater(id, reply);
      else this.#answer(id ?? undefined, reply);
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #read(text: string): JsonObject {
    try {
      return parseFrame(text);
    } catch (error) {
      // Invalid frames count too.
      this.#count();
      throw error;
    }
  }

  #count(): void {
    const waitMs = this.#parts.rate();
    if (waitMs > 0) throw this.#parts.tooMany(waitMs);
  }

  #control(frame: JsonObject): boolean {
    switch (frame["type"]) {
      case "ping":
        this.#answer(parseControl("ping", frame).id, this.#position());
        return true;
      case "cancel": {
        const { id, command } = parseControl("cancel", frame);
        this.#answer(id, { cancelled: this.#commands.cancel(command) });
        return true;
      }
      case "subscribe": {
        const { id, after, epoch, events } = parseControl("subscribe", frame);
        this.#receiver.wants = eventFilter(events);
        this.#answer(id, this.#position());
        if (after !== undefined) this.#parts.feed.replay(this.#receiver, { after, epoch });
        return true;
      }
      default:
        return false;
    }
  }

  #position(): { readonly epoch: string; readonly seq: number } {
    const { epoch, seq } = this.#parts.feed;
    return { epoch, seq };
  }

  #answer(id: CommandId | undefined, output: object): void {
    if (id !== undefined) this.#send({ ...output, id, ok: true });
  }

  async #answerLater(id: CommandId | null, reply: Promise<object>): Promise<void> {
    try {
      this.#answer(id ?? undefined, await reply);
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #fail(id: CommandId | null, thrown: unknown): void {
    const { redactor, warn } = this.#parts;
    this.#send({ id, ok: false, error: toErrorObject(thrown, redactor, warn) });
  }

  #send(frame: object): void {
    this.#write(JSON.stringify(frame));
  }

  /** Above the rate limit pings are not answered. */
  #pong(data: Buffer): void {
    if (!this.#isOpen) return;
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) this.#socket.terminate();
    else if (this.#parts.rate() === 0) this.#socket.pong(data);
  }

  #write(frame: string | Buffer): void {
    if (!this.#isOpen) return;
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) {
      this.close(...CLOSE.slow);
      return;
    }
    this.#gather();
    this.#socket.send(frame, { binary: false });
  }

  /** Frames of one turn are written together: with many clients the system calls would dominate. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const { socket: wire } = this.#upgrade;
    wire.cork();
    setImmediate(() => {
      this.#isGathering = false;
      wire.uncork();
    });
  }
}

function parseControl<Name extends keyof typeof CONTROLS>(
  name: Name,
  frame: JsonObject,
): ReturnType<(typeof CONTROLS)[Name]["parse"]> {
  const result = CONTROLS[name].safeParse(frame);
  // The schema of that name gave it.
  if (result.success) return result.data as ReturnType<(typeof CONTROLS)[Name]["parse"]>;
  const [issue] = result.error.issues;
  const where = issue?.path.join(".") ?? "";
  throw new ToolcribError(
    "invalid_arguments",
    `A frame "${name}" is invalid${where === "" ? "" : ` at ${where}`}: ${issue?.message ?? ""}`,
  );
}
