/** The skills of a hub: `hub.skills`. */
import { randomUUID } from "node:crypto";
import { nearMatches } from "../../base/near-matches.ts";
import type {
  SkillDetail,
  SkillImportReport,
  SkillInfo as ShownSkill,
  SkillManifestInfo,
  SkillPlace,
  SkillScan,
} from "../../contract/skill-schemas.ts";
import { wrapUntrusted } from "../../guard/wrap-untrusted.ts";
import type { Capability, PromptCapability, ToolCapability } from "../../model/capability.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ResourceDefinition } from "../../model/protocol.ts";
import type { MissingNeeds, SkillFacts, SkillFinding, SkillSource } from "../../model/skill.ts";
import type { Session } from "../../sessions/session.ts";
import { mapLimit } from "../../base/async.ts";
import { fileUri, MAIN_FILE, mainFile, type OfferedSkill, setupCommand } from "../../skills/offer/offered-skill.ts";
import { promptCatalog, type PromptCatalogOptions } from "../../skills/offer/prompt-catalog.ts";
import { mimeTypeOf, skillInstructions } from "../../skills/offer/skills-source.ts";
import { sourceOf } from "../../skills/registry/skill-manifest.ts";
import type { View } from "../view/view.ts";
import {
  manifestInfo,
  type SkillContext,
  skillDetail,
  type SkillImportOptions,
  type SkillImports,
  skillInfo,
} from "./skill-imports.ts";
import { dispatchedCall, type SkillSources } from "./skill-sources.ts";

/** A skill as a program sees it. */
export interface SkillInfo {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly source: SkillSource;
  /** The place that it was imported from, its folder in the config, or `server:<id>`. */
  readonly from: string;
  /** URI of its SKILL.md. */
  readonly uri: string;
  /** Path of its folder, if it is on this machine. */
  readonly dir?: string;
  readonly facts: SkillFacts;
  readonly missing: MissingNeeds;
  /** The command that sets up the MCP servers that are missing. */
  readonly setup?: string;
  readonly findings: readonly SkillFinding[];
}

export interface ActiveSkill {
  readonly id: string;
  readonly name: string;
  readonly instructions: string;
}

interface HubSkillsOptions {
  readonly sources: SkillSources;
  /** Whether what a server says may reach an agent as it is. */
  readonly isTrusted: (source: string) => boolean;
  readonly session: Session;
  readonly view: (session: Session) => View;
  readonly config: () => LoadedConfig;
  readonly imports: SkillImports;
  /** Reads the home and the config's folders again. */
  readonly refresh: () => Promise<void>;
  readonly warn: (message: string) => void;
}

interface ForSession {
  /** Whose view it is; the hub's own session if absent. */
  readonly session?: Session;
}

export class HubSkills {
  readonly #options: HubSkillsOptions;
  readonly #entries = new SkillEntries();
  readonly #seen = new WeakMap<View, readonly OfferedSkill[]>();
  readonly #activated = new WeakMap<Session, Set<string>>();
  readonly #boundaries = new WeakMap<OfferedSkill, string>();

  constructor(options: HubSkillsOptions) {
    this.#options = options;
  }

  /** Those that a session sees. */
  list({ session }: ForSession = {}): SkillInfo[] {
    return this.#visible(session).map(infoOf);
  }

  /** By id or by name; undefined if the session sees none. */
  get(idOrName: string, { session }: ForSession = {}): SkillInfo | undefined {
    const skill = this.#find(idOrName, session);
    return skill && infoOf(skill);
  }

