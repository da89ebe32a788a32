/** The answer to one POST of a legacy client: JSON, or an event stream if something must be sent before. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { RequestId } from "../../../model/rpc.ts";
import type { Encoded, Outlet } from "../encoded.ts";
import type { Accepts } from "./accepts.ts";
import { answerJson, refuseToolcrib } from "./exchange.ts";
import type { HttpSession } from "./http-session.ts";
import { type OpenStreams, type Owed, SILENT_TICKS } from "./open-streams.ts";
import type { SessionStream } from "./session-stream.ts";
import { SseConnection } from "./sse-connection.ts";
import { whenClosed } from "./when-closed.ts";

export interface LegacyReplyOptions {
  readonly response: ServerResponse;
  readonly session: HttpSession;
  readonly accepts: Accepts;
  readonly streams: OpenStreams;
  /** The requests in the POST: one, or those of a batch. */
  readonly ids: readonly RequestId[];
  /** A batch is answered by a batch, even if it holds one request only. */
  readonly isBatch: boolean;
}

/** Half a second at most. */
const SLOW_TICKS = 2;

export class LegacyReply implements Outlet, Owed {
  /** What else the answer says in its head. */
  headers: Readonly<OutgoingHttpHeaders> | undefined;
  readonly #options: LegacyReplyOptions;
  #stream: SessionStream | undefined;
  #ticks = 0;
  #done = false;

  constructor(options: LegacyReplyOptions) {
    this.#options = options;
    options.session.running += 1;
    options.streams.owe(this);
    whenClosed(options.response, () => this.#clientGone());
  }

  get isStream(): boolean {
    return this.#stream !== undefined;
  }

  send(message: Encoded): void {
    if (this.#done) return;
    const stream = this.#stream ?? this.#openStream();
    if (stream === undefined) this.#options.session.tell(message);
    else stream.send(message);
  }

  /**
   * A call that takes its time gets a stream: the answer is then not lost with the connection. Where nothing tells the
   * client how to come back, a stream only keeps the connection alive, and that has more time. We never let a connection go
   * by ourselves before the answer, as the protocol would allow: clients that do not come back would wait for ever.
   */
  stillOwed(): void {
    this.#ticks += 1;
    if (this.#stream !== undefined) return;
    if (this.#ticks >= (this.#options.session.canPrime ? SLOW_TICKS : SILENT_TICKS)) this.#openStream();
  }

  /** The last word. Without an answer the request was cancelled, or its session has ended. */
  finish(answers: readonly Encoded[]): void {
    const { response, accepts } = this.#options;
    if (!accepts.json && answers.length > 0) this.#openStream(true);
    this.#settle();
    if (this.#stream !== undefined) {
      for (const answer of answers) this.#stream.send(answer);
      this.#stream.finish();
    } else if (answers[0] === undefined) this.#finishEmpty();
    else answerJson(response, 200, this.#options.isBatch ? arrayOf(answers) : answers[0], this.headers);
  }

  #finishEmpty(): void {
    const { response, session, accepts, ids } = this.#options;
    if (response.headersSent || response.destroyed) return;
    if (session.isClosed) {
      refuseToolcrib(response, ids[0] ?? null, { code: "not_found", message: "The session has ended." });
    } else if (accepts.stream) {
      // Whoever cancels a request gets no answer, and a stream without any event is none.
      new SseConnection(response).end();
    } else {
      refuseToolcrib(response, ids[0] ?? null, { code: "cancelled", message: "The request was cancelled." }, 200);
    }
  }

  #openStream(isOnlyWay = false): SessionStream | undefined {
    const { response, session, accepts, streams, ids } = this.#options;
    if (!accepts.stream || response.headersSent || response.destroyed) return undefined;
    if (!isOnlyWay && streams.reachedFor(session.caller) !== undefined) return undefined;
    const connection = new SseConnection(response, this.headers);
    streams.add(connection, session.caller);
    this.#stream = session.openStream(() => this.#abandon(ids));
    this.#stream.attach(connection);
    return this.#stream;
  }

  /** Before any event with an id was sent there is nothing to come back to. */
  #clientGone(): void {
    if (!this.#done && this.#stream === undefined) this.#abandon(this.#options.ids);
  }

  #abandon(ids: readonly RequestId[]): void {
    for (const id of ids) this.#options.session.legacy.abandon(id);
  }

  #settle(): void {
    if (this.#done) return;
    this.#done = true;
    this.#options.streams.settle(this);
    this.#options.session.release();
  }
}

function arrayOf(answers: readonly Encoded[]): Encoded {
  return ["[", ...answers.flatMap((answer, index) => (index === 0 ? answer : [",", ...answer])), "]"];
}
