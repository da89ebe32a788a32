import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import type { SessionNotice } from "../../sessions/own/own-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { emptiedBy, followActiveSkills } from "./skill-rules.ts";

/** From now on the skill is active, and what it allows narrows the session. Says so if that leaves no tool. */
export function takeUpSkill(hub: Hub, session: Session, skill: SkillInfo): SessionNotice | undefined {
  hub.skills.activate(session, skill.id);
  followActiveSkills(hub, session);
  return emptiedBy(hub, session, skill);
}

/** False if it was not active, or stays so because the role has it. */
export function layDownSkill(hub: Hub, session: Session, idOrName: string): boolean {
  const isActive = (): boolean =>
    hub.skills.activeList(session).some(({ id, name }) => id === idOrName || name === idOrName);
  if (!isActive()) return false;
  hub.skills.deactivate(session, idOrName);
  followActiveSkills(hub, session);
  return !isActive();
}
