/** All skills with their current state: whether their requirements are met, and whether their source has changed. */
import { findNearest } from "../../base/near-matches.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { readUserSkills, withServersOf } from "../../hub/skills/user-skills.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { SkillFacts, SkillManifest } from "../../model/skill.ts";
import { mapLimit } from "../../base/async.ts";
import { isMet, type Machine, missingNeeds, skillStatus, thisMachine } from "../../skills/needs.ts";
import { type OfferedSkill, setupCommand, SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import type { BrokenSkill } from "../../skills/registry/manifest-store.ts";
import { isOpenclawId } from "../../skills/registry/skill-id.ts";
import { recordOf, type SkillRecord } from "../../skills/registry/skill-manifest.ts";
import { skillNamed, SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { type SourceState, sourceState } from "../../skills/registry/source-state.ts";
import { commandStore, type CommandStoreOptions } from "../command-store.ts";
import type { Invocation } from "../command.ts";
import { loadConfigForStore } from "../load-with-trust.ts";
import { plain } from "./describe-skill.ts";

/** The manifest, with `missing` and `dependenciesMet` as of now. */
export interface SkillStatus extends SkillRecord {
  readonly sourceState: SourceState;
  readonly outdated: boolean;
  /** Imported into the home, or offered from a folder of the config; then its id is that folder. */
  readonly origin: "home" | "folder";
  readonly status: "ready" | "needs_setup" | "missing" | "broken";
  /** The command that sets up its servers. */
  readonly setup?: string;
  /** Only for imported skills. */
  readonly importedAt?: string;
  readonly dir?: string;
}

const MAX_PARALLEL = 8;

/** The imported skills, then those of the config's folders. Warns about problems with the folders. */
export async function listSkills(invocation: Invocation, registry: SkillRegistry): Promise<SkillStatus[]> {
  const config = await configIfUsable(invocation);
  const inFolders = config === undefined ? undefined : await folderSkills(invocation, registry, config);
  const [manifests, broken] = await Promise.all([registry.list(), registry.broken()]);
  const machine = thisMachine(invocation.env, inFolders?.servers);
  return [...(await liveSkills(manifests, machine)), ...broken.map(ofBroken), ...(inFolders?.skills ?? [])];
}

function liveSkills(manifests: readonly SkillManifest[], machine: Machine): Promise<SkillStatus[]> {
  return mapLimit(manifests, MAX_PARALLEL, async (manifest): Promise<SkillStatus> => {
    const missing = missingNeeds(manifest.facts, machine);
    const state = await sourceState(manifest);
    const setup = missing.servers.length === 0 ? undefined : setupCommand({ ...manifest, manifest });
    return {
      ...manifest,
      missing,
      dependenciesMet: isMet(missing),
      sourceState: state,
      outdated: state === "changed",
      origin: "home",
      status: skillStatus(missing),
      ...(setup === undefined ? {} : { setup }),
    };
  });
}

/** With the servers that there are, including those that skills start by themselves. */
async function folderSkills(
  { env, out }: Invocation,
  registry: SkillRegistry,
  config: LoadedConfig,
): Promise<{ readonly skills: SkillStatus[]; readonly servers: LoadedConfig["servers"] }> {
  let { servers } = config;
  const warn = (message: string): void => out.warn(plain(message, Infinity));
  const offered = await readUserSkills(config, {
    registry: { mayHaveSkills: () => true, get: async () => registry },
    machine: () => thisMachine(env),
    withServers: async (skills) => ({ servers } = await withServersOf(config, skills, { env, warn: () => {} })).servers,
    warn,
  });
  return { skills: offered.flatMap((skill) => (skill.manifest === undefined ? [ofFolder(skill)] : [])), servers };
}

function ofFolder(skill: OfferedSkill): SkillStatus {
  const { id, key, facts, from, findings, missing } = skill;
  const record = recordOf(facts, { id, tool: SKILL_PREFIX + key, from, sourcePath: from, findings, missing });
  const setup = missing.servers.length === 0 ? undefined : setupCommand(skill);
  return {
    ...record,
    ...{ sourceState: "same", outdated: false, origin: "folder", status: skillStatus(missing) },
    ...(setup === undefined ? {} : { setup }),
  };
}

const NO_NEEDS = { bins: [], anyBins: [], env: [], config: [], os: [] };

/** The same fields, so that programs need no special case. */
function ofBroken({ id, name, message }: BrokenSkill): SkillStatus {
  const facts: SkillFacts = {
    ...{ name, description: message, dialect: isOpenclawId(id) ? "openclaw" : "agent-skills", digest: "" },
    ...{ allowedTools: [], disableModelInvocation: true, userInvocable: false, always: false, needs: NO_NEEDS },
    ...{ install: [], servers: [], extensions: {}, frontmatter: {}, files: [] },
    warnings: [{ code: "BROKEN", message }],
  };
  const missing = { ...NO_NEEDS, servers: [] };
  const record = recordOf(facts, { id, tool: "", from: "", sourcePath: "", findings: [], missing });
  return {
    ...{
      ...record,
      dependenciesMet: false,
      sourceState: "unchecked",
      outdated: false,
      origin: "home",
      status: "broken",
    },
  };
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
