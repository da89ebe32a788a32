/** Reads the body of a response, always with a limit: text, server-sent events, and the messages in them. */
import { StringDecoder } from "node:string_decoder";
import { LARGE_JSON } from "../../base/json-bytes.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { RequestId, RpcMessage } from "../../model/protocol.ts";
import { decodeMessages, isResponse } from "../wire.ts";
import type { HttpResponse } from "./http-client.ts";
import type { ResponseBody } from "./http-connection.ts";
import { connectionError, statusError } from "./http-errors.ts";

const MAX_ERROR_BODY_BYTES = 64 * 1024;

/** The whole body as text. Rejects with `too_large` above the limit. */
export function readText(body: ResponseBody, url: URL, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    // Decoded as it comes: chunks that are kept are memory outside the heap, which makes V8 collect all the time.
    const decoder = new StringDecoder("utf8");
    let parts: string[] = [];
    let bytes = 0;
    body.read({
      onData: (chunk) => {
        bytes += chunk.length;
        if (bytes <= maxBytes) {
          parts.push(decoder.write(chunk));
          return;
        }
        parts = [];
        reject(messageTooLarge(maxBytes));
        body.destroy();
      },
      onEnd: () => {
        const text = parts.join("") + decoder.end();
        // To put it together takes almost as long as to parse it: others have a turn in between.
        if (text.length > LARGE_JSON) setImmediate(resolve, text);
        else resolve(text);
      },
      onCut: (error) => reject(connectionError(error, url, true)),
    });
  });
}

/** The error for a response without a 2xx status, with the beginning of its body. Never rejects. */
export async function responseError({ status, headers, body, url }: HttpResponse): Promise<ToolcribError> {
  const text = await readText(body, url, MAX_ERROR_BODY_BYTES).catch(() => "");
  return statusError({ status, headers, url, body: text });
}

export function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

export function isEventStream({ headers }: HttpResponse): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") === true;
}

interface EventHandlers {
  readonly maxEventBytes: number;
  readonly onEvent: (event: SseEvent, parser: SseParser) => void;
  readonly onOversize: (error: ToolcribError) => void;
  /** Once, with the reason if the stream was cut rather than ended. */
  readonly onEnd: (parser: SseParser, error?: Error) => void;
}

export function readEvents(body: ResponseBody, handlers: EventHandlers): SseParser {
  const parser = new SseParser({
    maxEventBytes: handlers.maxEventBytes,
    onEvent: (event) => handlers.onEvent(event, parser),
    onOversize: () => handlers.onOversize(messageTooLarge(handlers.maxEventBytes)),
  });
  body.read({
    onData: (chunk) => parser.push(chunk),
    onEnd: () => handlers.onEnd(parser),
    onCut: (error) => handlers.onEnd(parser, error),
  });
  return parser;
}

function messageTooLarge(maxBytes: number): ToolcribError {
  return new ToolcribError("too_large", `the server sent a message of more than ${maxBytes} bytes`, {
    details: { sent: true },
  });
}

export interface EventDelivery {
  /** The request whose response the stream is for. */
  readonly id?: RequestId;
  readonly onMessage: (message: RpcMessage) => void;
  readonly onMalformed: (what: string, sample?: string) => void;
}

/** True if it contained the response to the request `id`. */
export function deliverEvent({ event, data }: SseEvent, delivery: EventDelivery): boolean {
  // Events without data carry only the id to resume from; other names are not MCP's.
  if (event !== "message" || data === "") return false;
  const messages = decodeMessages(data);
  if (messages === null) {
    delivery.onMalformed("an event of the server is not a JSON-RPC message", data);
    return false;
  }
  return deliverMessages(messages, delivery);
}

export function deliverMessages(messages: readonly RpcMessage[], delivery: EventDelivery): boolean {
  let answered = false;
  for (const message of messages) {
    if (delivery.id !== undefined && isResponse(message)) answered ||= isResponseTo(message.id, delivery.id);
    delivery.onMessage(message);
  }
  return answered;
}

/** Some servers send a number back as text. */
function isResponseTo(id: RequestId | null, request: RequestId): boolean {
  return String(id) === String(request);
}

const LF = 0x0a;
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

export interface SseEvent {
  /** `message` unless the server named it. */
  readonly event: string;
  readonly data: string;
}

