/** One call of the model, from its request to the result that the model reads, with an event for every state. */
import type { AskAnswer, AskCallback, AskRequest } from "../../model/decision.ts";
import type { Clock } from "../../base/clock.ts";
import { describeBlock, textBlock } from "../../model/content.ts";
import {
  asToolcribError,
  ERROR_TABLE,
  type ErrorObject,
  errorTextForModel,
  ToolcribError,
} from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Progress } from "../../model/protocol.ts";
import type { ToolResult } from "../../model/tool.ts";
import type { AgentEvent, AskContext, ToolCallEvent, ToolCallState } from "../agent-options.ts";
import type { CallPart, CallResult } from "../model/chat-model.ts";
import { sleep } from "../abortable.ts";
import type { AgentTool } from "../tools/tool-choice.ts";
import type { RequestedCall } from "./model-answer.ts";

interface ToolCallOptions {
  readonly wanted: RequestedCall;
  /** Undefined if the model was not given a tool with that name. */
  readonly tool: AgentTool | undefined;
  readonly emit: (event: AgentEvent) => void;
  /** Why there is no such tool. */
  readonly missing: (name: string) => ToolcribError;
  readonly ask: ((request: AskRequest, context: AskContext) => Promise<AskAnswer> | AskAnswer) | undefined;
  readonly clock: Clock;
}

/** For a call that the hub refuses for now: its rate is counted per minute. */
const MAX_WAIT_MS = 60_000;
const MIN_WAIT_MS = 100;

const REFUSED_BY_USER =
  "The user did not allow this call. Do not try to achieve the same in another way. Continue without it, or ask what to do instead.";

export class ToolCall {
  readonly #options: ToolCallOptions;
  readonly #about: Omit<ToolCallEvent, "state">;
  #state: ToolCallState = "pending";
  #saidNo = false;
  /** Why the last approval request failed. */
  #askFailed: ToolcribError | undefined;

