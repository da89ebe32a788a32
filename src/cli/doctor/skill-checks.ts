/** What `doctor` says of the user's own skills. */
import { resolve } from "node:path";
import type { RunningHub } from "../running-hub.ts";
import { plain } from "../skill/describe.ts";
import type { Check } from "./machine-checks.ts";

/** How many are offered, then each thing that is wrong: folders, skills that are left out, roles. */
export function skillChecks({ hub, skillWarnings }: RunningHub): Check[] {
  const { config, baseDir } = hub.config;
  const own = hub.skills.list().filter(({ source }) => !source.startsWith("server:"));
  const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
  const from = dirs.length === 0 ? "" : `; folders: ${dirs.join(", ")}`;
  const counted: Check = {
    area: "skills",
    status: "ok",
    message: `${own.length} ${own.length === 1 ? "skill is" : "skills are"} offered${from}`,
    details: { offered: own.map(({ name }) => name), dirs },
  };
  return [counted, ...skillWarnings.map(checkOf)];
}

function checkOf(warning: string): Check {
  const hint = ADVICE.find(([about]) => about.test(warning))?.[1];
  return {
    area: "skills",
    status: "warn",
    message: plain(warning, Infinity),
    hint,
  };
}

const ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    / of skills\.dirs is not there\.$/,
    "Make it, or correct skills.dirs in the config; paths start at the config's folder.",
  ],
  [/ is withheld: /, "Read it. If it is good, `toolcrib skill import <folder> --force` takes it in."],
  [/^The role /, "Correct roles.<role>.skills, or import the skill; toolcrib skill list shows those there are."],
];