  /** The list for a system prompt, in `<available_skills>`, within a budget of characters. */
  promptCatalog({ session, ...options }: PromptCatalogOptions & ForSession = {}): string {
    return promptCatalog(this.#visible(session), options);
  }

  /** The text for an agent that uses the skill; between boundary markers if an untrusted server wrote it. */
  instructions(
    idOrName: string,
    { session, arguments: given }: ForSession & { arguments?: string } = {},
  ): Promise<string> {
    return this.#instructions(this.#required(idOrName, session), given);
  }

  /** From now on the skill is among the session's active ones. */
  activate(session: Session, idOrName: string): void {
    const { id } = this.#required(idOrName, session);
    const active = this.#activated.get(session);
    if (active === undefined) this.#activated.set(session, new Set([id]));
    else active.add(id);
  }

  deactivate(session: Session, idOrName: string): void {
    const skill = this.#find(idOrName, session);
    if (skill !== undefined) this.#activated.get(session)?.delete(skill.id);
  }

  /**
   * The role's skills and those that were activated, with their instructions, ready to be put before an agent. A role
   * names skills of the user's own. One that cannot be read any more is warned about and left out.
   */
  async active(session: Session): Promise<ActiveSkill[]> {
    const read = this.#active(session).map(async (skill): Promise<ActiveSkill[]> => {
      try {
        return [{ id: skill.id, name: skill.facts.name, instructions: await this.#instructions(skill) }];
      } catch (error) {
        this.#options.warn(`The skill ${skill.facts.name} is active and left out: ${asToolcribError(error).message}`);
        return [];
      }
    });
    return (await Promise.all(read)).flat();
  }

  /** Those that a client can verify, as the MCP skills extension lists them. */
  entries(session: Session): Promise<SkillEntry[]> {
    return this.#entries.list(this.#visible(session));
  }

  /** One of them by the URI of its SKILL.md. */
  async entry(session: Session, uri: string): Promise<SkillEntry | undefined> {
    const skill = this.#visible(session).find((each) => fileUri(each, mainFile(each)) === uri);
    return skill && this.#entries.of(skill);
  }

  /** The contents of a skill's folder, by its URI. */
  directory(session: Session, uri: string): ResourceDefinition[] {
    return directoryOf(this.#visible(session), uri);
  }

  /** Those that a session sees, as the doors show them. */
  infos(session: Session): ShownSkill[] {
    return this.#visible(session).map((skill) => skillInfo(skill, this.#surroundings(skill)));
  }

  /** Imported ones whose record is damaged, for an operator. */
  broken(): Promise<ShownSkill[]> {
    return this.#options.imports.broken();
  }

  /** By id or by name. */
  manifest(idOrName: string, { session }: ForSession = {}): SkillManifestInfo {
    return manifestInfo(this.#required(idOrName, session));
  }

  /** The skills whose instructions `active` returns. */
  activeList(session: Session): SkillInfo[] {
    return this.#active(session).map(infoOf);
  }

  /** The tool and the prompt of a skill, as far as the session may use them. */
  offersOf(
    idOrName: string,
    { session = this.#options.session }: ForSession = {},
  ): { readonly tool: ToolCapability | undefined; readonly prompt: PromptCapability | undefined } {
    const skill = this.#find(idOrName, session);
    const { sources, view } = this.#options;
    const { tools, prompts } = view(session);
    const isOfSkill = ({ origin }: Capability): boolean =>
      skill !== undefined && sources.skillOf(origin.source, origin.name) === skill;
    return { tool: tools.find(isOfSkill), prompt: prompts.find(isOfSkill) };
  }

  /** For a skill that dispatches to a tool: the call for its arguments. */
  dispatched(
    idOrName: string,
    raw: string,
    { session = this.#options.session }: ForSession = {},
  ): { readonly name: string; readonly arguments: JsonObject } | undefined {
    const skill = this.#required(idOrName, session);
    if (skill.facts.dispatch === undefined) return undefined;
    return dispatchedCall(skill, raw, this.#options.view(session).tools, this.#options.sources.serverOfSkill(skill));
  }

  /** One of them, by id or by name; undefined if the session sees none. */
  async describe(idOrName: string, session: Session): Promise<SkillDetail | undefined> {
    const skill = this.#find(idOrName, session);
    if (skill === undefined) return undefined;
    const { sources, view, config } = this.#options;
    const { tools, prompts } = view(session);
    const isOfSkill = ({ origin }: Capability): boolean => sources.skillOf(origin.source, origin.name) === skill;
    const offered = [...tools, ...prompts].filter(isOfSkill).map(({ name }) => name);
    const isOwn = sources.own().includes(skill);
    const roles = Object.entries(config().config.roles).filter(([, role]) => role.skills?.includes(skill.facts.name));
    const injectedFor = isOwn ? roles.map(([role]) => role) : [];
    return skillDetail(skill, this.#surroundings(skill), { tools: [...new Set(offered)], injectedFor });
  }

  /** Looks at the skills below a folder of this machine and imports nothing. */
  scan(path: string): Promise<SkillScan> {
    return this.#options.imports.scan(path);
  }

  /** Imports one skill of this machine, or those below a folder. */
  import(options: SkillImportOptions): Promise<SkillImportReport> {
    return this.#options.imports.import(options);
  }

  /** Removes an imported skill. */
  remove(idOrName: string): Promise<{ skillId: string; name: string }> {
    return this.#options.imports.remove(idOrName);
  }

  /** Folders in which skills usually are. */
  places(): Promise<SkillPlace[]> {
    return this.#options.imports.places();
  }

  /** Reads imported skills and the config's folders again. A hub that watches its config does it by itself. */
  refresh(): Promise<void> {
    return this.#options.refresh();
  }

  async #instructions(skill: OfferedSkill, given?: string): Promise<string> {
    const text = await skillInstructions(skill, given);
    const server = this.#options.sources.serverOfSkill(skill);
    if (server === undefined || this.#options.isTrusted(server)) return text;
    return wrapUntrusted(text, { id: this.#boundaryOf(skill), server, tool: skill.facts.name });
  }

  /** The same as long as the skill is, because providers cache prompts. The text is older than the id, so it cannot contain it. */
  #boundaryOf(skill: OfferedSkill): string {
    let id = this.#boundaries.get(skill);
    if (id === undefined) this.#boundaries.set(skill, (id = randomUUID()));
    return id;
  }

  #active(session: Session): readonly OfferedSkill[] {
    const wanted = this.#activated.get(session) ?? new Set();
    const named = new Set(
      session.role === undefined ? [] : (this.#options.config().config.roles[session.role]?.skills ?? []),
    );
    const own = new Set(this.#options.sources.own());
    const isOfRole = (skill: OfferedSkill): boolean => own.has(skill) && named.has(skill.facts.name);
    return this.#visible(session).filter((skill) => wanted.has(skill.id) || isOfRole(skill));
  }

  #surroundings(skill: OfferedSkill): SkillContext {
    return { server: this.#options.sources.serverOfSkill(skill), servers: this.#options.config().servers };
  }

  #visible(session: Session = this.#options.session): readonly OfferedSkill[] {
    const { sources } = this.#options;
    const view = this.#options.view(session);
    const known = this.#seen.get(view);
    if (known !== undefined) return known;
    const skillsOf = (capabilities: readonly Capability[]): Set<OfferedSkill | undefined> =>
      new Set(capabilities.map(({ origin }) => sources.skillOf(origin.source, origin.name)));
    const [tools, prompts] = [skillsOf(view.tools), skillsOf(view.prompts)];
    const readable = new Set(view.resources.map(({ name }) => name));
    const visible = sources.all().filter((skill) => {
      if (!readable.has(fileUri(skill, mainFile(skill)))) return false;
      const { disableModelInvocation, userInvocable } = skill.facts;
      // A session that may not use it may not read it either.
      return disableModelInvocation ? !userInvocable || prompts.has(skill) : tools.has(skill);
    });
    this.#seen.set(view, visible);
    return visible;
  }

  #find(idOrName: string, session?: Session): OfferedSkill | undefined {
    const visible = this.#visible(session);
    return visible.find(({ id }) => id === idOrName) ?? visible.find(({ facts }) => facts.name === idOrName);
  }

  #required(idOrName: string, session?: Session): OfferedSkill {
    const skill = this.#find(idOrName, session);
    if (skill !== undefined) return skill;
    const near = nearMatches(
      idOrName,
      this.#visible(session).map(({ facts }) => facts.name),
    );
    throw new ToolcribError("not_found", `There is no skill "${idOrName}".`, {
      hint: near.length === 0 ? "`toolcrib skill list` shows what there is." : `Did you mean ${near.join(", ")}?`,
    });
  }
}

function infoOf(skill: OfferedSkill): SkillInfo {
  const { id, facts, from, dir, missing, findings } = skill;
  return {
    id,
    name: facts.name,
    description: facts.description,
    source: sourceOf(facts),
    from,
    uri: fileUri(skill, mainFile(skill)),
    dir,
    facts,
    missing,
    ...(missing.servers.length === 0 ? {} : { setup: setupCommand(skill) }),
    findings,
  };
}

interface SkillEntry extends JsonObject {
  /** Of SKILL.md. */
  readonly uri: string;
  /** As SKILL.md has it. */
  readonly frontmatter: JsonObject;
  readonly resources: readonly { readonly uri: string; readonly digest: string; readonly size: number }[];
}

const MAX_PARALLEL_READS = 16;
const DIRECTORY_TYPE = "inode/directory";

class SkillEntries {
  readonly #known = new WeakMap<OfferedSkill, Promise<SkillEntry | undefined>>();

  async list(skills: readonly OfferedSkill[]): Promise<SkillEntry[]> {
    const entries = await mapLimit(skills, MAX_PARALLEL_READS, (skill) => this.of(skill));
    return entries.filter((entry) => entry !== undefined);
  }

  /** Undefined for a skill that does not follow the standard exactly: clients would refuse it. */
  of(skill: OfferedSkill): Promise<SkillEntry | undefined> {
    let entry = this.#known.get(skill);
    if (entry === undefined) {
      entry = verifiableEntry(skill).catch(() => {
        // Its file could not be read now; it may be later.
        this.#known.delete(skill);
        return undefined;
      });
      this.#known.set(skill, entry);
    }
    return entry;
  }
}

async function verifiableEntry(skill: OfferedSkill): Promise<SkillEntry | undefined> {
  // The SDK's own rules and its own reading of YAML: what passes here passes in the SDK's client.
  const { skillEntry, SKILL_LIMITS } = await import("@modelcontextprotocol/server/ext/skills");
  const { files, name } = skill.facts;
  // Of two skills with one name, only one can have it.
  if (!skill.base.endsWith(`/${name}/`) || mainFile(skill) !== MAIN_FILE) return undefined;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (files.length > SKILL_LIMITS.files || bytes > SKILL_LIMITS.bytes) return undefined;
  const main = await skill.read(MAIN_FILE);
  const checked = await skillEntry(name, { [MAIN_FILE]: main }).catch(() => undefined);
  if (checked === undefined) return undefined;
  const resources = files.map(({ path, digest, size }) => ({ uri: fileUri(skill, path), digest, size }));
  return { uri: fileUri(skill, MAIN_FILE), frontmatter: checked.frontmatter, resources };
}

/** The direct children of a folder of a skill, by the folder's URI. */
function directoryOf(skills: readonly OfferedSkill[], uri: string): ResourceDefinition[] {
  const folder = uri.endsWith("/") ? uri : `${uri}/`;
  const children = new Map<string, ResourceDefinition>();
  for (const skill of skills) {
    if (!folder.startsWith(skill.base)) continue;
    for (const { path, size } of skill.facts.files) {
      const file = fileUri(skill, path);
      if (!file.startsWith(folder)) continue;
      const [name = "", ...below] = file.slice(folder.length).split("/");
      const child = folder + name;
      if (below.length > 0)
        children.set(child, { uri: child, name: decodeURIComponent(name), mimeType: DIRECTORY_TYPE });
      else children.set(child, { uri: child, name: decodeURIComponent(name), ...mimeTypeField(path), size });
    }
  }
  if (children.size > 0) return [...children.values()];
  throw new ToolcribError("not_found", `No skill has a folder ${uri}.`);
}

function mimeTypeField(path: string): { mimeType?: string } {
  const mimeType = mimeTypeOf(path);
  return mimeType === undefined ? {} : { mimeType };
}
