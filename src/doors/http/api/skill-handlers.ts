/** Operations on skills. */
import { ToolcribError } from "../../../model/errors.ts";
import { type Handlers, pageOf } from "./operation-handler.ts";

type SkillOperation =
  | "listSkills"
  | "getSkill"
  | "getInstructions"
  | "skillPlaces"
  | "scanSkills"
  | "importSkills"
  | "removeSkill";

export const skillHandlers: Handlers<SkillOperation> = {
  listSkills(input, { session }, { hub }) {
    const part = input.q?.toLowerCase();
    const matching = hub.skills
      .infos(session)
      .filter(
        ({ name, description, kind }) =>
          (input.kind === undefined || kind === input.kind) &&
          (part === undefined || name.toLowerCase().includes(part) || description.toLowerCase().includes(part)),
      );
    const { entries, total, next } = pageOf(matching, input, ({ id }) => id);
    return { skills: entries, total, ...next };
  },

  async getSkill({ skillId }, { session }, { hub }) {
    const skill = await hub.skills.describe(skillId, session);
    if (skill === undefined) throw noSkill(skillId);
    return { skill };
  },

  async getInstructions({ skillId }, { session }, { hub }) {
    const skill = hub.skills.get(skillId, { session });
    if (skill === undefined) throw noSkill(skillId);
    const instructions = await hub.skills.instructions(skill.id, { session });
    return { skillId: skill.id, name: skill.name, instructions };
  },

  skillPlaces: async (_input, _context, { hub }) => ({ places: await hub.skills.places() }),
  scanSkills: ({ path }, _context, { hub }) => hub.skills.scan(path),
  importSkills: (input, _context, { hub }) => hub.skills.import(input),
  removeSkill: ({ skillId }, _context, { hub }) => hub.skills.remove(skillId),
};

function noSkill(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no skill "${id}".`, {
    hint: "GET /api/v1/skills lists those there are.",
  });
}
