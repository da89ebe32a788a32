/** One run of the agent: the model answers, its calls are run, it reads their results, until it is done. */
import type { Clock } from "../../base/clock.ts";
import type { Hub } from "../../hub/hub.ts";
import { CALL_TOOL } from "../../hub/view/search-definitions.ts";
import type { AgentConfig } from "../../model/config.ts";
import {
  asToolcribError,
  ToolcribError,
  type ErrorObject,
  errorTextForModel,
  isErrorObject,
} from "../../model/errors.ts";
import type { Session } from "../../sessions/session.ts";
import { abortError, sleep } from "../abortable.ts";
import type {
  AgentEvent,
  AgentMode,
  AgentOptions,
  EndReason,
  Tokens,
  AskContext,
  ToolCallEvent,
  ToolCallState,
} from "../agent-options.ts";
import type { Conversation } from "../conversation.ts";
import type { AssistantPart, CallResult, ChatModel, CallPart } from "../model/chat-model.ts";
import type { AgentPatterns } from "../tools/session-rules.ts";
import { systemPrompt } from "../tools/system-prompt.ts";
import { ToolList, type AgentTool } from "../tools/tool-choice.ts";
import { addTokens, CallIds, type ModelAnswer, requestAnswer, type RequestedCall } from "./model-answer.ts";
import type { AskAnswer, AskCallback, AskRequest } from "../../model/decision.ts";
import { describeBlock, textBlock } from "../../model/content.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Progress } from "../../model/protocol.ts";
import type { ToolResult } from "../../model/tool.ts";

/** The settings of the config that options of the agent may override. */
type RunSettings = Readonly<
  Pick<
    AgentConfig,
    "instructions" | "maxTools" | "maxSteps" | "maxTokens" | "maxOutputTokens" | "resultBytes" | "skillsBudget"
  >
>;

interface AgentRunOptions extends RunSettings, AgentPatterns {
  readonly hub: Hub;
  readonly session: Session;
  readonly model: ChatModel;
  readonly conversation: Conversation;
  /** The user's request, for the choice of tools. */
  readonly query: string;
  readonly onAsk: AgentOptions["onAsk"];
  /** Read before each step: it can change during a run. */
  readonly mode: () => AgentMode;
  /** Called before each step. */
  readonly prepare: () => void;
  readonly emit: (event: AgentEvent) => void;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

export interface RunEnd {
  readonly reason: EndReason;
  readonly text: string;
  readonly error?: ToolcribError;
}

export class AgentRun {
  readonly #options: AgentRunOptions;
  readonly #tools: ToolList;
  readonly #ids: CallIds;
  readonly #callsInProgress = new Map<string, ToolCall>();
  #usage: Tokens = { input: 0, output: 0 };

  constructor(options: AgentRunOptions) {
    this.#options = options;
    const { hub, session, model, query, maxTools, include, exclude, resultBytes } = options;
    this.#ids = new CallIds(options.conversation.messages);
    this.#tools = new ToolList(hub, session, {
      model,
      query,
      max: maxTools,
      resultBytes,
      include,
      exclude,
      onAsk: (toolCallId) => this.#callsInProgress.get(toolCallId)?.onAsk,
      onChecked: (toolCallId) => this.#callsInProgress.get(toolCallId)?.checked(),
    });
  }

  /** Of all answers so far. */
  get usage(): Tokens {
    return this.#usage;
  }

  /** The user's message is already in the conversation. If something cannot be saved, the run ends with an error and the text so far. */
  async run(): Promise<RunEnd> {
    const { hub, session, conversation, signal } = this.#options;
    // What the conversation has read before: a call that asks or is refused then does so without waiting for the store.
    await Promise.all([session.taintScope.loading, hub.internals.taints.loading]);
    for (let step = 1; ; step++) {
      const answer = await this.#answer();
      const ending = this.#ending(answer, step);
      const results = await this.#results(answer, ending);
      try {
        // Together, so that a stored call always has its result.
        await conversation.append([
          ...(answer.parts.length === 0 ? [] : [{ role: "assistant", parts: answer.parts } as const]),
          ...(results.length === 0 ? [] : [{ role: "tool", results } as const]),
        ]);
      } catch (thrown) {
        return unsavedEnd(
          thrown,
          ending ??
            (signal.aborted ? abortedEnd(signal, answer) : { reason: "error", text: textAfterCalls(answer.parts) }),
        );
      }
      if (ending !== undefined) return ending;
      if (signal.aborted) return abortedEnd(signal, answer);
    }
  }

  async #answer(): Promise<ModelAnswer> {
    const { hub, session, model, conversation, instructions, skillsBudget, emit, signal } = this.#options;
    this.#options.prepare();
    const tools = this.#tools.choose();
    const system = await systemPrompt(hub, session, {
      instructions,
      skillsBudget,
      mode: this.#options.mode(),
      cwd: session.workspaceDir,
    });
    const answer = await requestAnswer(
      model,
      {
        system,
        messages: [...conversation.messages],
        tools: tools.map((tool) => tool.model),
        signal,
        maxOutputTokens: this.#options.maxOutputTokens,
      },
      { emit, ids: this.#ids, clock: this.#options.clock, retries: hub.config.config.agent.retries },
    );
    const { input, output } = answer.usage;
    if (input + output > 0) {
      this.#usage = addTokens(this.#usage, answer.usage);
      emit({ type: "usage", step: answer.usage, total: this.#usage });
    }
    return answer;
  }

  /** Undefined if the run continues. */
  #ending(answer: ModelAnswer, step: number): RunEnd | undefined {
    const { maxSteps, maxTokens = Infinity, signal } = this.#options;
    const { failure, finish, calls } = answer;
    const text = textAfterCalls(answer.parts);
    if (signal.aborted || failure?.code === "cancelled") return abortedEnd(signal, answer);
    if (failure !== undefined) return { reason: "error", text, error: failure };
    if (finish === "refusal" || finish === "length") return { reason: finish, text };
    if (calls.length === 0) return { reason: "done", text };
    if (step >= maxSteps) return { reason: "steps", text };
    return this.#usage.input + this.#usage.output >= maxTokens ? { reason: "tokens", text } : undefined;
  }

  /** Runs all calls of the answer, or none of them if the run ends with it. */
  async #results({ calls }: ModelAnswer, ending: RunEnd | undefined): Promise<readonly CallResult[]> {
    const { hub, emit, session, onAsk, signal, clock } = this.#options;
    const own = session.onAsk;
    // The session's own callback in the form of the agent's, so that a waiting call is reported as waiting.
    const ask: AgentOptions["onAsk"] = onAsk ?? (own && ((request, { signal }) => own(request, signal)));
    const wanted = calls.map(
      (call) =>
        new ToolCall({
          wanted: call,
          tool: this.#tools.find(call.part.name),
          emit,
          missing: (name) => this.#tools.missing(name),
          ask,
          clock,
        }),
    );
    if (ending !== undefined) return wanted.map((call) => call.leaveOut(skippedCallError(ending)));
    for (const call of wanted) this.#callsInProgress.set(call.wanted.id, call);
    const atOnce = hub.config.config.limits.concurrency;
    const results = await runConcurrently(wanted, { lane: (call) => this.#source(call), atOnce, signal });
    this.#callsInProgress.clear();
    return results;
  }

  /** The source of the called tool; for a call that runs another tool, the source of that one. */
  #source({ wanted: { name, input } }: ToolCall): string | undefined {
    const { hub, session } = this.#options;
    const wanted = name === CALL_TOOL ? input["name"] : name;
    return hub.view(session).tools.find((tool) => tool.name === wanted)?.origin.source;
  }
}

