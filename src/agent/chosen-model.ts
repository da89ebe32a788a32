/** The model of an agent: opened when it is first needed, and again after a failure or another choice. */
import type { Hub } from "../hub/hub.ts";
import type { ModelSetting } from "../model/agent-config.ts";
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ChatModel } from "./model/chat-model.ts";

interface ChosenModelOptions {
  readonly hub: Hub;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
}

export class ChosenModel {
  readonly #options: ChosenModelOptions;
  #choice: ModelSetting | ChatModel | undefined;
  #opened: Promise<ChatModel> | undefined;

  /** @param choice The config's `agent.model` if undefined. */
  constructor(choice: ModelSetting | ChatModel | undefined, options: ChosenModelOptions) {
    this.#choice = choice;
    this.#options = options;
  }

  choose(choice: ModelSetting | ChatModel): void {
    this.#choice = choice;
    this.#opened = undefined;
  }

  open(): Promise<ChatModel> {
    if (this.#opened !== undefined) return this.#opened;
    const opened = this.#open();
    this.#opened = opened;
    // A key can be set meanwhile.
    opened.catch(() => {
      if (this.#opened === opened) this.#opened = undefined;
    });
    return opened;
  }

  async #open(): Promise<ChatModel> {
    const { hub, env, clock } = this.#options;
    const config = hub.config.config.agent;
    const choice = this.#choice ?? config.model;
    if (choice === undefined) {
      throw new ToolcribError("invalid_config", "No model is chosen for the agent.", {
        hint: 'Set agent.model in toolcrib.json, such as "anthropic/claude-sonnet-4-5" or "ollama/qwen3".',
      });
    }
    if (isModel(choice)) return choice;
    // With it comes the `ai` package, which nobody else has to pay for.
    const { openModel } = await import("./model/open-model.ts");
    return openModel(choice, { resolve: (text) => hub.resolve(text), env, retries: config.retries, clock });
  }
}

function isModel(choice: ModelSetting | ChatModel): choice is ChatModel {
  return typeof choice !== "string" && "step" in choice;
}
