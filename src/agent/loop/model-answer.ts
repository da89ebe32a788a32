/** One answer of the model, assembled from its pieces while they are emitted. */
import { randomUUID } from "node:crypto";
import { withTimeout } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { abortable } from "../abortable.ts";
import type { AgentEvent, Tokens } from "../agent-options.ts";
import type { AgentMessage, AssistantPart, CallPart, ChatModel, ModelStep, StepPart } from "../model/chat-model.ts";

/** A call that the model asks for. `problem`: its arguments cannot be read. */
export interface RequestedCall {
  readonly part: CallPart;
  readonly problem?: string;
}

export interface ModelAnswer {
  readonly parts: readonly AssistantPart[];
  readonly calls: readonly RequestedCall[];
  readonly usage: Tokens;
  readonly finish: Extract<StepPart, { type: "finish" }>["reason"];
  /** Why it is incomplete; the parts before that are still there. */
  readonly failure?: ToolcribError;
}

interface AnswerOptions {
  readonly emit: (event: AgentEvent) => void;
  readonly ids: CallIds;
  readonly clock: Clock;
  /** How often a silent model is asked again. */
  readonly retries: number;
}

/** Long enough for a model that thinks silently, or that runs on a slow machine. */
const MAX_SILENCE_MS = 5 * 60_000;

class SilenceTimeout extends ToolcribError {}

/** Never rejects. */
export async function requestAnswer(model: ChatModel, step: ModelStep, options: AnswerOptions): Promise<ModelAnswer> {
  const draft = new AnswerDraft(step, options);
  for (let attempt = 1; ; attempt++) {
    try {
      await readAttempt(model, step, draft, options.clock);
      return draft.answer();
    } catch (thrown) {
      const error = asToolcribError(thrown);
      if (!(error instanceof SilenceTimeout) || attempt > options.retries) return draft.answer(error);
      draft.add({ type: "again", attempt, delayMs: 0, reason: error.message });
    }
  }
}

async function readAttempt(model: ChatModel, step: ModelStep, draft: AnswerDraft, clock: Clock): Promise<void> {
  const given = new AbortController();
  const signal = AbortSignal.any([step.signal, given.signal]);
  let pieces: AsyncIterator<StepPart> | undefined;
  try {
    pieces = model.step({ ...step, signal })[Symbol.asyncIterator]();
    for (;;) {
      const next = abortable(pieces.next(), step.signal);
      const piece = await withTimeout(next, { ms: MAX_SILENCE_MS, clock, late: () => silenceTimeout(model.id) });
      if (piece.done === true) return;
      draft.add(piece.value);
    }
  } catch (thrown) {
    given.abort();
    // Not awaited: a model that hangs would hang here too.
    void Promise.resolve(pieces?.return?.()).catch(() => {});
    throw thrown;
  }
}

function silenceTimeout(id: string): SilenceTimeout {
  const minutes = MAX_SILENCE_MS / 60_000;
  return new SilenceTimeout("timeout", `The model ${id} said nothing for ${minutes} minutes.`, {
    hint: "Try again later, or use another model.",
  });
}

class AnswerDraft {
  readonly #options: AnswerOptions;
  #parts: AssistantPart[] = [];
  #problems = new Map<string, string>();
  #usage: Tokens = { input: 0, output: 0 };
  #finish: ModelAnswer["finish"] = "other";
  readonly #step: ModelStep;

  constructor(step: ModelStep, options: AnswerOptions) {
    this.#step = step;
    this.#options = options;
  }

