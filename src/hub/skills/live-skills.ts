/** Keeps the skills of a hub in step with its home, its config and the folders that the config names. */
import { resolve } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Clock } from "../../model/clock.ts";
import type { SkillFinding } from "../../model/skill.ts";
import type { OfferedSkill } from "../../skills/offer/offered-skill.ts";
import type { Machine } from "../../skills/needs/check-needs.ts";
import { watchFolders } from "./folder-watch.ts";
import type { HubRegistry } from "./hub-registry.ts";
import { readOwnSkills } from "./own-skills.ts";
import type { SkillSources } from "./skill-sources.ts";
import { withSkillServers } from "./skill-servers.ts";

/** What every warning about the user's own skills begins with, so that it can be told from others. */
export const SKILLS_WARNING = "skills: ";

export interface LiveSkillsOptions {
  readonly registry: HubRegistry;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  /** Asked each time, because programs are installed and variables set while a hub runs. */
  readonly machine: () => Machine;
  /** Whether this hub brings up what `skills.autoStart` asks for. */
  readonly startsServers: boolean;
  readonly warn: (message: string) => void;
}

export class LiveSkills {
  readonly #options: LiveSkillsOptions;
  /** Of skills in folders, by digest: only what changed is scanned again. */
  readonly #scans = new Map<string, readonly SkillFinding[]>();
  readonly #read = new WeakMap<LoadedConfig, readonly OfferedSkill[]>();

  constructor(options: LiveSkillsOptions) {
    this.#options = { ...options, warn: (message) => options.warn(SKILLS_WARNING + message) };
  }

  /** Reads the skills that belong to a config. The result is the config with the servers that they bring up. */
  async prepare(config: LoadedConfig): Promise<LoadedConfig> {
    const { machine, env, warn } = this.#options;
    const skills = await readOwnSkills(config, { ...this.#options, scans: this.#scans, machine: machine() });
    const wantsServers = this.#options.startsServers && config.config.skills.autoStart;
    const extended = wantsServers ? await withSkillServers(config, skills, { env, warn }) : config;
    this.#read.set(extended, skills);
    return extended;
  }

  /** Offers the skills that were read for a config. */
  offer(config: LoadedConfig, sources: SkillSources): void {
    sources.offerOwn(this.#read.get(config) ?? []);
  }

  /** Calls `onChange` when skills may have changed, until the returned function is called. */
  watch({ config, baseDir }: LoadedConfig, onChange: () => void): () => void {
    const { clock, registry } = this.#options;
    const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
    const stopFolders = dirs.length === 0 ? () => {} : watchFolders(dirs, onChange, clock);
    const stopRegistry = registry.follow(onChange);
    return () => {
      stopFolders();
      stopRegistry();
    };
  }
}
