/** The user's own skills: those imported into the home, and those in the folders that the config names. Kept up to date. */
import { hash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { findNearest } from "../../base/near-matches.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { SkillFacts } from "../../model/skill.ts";
import type { FindProblem } from "../../skills/find/find-skills.ts";
import type { ScannedSkill } from "../../skills/find/inspect-skills.ts";
import { isMet, isRunnable, type Machine, missingNeeds, missingServers } from "../../skills/needs.ts";
import {
  baseUri,
  describeMissing,
  type OfferedSkill,
  setupCommand,
  SKILL_PREFIX,
} from "../../skills/offer/offered-skill.ts";
import { skillId, toolNameOf } from "../../skills/registry/skill-id.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { readSkillFile } from "../../skills/verified-files.ts";
import { LazyStore } from "../../store/lazy-store.ts";
import type { Store } from "../../store/store.ts";
import { FolderWatcher } from "../reload/file-watcher.ts";
import type { SkillServersOptions } from "./auto-start.ts";
import type { SkillSources } from "./skill-sources.ts";

/** The prefix of every warning about the user's own skills. */
export const SKILLS_WARNING = "skills: ";

interface UserSkillsOptions {
  readonly registry: HubRegistry;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  /** Asked each time, because programs are installed and variables set while a hub runs. */
  readonly machine: () => Machine;
  /** Whether this hub starts the servers of `skills.autoStart`. */
  readonly startsServers: boolean;
  readonly warn: (message: string) => void;
}

export class UserSkills {
  readonly #options: UserSkillsOptions;
  readonly #folders = new SkillFolders();
  readonly #read = new WeakMap<LoadedConfig, readonly OfferedSkill[]>();

  constructor(options: UserSkillsOptions) {
    this.#options = { ...options, warn: (message) => options.warn(SKILLS_WARNING + message) };
  }

  /** Reads the skills of a config. The result is the config with the servers that they start. */
  async prepare(config: LoadedConfig): Promise<LoadedConfig> {
    const { env, warn, startsServers } = this.#options;
    let extended = config;
    const withServers = async (skills: readonly OfferedSkill[]): Promise<LoadedConfig["servers"]> => {
      extended = startsServers ? await withServersOf(config, skills, { env, warn }) : config;
      return extended.servers;
    };
    const skills = await readUserSkills(config, { ...this.#options, folders: this.#folders, withServers });
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

/** The config with the servers that its skills start by themselves. */
export async function withServersOf(
  config: LoadedConfig,
  skills: readonly OfferedSkill[],
  options: SkillServersOptions,
): Promise<LoadedConfig> {
  const isAsked = config.config.skills.autoStart;
  const isNeeded = skills.some(({ manifest, facts }) => manifest !== undefined && facts.servers.length > 0);
  if (!isAsked || !isNeeded) return config;
  const { withAutoStartedServers } = await import("./auto-start.ts");
  return withAutoStartedServers(config, skills, options);
}

interface ReadUserSkillsOptions {
  /** Of imported ones; they are left out if absent. */
  readonly registry?: Pick<HubRegistry, "mayHaveSkills" | "get">;
  /** Asked if there are skills. */
  readonly machine: () => Machine;
  /** As they were read before. */
  readonly folders?: SkillFolders;
  /** The servers that there are once the skills' own are started; those of the config if absent. */
  readonly withServers?: (skills: readonly OfferedSkill[]) => Promise<LoadedConfig["servers"]>;
  readonly warn: (message: string) => void;
}

/** Never rejects: what cannot be read is warned about and left out. */
export async function readUserSkills(
  { config, baseDir, inCode, servers }: LoadedConfig,
  options: ReadUserSkillsOptions,
): Promise<OfferedSkill[]> {
  const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
  // A config given in code is complete, unless it says otherwise.
  const wantsImported = config.skills.imported ?? !inCode;
  const found = [...(await folderSkills(dirs, options)), ...(wantsImported ? await importedSkills(options) : [])];
  const byKey = new Map<string, OfferedSkill>();
  for (const skill of found) {
    const before = byKey.get(skill.key);
    if (before === undefined) byKey.set(skill.key, skill);
    else
      options.warn(
        `The skill ${skill.key} of ${skill.from} is left out: ${before.from} has a skill with the same name.`,
      );
  }
  const hides = config.skills.gates === "hide";
  const kept = [...byKey.values()].filter((skill) => !hides || isRunnable(skill.missing) || isReady(skill, options));
  const present = (await options.withServers?.(kept)) ?? servers;
  const checked = kept.map((skill) => withMissingServers(skill, missingServers(skill.facts.servers, present)));
  const offered = hides ? checked.filter((skill) => isReady(skill, options)) : checked;
  const names = new Set(offered.map(({ facts }) => facts.name));
  for (const [role, { skills = [] }] of Object.entries(config.roles)) {
    for (const name of skills.filter((each) => !names.has(each)))
      options.warn(missingRoleSkill(role, name, [...names]));
  }
  return offered;
}

function withMissingServers(skill: OfferedSkill, servers: readonly string[]): OfferedSkill {
  return servers.length === 0 ? skill : { ...skill, missing: { ...skill.missing, servers } };
}

function missingRoleSkill(role: string, skill: string, names: readonly string[]): string {
  const near = findNearest(skill, names);
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  return `The role ${role} names the skill ${JSON.stringify(skill)}, which is not offered.${hint}`;
}

function isReady(skill: OfferedSkill, { warn }: ReadUserSkillsOptions): boolean {
  const { facts, missing } = skill;
  if (facts.always || isMet(missing)) return true;
  const setup = missing.servers.length === 0 ? undefined : setupCommand(skill);
  const how = setup === undefined ? "" : ` Set it up with ${setup}`;
  warn(`The skill ${facts.name} is hidden: ${describeMissing(missing) ?? "something"} is missing.${how}`);
  return false;
}

async function importedSkills({ registry: kept, machine, warn }: ReadUserSkillsOptions): Promise<OfferedSkill[]> {
  if (kept?.mayHaveSkills() !== true) return [];
  try {
    const registry = await kept.get();
    const here = machine();
    for (const { name, message } of await registry.broken()) warn(`The imported skill ${name} is broken. ${message}`);
    return (await registry.list()).map((manifest) => ({
      ...offeredBase(manifest.id, manifest.id, manifest.facts, here),
      findings: manifest.findings,
      from: manifest.from,
      dir: registry.fileOf(manifest, "."),
      manifest,
      read: (path) => registry.readFile(manifest, path),
    }));
  } catch (error) {
    warn(`Imported skills are not offered: ${asToolcribError(error).message}`);
    return [];
  }
}

async function folderSkills(
  dirs: readonly string[],
  { machine, folders = new SkillFolders(), warn }: ReadUserSkillsOptions,
): Promise<OfferedSkill[]> {
  if (dirs.length === 0) return [];
  const { worstSeverity } = await import("../../skills/scan/scan-skill.ts");
  const { skills, problems } = await folders.read(dirs);
  for (const problem of problems) warn(folderProblem(problem, dirs));
  const here = machine();
  const result: OfferedSkill[] = [];
  for (const { skill, findings } of skills) {
    const { dir, ...facts } = skill;
    if (worstSeverity(findings) === "refuse") {
      const reasons = findings
        .filter(({ severity }) => severity === "refuse")
        .map(({ file, message }) => `${file}: ${message}`);
      warn(`The skill ${facts.name} in ${dir} is withheld: ${reasons.join("; ")}`);
      continue;
    }
    const id = skillId(facts.name, facts.dialect);
    result.push({
      ...offeredBase(`${id}@${folderHash(dir)}`, id, facts, here),
      findings,
      from: dir,
      dir,
      read: (path) => readSkillFile(dir, facts.files, path),
    });
  }
  return result;
}

interface KnownFolder {
  readonly scanned: ScannedSkill;
  /** Undefined if the folder is to be read again in any case. */
  readonly stamp: string | undefined;
}

/** Skills in folders as they were last read. What did not change since is not read again, and the same files not scanned. */
class SkillFolders {
  #known = new Map<string, KnownFolder>();

  async read(dirs: readonly string[]): Promise<{ skills: ScannedSkill[]; problems: FindProblem[] }> {
    const [{ readSkillFolders }, { folderStamp }, { readAndScan }] = await Promise.all([
      import("../../skills/find/find-skills.ts"),
      import("../../skills/read/skill-folder.ts"),
      import("../../skills/find/inspect-skills.ts"),
    ]);
    const present = new Map<string, KnownFolder>();
    const { skills, problems } = await readSkillFolders(dirs, async (dir) => {
      const before = this.#known.get(dir);
      const stamp = folderStamp(dir, Date.now());
      const isSame = before !== undefined && stamp !== undefined && stamp === before.stamp;
      const known = isSame ? before : { stamp, scanned: await readAndScan(dir, before?.scanned) };
      present.set(dir, known);
      return known.scanned;
    });
    this.#known = present;
    return { skills, problems };
  }
}

/** Two folders may have skills of one name. The path itself would not fit into an address. */
function folderHash(dir: string): string {
  return hash("sha256", dir).slice(0, 8);
}

function folderProblem({ path, code, message }: FindProblem, dirs: readonly string[]): string {
  if (dirs.includes(path) && code === "not_found") return `The folder ${path} of skills.dirs does not exist.`;
  if (dirs.includes(path) && code === "invalid_arguments") return `Of skills.dirs: ${message}`;
  // These messages name their folder themselves.
  if (["unreadable", "too_deep", "too_many", "nested"].includes(code)) return message;
  return `A skill in ${path} is left out: ${message}`;
}

function offeredBase(
  id: string,
  skillIdOf: string,
  facts: SkillFacts,
  machine: Machine,
): Pick<OfferedSkill, "id" | "key" | "facts" | "missing" | "base"> {
  const key = toolNameOf(skillIdOf).slice(SKILL_PREFIX.length);
  return { id, key, facts, missing: { ...missingNeeds(facts, machine), servers: [] }, base: baseUri(key) };
}

interface HubRegistryOptions {
  readonly home: string;
  readonly clock: Clock;
  /** The hub's. */
  readonly store: Store | undefined;
  /** Whether a hub without a store may look into the home's. */
  readonly readsHome: boolean;
  readonly warn: (message: string) => void;
}

/** Imported skills, in the hub's own store, else in the home's store if it exists, which is then only read. */
export class HubRegistry {
  readonly #options: HubRegistryOptions;
  readonly #homeStore: LazyStore;
  #registry: Promise<SkillRegistry> | undefined;

  constructor(options: HubRegistryOptions) {
    this.#options = options;
    this.#homeStore = new LazyStore(async () => {
      if (!options.readsHome) return undefined;
      const { openStore } = await import("../../store/open-store.ts");
      return openStore({ home: options.home, clock: options.clock, create: false });
    });
  }

  /** Whether anything was ever imported. Most hubs have nothing, and then load nothing for it. */
  mayHaveSkills(): boolean {
    // With a database for several machines, another one may have imported them.
    return this.#options.store?.kind === "postgres" || existsSync(join(this.#options.home, "skills"));
  }

  get(): Promise<SkillRegistry> {
    this.#registry ??= this.#make();
    return this.#registry;
  }

  /** Calls `onChange` when another process imported or removed skills, until the returned function is called. */
  follow(onChange: () => void): () => void {
    const { store } = this.#options;
    return store === undefined ? () => {} : store.follow(({ topic }) => topic === "skills" && onChange());
  }

  async close(): Promise<void> {
    await this.#homeStore.close();
  }

  async #make(): Promise<SkillRegistry> {
    const { SkillRegistry } = await import("../../skills/registry/skill-registry.ts");
    const { home, clock, store, warn } = this.#options;
    return new SkillRegistry(home, store === undefined ? this.#homeStore.open : async () => store, clock, warn);
  }
}

/** A change counts when nothing else happens for this long. */
const DEBOUNCE_MS = 300;
/** Where the system reports no changes, as when it can watch no more folders. */
const POLL_MS = 5000;
const MAX_FOLDERS = 20_000;
const MAX_DEPTH = 8;

/**
 * Notices changes anywhere below some folders. Folders are watched one by one and files not at all: Node's recursive watch
 * loses a file that is replaced by a rename, which is how editors save, and takes a watch for every file.
 * @returns Stops it.
 */
function watchFolders(roots: readonly string[], onChange: () => void, clock: Clock): () => void {
  let stopTimer = (): void => {};
  let isClosed = false;
  const onEvent = (): void => {
    if (isClosed) return;
    stopTimer();
    stopTimer = clock.after(DEBOUNCE_MS, () => {
      watchAll();
      onChange();
    });
  };
  const folders = new FolderWatcher({ clock, onEvent, pollMs: POLL_MS, onPoll: onEvent });
  const watchAll = (): void => {
    const wanted = new Map<string, number>();
    for (const root of roots) collectFolders(root, wanted);
    folders.follow(wanted);
  };
  watchAll();
  return () => {
    isClosed = true;
    stopTimer();
    folders.close();
  };
}

/** The folder and those below it, or its nearest existing parent. */
function collectFolders(root: string, found: Map<string, number>): void {
  let nearest = root;
  while (inodeOf(nearest) === undefined && nearest !== dirname(nearest)) nearest = dirname(nearest);
  if (nearest === root) collectSubfolders(root, found, 0);
  else found.set(nearest, inodeOf(nearest) ?? 0);
}

function collectSubfolders(folder: string, found: Map<string, number>, depth: number): void {
  const inode = inodeOf(folder);
  if (inode === undefined || depth > MAX_DEPTH || found.size >= MAX_FOLDERS) return;
  found.set(folder, inode);
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const isLeftOut = entry.name === "node_modules" || entry.name === ".git";
      if (entry.isDirectory() && !isLeftOut) collectSubfolders(join(folder, entry.name), found, depth + 1);
    }
  } catch {
    // Gone, or not ours to read.
  }
}

function inodeOf(path: string): number | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isDirectory() === true ? stat.ino : undefined;
}
