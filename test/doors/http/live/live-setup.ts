/** The live doors behind a real listener, with operations that a test plays. */
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { OperationName } from "../../../../src/contract/operations.ts";
import type { OperationContext } from "../../../../src/doors/http/api/operation-handler.ts";
import type { HttpRoute } from "../../../../src/doors/http/http-exchange.ts";
import { tooManyRequests } from "../../../../src/doors/http/http-access.ts";
import { EventFeed } from "../../../../src/doors/http/live/event-feed.ts";
import { EventStreams } from "../../../../src/doors/http/live/event-streams.ts";
import { WebSocketDoor, type SocketLimits } from "../../../../src/doors/http/live/websocket-door.ts";
import type { ListenerOptions } from "../../../../src/doors/http/listener.ts";
import type { Clock } from "../../../../src/base/clock.ts";
import { type Place, place } from "../support.ts";
import { type StagedHub, stagedHub } from "./fake-hub.ts";

export const BOSS = "boss-token-0123456789";
export const USER = "user-token-0123456789";
const GUEST = "guest-token-0123456789";

export interface Asked {
  readonly name: OperationName;
  readonly input: Readonly<Record<string, unknown>>;
  readonly context: OperationContext;
}

export interface LivePlace extends Place {
  readonly hub: StagedHub;
  readonly feed: EventFeed;
  readonly door: WebSocketDoor;
  readonly streams: EventStreams;
  readonly asked: Asked[];
  /** What operations do; nothing if absent. */
  play: (asked: Asked) => unknown;
  connect(query?: string, token?: string): Promise<Talk>;
}

interface LiveOptions {
  readonly limits?: Partial<SocketLimits>;
  readonly clock?: Clock;
  readonly listener?: Partial<ListenerOptions>;
  readonly hub?: StagedHub;
  readonly ring?: { readonly events: number; readonly bytes: number };
}

export async function livePlace({ limits, clock, listener, hub: given, ring }: LiveOptions = {}): Promise<LivePlace> {
  const hub = given ?? (await stagedHub());
  const asked: Asked[] = [];
  const warnings: string[] = [];
  const timing = clock === undefined ? {} : { clock };
  const redactor = { maskAll: <Value>(value: Value): Value => value };
  const feed = new EventFeed(hub, redactor, { ...timing, ...(ring === undefined ? {} : { ring }) });
  const door = new WebSocketDoor({
    hub,
    feed,
    operations: {
      run: async (name, input, context) => {
        const one: Asked = { name, input: { ...(input as object) }, context };
        asked.push(one);
        return scene.play(one);
      },
    },
    redactor,
    limits: () => ({
      ...{ bodyBytes: 100_000, streams: { total: 10 }, requestsPerMinute: 10_000 },
      tooMany: (waitMs) =>
        tooManyRequests("commands", waitMs, hub.config.config.http, limits?.requestsPerMinute ?? 10_000),
      ...limits,
    }),
    warn: (message) => warnings.push(message),
    ...timing,
  });
  const streams = new EventStreams({
    feed,
    sessionOf: ({ owner, role }) => hub.openSession({ owner, role }),
    streams: () => limits?.streams ?? { total: 10 },
    ...timing,
  });
  const auth = {
    tokens: [
      { token: BOSS, scopes: ["admin"] },
      { token: USER, user: "ann" },
      { token: GUEST, role: "narrow", scopes: ["read"] },
    ],
  };
  // Only whoever may come in is answered at all.
  const me: HttpRoute = { path: "/api/v1/me", access: "read", handle: ({ response }) => void response.end("{}") };
  const listening = await place({ auth }, { routes: [door.route, me, ...streams.routes], ...timing, ...listener });
  onTestFinished(async () => {
    streams.close();
    await door.close(0);
    feed.close();
  });
  const scene: LivePlace = {
    ...listening,
    warnings,
    hub,
    feed,
    door,
    streams,
    asked,
    play: () => ({}),
    connect: (query = "", token = BOSS) => Talk.open(`${listening.url.replace("http", "ws")}/ws${query}`, token),
  };
  return scene;
}

export type Heard = Readonly<Record<string, unknown>>;

/** One client that keeps what it hears. */
export class Talk {
  readonly socket: WebSocket;
  readonly frames: Heard[] = [];
  readonly #ended: Promise<{ readonly code: number; readonly reason: string }>;
  #wake: () => void = () => {};

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      // Texts come as one Buffer.
      this.frames.push(JSON.parse((data as Buffer).toString("utf8")) as Heard);
      this.#wake();
    });
    this.#ended = new Promise((resolve) => {
      socket.once("close", (code, reason) => {
        this.#wake();
        resolve({ code, reason: reason.toString("utf8") });
      });
    });
    socket.on("error", () => {});
  }

  static async open(url: string, token: string, protocols: string[] = []): Promise<Talk> {
    const socket = new WebSocket(url, protocols, { headers: { authorization: `Bearer ${token}` } });
    onTestFinished(() => socket.terminate());
    const talk = new Talk(socket);
    await talk.until(({ type }) => type === "hello");
    return talk;
  }

  say(frame: object | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Resolves with the reply to the frame. */
  ask(frame: Heard): Promise<Heard> {
    this.say(frame);
    return this.until(({ id, ok }) => id === frame["id"] && typeof ok === "boolean");
  }

  /** The first frame that fits, also of those that came already. */
  async until(fits: (frame: Heard) => boolean): Promise<Heard> {
    for (;;) {
      const found = this.frames.find(fits);
      if (found !== undefined) return found;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed after ${JSON.stringify(this.frames)}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  ended(): Promise<{ readonly code: number; readonly reason: string }> {
    return this.#ended;
  }
}
