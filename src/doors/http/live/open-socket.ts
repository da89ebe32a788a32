/** The WebSocket door at `/ws`. The listener has made sure of who comes; the `ws` package is loaded with the first one. */
import type { WebSocket, WebSocketServer } from "ws";
import { SOCKET_PATH } from "../../../contract/socket.ts";
import type { OwnedIds } from "../../../hub/cluster/owned-ids.ts";
import type { Caller } from "../../../model/caller.ts";
import { type Clock, systemClock } from "../../../model/clock.ts";
import { asToolcribError, ERROR_TABLE, ToolcribError } from "../../../model/errors.ts";
import { type CallerQuota, Quota, quotaError } from "../../../policy/quota.ts";
import type { Session } from "../../../sessions/session.ts";
import { rawError, sendError } from "../answers.ts";
import type { Masking } from "../api/operation.ts";
import type { Operations } from "../api/operations.ts";
import { namedSession, openCallerSession, type SessionExtras } from "../caller-session.ts";
import type { HttpRoute, HttpUpgrade } from "../exchange.ts";
import { nothingAt } from "../own-routes.ts";
import { RateLimit } from "../rate-limit.ts";
import type { EventFeed } from "./event-feed.ts";
import { type EventFilter, filterOfQuery } from "./event-filter.ts";
import type { SessionHub } from "./feed-hub.ts";
import { CLOSE, LiveSocket } from "./live-socket.ts";
import { type ResumePoint, resumePoint } from "./resume-point.ts";
import { localName, withLocalNames } from "./session-names.ts";

// Not imported as a module: that loads Node's whole fetch as well.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** What a client has to offer if it offers any protocol. A browser's token travels beside it, as `bearer.<token>`. */
export const PROTOCOL = "toolcrib.v1";

const CREDENTIALS_MS = 15_000;
/** Every second look at the credentials is a heartbeat too. */
const LOOKS_PER_BEAT = 2;
const GOODBYE_MS = 1000;

export interface SocketLimits {
  /** Size of a frame. */
  readonly bodyBytes: number;
  /** Open sockets. */
  readonly streams: CallerQuota;
  /** Frames of one caller. */
  readonly requestsPerMinute: number;
}

export interface SocketParts extends SessionExtras {
  readonly hub: SessionHub;
  readonly feed: EventFeed;
  readonly operations: Pick<Operations, "run">;
  /** In a cluster: ids that say which node has what they stand for. */
  readonly ids?: Pick<OwnedIds, "findAtOnce"> | undefined;
  readonly redactor: Masking;
  /** Asked for with every socket that comes, and every few seconds. */
  readonly limits: () => SocketLimits;
  readonly warn: (message: string) => void;
  readonly clock?: Clock;
}

export interface SocketDoor {
  readonly route: HttpRoute;
  readonly size: number;
  /** @param graceMs What commands under way get. */
  close(graceMs?: number): Promise<void>;
}

export function openSocket(parts: SocketParts): SocketDoor {
  return new Sockets(parts);
}

class Sockets implements SocketDoor {
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
      if (path !== SOCKET_PATH) throw nothingAt(path);
      const error = new ToolcribError("invalid_arguments", "A WebSocket is spoken here.");
      sendError(response, error, { status: 426, headers: { upgrade: "websocket" } });
    },
    upgrade: (upgrade) => void this.#take(upgrade),
  };

  get size(): number {
    return this.#open.size;
  }

  close(graceMs = GOODBYE_MS): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    this.#stopWatch?.();
    const open = [...this.#open];
    await this.#within(graceMs, Promise.all(open.map((socket) => socket.finish())));
    for (const socket of open) socket.close(...CLOSE.goingAway);
    const closed = Promise.all(open.map((socket) => socket.closed));
    await this.#within(GOODBYE_MS, closed);
    for (const socket of open) socket.terminate();
    await closed;
  }

  async #within(ms: number, work: Promise<unknown>): Promise<void> {
    let stop = (): void => {};
    const late = new Promise<void>((resolve) => (stop = this.#clock.after(ms, resolve)));
    await Promise.race([work, late]);
    stop();
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
      // However it ends, also before anything was agreed on.
      socket.once("close", giveBack);
      const [wants, from] = [filterOfQuery(query), resumePoint(query)];
      const server = await this.#serverOf(this.#limits.bodyBytes);
      if (socket.destroyed || this.#closed !== undefined) {
        socket.destroy();
        giveBack();
        return;
      }
      server.handleUpgrade(request, socket, head, (made) => this.#begin(made, upgrade, wants, from));
    } catch (error) {
      giveBack?.();
      refuse(upgrade, asToolcribError(error));
    } finally {
      socket.off("error", onError);
    }
  }

  #begin(socket: WebSocket, upgrade: HttpUpgrade, wants: EventFilter, from: ResumePoint | undefined): void {
    const { hub, feed, ids, redactor, warn } = this.#parts;
    const { caller, base: baseUrl } = upgrade;
    let session: Session;
    try {
      session = openCallerSession(hub, caller, "websocket", this.#parts);
    } catch {
      socket.close(...CLOSE.goingAway);
      return;
    }
    const live = new LiveSocket(
      {
        ...{
          socket,
          wire: upgrade.socket,
          caller,
          session,
          baseUrl,
          feed,
          operations: withLocalNames(ids, this.#parts.operations),
          redactor,
          warn,
          clock: this.#clock,
        },
        sessionOf: (id) => namedSession(hub, caller, localName(ids, id), { anyWithAdmin: true }),
        stillAdmitted: () => upgrade.stillAdmitted(),
        rate: (key) => this.#rate.take(key),
      },
      wants,
      from,
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
    if (this.#closed !== undefined) throw new ToolcribError("server_unavailable", "The hub stops.");
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
      // It would answer every ping, also of somebody who never reads.
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
      const isBeat = this.#looks % LOOKS_PER_BEAT === 0;
      for (const socket of this.#open) {
        socket.checkCredentials();
        if (isBeat) socket.beat();
      }
      if (this.#open.size > 0) this.#watch();
    });
  }
}

/** Before the handshake it is still HTTP. */
function refuse({ socket }: HttpUpgrade, error: ToolcribError): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = ERROR_TABLE[error.code].http;
  // Otherwise nobody would read it any more, and notice that the other side has gone.
  socket.resume();
  socket.end(rawError(status, STATUS_CODES[status] ?? "Error", error.toObject()), () => socket.destroy());
}
