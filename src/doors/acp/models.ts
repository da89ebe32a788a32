/** The models that a client can choose between, and the one that sessions begin with. */
import type { SessionConfigOption } from "@agentclientprotocol/sdk/unstable";
import type { ChatModel } from "../../agent/model/chat-model.ts";
import { modelId, openModel } from "../../agent/model/open-model.ts";
import type { ModelSetting } from "../../model/config.ts";
import { systemClock } from "../../base/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { AcpDoorOptions } from "./acp-options.ts";

/** The id of the one option that sessions have. */
export const MODEL_OPTION = "model";

export class ModelChoices {
  readonly #options: Pick<AcpDoorOptions, "hub" | "model" | "env">;
  readonly #open = new Map<string, { readonly setting: string; readonly model: ChatModel }>();

  constructor(options: Pick<AcpDoorOptions, "hub" | "model" | "env">) {
    this.#options = options;
  }

  /** Undefined if none is configured. */
  get first(): string | undefined {
    return this.#settings().keys().next().value;
  }

  get ids(): readonly string[] {
    return [...this.#settings().keys()];
  }

  has(id: string): boolean {
    return this.#settings().has(id);
  }

  /** Rejects with `unauthorized`, and a hint, if there is no model or no key for it. Nothing is sent yet. */
  async open(id: string | undefined): Promise<ChatModel> {
    const setting = id === undefined ? undefined : this.#settings().get(id);
    if (id === undefined) {
      const hint = 'Set `agent.model` in toolcrib.json, such as "anthropic/claude-sonnet-4-5", or start with --model.';
      throw new ToolcribError("unauthorized", "No model is set.", { hint });
    }
    if (setting === undefined) {
      const hint = "Choose another one, or add it to `agent.models`.";
      throw new ToolcribError("invalid_config", `The model ${id} is no longer in the config.`, { hint });
    }
    if (isChatModel(setting)) return setting;
    const written = JSON.stringify(setting);
    const known = this.#open.get(id);
    if (known?.setting === written) return known.model;
    const { hub, env } = this.#options;
    const model = await openModel(setting, {
      resolve: (text) => hub.internals.resolve(text),
      env,
      retries: hub.config.config.agent.retries,
      clock: systemClock,
    });
    this.#open.set(id, { setting: written, model });
    return model;
  }

  /** Why a model cannot be used, or undefined. */
  async missing(id: string | undefined): Promise<ToolcribError | undefined> {
    try {
      await this.open(id);
      return undefined;
    } catch (error) {
      return asToolcribError(error);
    }
  }

  /** Models that cannot be used yet. The first model, even if there is none, has an undefined id. */
  async unusable(): Promise<{ readonly id: string | undefined; readonly error: ToolcribError }[]> {
    const others = this.ids.slice(1);
    const asked = [undefined, ...others].map(async (id) => ({ id, error: await this.missing(id ?? this.first) }));
    return (await Promise.all(asked)).flatMap(({ id, error }) => (error === undefined ? [] : [{ id, error }]));
  }

  configOptions(current: string | undefined): SessionConfigOption[] {
    const { ids } = this;
    if (current === undefined || ids.length === 0) return [];
    return [
      {
        id: MODEL_OPTION,
        name: "Model",
        category: "model",
        type: "select",
        currentValue: current,
        options: ids.map((value) => ({ value, name: value })),
      },
    ];
  }

  /** By id, the first one first. Read each time: the config can change. */
  #settings(): Map<string, ModelSetting | ChatModel> {
    const { hub, model } = this.#options;
    const { agent } = hub.config.config;
    const first = model ?? agent.model;
    const settings = new Map<string, ModelSetting | ChatModel>();
    for (const setting of [...(first === undefined ? [] : [first]), ...agent.models]) {
      const id = isChatModel(setting) ? setting.id : modelId(setting);
      if (!settings.has(id)) settings.set(id, setting);
    }
    return settings;
  }
}

function isChatModel(setting: ModelSetting | ChatModel): setting is ChatModel {
  return typeof setting === "object" && "step" in setting;
}
