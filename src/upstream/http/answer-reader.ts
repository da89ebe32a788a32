/** Reads what a POST with a request was answered with. Whatever comes, the request ends: with its answer or as failed. */
import type { Clock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { decodeMessages, isResponse } from "../decode.ts";
import type { RequestId } from "../../model/rpc.ts";
import { deliverEvent, deliverMessages, type EventDelivery } from "./deliver-event.ts";
import type { HttpAnswer } from "./http-client.ts";
import { readEvents, readText } from "./read-body.ts";
import { connectionError, notMcp } from "./reasons.ts";

export interface ReadOptions extends EventDelivery {
  readonly id: RequestId;
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly onFailed: (error: ToolcribError) => void;
  /** Takes over a stream that ended before the answer, or null where that cannot be. */
  readonly resume: ((lastEventId: string, retryMs: number | undefined) => void) | null;
}

/** A stream should end with the answer; one that does not is cut after this, so that connections do not pile up. */
const LINGER_MS = 1000;
const JSON_TYPE = "application/json";

/** Throws if the answer's kind alone shows that it is not MCP; everything later goes to `onFailed`. */
export function readAnswer(answer: HttpAnswer, options: ReadOptions): void {
  const contentType = answer.headers["content-type"];
  const kind = contentType === JSON_TYPE ? JSON_TYPE : contentType?.split(";")[0]?.trim().toLowerCase();
  if (kind === "text/event-stream") return readStream(answer, options);
  if (kind === JSON_TYPE) {
    readText(answer.body, answer.url, options.maxBytes).then(
      (text) => readJson(text, options),
      (error: unknown) => options.onFailed(asToolcribError(error)),
    );
    return;
  }
  answer.body.on("error", () => {}).resume();
  throw notMcp(contentType, answer.url);
}

function readJson(text: string, options: ReadOptions): void {
  const messages = decodeMessages(text);
  if (messages === null) {
    options.onJunk("an answer of the server is no JSON-RPC message", text);
    options.onFailed(unanswered("the server's answer is not valid JSON-RPC"));
    return;
  }
  // An error without an id can only be about the one request that was in the POST.
  const only = messages.length === 1 ? messages[0] : undefined;
  if (only !== undefined && isResponse(only) && only.id === null && "error" in only) {
    options.onFailed(new ToolcribError("tool_error", only.error.message, { details: { rpc: only.error, sent: true } }));
    return;
  }
  if (!deliverMessages(messages, options)) options.onFailed(unanswered("the server's answer is for another request"));
}

function readStream({ body, url }: HttpAnswer, options: ReadOptions): void {
  let answered = false;
  let cancelLinger: () => void = () => {};
  readEvents(body, {
    maxEventBytes: options.maxBytes,
    onEvent: (event) => {
      if (!deliverEvent(event, options)) return;
      answered = true;
      cancelLinger();
      cancelLinger = options.clock.after(LINGER_MS, () => body.destroy());
    },
    onOversize: (error) => {
      if (!answered) options.onFailed(error);
      answered = true;
      body.destroy();
    },
    onEnd: (parser, error) => {
      cancelLinger();
      if (answered) return;
      if (options.resume !== null && parser.lastEventId !== undefined)
        options.resume(parser.lastEventId, parser.retryMs);
      else if (error !== undefined) options.onFailed(connectionError(error, url, true));
      else options.onFailed(unanswered("the server ended the stream before the answer"));
    },
  });
}

function unanswered(message: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { details: { sent: true } });
}