interface SseParserOptions {
  readonly maxEventBytes: number;
  readonly onEvent: (event: SseEvent) => void;
  /** An event above the limit was dropped; called once, when its end was seen. */
  readonly onOversize: (bytes: number) => void;
}

/**
 * Server-sent events from bytes, as the HTML standard reads them. Written by hand because other parsers keep an event of
 * any size, take decoded text (a second pass over every byte), or hide the id of an event without data, which is how MCP
 * servers say where to resume.
 */
export class SseParser {
  readonly #options: SseParserOptions;
  /** The beginning of a line that is cut, with room for more: one buffer for each piece would be many times their bytes. */
  #line = NOTHING;
  #lineBytes = 0;
  /** Bytes of the current event, those dropped included. */
  #eventBytes = 0;
  #afterCr = false;
  #firstLine = true;
  #event = "";
  #data: string[] = [];
  #id: string | undefined;
  /** The id to resume after; undefined until the server has sent one. */
  lastEventId: string | undefined;
  /** Milliseconds that the server asked to wait before a reconnect. */
  retryMs: number | undefined;

  constructor(options: SseParserOptions) {
    this.#options = options;
  }

  /** @param chunk May be overwritten afterwards. */
  push(chunk: Buffer): void {
    let start = 0;
    // The second half of a CRLF that the chunks cut in two.
    if (this.#afterCr && chunk[0] === LF) start = 1;
    if (chunk.length > 0) this.#afterCr = false;
    let lf = chunk.indexOf(LF, start);
    let cr = chunk.indexOf(CR, start);
    while (lf >= 0 || cr >= 0) {
      const byCr = cr >= 0 && (lf < 0 || cr < lf);
      const end = byCr ? cr : lf;
      this.#finishLine(chunk, start, end);
      start = end + 1;
      if (byCr && start === chunk.length) this.#afterCr = true;
      if (byCr && chunk[start] === LF) start++;
      if (lf >= 0 && lf < start) lf = chunk.indexOf(LF, start);
      if (cr >= 0 && cr < start) cr = chunk.indexOf(CR, start);
    }
    if (start < chunk.length) this.#keep(chunk, start, chunk.length);
  }

  get #oversize(): boolean {
    return this.#eventBytes > this.#options.maxEventBytes;
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    const before = this.#lineBytes;
    this.#count(end - start);
    if (this.#oversize) return;
    if (this.#line.length < this.#lineBytes) {
      const wider = Buffer.allocUnsafeSlow(Math.max(1024, this.#lineBytes * 2));
      this.#line.copy(wider, 0, 0, before);
      this.#line = wider;
    }
    chunk.copy(this.#line, before, start, end);
  }

  #count(bytes: number): void {
    this.#lineBytes += bytes;
    this.#eventBytes += bytes;
    if (!this.#oversize) return;
    this.#line = NOTHING;
    this.#data = [];
  }

  #finishLine(chunk: Buffer, start: number, end: number): void {
    const wasCut = this.#lineBytes > 0;
    if (wasCut) this.#keep(chunk, start, end);
    else this.#count(end - start);
    const [kept, bytes] = [this.#line, this.#lineBytes];
    this.#line = NOTHING;
    this.#lineBytes = 0;
    if (bytes === 0) return this.#dispatch();
    if (this.#oversize) return;
    const line = wasCut ? kept.toString("utf8", 0, bytes) : chunk.toString("utf8", start, end);
    const isFirst = this.#firstLine;
    this.#firstLine = false;
    if (isFirst && line === "\uFEFF") return this.#dispatch();
    const text = isFirst && line.startsWith("\uFEFF") ? line.slice(1) : line;
    // A comment, which servers send to keep the connection awake. It belongs to no event.
    if (text.startsWith(":")) this.#eventBytes -= bytes;
    else this.#field(text);
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch(): void {
    const event = this.#event;
    const data = this.#data;
    const bytes = this.#eventBytes;
    const oversize = this.#oversize;
    this.#event = "";
    this.#data = [];
    this.#eventBytes = 0;
    this.#firstLine = false;
    if (this.#id !== undefined) this.lastEventId = this.#id;
    if (oversize) this.#options.onOversize(bytes);
    else if (data.length > 0) this.#options.onEvent({ event: event === "" ? "message" : event, data: data.join("\n") });
  }
}
