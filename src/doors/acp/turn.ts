/** One `session/prompt`: the events of a run as updates, and how it ended. */
import type { PromptResponse, Usage } from "@agentclientprotocol/sdk/unstable";
import type { Agent } from "../../agent/agent-options.ts";
import type { AgentEvent, Tokens } from "../../agent/events.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { contextWindow } from "./context-window.ts";
import type { Notices } from "./notices.ts";
import { shownText } from "./shown-text.ts";
import { stopReason } from "./stop-reason.ts";
import type { ToolCalls } from "./tool-calls.ts";
import type { Updates } from "./updates.ts";

export interface Turn {
  readonly agent: Agent;
  readonly modelId: string;
  readonly updates: Updates;
  readonly calls: ToolCalls;
  readonly notices: Notices;
  readonly signal: AbortSignal;
}

export async function runTurn(content: readonly ContentBlock[], turn: Turn): Promise<PromptResponse> {
  const { agent, calls, signal } = turn;
  let end: Extract<AgentEvent, { type: "end" }> | undefined;
  try {
    for await (const event of agent.run(content, { signal })) {
      if (event.type === "end") end = event;
      else await tell(event, turn);
    }
  } finally {
    await calls.end({ cancelled: signal.aborted });
  }
  if (end === undefined || signal.aborted) return { stopReason: "cancelled" };
  if (end.reason === "error") {
    const { code, message, hint, details } = end.error ?? { code: "internal", message: "The run failed." };
    throw new ToolcribError(code, message, { hint, details });
  }
  return { stopReason: stopReason(end.reason), usage: usage(end.usage) };
}

async function tell(event: Exclude<AgentEvent, { type: "end" }>, turn: Turn): Promise<void> {
  const { updates } = turn;
  switch (event.type) {
    case "text":
      return updates.text(shownText(event.text));
    case "thought":
      return updates.thought(event.text);
    case "tool-call":
      return turn.calls.take(event);
    case "plan":
      return updates.send({ sessionUpdate: "plan", entries: event.entries.map((entry) => ({ ...entry })) });
    case "usage": {
      const size = contextWindow(turn.modelId);
      const used = event.step.input + event.step.output;
      return size === undefined ? undefined : updates.send({ sessionUpdate: "usage_update", used, size });
    }
    case "notice":
      return turn.notices.tellOfRun(event);
  }
}

function usage({ input, output, cached }: Tokens): Usage {
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cachedReadTokens: cached,
  };
}