function abortedEnd(signal: AbortSignal, { parts, failure }: ModelAnswer): RunEnd {
  const text = textAfterCalls(parts);
  const error = signal.aborted ? abortError(signal) : failure;
  if (error === undefined || error.code === "cancelled") return { reason: "cancelled", text };
  return { reason: "error", text, error };
}

/** A cancelled run stays cancelled; any other end becomes an error, because the text will not be there later. */
function unsavedEnd(thrown: unknown, ending: RunEnd): RunEnd {
  if (ending.reason === "cancelled") return ending;
  return { reason: "error", text: ending.text, error: ending.error ?? asToolcribError(thrown) };
}

function skippedCallError({ reason, error }: RunEnd): ToolcribError {
  switch (reason) {
    case "steps":
      return new ToolcribError("cancelled", "the run had no steps left.");
    case "tokens":
      return new ToolcribError("cancelled", "the run had no tokens left.");
    case "error":
      return new ToolcribError("cancelled", `the run ended with an error: ${error?.message ?? "unknown"}`);
    case "cancelled":
      return new ToolcribError("cancelled", "the run was cancelled.");
    default:
      return new ToolcribError("cancelled", "the answer was incomplete.");
  }
}

/** The text of the answer after the last call. */
function textAfterCalls(parts: readonly AssistantPart[]): string {
  const last = parts.findLastIndex((part) => part.type === "call");
  return parts
    .slice(last + 1)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");
}

interface ConcurrencyOptions {
  /** The server that a call goes to, which a limit counts by. */
  readonly lane: (call: ToolCall) => string | undefined;
  /** Maximum number of calls in progress per lane. */
  readonly atOnce: number;
  readonly signal: AbortSignal;
}

/**
 * Runs the calls of one answer at the same time, as far as the limits of the hub allow. Results are in the order of the
 * calls.
 */
async function runConcurrently(
  calls: readonly ToolCall[],
  options: ConcurrencyOptions,
): Promise<readonly CallResult[]> {
  const { lane, atOnce, signal } = options;
  const results = new Map<ToolCall, CallResult>();
  const runNext = async (waiting: Iterable<ToolCall>): Promise<void> => {
    for (const call of waiting) results.set(call, await call.run(signal));
  };
  const running = [...Map.groupBy(calls, lane).values()].flatMap((group) => {
    // All take from one iterator. An abort ends the calls in progress, and so empties it.
    const waiting = group.values();
    return group.slice(0, Math.max(1, atOnce)).map(() => runNext(waiting));
  });
  await Promise.all(running);
  return calls.flatMap((call) => results.get(call) ?? []);
}

// One call of the model, from its request to the result that the model reads, with an event for every state.

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
  #starting: NodeJS.Immediate | undefined;
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
    try {
      return this.#done(await this.#execute(tool, signal), signal);
    } catch (thrown) {
      return this.#failed(asToolcribError(thrown));
    } finally {
      clearImmediate(this.#starting);
    }
  }

  /**
   * Its arguments are as they should be. The hub now asks within the same turn of the event loop, if it asks, and refuses within
   * the next, in which the refusal is recorded: a call that waits first, or is refused, is not reported as running.
   */
  checked(): void {
    this.#starting = setImmediate(() => {
      this.#starting = setImmediate(() => this.#begun());
    });
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
      this.#waitsFor(result, wait);
      await sleep(wait, clock, signal);
    }
  }

  /** Whoever watches learns why nothing happens. */
  #waitsFor(result: ToolResult, waitMs: number): void {
    const message = `Waiting ${Math.ceil(waitMs / 1000)} s. ${errorOf(result).message}`;
    this.#tell("pending", { progress: { progress: 0, message } });
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
    this.#tell(state, { content, details, error });
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
