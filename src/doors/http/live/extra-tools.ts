/** The tools that the process behind one socket gives to sessions, and the calls of them that it has to answer. */
import { EXTRA_TOOL_COMMANDS, type ExtraToolCommand } from "../../../contract/extra-tools.ts";
import type { FieldsOf } from "../../../contract/socket.ts";
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { Tool } from "../../../model/tool.ts";
import type { SessionNotice } from "../../../sessions/own/own-parts.ts";
import type { Session } from "../../../sessions/session.ts";
import { checkForeignParameters, checkNotReserved, checkToolShape } from "../../../tools/tool-shape.ts";
import { checkFields } from "../api/check-input.ts";
import { scopeMissing } from "../api/scope-missing.ts";
import type { Shown } from "../api/shown.ts";
import { DeliveredCalls } from "./delivered-calls.ts";
import { inputOf } from "./frames.ts";

export interface ExtraToolsOptions {
  /** Tells the tools of this socket from those of others. */
  readonly group: string;
  readonly caller: Caller;
  /** The socket's own. */
  readonly session: Session;
  /** Another that the caller may give tools to. */
  readonly sessionOf: (id: string) => Session | undefined;
  readonly send: (event: { readonly type: string }) => void;
  readonly clock: Clock;
}

export class ExtraTools {
  readonly #options: ExtraToolsOptions;
  readonly #calls: DeliveredCalls;
  /** Sessions that have tools of this socket. */
  readonly #given = new Set<Session>();
  /** The last of those whose schemas are being checked: what was sent first is set first. */
  #setting: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(options: ExtraToolsOptions) {
    this.#options = options;
    this.#calls = new DeliveredCalls(options);
  }

  /** Whether a frame is the answer to a call: it was asked for. */
  awaits({ type, callId }: JsonObject): boolean {
    return type === "extraTool.result" && typeof callId === "string" && this.#calls.has(callId);
  }

  /** The reply to one of the commands; undefined for a frame that is none. */
  take(frame: JsonObject): object | Promise<object> | undefined {
    const { type } = frame;
    if (!isExtraToolCommand(type)) return undefined;
    const { scope } = EXTRA_TOOL_COMMANDS[type];
    if (!this.#options.caller.scopes.has(scope)) throw scopeMissing(scope);
    const fields = inputOf({}, frame);
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

  /** The process has gone, and its tools with it. */
  close(): void {
    this.#isClosed = true;
    for (const session of this.#given) if (!session.closed) session.own.setTools(this.#options.group, []);
    this.#given.clear();
    this.#calls.close();
  }

  #set({ session: named, sessionId = named, tools }: Input): Reply | Promise<Reply> {
    const session = this.#session(sessionId);
    const made = tools.map((tool) => this.#tool(tool, session));
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
    if (waiting === undefined) return this.#give(session, made);
    const setting = waiting
      .finally(() => (this.#setting = undefined))
      .then(() => {
        if (this.#isClosed || session.closed) throw new ToolcribError("cancelled", "The session has ended.");
        return this.#give(session, made);
      });
    this.#setting = setting;
    return setting;
  }

  #give(session: Session, made: readonly Tool[]): Reply {
    const notices: SessionNotice[] = [];
    const stop = session.own.on("notice", (notice) => notices.push(notice));
    try {
      session.own.setTools(this.#options.group, made);
    } finally {
      stop();
    }
    for (const each of this.#given) if (each.closed) this.#given.delete(each);
    if (made.length === 0) this.#given.delete(session);
    else this.#given.add(session);
    return { session: session.id, tools: made.map(({ name }) => name), notices };
  }

  #session(id: string | undefined): Session {
    const { session, sessionOf } = this.#options;
    if (id === undefined || id === session.id) return session;
    const other = sessionOf(id);
    if (other !== undefined) return other;
    throw new ToolcribError("not_found", `No session ${id} is open, or it is somebody else's.`, {
      hint: "Without `session` the tools are for the session of this connection; openSession opens others.",
    });
  }

  #tool(given: Input["tools"][number], session: Session): Tool {
    const { name, title, description, schema, inputSchema, parameters, annotations, timeoutMs } = given;
    const tool: Tool = {
      name,
      label: title,
      description,
      parameters: schema ?? inputSchema ?? parameters ?? { type: "object" },
      annotations,
      execute: (callId, args, signal, onUpdate) => {
        const call: FieldsOf<"extraTool.call"> = { callId, name, args, session: session.id };
        return this.#calls.deliver(call, { timeoutMs, signal, onUpdate });
      },
    };
    checkToolShape(tool);
    checkNotReserved(tool);
    return tool;
  }
}

/** At once while the schemas are small; otherwise one after the other. */
function checkSchemas(tools: readonly Tool[], from = 0): Promise<void> | undefined {
  for (let index = from; index < tools.length; index += 1) {
    const tool = tools[index];
    const waiting = tool && checkForeignParameters(tool);
    if (waiting instanceof Promise) return waiting.then(() => checkSchemas(tools, index + 1));
  }
  return undefined;
}

type Input = ReturnType<(typeof EXTRA_TOOL_COMMANDS)["sessions.setExtraTools"]["input"]["parse"]>;
type Reply = Shown<ReturnType<(typeof EXTRA_TOOL_COMMANDS)["sessions.setExtraTools"]["output"]["parse"]>>;

function isExtraToolCommand(type: unknown): type is ExtraToolCommand {
  return typeof type === "string" && Object.hasOwn(EXTRA_TOOL_COMMANDS, type);
}
