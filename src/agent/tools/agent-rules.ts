/** The patterns that say which tools an agent uses, as rules of its session: they also hold for what search tools reach. */
import type { SessionRules } from "../../model/tool-rules.ts";
import type { Session } from "../../sessions/session.ts";
import { sharedRules } from "./shared-rules.ts";

/** An agent's own tools and the skills, which stay whatever list of tools there is; what skills run is decided by itself. */
export const ALWAYS_ALLOWED = ["toolcrib_*", "skill__*"] as const;

export interface AgentPatterns {
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

export function narrowToPatterns(session: Session, patterns: AgentPatterns): void {
  session.narrow("agent", rulesOf(patterns));
}

function rulesOf({ include, exclude = [] }: AgentPatterns): SessionRules | undefined {
  if (include === undefined && exclude.length === 0) return undefined;
  const namesOwn = exclude.some((pattern) => pattern.startsWith("toolcrib_"));
  return sharedRules({
    ...(include === undefined ? {} : { allow: [...include, ...ALWAYS_ALLOWED] }),
    ...(exclude.length === 0 ? {} : { deny: [...exclude, ...(namesOwn ? [] : ["!toolcrib_*"])] }),
  });
}
