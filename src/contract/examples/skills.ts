import type { SkillInfo } from "../skill.ts";
import type { Examples } from "./example.ts";

const NOTHING = { bins: [], anyBins: [], env: [], config: [], os: [] };
const FOLDER = "/home/ada/.openclaw/workspace/skills";
const IMPORTED = {
  skillId: "weather",
  name: "weather",
  path: `${FOLDER}/weather`,
  warnings: [],
  dependenciesMet: false,
};

const WEATHER: SkillInfo = {
  id: "weather",
  name: "weather",
  description: "Tells the weather of a place.",
  source: `${FOLDER}/weather`,
  kind: "imported",
  dialect: "openclaw",
  version: "1.2.0",
  removable: true,
  importedAt: "2026-11-16T08:10:00.000Z",
  requires: { ...NOTHING, bins: ["curl"], env: ["WEATHER_KEY"] },
  missing: { ...NOTHING, env: ["WEATHER_KEY"] },
  dependenciesMet: false,
  servers: [],
  warnings: [],
  findings: [],
};

const INSTRUCTIONS = "# Weather\n\nAsk wttr.in for the place and say what it answers.";

export const SKILL_EXAMPLES: Examples<
  "listSkills" | "getSkill" | "getInstructions" | "skillPlaces" | "scanSkills" | "importSkills" | "removeSkill"
> = {
  listSkills: { input: { kind: "imported" }, output: { skills: [WEATHER], total: 1 } },
  getSkill: {
    input: { skillId: "weather" },
    output: {
      skill: {
        ...WEATHER,
        uri: "skill://weather/SKILL.md",
        files: [{ path: "SKILL.md", size: 412 }],
        tools: ["skill__weather"],
        injectedFor: [],
        promptEntry: "<skill><name>weather</name><description>Tells the weather of a place.</description></skill>",
      },
    },
  },
  getInstructions: {
    input: { skillId: "weather" },
    output: { skillId: "weather", name: "weather", instructions: INSTRUCTIONS },
  },
  skillPlaces: { input: {}, output: { places: [{ path: FOLDER, label: "OpenClaw workspace", exists: true }] } },
  scanSkills: {
    input: { path: "~/.openclaw/workspace/skills" },
    output: {
      skills: [
        {
          name: "weather",
          description: WEATHER.description,
          path: `${FOLDER}/weather`,
          dialect: "openclaw",
          status: "new",
          requires: WEATHER.requires,
          missing: WEATHER.missing,
          dependenciesMet: false,
          otherOs: false,
          warnings: [],
          findings: [],
        },
      ],
      failed: [],
      totalScanned: 1,
    },
  },
  importSkills: {
    input: { path: "~/.openclaw/workspace/skills", only: [`${FOLDER}/weather`], dryRun: false },
    output: { imported: [IMPORTED], unchanged: [], failed: [], totalScanned: 1 },
  },
  removeSkill: { input: { skillId: "weather" }, output: { skillId: "weather", name: "weather" } },
};
