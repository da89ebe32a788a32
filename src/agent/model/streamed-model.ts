/** A model behind a provider of `ai`: asks, streams, and asks again where that can help. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { readAnswer } from "./answer.ts";
import type { ChatModel, ModelStep, StepPart } from "./chat-model.ts";
import { readFailure } from "./failure.ts";
import { type Reach, type SdkCall, type SdkModel, type SdkTool, speaksResponses } from "./open-provider.ts";
import { pause } from "./pause.ts";
import { toPrompt } from "./prompt.ts";
import type { Protocol } from "./providers.ts";

/** A provider that wants a longer pause than this is not waited for. */
const LONGEST_RETRY_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;

const SCHEMA_RULES: Readonly<Record<Protocol, ChatModel["provider"]>> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "gemini",
  "openai-compatible": "openai",
};

/** Each provider looks at its own. */
const PROVIDER_OPTIONS: NonNullable<SdkCall["providerOptions"]> = {
  // Calls are taken whole, and what else speaks this protocol does not know the field that asks for pieces.
  anthropic: { toolStreaming: false },
  // The conversation is ours: nothing of it is to be kept there.
  openai: { store: false },
};

interface StreamedModelOptions {
  readonly id: string;
  readonly reach: Reach;
  readonly images: boolean;
  readonly sdk: SdkModel;
  readonly retries: number;
  readonly clock: Clock;
}

export class StreamedModel implements ChatModel {
  readonly id: string;
  readonly provider: ChatModel["provider"];
  readonly images: boolean;
  readonly #options: StreamedModelOptions;
  /** Some servers give thoughts and refuse to take them back, others insist on them: only trying tells. */
  #thoughts = true;

  constructor(options: StreamedModelOptions) {
    this.id = options.id;
    this.provider = SCHEMA_RULES[options.reach.protocol];
    this.images = options.images;
    this.#options = options;
  }

  async *step(step: ModelStep): AsyncGenerator<StepPart> {
    const { id, reach, retries, clock } = this.#options;
    for (let attempt = 1; ; attempt++) {
      if (step.signal.aborted) throw cancelled(id);
      try {
        yield* this.#ask(step);
        return;
      } catch (thrown) {
        if (step.signal.aborted) throw cancelled(id);
        const { error, retry, retryAfterMs } = readFailure(thrown, id, reach);
        if (this.#thoughts && error.code === "invalid_arguments" && error.message.includes("reasoning_content")) {
          this.#thoughts = false;
          continue;
        }
        if (!retry || attempt > retries) throw error;
        if (retryAfterMs !== undefined && retryAfterMs > LONGEST_RETRY_AFTER_MS) throw tooLong(error, retryAfterMs);
        const delayMs = Math.round(Math.max(retryAfterMs ?? 0, backoff(attempt)));
        yield { type: "again", attempt, delayMs, reason: error.message };
        await pause(delayMs, clock, step.signal);
      }
    }
  }

  async *#ask(step: ModelStep): AsyncGenerator<StepPart> {
    const { stream, response } = await this.#options.sdk.doStream(this.#call(step));
    if (/^text\/html/i.test(response?.headers?.["content-type"] ?? "")) {
      await stream.cancel();
      throw noModel(this.#options.reach);
    }
    // Whoever stops reading ends the stream, and with it the model's work.
    yield* readAnswer(stream, this.#options.reach);
  }

  #call(step: ModelStep): SdkCall {
    const { reach } = this.#options;
    return {
      prompt: toPrompt(step.system, step.messages, {
        protocol: reach.protocol,
        model: reach.model,
        images: this.images,
        thoughts: this.#thoughts,
        imagesInResults:
          reach.protocol !== "openai-compatible" && (reach.protocol !== "openai" || speaksResponses(reach)),
      }),
      tools: step.tools.map(({ name, description, inputSchema }) => ({
        type: "function",
        name,
        description,
        // Whoever made the tool has normalised its schema; the type of the package knows only an older draft.
        inputSchema: inputSchema as SdkTool["inputSchema"],
      })),
      abortSignal: step.signal,
      providerOptions: PROVIDER_OPTIONS,
      maxOutputTokens: step.maxOutputTokens,
      temperature: step.temperature,
      ...(step.stopSequences === undefined ? {} : { stopSequences: [...step.stopSequences] }),
    };
  }
}

/** Twice as long each time, and not all clients at once. */
function backoff(attempt: number): number {
  const most = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return most * (0.75 + Math.random() / 2);
}

/** A page for people, such as that of a login: the address is another one. */
function noModel({ url }: Reach): ToolcribError {
  return new ToolcribError("invalid_config", `${url.host} answered with a web page and not as a model does.`, {
    hint: "Check baseUrl; most endpoints want it to end in /v1.",
  });
}

function cancelled(id: string): ToolcribError {
  return new ToolcribError("cancelled", `The answer of ${id} was cancelled.`);
}

function tooLong(error: ToolcribError, retryAfterMs: number): ToolcribError {
  return new ToolcribError(error.code, error.message, {
    hint: `It asks to wait ${Math.ceil(retryAfterMs / 1000)} seconds.`,
    details: { ...error.details, retryAfterMs },
  });
}
