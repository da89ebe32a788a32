/** Reading the body of an answer, always with a limit. */
import type { IncomingMessage } from "node:http";
import { ToolcribError } from "../../model/errors.ts";
import { connectionError } from "./reasons.ts";
import { type SseEvent, SseParser } from "./sse-parser.ts";

const ERROR_BODY_BYTES = 64 * 1024;

/** The whole body as text. Rejects with `too_large` above the limit. */
export function readText(body: IncomingMessage, url: URL, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    body.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      reject(tooLarge(maxBytes));
      body.destroy();
    });
    body.on("end", () => {
      const [only] = chunks;
      resolve((chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)).toString("utf8"));
    });
    whenCut(body, (error) => reject(connectionError(error, url, true)));
  });
}

/** The beginning of an error answer; whatever goes wrong, it never rejects. */
export async function readErrorText(body: IncomingMessage, url: URL): Promise<string> {
  return readText(body, url, ERROR_BODY_BYTES).catch(() => "");
}

export interface EventHandlers {
  readonly maxEventBytes: number;
  readonly onEvent: (event: SseEvent, parser: SseParser) => void;
  readonly onOversize: (error: ToolcribError) => void;
  /** Once, with the reason if the stream was cut rather than ended. */
  readonly onEnd: (parser: SseParser, error?: Error) => void;
}

export function readEvents(body: IncomingMessage, handlers: EventHandlers): SseParser {
  const parser = new SseParser({
    maxEventBytes: handlers.maxEventBytes,
    onEvent: (event) => handlers.onEvent(event, parser),
    onOversize: () => handlers.onOversize(tooLarge(handlers.maxEventBytes)),
  });
  let ended = false;
  const end = (error?: Error): void => {
    if (ended) return;
    ended = true;
    handlers.onEnd(parser, error);
  };
  body.on("data", (chunk: Buffer) => parser.push(chunk));
  body.on("end", () => end());
  whenCut(body, end);
  return parser;
}

/** A body that is destroyed or cut gives `error`, or only `close`; one that has ended closes as well. */
function whenCut(body: IncomingMessage, onCut: (error: Error) => void): void {
  body.on("error", onCut);
  body.on("close", () => {
    if (!body.readableEnded) onCut(Object.assign(new Error("cut"), { code: "ECONNRESET" }));
  });
}

function tooLarge(maxBytes: number): ToolcribError {
  return new ToolcribError("too_large", `the server sent a message of more than ${maxBytes} bytes`, {
    details: { sent: true },
  });
}
