/** The MCP door over stdin and stdout, one message per line, for clients that spawn their server. Both eras at once. */
import type { Readable, Writable } from "node:stream";
import { CancelController, endsWithin, InFlight } from "../../base/async.ts";
import type { JsonObject } from "../../model/json.ts";
import { INVALID_REQUEST, PARSE_ERROR, type RequestId, type RpcRequest } from "../../model/protocol.ts";
import { ChurnMap } from "../../base/maps.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import type { McpDoor } from "./mcp-door.ts";
import type { RequestOrigin } from "./view-scope.ts";
import {
  batchError,
  claimsModern,
  type ClientMessage,
  type Encoded,
  encodeError,
  type MessageSink,
  parseMessages,
} from "./rpc-messages.ts";
import { envelopeError } from "./mcp-handshake.ts";
import type { LegacySession } from "./legacy-session.ts";

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const DRAIN_MS = 1000;

interface StdioStreams {
  readonly input: Readable;
  readonly output: Writable;
}

export class StdioDoor {
  readonly #door: McpDoor;
  readonly #origin: RequestOrigin;
  readonly #streams: StdioStreams;
  readonly #answers = new InFlight();
  readonly #running = new ChurnMap<RequestId, CancelController>();
  /** The one legacy client; a modern one needs no session. */
  #session: LegacySession;

  constructor(door: McpDoor, origin: RequestOrigin, streams: StdioStreams) {
    this.#door = door;
    this.#origin = origin;
    this.#streams = streams;
    this.#session = door.openSession(origin, this.#sink);
  }

  readonly #sink: MessageSink = { send: (message) => this.#write(message) };

  /** Serves until the client closes its end; pending answers then get a moment. */
  async run(): Promise<void> {
    const { input, output } = this.#streams;
    const splitter = new LineSplitter({
      maxBytes: MAX_LINE_BYTES,
      onLine: (line) => this.#receive(line),
      onOversize: (bytes) => this.#refuse(INVALID_REQUEST, `A message of ${bytes} bytes is larger than the limit.`),
    });
    // A client that is gone shows as the end of its input, too.
    output.on("error", () => {});
    await new Promise<void>((resolve) => {
      input.on("data", (chunk: Buffer) => splitter.push(chunk));
      input.once("end", resolve);
      input.once("close", resolve);
      input.once("error", resolve);
      output.once("close", resolve);
    });
    splitter.end();
    // A script that writes its requests and closes stdin still reads the answers.
    await endsWithin(this.#answers.whenIdle(), { ms: DRAIN_MS });
  }

  /** Cancels running requests. */
  close(): void {
    for (const controller of this.#running.values()) controller.abort();
    this.#session.close();
  }

  #receive(line: string): void {
    if (line.trim() === "") return;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#refuse(PARSE_ERROR, "Each line must be one JSON-RPC message.");
      return;
    }
    const one = parseMessages(value);
    if (!one.isBatch) return void this.#answers.track(() => this.#take(one.message));
    const objection = batchError(one.batch, this.#session.version);
    if (objection !== undefined) this.#refuse(INVALID_REQUEST, objection);
    else void this.#answers.track(() => this.#takeBatch(one.batch));
  }

  async #take(received: ClientMessage): Promise<void> {
    const answer = await this.#answerTo(received);
    if (answer !== null) this.#write(answer);
  }

  /** The answers to a batch are one message. */
  async #takeBatch(batch: readonly ClientMessage[]): Promise<void> {
    const answers = (await Promise.all(batch.map((one) => this.#answerTo(one)))).filter((answer) => answer !== null);
    if (answers.length > 0)
      this.#write(["[", ...answers.flatMap((answer, i) => (i === 0 ? answer : [",", ...answer])), "]"]);
  }

  /** Null for what gets no answer. Never rejects. */
  async #answerTo(received: ClientMessage): Promise<Encoded | null> {
    switch (received.kind) {
      case "invalid":
        return encodeError(received.id, { code: INVALID_REQUEST, message: "This is not a JSON-RPC 2.0 message." });
      case "response":
        this.#session.answer(received.message);
        return null;
      case "notification":
        if (received.message.method === "notifications/cancelled") this.#cancel(received.message.params);
        this.#session.notify(received.message);
        return null;
      case "request":
        return claimsModern(received.message)
          ? this.#modern(received.message)
          : this.#session.request(received.message, this.#sink);
    }
  }

  async #modern(request: RpcRequest): Promise<Encoded | null> {
    const { id } = request;
    const refusal = envelopeError(request);
    if (refusal !== undefined) return encodeError(id, refusal);
    if (this.#running.has(id)) {
      return encodeError(id, { code: INVALID_REQUEST, message: `A request with the id ${id} is already in progress.` });
    }
    const controller = new CancelController();
    this.#running.set(id, controller);
    try {
      return await this.#door.modern(request, this.#origin, this.#sink, controller);
    } finally {
      this.#running.delete(id);
    }
  }

  #cancel(params: JsonObject | undefined): void {
    const id = params?.["requestId"];
    if (typeof id === "string" || typeof id === "number") this.#running.get(id)?.abort();
  }

  #refuse(code: number, message: string): void {
    this.#write(encodeError(null, { code, message }));
  }

  #write(message: Encoded): void {
    const { output } = this.#streams;
    if (output.destroyed || output.writableEnded) return;
    const [only] = message;
    if (message.length === 1 && typeof only === "string") {
      output.write(`${only}\n`);
      return;
    }
    output.cork();
    for (const part of message) output.write(part);
    output.write("\n");
    output.uncork();
  }
}
