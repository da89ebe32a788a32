/** Events and commands over a WebSocket that reconnects by itself and continues where it left off. */
import type {
  AnyCommand,
  CommandInput,
  CommandOutput,
  FieldsOf,
  HubEvent,
  ProgressFrame,
} from "../contract/websocket.ts";
import type { ErrorObject } from "../model/errors.ts";
import { cancelledError, isObject, ToolcribApiError } from "./api-error.ts";
import { type ExtraTool, ExtraToolHost, type ExtraToolsOptions } from "./extra-tool-host.ts";
import { reconnectDelay, type Socket } from "./hub-socket.ts";
import { queryOf } from "./rest-operations.ts";

/** `lost`: disconnected, and retried unless the token was refused. `closed`: closed by this side, for good. */
export type LiveStatus = "connecting" | "open" | "lost" | "closed";

export interface LiveOptions {
  readonly onEvent?: (event: HubEvent) => void;
  /** `refusal` is set if the hub rejects this client. After a refused token only `retry` connects again. */
  readonly onStatus?: (status: LiveStatus, refusal?: ToolcribApiError) => void;
  /** Events were lost, or the hub was restarted: read the lists again. */
  readonly onResync?: (missed: FieldsOf<"events.lost">) => void;
  /** Only these events, with `mcp.*` for a group; all by default. */
  readonly events?: readonly string[];
  /** Runs a task later; for tests. */
  readonly after?: (ms: number, task: () => void) => () => void;
}

interface LiveTransport {
  readonly open: (query: string) => Socket;
  /** Finds out why a WebSocket was refused; undefined if it was not an access error. Never rejects. */
  readonly refusal: () => Promise<ToolcribApiError | undefined>;
  /** Whether a refusal is final, unlike that of a cookie, which a login renews. */
  readonly refusedForGood: boolean;
}

interface Position {
  readonly epoch: string;
  readonly seq: number;
}

const OPEN_TIMEOUT_MS = 15_000;
/** A dead connection is detected by a missing pong. */
const PING_INTERVAL_MS = 25_000;

