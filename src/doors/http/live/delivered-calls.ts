/** Calls that were delivered to the process behind a socket and wait for its answer. */
import type { FieldsOf } from "../../../contract/socket.ts";
import type { Clock } from "../../../model/clock.ts";
import { type ErrorCode, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { Progress } from "../../../model/protocol.ts";
import { ToolDeliveryError, type ToolResult, type ToolUpdate } from "../../../model/tool.ts";

/** The same as for servers: progress restarts the timeout, up to so many times the timeout in all. */
const CEILING_FACTOR = 10;

interface DeliverOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onUpdate: ToolUpdate | undefined;
}

interface Waiting {
  readonly name: string;
  readonly timeoutMs: number;
  readonly latest: number;
  readonly onUpdate: ToolUpdate | undefined;
  readonly resolve: (result: ToolResult) => void;
  readonly reject: (error: ToolcribError) => void;
  readonly forget: () => void;
  stopTimer: () => void;
}

interface DeliveredCallsOptions {
  readonly clock: Clock;
  readonly send: (event: { readonly type: string }) => void;
}

export class DeliveredCalls {
  readonly #options: DeliveredCallsOptions;
  readonly #waiting = new Map<string, Waiting>();
  #closed = false;

  constructor(options: DeliveredCallsOptions) {
    this.#options = options;
  }

  has(callId: string): boolean {
    return this.#waiting.has(callId);
  }

  deliver(call: FieldsOf<"extraTool.call">, { timeoutMs, signal, onUpdate }: DeliverOptions): Promise<ToolResult> {
    const { callId, name } = call;
    if (this.#closed) return Promise.reject(gone(name));
    return new Promise((resolve, reject) => {
      const giveUp = (): void => this.#giveUp(callId, "cancelled", `The call of the tool "${name}" was cancelled.`);
      signal?.addEventListener("abort", giveUp, { once: true });
      const waiting: Waiting = {
        name,
        timeoutMs,
        latest: this.#options.clock.now() + timeoutMs * CEILING_FACTOR,
        onUpdate,
        resolve,
        reject,
        forget: () => signal?.removeEventListener("abort", giveUp),
        stopTimer: () => {},
      };
      this.#waiting.set(callId, waiting);
      this.#startTimer(callId, waiting);
      this.#options.send({ type: "extraTool.call", ...call });
    });
  }

  answer(callId: string, result: unknown): void {
    const waiting = this.#find(callId);
    this.#end(callId, waiting);
    waiting.resolve(resultOf(result));
  }

  report(callId: string, progress: Progress): void {
    const waiting = this.#find(callId);
    waiting.stopTimer();
    this.#startTimer(callId, waiting);
    waiting.onUpdate?.({ content: [], progress });
  }

  /** A frame came that nobody reads: it can be the answer to any of them, and the connection ends of it. */
  refuseFrame(): void {
    this.#rejectAll(frameTooLarge);
  }

  /** Nobody will answer any more. */
  close(): void {
    this.#closed = true;
    this.#rejectAll(gone);
  }

  #rejectAll(why: (tool: string) => ToolDeliveryError): void {
    for (const [callId, waiting] of this.#waiting) {
      this.#end(callId, waiting);
      waiting.reject(why(waiting.name));
    }
  }

  #startTimer(callId: string, waiting: Waiting): void {
    const { clock } = this.#options;
    const { name, timeoutMs, latest } = waiting;
    const ms = Math.max(0, Math.min(timeoutMs, latest - clock.now()));
    waiting.stopTimer = clock.after(ms, () => {
      const said = `The process that offers the tool "${name}" gave no answer within ${timeoutMs} ms`;
      const isLatest = clock.now() >= latest;
      this.#giveUp(
        callId,
        "timeout",
        isLatest ? `${said}, or made progress for too long.` : `${said}.`,
        "Progress reports restart the time, up to ten times; timeoutMs of the tool sets it.",
      );
    });
  }

  #giveUp(callId: string, reason: ErrorCode & ("cancelled" | "timeout"), message: string, hint?: string): void {
    const waiting = this.#waiting.get(callId);
    if (waiting === undefined) return;
    this.#end(callId, waiting);
    const event: FieldsOf<"extraTool.cancel"> = { callId, reason };
    this.#options.send({ type: "extraTool.cancel", ...event });
    waiting.reject(new ToolDeliveryError(reason, message, { hint, details: { tool: waiting.name } }));
  }

  #find(callId: string): Waiting {
    const waiting = this.#waiting.get(callId);
    if (waiting !== undefined) return waiting;
    throw new ToolcribError("not_found", `No call ${callId} waits for this connection.`, {
      hint: "It may have been answered, given up or timed out.",
    });
  }

  #end(callId: string, waiting: Waiting): void {
    this.#waiting.delete(callId);
    waiting.stopTimer();
    waiting.forget();
  }
}

function gone(tool: string): ToolDeliveryError {
  return new ToolDeliveryError("server_unavailable", `The process that offers the tool "${tool}" has gone.`, {
    hint: "Its tools come back when it connects and sets them again.",
    details: { tool },
  });
}

function frameTooLarge(tool: string): ToolDeliveryError {
  const message = `The process that offers the tool "${tool}" sent a frame above the limit, and the connection was closed.`;
  return new ToolDeliveryError("too_large", message, {
    hint: "Give a smaller result, or a link to it; http.limits.bodyBytes sets the limit.",
    details: { tool },
  });
}

/** What is no result as MCP has it becomes one of text. */
function resultOf(given: unknown): ToolResult {
  // Whether its blocks are blocks is looked at where results of every in-process tool are.
  if (isJsonObject(given) && Array.isArray(given["content"])) return given as unknown as ToolResult;
  if (isJsonObject(given) && given["structuredContent"] !== undefined) {
    return { ...given, content: text(JSON.stringify(given["structuredContent"])) };
  }
  if (isJsonObject(given) && given["isError"] === true) {
    const { isError: _isError, ...rest } = given;
    return { content: Object.keys(rest).length === 0 ? [] : text(JSON.stringify(rest)), isError: true };
  }
  if (given === undefined || given === null) return { content: [] };
  return { content: text(typeof given === "string" ? given : JSON.stringify(given)) };
}

function text(value: string): ToolResult["content"] {
  return [{ type: "text", text: value }];
}
