/** Tools that run another one on the caller's behalf: what comes back is that one's, and as untrusted. */
import type { ToolCapability } from "../model/capability.ts";
import { asToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { CALL_TOOL, isSearchTool } from "./search-definitions.ts";
import { dispatchTarget } from "./skills/dispatch.ts";
import type { SkillSources } from "./skills/skill-sources.ts";

/** The tool whose result a call of `tool` gives; mostly itself. */
export function toolBehind(
  tool: ToolCapability,
  args: JsonObject,
  visible: readonly ToolCapability[],
  skills: SkillSources,
): ToolCapability {
  if (isSearchTool(tool)) {
    const named = tool.name === CALL_TOOL ? visible.find(({ name }) => name === args["name"]) : undefined;
    return named === undefined ? tool : toolBehind(named, {}, visible, skills);
  }
  const skill = skills.skillOf(tool.origin.source, tool.origin.name);
  if (skill?.facts.dispatch === undefined) return tool;
  try {
    return dispatchTarget(skill, visible, skills.serverOfSkill(skill));
  } catch (error) {
    if (asToolcribError(error).code === "not_found") return tool;
    throw error;
  }
}
