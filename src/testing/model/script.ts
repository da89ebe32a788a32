/** Where each conversation stands in the scenario. */
import type { ModelRequest } from "./model-request.ts";
import type { Scenario, Turn } from "./turn.ts";

export interface ScriptOptions {
  /** Requests with the same key share one position in the scenario; all of them if absent. */
  readonly by?: (request: ModelRequest) => string;
  /** Plays the last turn again and again; else further requests are errors. */
  readonly repeatLast?: boolean;
}

export class Script {
  readonly #scenario: Scenario;
  readonly #options: ScriptOptions;
  readonly #positions = new Map<string, number>();

  constructor(scenario: Scenario, options: ScriptOptions) {
    this.#scenario = scenario;
    this.#options = options;
  }

  /** Undefined when the scenario is over. */
  async next(request: ModelRequest): Promise<Turn | undefined> {
    const key = this.#options.by?.(request) ?? "";
    const index = this.#positions.get(key) ?? 0;
    this.#positions.set(key, index + 1);
    if (typeof this.#scenario === "function") return this.#scenario(request, index);
    return this.#scenario[index] ?? (this.#options.repeatLast === true ? this.#scenario.at(-1) : undefined);
  }
}
