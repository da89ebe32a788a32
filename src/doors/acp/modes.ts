import type { SessionModeState } from "@agentclientprotocol/sdk/unstable";
import type { AgentMode } from "../../agent/agent-options.ts";

const MODES: readonly { readonly id: AgentMode; readonly name: string; readonly description: string }[] = [
  { id: "ask", name: "Ask", description: "Asks before every tool that is not read-only." },
  { id: "auto", name: "Auto", description: "Asks only where rules say so." },
  { id: "read-only", name: "Read-only", description: "Runs nothing that is not read-only." },
];

export function modeState(currentModeId: AgentMode): SessionModeState {
  return { currentModeId, availableModes: MODES.map((mode) => ({ ...mode })) };
}

export function asMode(value: unknown): AgentMode | undefined {
  return MODES.find(({ id }) => id === value)?.id;
}

const STRICTNESS: readonly AgentMode[] = ["auto", "ask", "read-only"];

/** What a session begins with. One that was left in a laxer mode than the agent is started with is not laxer than that. */
export function openingMode(kept: unknown, given: AgentMode | undefined): AgentMode {
  const left = asMode(kept);
  if (left === undefined || given === undefined) return left ?? given ?? "ask";
  return STRICTNESS.indexOf(left) > STRICTNESS.indexOf(given) ? left : given;
}
