/** Which model `--model` or `/model` means. */
import type { AgentConfig, ModelSetting } from "../../model/agent-config.ts";
import { modelId } from "../../agent/model/open-model.ts";
import { ToolcribError } from "../../model/errors.ts";

/** What the config names: the usual one first. */
export function namedModels(agent: AgentConfig): ModelSetting[] {
  return [...(agent.model === undefined ? [] : [agent.model]), ...agent.models];
}

/**
 * @param given An id as the config's models have it, an endpoint's own word for its model, or `<provider>/<model>`. The config's
 * `agent.model` if absent.
 */
export function chosenModel(agent: AgentConfig, given: string | undefined): ModelSetting {
  if (given === undefined) {
    if (agent.model !== undefined) return agent.model;
    throw new ToolcribError("invalid_config", "No model is set for the agent.", {
      hint: 'Set "agent": { "model": "…" } in the config or give --model: anthropic/… needs $ANTHROPIC_API_KEY, openai/… $OPENAI_API_KEY, google/… $GOOGLE_GENERATIVE_AI_API_KEY; ollama/… and lmstudio/… are local and need no key.',
    });
  }
  const named = namedModels(agent).find((setting) => modelId(setting) === given || endpointName(setting) === given);
  if (named !== undefined) return named;
  if (/^[^/\s]+\/\S+$/.test(given)) return given;
  const known = namedModels(agent).map(modelId).join(", ");
  throw new ToolcribError("invalid_arguments", `"${given}" is no model.`, {
    hint: `Write <provider>/<model>, such as anthropic/claude-sonnet-4-5${known === "" ? "." : `, or one of the config: ${known}.`}`,
  });
}

function endpointName(setting: ModelSetting): string | undefined {
  return typeof setting === "string" ? undefined : setting.model;
}
