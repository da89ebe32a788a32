/** How much servers may use a model that nobody is asked about: a server that never stops would spend the user's money. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { CallWindow } from "../../policy/call-window.ts";

const REQUESTS_PER_MINUTE = 60;
/** Times the tokens of one answer, for what is asked and answered together. */
const ANSWERS_PER_HOUR = 100;
const HOUR_MS = 60 * 60_000;

export class SamplingBudget {
  readonly #clock: Clock;
  readonly #requests = new CallWindow(REQUESTS_PER_MINUTE);
  readonly #tokensPerHour: number;
  /** Oldest first; those of the last hour. */
  #spent: { readonly at: number; readonly tokens: number }[] = [];

  /** @param maxTokens Of one answer. */
  constructor(clock: Clock, maxTokens: number) {
    this.#clock = clock;
    this.#tokensPerHour = maxTokens * ANSWERS_PER_HOUR;
  }

  /** Counts a request, or throws `rate_limited`; what is refused counts for nothing. */
  take(tokens: number): void {
    const now = this.#clock.now();
    if (this.#requests.wait(now) > 0) {
      throw limited(`At most ${REQUESTS_PER_MINUTE} sampling requests are answered in a minute.`);
    }
    this.#spent = this.#spent.filter(({ at }) => at > now - HOUR_MS);
    const spent = this.#spent.reduce((sum, each) => sum + each.tokens, 0);
    if (spent + tokens > this.#tokensPerHour) {
      throw limited(`Servers may use about ${this.#tokensPerHour} tokens of the model in an hour.`);
    }
    this.#requests.record(now);
    this.#spent.push({ at: now, tokens });
  }
}

function limited(message: string): ToolcribError {
  return new ToolcribError("rate_limited", message, {
    hint: `Ask later or for less. agent.samplingTokens moves the limit; with agent.sampling "ask" the user decides each time.`,
  });
}
