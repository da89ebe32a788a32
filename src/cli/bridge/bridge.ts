/**
 * Carries the lines of one stdio client to a hub in another process and back. When the hub ends it connects again, opens the
 * session again and goes on. Messages pass as they are: of the hub's only the first bytes are looked at.
 */
import type { Duplex, Readable, Writable } from "node:stream";

export interface BridgeOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Opens a connection to the hub; starts one if none runs. */
  readonly connect: () => Promise<Duplex>;
  /** For a person who reads stderr. */
  readonly tell: (message: string) => void;
  /** How long to try when the hub has ended. */
  readonly reconnectMs?: number | undefined;
}

interface ClientMessage {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: { readonly requestId?: unknown; readonly uri?: unknown; readonly _meta?: Record<string, unknown> };
}

interface Request {
  readonly method: string;
  readonly line: Buffer;
}

const NEWLINE = Buffer.from("\n");
/** The hub's messages begin like this. A longer id is found by parsing. */
const HEAD_BYTES = 300;
const HEAD = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|null),"(result|error|method)"/;
/** These change nothing at a server: they are sent again to the next hub. */
const REPEATABLE = new Set([
  "initialize",
  "ping",
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/subscribe",
  "resources/unsubscribe",
  "subscriptions/listen",
  "logging/setLevel",
  "completion/complete",
]);
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";
const LISTS = ["tools", "prompts", "resources"];
/** `server_unavailable` of the table of errors. */
const UNAVAILABLE = -32013;
const RECONNECT_MS = 60_000;
const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [50, 2000];

