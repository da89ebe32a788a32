/** Tools that a WebSocket client gives to sessions, and the calls that it has to answer. */
import type { Clock } from "../../../base/clock.ts";
import { EXTRA_TOOL_COMMANDS, type ExtraToolCommand, type FieldsOf } from "../../../contract/websocket.ts";
import type { Caller } from "../../../model/caller.ts";
import { type ErrorCode, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { Progress } from "../../../model/protocol.ts";
import { type Tool, ToolDeliveryError, type ToolResult, type ToolUpdate } from "../../../model/tool.ts";
import type { SessionNotice } from "../../../sessions/session-parts.ts";
import type { Session } from "../../../sessions/session.ts";
import { checkUntrustedParameters, checkNotReserved, checkToolShape } from "../../../tools/tool-shape.ts";
import { checkFields, type DeepReadonly } from "../api/operation-handler.ts";
import { missingScope } from "../http-access.ts";
import { commandInput } from "./socket-commands.ts";

interface ExtraToolsOptions {
  /** Identifies the tools of this socket. */
  readonly group: string;
  readonly caller: Caller;
  /** The socket's own. */
  readonly session: Session;
  /** Another session that the caller may give tools to. */
  readonly sessionOf: (id: string) => Session | undefined;
  readonly send: (event: { readonly type: string }) => void;
  readonly clock: Clock;
}

export class ExtraTools {
  readonly #options: ExtraToolsOptions;
  readonly #calls: DeliveredToolCalls;
  /** Sessions that have tools of this socket. */
  readonly #given = new Set<Session>();
  /** The list whose schemas are being checked: lists are set in order. */
  #setting: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(options: ExtraToolsOptions) {
    this.#options = options;
    this.#calls = new DeliveredToolCalls(options);
  }

  /** Whether a frame is the awaited answer to a call. */
  awaits({ type, callId }: JsonObject): boolean {
    return type === "extraTool.result" && typeof callId === "string" && this.#calls.has(callId);
  }

  /** The reply to a command; undefined for other frames. */
  take(frame: JsonObject): object | Promise<object> | undefined {
    const { type } = frame;
    if (!isExtraToolCommand(type)) return undefined;
    const { scope } = EXTRA_TOOL_COMMANDS[type];
    if (!this.#options.caller.scopes.has(scope)) throw missingScope(scope);
    const fields = commandInput({}, frame);
    switch (type) {
      case "sessions.setExtraTools":
        return this.#set(checkFields(EXTRA_TOOL_COMMANDS[type].input, fields));
      case "extraTool.result": {
        const { callId, result } = checkFields(EXTRA_TOOL_COMMANDS[type].input, fields);
        this.#calls.answer(callId, result);
        return { callId };
      }
      case "extraTool.progress": {
        const { callId, progress, total, message } = checkFields(EXTRA_TOOL_COMMANDS[type].input, fields);
        this.#calls.report(callId, {
          progress,
          total,
          message,
        });
        return { callId };
      }
    }
  }

  /** A frame was above the limit. */
  refuseFrame(): void {
    this.#calls.refuseFrame();
  }

  /** The client has disconnected, and its tools end. */
  close(): void {
    this.#isClosed = true;
    for (const session of this.#given) if (!session.closed) session.own.setTools(this.#options.group, []);
    this.#given.clear();
    this.#calls.close();
  }

  #set({ session: named, sessionId = named, tools }: Input): Reply | Promise<Reply> {
    const session = this.#session(sessionId);
    // The client knows it by the id that it sent.
    const id = sessionId ?? session.id;
    const made = tools.map((tool) => this.#tool(tool, id));
    const names = new Set<string>();
    for (const { name } of made) {
      if (names.has(name)) throw new ToolcribError("conflict", `There are two tools "${name}" in the list.`);
      names.add(name);
    }
    if (this.#setting !== undefined) {
      throw new ToolcribError("rate_limited", "The tools sent before are still being checked.", {
        hint: "Wait for the reply before the next list.",
      });
    }
    const waiting = checkSchemas(made);
    if (waiting === undefined) return this.#give(session, id, made);
    const setting = waiting
      .finally(() => (this.#setting = undefined))
      .then(() => {
        if (this.#isClosed || session.closed) throw new ToolcribError("cancelled", "The session has ended.");
        return this.#give(session, id, made);
      });
    this.#setting = setting;
    return setting;
  }

  #give(session: Session, id: string, made: readonly Tool[]): Reply {
    const notices: SessionNotice[] = [];
    const stop = session.own.on("notice", (notice) => notices.push(notice));
    let names: readonly string[];
    try {
      ({ names } = session.own.setTools(this.#options.group, made));
    } finally {
      stop();
    }
    for (const each of this.#given) if (each.closed) this.#given.delete(each);
    if (made.length === 0) this.#given.delete(session);
    else this.#given.add(session);
    return { session: id, tools: names, notices };
  }

  #session(id: string | undefined): Session {
    const { session, sessionOf } = this.#options;
    if (id === undefined || id === session.id) return session;
    const other = sessionOf(id);
    if (other !== undefined) return other;
    throw new ToolcribError("not_found", `No session ${id} is open for this caller.`, {
      hint: "Without `session` the tools are for the session of this connection; openSession opens others.",
    });
  }

  #tool(given: Input["tools"][number], session: string): Tool {
    const { name, title, description, schema, inputSchema, parameters, annotations, timeoutMs } = given;
    const tool: Tool = {
      name,
      label: title,
      description,
      parameters: schema ?? inputSchema ?? parameters ?? { type: "object" },
      annotations,
      execute: (callId, args, signal, onUpdate) => {
        const call: FieldsOf<"extraTool.call"> = { callId, name, args, session };
        return this.#calls.deliver(call, { timeoutMs, signal, onUpdate });
      },
    };
    checkToolShape(tool);
    checkNotReserved(tool);
    return tool;
  }
}

/** Synchronous while the schemas are small; otherwise one after the other. */
function checkSchemas(tools: readonly Tool[], from = 0): Promise<void> | undefined {
  for (let index = from; index < tools.length; index += 1) {
    const tool = tools[index];
    const waiting = tool && checkUntrustedParameters(tool);
    if (waiting instanceof Promise) return waiting.then(() => checkSchemas(tools, index + 1));
  }
  return undefined;
}

type Input = ReturnType<(typeof EXTRA_TOOL_COMMANDS)["sessions.setExtraTools"]["input"]["parse"]>;
type Reply = DeepReadonly<ReturnType<(typeof EXTRA_TOOL_COMMANDS)["sessions.setExtraTools"]["output"]["parse"]>>;

function isExtraToolCommand(type: unknown): type is ExtraToolCommand {
  return typeof type === "string" && Object.hasOwn(EXTRA_TOOL_COMMANDS, type);
}

/** The same as for servers: progress restarts the timeout, up to this many times the timeout in all. */
const MAX_TIMEOUT_FACTOR = 10;

interface DeliverOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onUpdate: ToolUpdate | undefined;
}

interface PendingToolCall {
  readonly name: string;
  readonly timeoutMs: number;
  readonly latest: number;
  readonly onUpdate: ToolUpdate | undefined;
  readonly resolve: (result: ToolResult) => void;
  readonly reject: (error: ToolcribError) => void;
  readonly forget: () => void;
  stopTimer: () => void;
}

interface DeliveredToolCallsOptions {
  readonly clock: Clock;
  readonly send: (event: { readonly type: string }) => void;
}

/** Calls that were delivered to a WebSocket client and wait for its answer. */
class DeliveredToolCalls {
  readonly #options: DeliveredToolCallsOptions;
  readonly #waiting = new Map<string, PendingToolCall>();
  #closed = false;

  constructor(options: DeliveredToolCallsOptions) {
    this.#options = options;
  }

  has(callId: string): boolean {
    return this.#waiting.has(callId);
  }

  deliver(call: FieldsOf<"extraTool.call">, { timeoutMs, signal, onUpdate }: DeliverOptions): Promise<ToolResult> {
    const { callId, name } = call;
    if (this.#closed) return Promise.reject(processGone(name));
    return new Promise((resolve, reject) => {
      const giveUp = (): void => this.#giveUp(callId, "cancelled", `The call of the tool "${name}" was cancelled.`);
      signal?.addEventListener("abort", giveUp, { once: true });
      const waiting: PendingToolCall = {
        name,
        timeoutMs,
        latest: this.#options.clock.now() + timeoutMs * MAX_TIMEOUT_FACTOR,
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
    waiting.resolve(toToolResult(result));
  }

  report(callId: string, progress: Progress): void {
    const waiting = this.#find(callId);
    waiting.stopTimer();
    this.#startTimer(callId, waiting);
    waiting.onUpdate?.({ content: [], progress });
  }

  /** A frame was too large to read: it may be the answer to any call, and it ends the connection. */
  refuseFrame(): void {
    this.#rejectAll(frameTooLarge);
  }

  /** The client has disconnected. */
  close(): void {
    this.#closed = true;
    this.#rejectAll(processGone);
  }

  #rejectAll(why: (tool: string) => ToolDeliveryError): void {
    for (const [callId, waiting] of this.#waiting) {
      this.#end(callId, waiting);
      waiting.reject(why(waiting.name));
    }
  }

  #startTimer(callId: string, waiting: PendingToolCall): void {
    const { clock } = this.#options;
    const { name, timeoutMs, latest } = waiting;
    const ms = Math.max(0, Math.min(timeoutMs, latest - clock.now()));
    waiting.stopTimer = clock.after(ms, () => {
      const said = `The process that offers the tool "${name}" did not answer within ${timeoutMs} ms`;
      const isLatest = clock.now() >= latest;
      this.#giveUp(
        callId,
        "timeout",
        isLatest ? `${said}, or made progress for too long.` : `${said}.`,
        "Progress reports restart the timeout, up to ten times; timeoutMs of the tool sets it.",
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

  #find(callId: string): PendingToolCall {
    const waiting = this.#waiting.get(callId);
    if (waiting !== undefined) return waiting;
    throw new ToolcribError("not_found", `No call ${callId} waits for this connection.`, {
      hint: "It may have been answered, cancelled or timed out.",
    });
  }

  #end(callId: string, waiting: PendingToolCall): void {
    this.#waiting.delete(callId);
    waiting.stopTimer();
    waiting.forget();
  }
}

function processGone(tool: string): ToolDeliveryError {
  return new ToolDeliveryError("server_unavailable", `The process that offers the tool "${tool}" has disconnected.`, {
    hint: "Its tools are back when it connects and sets them again.",
    details: { tool },
  });
}

function frameTooLarge(tool: string): ToolDeliveryError {
  const message = `The process that offers the tool "${tool}" sent a frame larger than the limit, and the connection was closed.`;
  return new ToolDeliveryError("too_large", message, {
    hint: "Return a smaller result, or a link to it; http.limits.bodyBytes sets the limit.",
    details: { tool },
  });
}

/** A value that is not an MCP result becomes text. */
function toToolResult(given: unknown): ToolResult {
  // Whether its blocks are blocks is looked at where results of every in-process tool are.
  if (isJsonObject(given) && Array.isArray(given["content"])) return given as unknown as ToolResult;
  if (isJsonObject(given) && given["structuredContent"] !== undefined) {
    return { ...given, content: textBlocks(JSON.stringify(given["structuredContent"])) };
  }
  if (isJsonObject(given) && given["isError"] === true) {
    const { isError: _isError, ...rest } = given;
    return { content: Object.keys(rest).length === 0 ? [] : textBlocks(JSON.stringify(rest)), isError: true };
  }
  if (given === undefined || given === null) return { content: [] };
  return { content: textBlocks(typeof given === "string" ? given : JSON.stringify(given)) };
}

function textBlocks(value: string): ToolResult["content"] {
  return [{ type: "text", text: value }];
}
