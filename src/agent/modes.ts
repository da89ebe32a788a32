/** What the user lets the agent do, as rules of its session. They narrow: an `ask` or `deny` of the config holds in every mode. */
import type { SessionRules } from "../model/tool-rules.ts";
import type { Session } from "../sessions/session.ts";
import type { AgentMode } from "./agent-options.ts";

/** A skill gives instructions, or hands over to a tool that is decided on by itself: one question is enough. */
const EXCEPT_SKILLS = "!skill__*";

/** Shared and frozen, because decisions are remembered for the object. */
const RULES: Readonly<Record<AgentMode, SessionRules | undefined>> = {
  auto: undefined,
  ask: Object.freeze({ ask: ["writes", EXCEPT_SKILLS] }),
  "read-only": Object.freeze({ deny: ["writes", EXCEPT_SKILLS] }),
};

export function clearMode(session: Session): void {
  session.narrow("mode", undefined);
}

export function setMode(session: Session, mode: AgentMode): void {
  session.narrow("mode", RULES[mode]);
}