  constructor(options: ToolCallOptions) {
    this.#options = options;
    const { wanted, tool } = options;
    const { id, name, input } = wanted.part;
    this.#about = {
      type: "tool-call",
      id,
      name,
      title: tool?.title(input) ?? name,
      kind: tool?.kind ?? "other",
      server: tool?.server ?? null,
      input,
      locations: tool?.locations(input) ?? [],
    };
    this.#tell("pending");
  }

  /** The requested tool and its arguments. */
  get wanted(): CallPart {
    return this.#options.wanted.part;
  }

  /** For approval requests of the hub; undefined where the hub itself decides whom to ask. */
  get onAsk(): AskCallback | undefined {
    const { ask } = this.#options;
    if (ask === undefined) return undefined;
    return async (request, signal) => {
      this.#tell("waiting");
      this.#askFailed = undefined;
      try {
        const answer = checkedAnswer(await ask(request, { toolCallId: this.#about.id, signal }));
        this.#saidNo = answer === "no";
        if (!this.#saidNo && !signal.aborted) this.#tell("running");
        return answer;
      } catch (thrown) {
        if (!signal.aborted) this.#askFailed = asToolcribError(thrown);
        throw thrown;
      }
    };
  }

  /** Never rejects. */
  async run(signal: AbortSignal): Promise<CallResult> {
    const { tool, missing, wanted } = this.#options;
    if (tool === undefined) return this.#failed(missing(this.#about.name));
    if (signal.aborted) return this.leaveOut(new ToolcribError("cancelled", "the run was cancelled."));
    if (wanted.problem !== undefined) return this.#failed(new ToolcribError("invalid_arguments", wanted.problem));
    // The hub asks within the same turn of the event loop, if it asks: a call that waits first is not reported as running.
    const begun = setImmediate(() => this.#begun());
    try {
      return this.#done(await this.#execute(tool, signal), signal);
    } catch (thrown) {
      return this.#failed(asToolcribError(thrown));
    } finally {
      clearImmediate(begun);
    }
  }

  /** Waits if a limit of the hub has been reached: a model cannot wait. */
  async #execute({ tool }: AgentTool, signal: AbortSignal): Promise<ToolResult> {
    const { clock } = this.#options;
    const { id, input } = this.#about;
    const end = clock.now() + MAX_WAIT_MS;
    for (;;) {
      const result = await tool.execute(id, input, signal, ({ details }) => this.#progress(details));
      const wait = retryDelay(result);
      if (wait === undefined || clock.now() + wait > end || signal.aborted) return result;
      await sleep(wait, clock, signal);
    }
  }

  /** Skips the call. The model reads why, so that each of its calls has a result. */
  leaveOut(why: ToolcribError): CallResult {
    return this.#end("cancelled", { content: [textBlock(`Not run: ${why.message}`)] }, why.toObject());
  }

  #done(result: ToolResult, signal: AbortSignal): CallResult {
    const error = result.isError === true ? errorOf(result) : undefined;
    if (error !== undefined && (signal.aborted || error.code === "cancelled")) {
      return this.#end("cancelled", result, error);
    }
    if (error !== undefined && this.#askFailed !== undefined) {
      const message = `The approval of this call could not be requested: ${this.#askFailed.message}`;
      return this.#end("denied", { ...result, content: [textBlock(message)] }, { code: "denied", message });
    }
    if (error !== undefined && this.#saidNo) {
      // A tool that runs others reports the refusal as its own failure.
      const denied = error.code === "denied" ? error : ({ code: "denied", message: REFUSED_BY_USER } as const);
      return this.#end("denied", { ...result, content: [textBlock(REFUSED_BY_USER)] }, denied);
    }
    if (error?.code !== "denied") {
      // Arguments are checked before the call starts.
      if (error?.code !== "invalid_arguments") this.#begun();
      return this.#end(error === undefined ? "done" : "failed", result, error);
    }
    return this.#end("denied", result, error);
  }

  #failed(error: ToolcribError): CallResult {
    const text = errorTextForModel(error.toObject());
    const state = error.code === "cancelled" ? "cancelled" : "failed";
    return this.#end(state, { content: [textBlock(text)] }, error.toObject());
  }

  #end(state: ToolCallState, { content, details }: ToolResult, error?: ErrorObject): CallResult {
    const { id, name } = this.#about;
    this.#tell(state, {
      content,
      details,
      error,
    });
    return { id, name, content, isError: state !== "done" };
  }

  #begun(): void {
    if (this.#state === "pending") this.#tell("running");
  }

  #progress(details: unknown): void {
    if (!isProgress(details) || this.#state === "waiting") return;
    this.#tell("running", { progress: details });
  }

  #tell(state: ToolCallState, more: Partial<ToolCallEvent> = {}): void {
    this.#state = state;
    this.#options.emit({ ...this.#about, ...more, state });
  }
}

function isProgress(value: unknown): value is Progress {
  return isJsonObject(value) && typeof value["progress"] === "number";
}

/** Callbacks are external code: anything else counts as a refusal. */
function checkedAnswer(answer: AskAnswer): AskAnswer {
  return answer === "once" || answer === "session" || answer === "always" ? answer : "no";
}

/** Milliseconds, if the hub refused the call for now. */
function retryDelay(result: ToolResult): number | undefined {
  if (result.isError !== true) return undefined;
  const { code, details } = errorOf(result);
  const wait = code === "rate_limited" ? details?.["retryAfterMs"] : undefined;
  return typeof wait === "number" ? Math.max(MIN_WAIT_MS, wait) : undefined;
}

/** The error that the hub put into the details; a tool's own error result has none. */
function errorOf({ content, details }: ToolResult): ErrorObject {
  const error = isJsonObject(details) ? details["error"] : undefined;
  if (isErrorObject(error)) return error;
  return { code: "tool_error", message: content.map(describeBlock).join("\n") };
}

function isErrorObject(value: unknown): value is ErrorObject {
  return (
    isJsonObject(value) &&
    typeof value["code"] === "string" &&
    value["code"] in ERROR_TABLE &&
    typeof value["message"] === "string"
  );
}
