/** One answer of the model, put together from its pieces while they are told. */
import type { Clock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { AgentEvent, Tokens } from "../events.ts";
import type { AssistantPart, CallPart } from "../messages.ts";
import type { ChatModel, ModelStep, StepPart } from "../model/chat-model.ts";
import type { CallIds } from "./call-ids.ts";
import { estimatedUsage } from "./estimated-usage.ts";
import { untilAborted } from "./until-aborted.ts";
import { untilSilent } from "./until-silent.ts";

/** A call that the model asks for. `problem`: its arguments cannot be read. */
export interface WantedCall {
  readonly part: CallPart;
  readonly problem?: string;
}

export interface Answer {
  readonly parts: readonly AssistantPart[];
  readonly calls: readonly WantedCall[];
  readonly usage: Tokens;
  readonly finish: Extract<StepPart, { type: "finish" }>["reason"];
  /** Why it is not whole; what came before is there all the same. */
  readonly failure?: ToolcribError;
}

interface AnswerOptions {
  readonly emit: (event: AgentEvent) => void;
  readonly ids: CallIds;
  readonly clock: Clock;
  /** How often a model that falls silent is asked again. */
  readonly retries: number;
}

/** Long enough for a model that thinks without a word, or that runs on somebody's desk. */
const LONGEST_SILENCE_MS = 5 * 60_000;

class FellSilent extends ToolcribError {}

/** Never rejects. */
export async function takeAnswer(model: ChatModel, step: ModelStep, options: AnswerOptions): Promise<Answer> {
  const draft = new Draft(step, options);
  for (let attempt = 1; ; attempt++) {
    try {
      await readAttempt(model, step, draft, options.clock);
      return draft.answer();
    } catch (thrown) {
      const error = asToolcribError(thrown);
      if (!(error instanceof FellSilent) || attempt > options.retries) return draft.answer(error);
      draft.add({ type: "again", attempt, delayMs: 0, reason: error.message });
    }
  }
}

async function readAttempt(model: ChatModel, step: ModelStep, draft: Draft, clock: Clock): Promise<void> {
  const given = new AbortController();
  const signal = AbortSignal.any([step.signal, given.signal]);
  const silence = (): ToolcribError => fellSilent(model.id);
  let pieces: AsyncIterator<StepPart> | undefined;
  try {
    pieces = model.step({ ...step, signal })[Symbol.asyncIterator]();
    for (;;) {
      const next = untilAborted(pieces.next(), step.signal);
      const piece = await untilSilent(next, { ms: LONGEST_SILENCE_MS, clock, silence });
      if (piece.done === true) return;
      draft.add(piece.value);
    }
  } catch (thrown) {
    given.abort();
    // Not waited for: a model that hangs would hang here too.
    void Promise.resolve(pieces?.return?.()).catch(() => {});
    throw thrown;
  }
}

function fellSilent(id: string): FellSilent {
  const minutes = LONGEST_SILENCE_MS / 60_000;
  return new FellSilent("timeout", `The model ${id} said nothing for ${minutes} minutes.`, {
    hint: "Try again later, or use another model.",
  });
}

class Draft {
  readonly #options: AnswerOptions;
  #parts: AssistantPart[] = [];
  #problems = new Map<string, string>();
  #usage: Tokens = { input: 0, output: 0 };
  #finish: Answer["finish"] = "other";
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
        emit({ type: "notice", level: "warning", message: againText(piece, this.#hasSaid()) });
        this.#parts = [];
        this.#problems = new Map();
        return;
      case "usage":
        this.#usage = sum(this.#usage, piece);
        return;
      case "finish":
        this.#finish = piece.reason;
    }
  }

  answer(failure?: ToolcribError): Answer {
    const calls = this.#parts
      .filter((part) => part.type === "call")
      .map((part) => {
        const problem = this.#problems.get(part.id);
        return problem === undefined ? { part } : { part, problem };
      });
    return {
      parts: this.#parts,
      calls,
      // Of an answer that failed nobody knows what it cost.
      usage: isTold(this.#usage) || failure !== undefined ? this.#usage : estimatedUsage(this.#step, this.#parts),
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

  /** What a provider wants back, such as a signature, ends a thought: what comes after it is another one. */
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
      this.#problems.set(id, problem ?? "The arguments are no JSON object.");
    }
    this.#parts.push({ type: "call", id, name, input: input ?? {}, meta });
  }
}

function isTold({ input, output }: Tokens): boolean {
  return input + output > 0;
}

export function sum(left: Tokens, right: Tokens): Tokens {
  const cached = (left.cached ?? 0) + (right.cached ?? 0);
  return {
    input: left.input + right.input,
    output: left.output + right.output,
    ...(cached === 0 ? {} : { cached }),
    ...(left.estimated === true || right.estimated === true ? { estimated: true } : {}),
  };
}

function againText({ reason, delayMs }: Extract<StepPart, { type: "again" }>, hasSaid: boolean): string {
  const when = delayMs < 1000 ? "at once" : `in ${Math.round(delayMs / 1000)} s`;
  const again = `The model is asked again ${when}: ${reason.replace(/\.?$/, ".")}`;
  return hasSaid ? `${again} What it said in this answer so far is void.` : again;
}
