/** Compares what a skill needs with what a machine has. */
import type { MissingNeeds, SkillNeeds } from "../../model/skill.ts";
import { findBin } from "./find-bin.ts";
import { variableOf } from "./variable.ts";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
  /** Whether OpenClaw's config has something at the path (`channels.slack`) that counts as yes. */
  hasConfig(path: string): boolean;
}

const PLATFORMS: Readonly<Record<string, string>> = {
  windows: "win32",
  win: "win32",
  win64: "win32",
  macos: "darwin",
  mac: "darwin",
  osx: "darwin",
};

/** The unmet part. Of `anyBins` and `os`, where one is enough, all are unmet if none fits. */
export function missingNeeds(needs: SkillNeeds, machine: Machine): MissingNeeds {
  const lacksBin = (name: string): boolean => findBin(name, machine) === undefined;
  return {
    bins: needs.bins.filter(lacksBin),
    anyBins: needs.anyBins.every(lacksBin) ? needs.anyBins : [],
    env: needs.env.filter((name) => (variableOf(machine.env, name, machine.platform) ?? "").trim() === ""),
    config: needs.config.filter((path) => !machine.hasConfig(path)),
    os: needs.os.some((name) => isPlatform(name, machine.platform)) ? [] : needs.os,
  };
}

export function isMet({ bins, anyBins, env, config, os }: MissingNeeds): boolean {
  return [bins, anyBins, env, config, os].every((list) => list.length === 0);
}

function isPlatform(name: string, platform: NodeJS.Platform): boolean {
  const known = name.trim().toLowerCase();
  return (Object.hasOwn(PLATFORMS, known) ? PLATFORMS[known] : known) === platform;
}