  add(piece: StepPart): void {
    const { emit } = this.#options;
    switch (piece.type) {
      case "text":
        if (piece.text === "") return;
        emit({ type: "text", text: piece.text });
        return this.#addText(piece.text);
      case "thought":
        if (piece.text !== "") emit({ type: "thought", text: piece.text });
        return this.#addThought(piece);
      case "call":
        return this.#addCall(piece);
      case "again":
        emit({ type: "notice", level: "warning", message: retryNotice(piece, this.#hasSaid()) });
        this.#parts = [];
        this.#problems = new Map();
        return;
      case "usage":
        this.#usage = addTokens(this.#usage, piece);
        return;
      case "finish":
        this.#finish = piece.reason;
    }
  }

  answer(failure?: ToolcribError): ModelAnswer {
    const calls = this.#parts
      .filter((part) => part.type === "call")
      .map((part) => {
        const problem = this.#problems.get(part.id);
        return problem === undefined ? { part } : { part, problem };
      });
    const isReported = this.#usage.input + this.#usage.output > 0;
    return {
      parts: this.#parts,
      calls,
      // The cost of a failed answer is unknown.
      usage: isReported || failure !== undefined ? this.#usage : estimateUsage(this.#step, this.#parts),
      finish: this.#finish,
      failure,
    };
  }

  #hasSaid(): boolean {
    return this.#parts.some(({ type }) => type !== "call");
  }

  #addText(text: string): void {
    const last = this.#parts.at(-1);
    if (last?.type === "text") this.#parts.splice(-1, 1, { type: "text", text: last.text + text });
    else this.#parts.push({ type: "text", text });
  }

  /** Metadata that the provider wants back, such as a signature, ends a thought: the next piece starts another one. */
  #addThought({ text, meta }: Extract<StepPart, { type: "thought" }>): void {
    const last = this.#parts.at(-1);
    const isOpen = last?.type === "thought" && last.meta === undefined;
    if (isOpen) this.#parts.pop();
    const whole = isOpen ? last.text + text : text;
    if (whole === "" && meta === undefined) return;
    this.#parts.push({ type: "thought", text: whole, meta });
  }

  #addCall({ id: given, name, input, problem, meta }: Extract<StepPart, { type: "call" }>): void {
    const id = this.#options.ids.take(given);
    if (problem !== undefined || input === undefined) {
      this.#problems.set(id, problem ?? "The arguments are not a JSON object.");
    }
    this.#parts.push({ type: "call", id, name, input: input ?? {}, meta });
  }
}

export function addTokens(left: Tokens, right: Tokens): Tokens {
  const cached = (left.cached ?? 0) + (right.cached ?? 0);
  return {
    input: left.input + right.input,
    output: left.output + right.output,
    ...(cached === 0 ? {} : { cached }),
    ...(left.estimated === true || right.estimated === true ? { estimated: true } : {}),
  };
}

function retryNotice({ reason, delayMs }: Extract<StepPart, { type: "again" }>, hasSaid: boolean): string {
  const when = delayMs < 1000 ? "at once" : `in ${Math.round(delayMs / 1000)} s`;
  const again = `The model is asked again ${when}: ${reason.replace(/\.?$/, ".")}`;
  return hasSaid ? `${again} The answer so far is discarded.` : again;
}

/**
 * Call ids that are unique in a conversation. Some endpoints number the calls of each answer from the start, or send no id
 * at all, and two calls with one id could not be told apart.
 */
export class CallIds {
  readonly #taken = new Set<string>();

  constructor(messages: readonly AgentMessage[]) {
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      for (const part of message.parts) if (part.type === "call") this.#taken.add(part.id);
    }
  }

  take(given: string): string {
    const random = randomUUID().replaceAll("-", "").slice(0, 16);
    const free = given === "" ? `call_${random}` : this.#taken.has(given) ? `${given.slice(0, 40)}_${random}` : given;
    this.#taken.add(free);
    return free;
  }
}

const CHARACTERS_PER_TOKEN = 4;
/** An image costs by its size in pixels, of which its base64 says little. */
const MAX_MEDIA_CHARACTERS = 4000;

/** Estimated tokens for models that report none, so that a token budget still applies. */
function estimateUsage({ system, messages, tools }: ModelStep, answer: readonly AssistantPart[]): Tokens {
  return { input: estimateTokens([system, messages, tools]), output: estimateTokens(answer), estimated: true };
}

function estimateTokens(value: unknown): number {
  return Math.ceil(countCharacters(value) / CHARACTERS_PER_TOKEN);
}

function countCharacters(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let characters = 0;
  for (const [key, member] of Object.entries(value)) {
    const isMedia = (key === "data" || key === "blob") && typeof member === "string";
    characters += isMedia ? Math.min(member.length, MAX_MEDIA_CHARACTERS) : countCharacters(member);
  }
  return characters;
}
