/** Servers that want to use the model: what the config says, with the user asked where it says so. */
import { randomUUID } from "node:crypto";
import { type AgentContext, methods } from "@agentclientprotocol/sdk/unstable";
import type { SamplingQuestion } from "../../agent/agent-options.ts";
import type { ChatModel } from "../../agent/model/chat-model.ts";
import { answerSampling } from "../../agent/sampling/answer-sampling.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SessionOptions } from "../../sessions/session.ts";

export interface SamplingParts {
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly model: () => Promise<ChatModel>;
}

/** What is not offered to servers is not asked for. */
export function sampling(hub: Hub, { client, sessionId, model }: SamplingParts): Pick<SessionOptions, "onSample"> {
  const { sampling: mode, samplingTokens: maxTokens } = hub.config.config.agent;
  if (mode === "deny") return {};
  return { onSample: answerSampling({ model, mode, maxTokens, ask }) };

  async function ask({ server, params }: SamplingQuestion, signal: AbortSignal): Promise<boolean> {
    const toolCallId = `sampling_${randomUUID()}`;
    const title = `${server} wants to use the model`;
    const { outcome } = await client.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: { toolCallId, title, kind: "think", status: "pending", rawInput: params },
        options: [
          { optionId: "allow_once", kind: "allow_once", name: "Allow once" },
          { optionId: "reject_once", kind: "reject_once", name: "Reject" },
        ],
      },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    return outcome.outcome === "selected" && outcome.optionId === "allow_once";
  }
}