export class LiveConnection {
  readonly #way: LiveTransport;
  readonly #options: LiveOptions;
  readonly #pending = new PendingCommands();
  readonly #extraTools = new ExtraToolHost(
    (type, fields) => this.command(type, fields),
    (ms, task) => this.#after(ms, task),
  );
  #status: LiveStatus = "connecting";
  #socket: Socket | undefined;
  #position: Position | undefined;
  #attempts = 0;
  #refusal: ToolcribApiError | undefined;
  /** Identifies the latest check why an attempt failed. */
  #asking: symbol | undefined;
  #stopTimer: () => void = () => {};
  /** Commands from before the first connection. */
  #waiting: (() => void)[] = [];
  readonly #onOnline = (): void => this.retry();

  constructor(way: LiveTransport, options: LiveOptions) {
    this.#way = way;
    this.#options = options;
    page.addEventListener?.("online", this.#onOnline);
    this.#connect();
  }

  get status(): LiveStatus {
    return this.#status;
  }

  /** Runs a command of the contract, or any operation. Rejects with ToolcribApiError. */
  async command<Name extends AnyCommand>(
    type: Name,
    fields: CommandInput<Name>,
    options: CommandOptions = {},
  ): Promise<CommandOutput<Name>> {
    if (this.#status === "connecting") await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#status !== "open") throw this.#refusal ?? notSent();
    // A reply that is ok has the operation's output.
    return (await this.#pending.run(type, fields, options, (frame) => this.#send(frame))) as CommandOutput<Name>;
  }

  /**
   * Offers tools that this process runs to a session. They replace the tools that it had from here; an empty list removes them.
   * They are available while connected, and are offered again after a reconnect.
   *
   *     await live.setExtraTools([{ name: "now", description: "The time.", execute: () => new Date().toISOString() }]);
   */
  setExtraTools(
    tools: readonly ExtraTool[],
    { session }: ExtraToolsOptions = {},
  ): Promise<CommandOutput<"sessions.setExtraTools">> {
    return this.#extraTools.set(tools, session);
  }

  /** Reconnects at once if the connection is lost. */
  retry(): void {
    if (this.#status !== "lost") return;
    this.#drop("lost");
    this.#attempts = 0;
    this.#connect();
  }

  close(): void {
    if (this.#status === "closed") return;
    page.removeEventListener?.("online", this.#onOnline);
    this.#drop("closed");
  }

  #connect(): void {
    const { events } = this.#options;
    const query = queryOf([
      ["after", this.#position?.seq],
      ["epoch", this.#position?.epoch],
      ["events", events?.join(",")],
    ]);
    const socket = this.#way.open(query);
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#isCurrent(socket) && this.#take(data));
    socket.addEventListener("close", () => this.#isCurrent(socket) && this.#lost());
    // A close follows; without a listener some implementations throw.
    socket.addEventListener("error", () => {});
    this.#stopTimer = this.#after(OPEN_TIMEOUT_MS, () => this.#lost());
  }

  #isCurrent(socket: Socket): boolean {
    return this.#socket === socket;
  }

  #take(data: unknown): void {
    const frame = typeof data === "string" ? parsed(data) : undefined;
    if (frame === undefined) return;
    if (frame["type"] === "hello") this.#welcome(frame);
    // Outputs may have a type of their own, events never have `ok` or a progress.
    else if (!this.#pending.answer(frame) && typeof frame["type"] === "string") this.#event(frame);
  }

  #welcome({ epoch, seq }: Readonly<Record<string, unknown>>): void {
    if (typeof epoch !== "string" || typeof seq !== "number") return;
    // Sequence numbers of a previous run are useless; the loss is reported as an event.
    if (this.#position?.epoch !== epoch) this.#position = { epoch, seq };
    this.#attempts = 0;
    this.#stopTimer();
    this.#askLater();
    this.#become("open");
    this.#extraTools.renew();
  }

  #event(frame: Readonly<Record<string, unknown>>): void {
    // Frames that are not replies are events of the contract, or of a newer one.
    const event = frame as HubEvent;
    const seq = event.type === "events.lost" ? event.to : event.seq;
    if (seq !== undefined && this.#position !== undefined) this.#position = { ...this.#position, seq };
    this.#extraTools.take(event);
    this.#options.onEvent?.(event);
    if (event.type === "events.lost") this.#options.onResync?.({ from: event.from, to: event.to });
  }

  /** The reply also has the current sequence number, which events for other clients advance. */
  #askLater(): void {
    this.#stopTimer = this.#after(PING_INTERVAL_MS, () => {
      this.#stopTimer = this.#after(PING_INTERVAL_MS, () => this.#lost());
      const asked = this.#pending.run("ping", {}, {}, (frame) => this.#send(frame));
      asked.then(
        (position) => {
          if (this.#position !== undefined && "seq" in position && typeof position.seq === "number")
            this.#position = { ...this.#position, seq: position.seq };
          this.#stopTimer();
          this.#askLater();
        },
        () => {},
      );
    });
  }

  #lost(): void {
    if (this.#status !== "open") return void this.#askWhy();
    this.#drop("lost");
    this.#connectLater();
  }

  async #askWhy(): Promise<void> {
    this.#letGo();
    const asking = (this.#asking = Symbol("asking"));
    const refusal = await this.#way.refusal();
    if (this.#asking !== asking) return;
    this.#become("lost", refusal);
    if (refusal === undefined || !this.#way.refusedForGood) this.#connectLater();
  }

  #connectLater(): void {
    this.#stopTimer = this.#after(reconnectDelay(this.#attempts++), () => this.#connect());
  }

  #drop(status: "lost" | "closed"): void {
    this.#letGo();
    this.#extraTools.abortAll();
    this.#become(status);
    this.#pending.rejectAll(connectionLost());
  }

  #letGo(): void {
    this.#stopTimer();
    this.#asking = undefined;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  #become(status: LiveStatus, refusal?: ToolcribApiError): void {
    const isNew = this.#status !== status || this.#refusal?.code !== refusal?.code;
    this.#status = status;
    this.#refusal = refusal;
    if (isNew) this.#options.onStatus?.(status, refusal);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #after(ms: number, task: () => void): () => void {
    return (this.#options.after ?? runLater)(ms, task);
  }
}

function connectionLost(): ToolcribApiError {
  return new ToolcribApiError({
    code: "server_unavailable",
    message: "The connection to the hub was lost.",
    hint: "The command may or may not have run. Check before you send it again.",
  });
}

function notSent(): ToolcribApiError {
  return new ToolcribApiError({
    code: "server_unavailable",
    message: "The command was not sent, because there is no connection to the hub.",
    hint: "Check that `toolcrib serve` is running and that the URL is correct.",
  });
}

/** Browsers report when the network is back. */
interface Page {
  readonly addEventListener?: (type: "online", listener: () => void) => void;
  readonly removeEventListener?: (type: "online", listener: () => void) => void;
}

// Node's types do not have these two.
const page = globalThis as Page;

function runLater(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms);
  return () => clearTimeout(timer);
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface CommandOptions {
  readonly onProgress?: (progress: ProgressFrame["progress"]) => void;
  /** Stops waiting for the reply. A command that changes the hub still finishes. */
  readonly signal?: AbortSignal;
}

interface Pending extends CommandOptions {
  readonly resolve: (output: object) => void;
  readonly reject: (error: ToolcribApiError) => void;
  readonly settle: () => void;
}

class PendingCommands {
  readonly #pending = new Map<number, Pending>();
  #last = 0;

  /** @param send Puts a frame on the wire. */
  run(type: string, fields: object, options: CommandOptions, send: (frame: object) => void): Promise<object> {
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(cancelledError(signal.reason));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        send({ type: "cancel", command: id });
        this.#take(id)?.reject(cancelledError(signal?.reason));
      };
      signal?.addEventListener("abort", giveUp);
      const settle = (): void => signal?.removeEventListener("abort", giveUp);
      this.#pending.set(id, { ...options, resolve, reject, settle });
      send({ ...fields, id, type });
    });
  }

  /** False if the frame is not a reply to a pending command. */
  answer(frame: Readonly<Record<string, unknown>>): boolean {
    const { id, ok, ...output } = frame;
    if (typeof id !== "number") return false;
    if (ok === true) this.#take(id)?.resolve(output);
    // A reply that is not ok has an error of the table.
    else if (ok === false) this.#take(id)?.reject(new ToolcribApiError(frame["error"] as ErrorObject));
    else if (isProgress(frame["progress"])) this.#pending.get(id)?.onProgress?.(frame["progress"]);
    else return false;
    return true;
  }

  rejectAll(error: ToolcribApiError): void {
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.settle();
    return pending;
  }
}

function isProgress(value: unknown): value is ProgressFrame["progress"] {
  return isObject(value) && typeof value["progress"] === "number";
}