export class Bridge {
  readonly #options: BridgeOptions;
  /** Requests of the client without an answer, by their id as JSON. */
  readonly #requests = new Map<string, Request>();
  /** Requests of the hub without an answer. */
  readonly #asked = new Set<string>();
  /** Those of a hub that has ended; the client's answers are for no one. */
  readonly #stale = new Set<string>();
  /** Our own requests, whose answers the client must not see, and what to do with them. */
  readonly #own = new Map<string, (line: Buffer) => void>();
  readonly #subscriptions = new Map<unknown, Buffer>();
  /** Lines that came while no hub was connected. */
  #waiting: Buffer[] = [];
  #initialize: Buffer | undefined;
  #initialized: Buffer | undefined;
  #logLevel: Buffer | undefined;
  #hub: Duplex | undefined;
  #ownIds = 0;
  #notice: { readonly text: string; isSent: boolean } | undefined;
  #inputEnded = false;
  #finish: (exitCode: number) => void = () => {};

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  /** Tells the client something over its own protocol, as soon as it takes messages. The same text once. */
  warn(text: string): void {
    if (this.#notice?.text === text) return;
    this.#notice = { text, isSent: false };
    if (this.#initialized !== undefined) this.#sendNotice();
  }

  /** Resolves with the exit code when the client has ended, or when no hub can be reached any more. */
  async run(): Promise<number> {
    const { input, output } = this.#options;
    const finished = new Promise<number>((resolve) => (this.#finish = resolve));
    this.#take(await this.#options.connect());
    const lines = new Lines((line) => this.#fromClient(line));
    const end = (): void => this.#endInput(lines);
    input.on("data", (chunk: Buffer) => lines.push(chunk));
    input.once("end", end).once("close", end).once("error", end);
    output.once("error", () => this.#finish(0));
    return finished;
  }

  #take(hub: Duplex): void {
    this.#hub = hub;
    const lines = new Lines((line) => this.#fromHub(line));
    hub.on("data", (chunk: Buffer) => lines.push(chunk));
    hub.once("close", () => this.#lost(hub));
    hub.on("error", () => {});
    hub.on("drain", () => this.#options.input.resume());
    hub.resume();
  }

  #fromClient(line: Buffer): void {
    const message = parse(line);
    for (const one of Array.isArray(message) ? message : [message]) {
      if (one !== undefined && this.#note(one, line)) return;
    }
    this.#send(line);
  }

  /** True for a message that is not for the hub. */
  #note({ id, method, params }: ClientMessage, line: Buffer): boolean {
    const key = JSON.stringify(id);
    if (method === undefined) {
      this.#asked.delete(key);
      return this.#stale.delete(key);
    }
    if (id !== undefined) {
      this.#requests.set(key, { method, line });
      if (method === "initialize") this.#initialize = line;
      else if (method === "logging/setLevel") this.#logLevel = line;
      else if (method === "resources/subscribe") this.#subscriptions.set(params?.uri, line);
      else if (method === "resources/unsubscribe") this.#subscriptions.delete(params?.uri);
      // A client of the stateless era gets log messages with the requests that ask for them.
      if (params?._meta?.[LOG_LEVEL_KEY] !== undefined) this.#sendNotice();
    } else if (method === "notifications/initialized") {
      this.#initialized = line;
      this.#sendNotice();
    } else if (method === "notifications/cancelled") this.#requests.delete(JSON.stringify(params?.requestId));
    return false;
  }

  #sendNotice(): void {
    if (this.#notice === undefined || this.#notice.isSent) return;
    this.#notice.isSent = true;
    const params = { level: "warning", logger: "toolcrib", data: this.#notice.text };
    this.#write(Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params })));
  }

  #fromHub(line: Buffer): void {
    const [, id, member] = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES)) ?? [];
    if (id === undefined) {
      this.#fromHubParsed(line);
      return;
    }
    if (member === "method") this.#asked.add(id);
    else if (this.#answered(id, line)) return;
    this.#write(line);
  }

  /** A batch, or a message with a very long id. */
  #fromHubParsed(line: Buffer): void {
    const message = parse(line);
    for (const { id, method } of [message ?? []].flat()) {
      if (id === undefined) continue;
      if (method !== undefined) this.#asked.add(JSON.stringify(id));
      else this.#requests.delete(JSON.stringify(id));
    }
    this.#write(line);
  }

  /** True for the answer to a request of our own. */
  #answered(key: string, line: Buffer): boolean {
    const own = this.#own.get(key);
    if (own === undefined) {
      this.#requests.delete(key);
      return false;
    }
    this.#own.delete(key);
    own(line);
    return true;
  }

  #write(line: Buffer): void {
    const { output } = this.#options;
    output.cork();
    output.write(line);
    if (!output.write(NEWLINE) && this.#hub !== undefined) {
      const hub = this.#hub;
      hub.pause();
      output.once("drain", () => hub.resume());
    }
    output.uncork();
  }

  #send(line: Buffer): void {
    const hub = this.#hub;
    if (hub === undefined) {
      this.#waiting.push(line);
      return;
    }
    hub.cork();
    hub.write(line);
    if (!hub.write(NEWLINE)) this.#options.input.pause();
    hub.uncork();
  }

  #endInput(lines: Lines): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    lines.end();
    // The hub answers what is in progress, then closes.
    this.#hub?.end();
  }

  #lost(hub: Duplex): void {
    if (this.#hub !== hub) return;
    this.#hub = undefined;
    this.#own.clear();
    for (const key of this.#asked) this.#stale.add(key);
    this.#asked.clear();
    for (const [key, { method }] of this.#requests) {
      if (!this.#inputEnded && REPEATABLE.has(method)) continue;
      this.#requests.delete(key);
      this.#write(lostError(key, method));
    }
    this.#options.input.resume();
    if (this.#inputEnded) this.#finish(0);
    else void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    const { connect, tell, reconnectMs = RECONNECT_MS } = this.#options;
    tell("The hub has ended; connecting again.");
    const until = uptimeMs() + reconnectMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        const hub = await connect();
        this.#take(hub);
        this.#resume();
        return;
      } catch (error) {
        if (uptimeMs() > until || this.#inputEnded) {
          this.#giveUp(error);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  /** Opens the session again at another hub, as the client had opened it. */
  #resume(): void {
    const unanswered = [...this.#requests.values()].map(({ line }) => line);
    const hadSession = this.#initialize !== undefined && !unanswered.includes(this.#initialize);
    if (hadSession && this.#initialize !== undefined) {
      this.#request(this.#initialize, (line) => this.#resumed(line));
      if (this.#initialized !== undefined) this.#send(this.#initialized);
      for (const line of [this.#logLevel, ...this.#subscriptions.values()]) {
        if (line !== undefined && !unanswered.includes(line)) this.#request(line, () => {});
      }
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const line of unanswered) if (!waiting.includes(line)) this.#send(line);
    for (const line of waiting) this.#send(line);
    if (this.#inputEnded) this.#hub?.end();
  }

  /** The lists may be others than those of the hub before. */
  #resumed(answer: Buffer): void {
    const message = parse(answer);
    if (message === undefined || !("result" in message)) {
      this.#options.tell("The hub does not accept the session any more.");
      this.#finish(1);
      return;
    }
    this.#options.tell("Connected again.");
    if (this.#initialized === undefined) return;
    for (const list of LISTS) {
      this.#write(Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: `notifications/${list}/list_changed` })));
    }
  }

  /** Sends a request of the client once more, under an id of our own. */
  #request(line: Buffer, onAnswer: (line: Buffer) => void): void {
    const id = `toolcrib-bridge-${++this.#ownIds}`;
    this.#own.set(JSON.stringify(id), onAnswer);
    this.#send(Buffer.from(JSON.stringify({ ...parse(line), id })));
  }

  #giveUp(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.tell(`No hub can be reached: ${reason}`);
    for (const [key, { method }] of this.#requests) this.#write(lostError(key, method, false));
    this.#requests.clear();
    this.#finish(1);
  }
}

/** `performance` would load a megabyte of Node. */
export function uptimeMs(): number {
  return process.uptime() * 1000;
}

/** @param sent False for a request that no hub has got. */
export function lostError(key: string, method: string, sent = true): Buffer {
  const mayHaveRun = sent && method === "tools/call";
  const message = mayHaveRun
    ? "The hub ended while the call was in progress. The tool may have run: look before you call it again."
    : `The hub ended before it answered ${method}. It can be sent again.`;
  const error = { code: UNAVAILABLE, message, data: { code: "server_unavailable", message, details: { mayHaveRun } } };
  return Buffer.from(`{"jsonrpc":"2.0","id":${key},"error":${JSON.stringify(error)}}`);
}

function parse(line: Buffer): ClientMessage | undefined {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    // Only members that a message may have are read, and each is checked where it is used.
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Cuts a stream at its line ends, without decoding it. */
class Lines {
  readonly #onLine: (line: Buffer) => void;
  #parts: Buffer[] = [];

  constructor(onLine: (line: Buffer) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      this.#parts.push(chunk.subarray(from, at));
      this.end();
      from = at + 1;
    }
    if (from < chunk.length) this.#parts.push(chunk.subarray(from));
  }

  end(): void {
    const [first, ...rest] = this.#parts;
    this.#parts = [];
    if (first === undefined) return;
    const line = rest.length === 0 ? first : Buffer.concat([first, ...rest]);
    if (line.length > 0) this.#onLine(line);
  }
}
