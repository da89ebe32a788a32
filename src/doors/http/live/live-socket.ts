/** One WebSocket: commands come in, replies and events go out, and a client that does not read is let go. */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { CONTROLS } from "../../../contract/socket.ts";
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { Session } from "../../../sessions/session.ts";
import type { Masking } from "../api/operation.ts";
import type { Operations } from "../api/operations.ts";
import type { EventFeed, Receiver } from "./event-feed.ts";
import { type EventFilter, eventFilter } from "./event-filter.ts";
import { ExtraTools } from "./extra-tools.ts";
import { type CommandId, commandId, errorFor, parseFrame } from "./frames.ts";
import type { Frame } from "./numbered-event.ts";
import type { ResumePoint } from "./resume-point.ts";
import { SocketCommands } from "./socket-commands.ts";

/** More than this may not wait for a client that does not read. One frame may come on top. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** What the package calls a frame above `maxPayload`. */
const FRAME_TOO_LARGE = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
/** How long a client has to answer that the connection is closed. */
const GOODBYE_MS = 2000;

/** Numbers of RFC 6455, and what they say here. */
export const CLOSE = {
  goingAway: [1001, "The hub stops."],
  noText: [1003, "Frames must be text."],
  notAdmitted: [1008, "The credentials have ended."],
  sessionEnded: [1008, "The session was ended."],
  slow: [1013, "Too much waits to be read. Come back and resume."],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;

export interface LiveSocketOptions {
  readonly socket: WebSocket;
  /** The connection under it. */
  readonly wire: Duplex;
  readonly caller: Caller;
  readonly session: Session;
  /** Another that the caller may give tools to. */
  readonly sessionOf: (id: string) => Session | undefined;
  readonly baseUrl: string;
  readonly stillAdmitted: () => boolean;
  readonly feed: EventFeed;
  readonly operations: Pick<Operations, "run">;
  readonly redactor: Masking;
  readonly clock: Clock;
  /** Milliseconds to wait before the next frame is taken; 0 if it is. */
  readonly rate: (key: string) => number;
  readonly warn: (message: string) => void;
}

export class LiveSocket {
  readonly #options: LiveSocketOptions;
  readonly #socket: WebSocket;
  readonly #commands: SocketCommands;
  readonly #extraTools: ExtraTools;
  readonly #receiver: Receiver & { wants: EventFilter };
  readonly #closed: Promise<void>;
  readonly #unsubscribe: () => void;
  #isAlive = true;
  #isGathering = false;

  constructor(options: LiveSocketOptions, wants: EventFilter, from: ResumePoint | undefined) {
    const { socket, caller, session, sessionOf, baseUrl, operations, feed, clock } = options;
    this.#options = options;
    this.#socket = socket;
    this.#receiver = { caller, session, wants, send: (frame) => this.#sendEvent(frame) };
    this.#commands = new SocketCommands({
      operations,
      context: { caller, session, baseUrl, tell: (type, fields) => this.#send({ type, ...fields }) },
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
      if (isBinary) this.#refuseBinary();
      // Texts come as one Buffer, as `binaryType` is left at its default.
      else this.#take((data as Buffer).toString("utf8"));
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

  /** Ends a connection whose other side has not answered since the last beat. */
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
    if (!this.#options.stillAdmitted()) this.close(...CLOSE.notAdmitted);
  }

  /** Resolves when its commands are answered; what comes from now on is refused. */
  finish(): Promise<void> {
    return this.#commands.finish();
  }

  close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#socket.close(code, reason);
    this.#leave();
    this.#options.clock.after(GOODBYE_MS, () => this.#socket.terminate());
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #leave(): void {
    this.#unsubscribe();
    this.#extraTools.close();
    this.#commands.cancelAll();
    this.#options.session.close();
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  #take(text: string): void {
    let id: CommandId | null = null;
    try {
      const frame = this.#read(text);
      id = commandId(frame) ?? null;
      // An answer that the hub asked for is no command of the client's own.
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
      // Also what is no command counts.
      this.#count();
      throw error;
    }
  }

  #count(): void {
    const waitMs = this.#options.rate(this.#options.caller.key);
    if (waitMs > 0) throw tooMany(waitMs);
  }

  #control(frame: JsonObject): boolean {
    switch (frame["type"]) {
      case "ping":
        this.#answer(checked("ping", frame).id, this.#position());
        return true;
      case "cancel": {
        const { id, command } = checked("cancel", frame);
        this.#answer(id, { cancelled: this.#commands.cancel(command) });
        return true;
      }
      case "subscribe": {
        const { id, after, epoch, events } = checked("subscribe", frame);
        const wants = eventFilter(events);
        this.#receiver.wants = wants;
        this.#answer(id, this.#position());
        const from = { after: after ?? 0, epoch };
        if (after !== undefined) this.#options.feed.replay(this.#receiver, from);
        return true;
      }
      default:
        return false;
    }
  }

  #position(): { readonly epoch: string; readonly seq: number } {
    const { epoch, seq } = this.#options.feed;
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
    const { redactor, warn } = this.#options;
    this.#send({ id, ok: false, error: errorFor(thrown, redactor, warn) });
  }

  #refuseBinary(): void {
    this.#fail(null, new ToolcribError("invalid_arguments", "Frames must be text."));
    this.close(...CLOSE.noText);
  }

  #send(frame: object): void {
    this.#write(JSON.stringify(frame));
  }

  /** Above the rate there is no answer: who asks that often does not wait for one. */
  #pong(data: Buffer): void {
    if (!this.#isOpen) return;
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) this.#socket.terminate();
    else if (this.#options.rate(this.#options.caller.key) === 0) this.#socket.pong(data);
  }

  #sendEvent(frame: Frame): void {
    this.#write(frame.bytes);
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

  /** What is sent in one turn goes out at once: with many clients the calls to the system would cost more than all the rest. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const { wire } = this.#options;
    wire.cork();
    setImmediate(() => {
      this.#isGathering = false;
      wire.uncork();
    });
  }
}

function checked<Name extends keyof typeof CONTROLS>(
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
    `A frame "${name}" is not right${where === "" ? "" : ` at ${where}`}: ${issue?.message ?? ""}`,
  );
}

function tooMany(waitMs: number): ToolcribError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new ToolcribError("rate_limited", `Too many commands. Try again in ${seconds} s.`, {
    hint: "http.limits.requestsPerMinute sets the limit.",
    details: { retryAfterMs: seconds * 1000 },
  });
}
