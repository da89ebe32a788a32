/** Requests about something that another node has: its answer is the answer, byte by byte and as it comes. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Cluster } from "../../../cluster/cluster.ts";
import { type Caller, type Scope, SCOPES } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import { headersFrom, passedHeaders, requestsOf, toWire } from "./request-head.ts";

/**
 * `gone`: that node is no more, and what it had has ended. `away`: it may live, and cannot be reached now. Nothing was
 * answered then.
 */
export type HandedOn = "answered" | "gone" | "away";

/** What is needed of an exchange. */
interface HandedExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Caller;
  readBody(): Promise<Buffer>;
  refuseScope(scope: Scope): void;
}

interface UnderWay {
  readonly relay: Relay;
  readonly done: Promise<unknown>;
}

export class HandedOnRequests {
  readonly #cluster: Cluster;
  readonly #underWay = new Set<UnderWay>();
  #closed = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get size(): number {
    return this.#underWay.size;
  }

  async handOn(exchange: HandedExchange, node: string): Promise<HandedOn> {
    const body = await exchange.readBody();
    if (this.#closed) return "away";
    const relay = new Relay(exchange);
    const done = this.#run(relay, exchange, node, body);
    const underWay = { relay, done };
    this.#underWay.add(underWay);
    try {
      return await done;
    } finally {
      this.#underWay.delete(underWay);
    }
  }

  /** What is owed to a request has so long; streams that a client opened only to listen end then. */
  async close(graceMs: number, clock: Clock): Promise<void> {
    let cancel: () => void = () => {};
    const late = new Promise<boolean>((resolve) => (cancel = clock.after(graceMs, () => resolve(true))));
    // Connections that are open already bring more requests meanwhile.
    for (let owed = this.#owed(); owed.length > 0; owed = this.#owed()) {
      if (await Promise.race([Promise.allSettled(owed).then(() => false), late])) break;
    }
    cancel();
    this.#closed = true;
    const left = this.#owed();
    for (const { relay } of this.#underWay) relay.leave();
    await Promise.allSettled(left);
    // Whoever handed them on answers them before connections are closed.
    if (left.length > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  #owed(): Promise<unknown>[] {
    return [...this.#underWay].filter(({ relay }) => !relay.onlyListens).map(({ done }) => done);
  }

  async #run(relay: Relay, { request, caller }: HandedExchange, node: string, body: Buffer): Promise<HandedOn> {
    const head = toWire({
      method: request.method ?? "GET",
      url: request.url ?? "/",
      headers: passedHeaders(request.headers),
      caller,
    });
    try {
      await this.#cluster.call(requestsOf(node), {
        head,
        ...(body.length === 0 ? {} : { body }),
        signal: relay.ended,
        onEvent: (event, bytes) => relay.take(event, bytes),
        // The only question is whether the client has read what came so far.
        onQuestion: async () => {
          await relay.drained();
          return {};
        },
      });
      relay.finish();
      return "answered";
    } catch (error) {
      if (relay.isClientGone || relay.cut()) return "answered";
      if (relay.ended.aborted) return "away";
      if (!(error instanceof ToolcribError)) throw error;
      const isGone = this.#cluster.isUp && !this.#cluster.nodes().some(({ id }) => id === node);
      return isGone ? "gone" : "away";
    }
  }
}

/** The client's side of one request that another node answers. */
class Relay {
  readonly #response: ServerResponse;
  readonly #refuseScope: (scope: Scope) => void;
  readonly #ended = new AbortController();
  readonly #isGet: boolean;
  #isStream = false;
  #isClientGone = false;
  #wake: () => void = () => {};
  #refused = false;

  constructor({ request, response, refuseScope }: HandedExchange) {
    this.#isGet = request.method === "GET";
    this.#response = response;
    this.#refuseScope = refuseScope;
    const onClose = (): void => {
      if (!response.writableFinished) {
        this.#isClientGone = true;
        this.#ended.abort();
      }
      this.#wake();
    };
    if (response.closed || response.destroyed) process.nextTick(onClose);
    else response.once("close", onClose);
    response.on("drain", () => this.#wake());
  }

  /** A stream by GET ends only with its session. */
  get onlyListens(): boolean {
    return this.#isGet && this.#isStream;
  }

  /** It has closed its connection. */
  get isClientGone(): boolean {
    return this.#isClientGone;
  }

  /** Nobody here waits for the answer any more. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  take(event: JsonObject, bytes: Uint8Array | undefined): void {
    const response = this.#response;
    if (this.#refused || response.destroyed || response.writableEnded) return;
    const { status, headers, refusedScope } = event;
    const scope = SCOPES.find((each) => each === refusedScope);
    if (scope !== undefined) {
      this.#refused = true;
      // Who lacks what was found out there; how that is told depends on the credentials, which only this node has seen.
      this.#refuseScope(scope);
      return;
    }
    if (typeof status === "number") {
      const told = headersFrom(headers);
      response.writeHead(status, told);
      // A stream is open before it has anything to say.
      this.#isStream = String(told["content-type"]).startsWith("text/event-stream");
      if (this.#isStream) response.flushHeaders();
    }
    if (bytes !== undefined && bytes.length > 0) response.write(bytes);
  }

  finish(): void {
    if (!this.#refused) this.#response.end();
  }

  /** Ends what only listens. What is owed an answer gets none: it is cut, or refused by whoever handed it on. */
  leave(): void {
    if (this.onlyListens) this.finish();
    else this.#ended.abort();
  }

  /** True if an answer had begun: half of one must not look like a whole. */
  cut(): boolean {
    if (!this.#response.headersSent) return false;
    if (!this.#refused) this.#response.destroy();
    return true;
  }

  async drained(): Promise<void> {
    const response = this.#response;
    while (!response.destroyed && response.writableNeedDrain) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
