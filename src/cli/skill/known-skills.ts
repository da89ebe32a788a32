/** All skills with their current state: whether their requirements are met, and whether their source has changed. */
import { findNearest } from "../../base/near-matches.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { readUserSkills } from "../../hub/skills/user-skills.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { mapLimit } from "../../base/async.ts";
import { isMet, missingNeeds, thisMachine } from "../../skills/needs.ts";
import { type OfferedSkill, SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import { recordOf, type SkillRecord } from "../../skills/registry/skill-manifest.ts";
import { skillNamed, SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { type SourceState, sourceState } from "../../skills/registry/source-state.ts";
import { commandStore, type CommandStoreOptions } from "../command-store.ts";
import type { Invocation, Surroundings } from "../command.ts";
import { loadConfigForStore } from "../load-with-trust.ts";
import { plain } from "./describe-skill.ts";

/** The manifest, with `missing` and `dependenciesMet` as of now. */
export interface SkillStatus extends SkillRecord {
  readonly sourceState: SourceState;
  readonly outdated: boolean;
  /** Imported into the home, or offered from a folder of the config; then its id is that folder. */
  readonly origin: "home" | "folder";
  /** Only for imported skills. */
  readonly importedAt?: string;
  readonly dir?: string;
}

const MAX_PARALLEL = 8;

/** The imported skills, then those of the config's folders. Warns about problems with the folders. */
export async function listSkills(invocation: Invocation, registry: SkillRegistry): Promise<SkillStatus[]> {
  const [imported, inFolders] = await Promise.all([registry.list(), folderSkills(invocation, registry)]);
  return [...(await liveSkills(imported, invocation)), ...inFolders];
}

function liveSkills(manifests: readonly SkillManifest[], { env }: Pick<Surroundings, "env">): Promise<SkillStatus[]> {
  const machine = thisMachine(env);
  return mapLimit(manifests, MAX_PARALLEL, async (manifest): Promise<SkillStatus> => {
    const missing = missingNeeds(manifest.facts.needs, machine);
    const state = await sourceState(manifest);
    return {
      ...manifest,
      missing,
      dependenciesMet: isMet(missing),
      sourceState: state,
      outdated: state === "changed",
      origin: "home",
    };
  });
}

async function folderSkills(invocation: Invocation, registry: SkillRegistry): Promise<SkillStatus[]> {
  const { env, out } = invocation;
  const config = await configIfUsable(invocation);
  if (config === undefined) return [];
  const offered = await readUserSkills(config, {
    registry: { mayHaveSkills: () => true, get: async () => registry },
    machine: () => thisMachine(env),
    warn: (message) => out.warn(plain(message, Infinity)),
  });
  return offered.flatMap((skill) => (skill.manifest === undefined ? [ofFolder(skill)] : []));
}

function ofFolder({ id, key, facts, source, findings, missing }: OfferedSkill): SkillStatus {
  const record = recordOf(facts, { id, tool: SKILL_PREFIX + key, source, sourcePath: source, findings, missing });
  return { ...record, sourceState: "same", outdated: false, origin: "folder" };
}

/** Imported skills need no config, so a broken config is only a warning, unless it was named. */
async function configIfUsable(invocation: Invocation): Promise<LoadedConfig | undefined> {
  try {
    return await loadConfigForStore(invocation);
  } catch (error) {
    if (invocation.flags.text("config") !== undefined) throw error;
    const { message } = asToolcribError(error);
    invocation.out.warn(`The config cannot be used, so the skills of its folders are not shown: ${message}`);
    return undefined;
  }
}

/** By id or name. Rejects with `not_found` and a suggestion. */
export async function requireSkill(registry: SkillRegistry, idOrName: string): Promise<SkillManifest> {
  return (await registry.get(idOrName)) ?? unknownSkill("imported skill", idOrName, await registry.list());
}

/** The same among all skills. Throws `invalid_arguments` with the ids if several have the name. */
export function requireListedSkill(skills: readonly SkillStatus[], idOrName: string): SkillStatus {
  return skillNamed(skills, idOrName) ?? unknownSkill("skill", idOrName, skills);
}

function unknownSkill(what: string, idOrName: string, known: readonly { readonly name: string }[]): never {
  const near = findNearest(
    idOrName,
    known.map(({ name }) => name),
  );
  throw new ToolcribError("not_found", `There is no ${what} "${idOrName}".`, {
    hint: near === undefined ? "Run toolcrib skill list to see all skills." : `Did you mean ${near}?`,
  });
}

/** Opens the imported skills for one command. A store is created only if the command writes. */
export async function withRegistry<T>(
  invocation: Pick<Invocation, "env" | "cwd" | "flags" | "out"> & Partial<Pick<Invocation, "attached">>,
  use: (registry: SkillRegistry) => Promise<T>,
  options: CommandStoreOptions = {},
): Promise<T> {
  const store = commandStore(invocation, options);
  try {
    return await use(new SkillRegistry(toolcribHome(invocation.env), store.open));
  } finally {
    await store.close();
  }
}
