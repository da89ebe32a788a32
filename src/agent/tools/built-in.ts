/** The agent's own tools. They belong to its session, and what they do for the model goes through the hub like every call. */
import type { Hub } from "../../hub/hub.ts";
import type { Tool } from "../../model/tool.ts";
import type { SessionNotice } from "../../sessions/own/own-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { PlanEntry } from "../events.ts";
import { planTool } from "./plan-tool.ts";
import { readTool } from "./read-tool.ts";
import { invocableSkills, skillTool } from "./skill-tool.ts";

export interface BuiltInOptions {
  readonly onPlan: (entries: readonly PlanEntry[]) => void;
  /** Told what the user should know, such as a skill that leaves no tool. */
  readonly onNotice?: ((notice: SessionNotice) => void) | undefined;
}

interface Added {
  options: BuiltInOptions;
  readonly plan: Tool;
  readonly read: Tool;
  skills: string | undefined;
}

const added = new WeakMap<Session, Added>();

/** Call it again, at any time, after skills changed: only what is other than before is replaced. */
export function addBuiltInTools(hub: Hub, session: Session, options: BuiltInOptions): void {
  const known = added.get(session) ?? first(hub, session, options);
  known.options = options;
  const names = [...invocableSkills(hub, session).keys()];
  const skills = JSON.stringify(names);
  if (known.skills === skills) return;
  known.skills = skills;
  const onNotice = (notice: SessionNotice): void => known.options.onNotice?.(notice);
  const skill = names.length === 0 ? [] : [skillTool(hub, session, names, onNotice)];
  session.own.setTools("agent", [known.plan, ...skill, known.read]);
}

/** For a session that goes on without its agent. */
export function removeBuiltInTools(session: Session): void {
  if (added.delete(session)) session.own.setTools("agent", []);
}

function first(hub: Hub, session: Session, options: BuiltInOptions): Added {
  const made: Added = {
    options,
    plan: planTool((entries) => made.options.onPlan(entries)),
    read: readTool(hub, session, () => hub.config.config.agent.resultBytes),
    skills: undefined,
  };
  added.set(session, made);
  return made;
}
