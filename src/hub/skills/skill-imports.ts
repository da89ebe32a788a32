/** Importing, scanning, describing and removing skills of this machine, for `hub.skills`. */
import { existsSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import type { Emitter } from "../../base/emitter.ts";
import type { AgentClient, ClientEnvironment } from "../../clients/agent-client.ts";
import { expandTilde, localClientEnvironment, userHome } from "../../config/find-config.ts";
import type {
  ImportedSkill,
  ScannedSkill,
  SkillDetail,
  SkillFailure,
  SkillImportReport,
  SkillInfo,
  SkillManifestInfo,
  SkillPlace,
  SkillScan,
} from "../../contract/skill-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { MissingNeeds, SkillDialect, SkillFinding, SkillNeeds, SkillWarning } from "../../model/skill.ts";
import type { Candidate, InspectedSkills } from "../../skills/find/inspect-skills.ts";
import { isMet, type Machine, missingWarnings, skillStatus } from "../../skills/needs.ts";
import { fileUri, mainFile, type OfferedSkill, setupCommand, SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import { catalogEntry } from "../../skills/offer/prompt-catalog.ts";
import type { Imported } from "../../skills/registry/import-skills.ts";
import type { BrokenSkill } from "../../skills/registry/manifest-store.ts";
import { isOpenclawId, toolNameOf } from "../../skills/registry/skill-id.ts";
import { recordOf, type SkillRecord, sourceOf } from "../../skills/registry/skill-manifest.ts";
import { findMatchingServer } from "../../skills/servers/match-servers.ts";
import type { HubEvents } from "../hub-events.ts";
import type { HubRegistry } from "./user-skills.ts";

export interface SkillImportOptions {
  /** A folder of this machine. */
  readonly path: string;
  /** Folders of the chosen skills, as `scan` gives them; all of them by default. */
  readonly only?: readonly string[];
  /** Imports also what the scan refuses, and replaces a skill from another source. */
  readonly force?: boolean;
  readonly dryRun?: boolean;
  /** Imports them as skills of OpenClaw, whatever they say. */
  readonly as?: "openclaw";
}

interface SkillImportsOptions {
  readonly registry: HubRegistry;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly machine: () => Machine;
  readonly config: () => LoadedConfig;
  /** Offers what is imported now. */
  readonly refresh: () => Promise<void>;
  readonly events: Emitter<HubEvents>;
}

export class SkillImports {
  readonly #options: SkillImportsOptions;

  constructor(options: SkillImportsOptions) {
    this.#options = options;
  }

  /** Looks and changes nothing. */
  async scan(path: string): Promise<SkillScan> {
    const root = this.#folder(path);
    const looked = await this.#lookAt(root);
    const previewed = await this.#import(looked.candidates, { source: root, dryRun: true });
    const skills: ScannedSkill[] = [];
    const failed: SkillFailure[] = looked.unreadable.map(failureOf);
    for (const { candidate, outcome } of previewed) {
      const status = statusOf(outcome);
      if (status !== undefined) skills.push(scannedSkill(candidate, status));
      else if (outcome.status === "failed") failed.push(outcome.failure);
    }
    return { skills, failed, totalScanned: looked.totalScanned };
  }

  /** One skill, or those below a folder; what is imported is offered when it resolves. */
  async import({ path, only, force = false, dryRun = false, as }: SkillImportOptions): Promise<SkillImportReport> {
    const root = this.#folder(path);
    const looked = await this.#lookAt(root);
    if (looked.totalScanned === 0) {
      throw new ToolcribError("not_found", `There is no SKILL.md in ${root} or in the folders below it.`);
    }
    const isWanted = (dir: string): boolean => only === undefined || only.includes(dir);
    const wanted = looked.candidates.filter(({ skill }) => isWanted(skill.dir));
    const candidates = as === undefined ? wanted : wanted.map((each) => withDialect(each, as));
    const done = await this.#import(candidates, { source: root, force, dryRun });
    const unreadable = looked.unreadable.filter((each) => isWanted(each.path)).map(failureOf);
    // A folder that is a skill itself may have others in a folder called `skills`.
    const single = looked.totalScanned === 1 && only === undefined && isSkillItself(looked, root);
    const failures = [...unreadable, ...notFound(only ?? [], looked)];
    const report = resultOf(done, { from: root, failures, totalScanned: looked.totalScanned });
    const result = single ? await withInstructions(report) : report;
    if (dryRun) return result;
    await this.#options.refresh();
    this.#options.events.emit("skill-import", { path: root, single, result });
    return result;
  }

  /** Also removes what an install made of it: copies in folders of clients, and entries in their files. Servers stay. */
  async remove(id: string): Promise<{ skillId: string; name: string }> {
    const [{ planRemoval, removeSkill }, { createInstallContext }] = await Promise.all([
      import("../install/remove-skill.ts"),
      import("../install/install-context.ts"),
    ]);
    const { env, home } = this.#options;
    const config = this.#options.config();
    const place = {
      ...createInstallContext({
        env,
        cwd: process.cwd(),
        configFile: config.file ?? join(home, "toolcrib.json"),
        config,
        registry: await this.#options.registry.get(),
      }),
      home,
    };
    const plan = await planRemoval(id, place, { clients: [], withServers: false, force: false });
    await removeSkill(plan, place, { force: false });
    await this.#options.refresh();
    const removed = { skillId: plan.id, name: plan.name };
    this.#options.events.emit("skill-remove", removed);
    return removed;
  }

  /** Those whose record is damaged. */
  async broken(): Promise<SkillInfo[]> {
    const { registry } = this.#options;
    if (!registry.mayHaveSkills()) return [];
    return (await (await registry.get()).broken()).map(brokenInfo);
  }

  /** Where to look for skills. */
  async places(): Promise<SkillPlace[]> {
    const { CLIENTS } = await import("../../clients/clients.ts");
    return skillPlaces(CLIENTS, localClientEnvironment(this.#options.env, process.cwd()));
  }

  #folder(path: string): string {
    const expanded = expandTilde(path, userHome(this.#options.env));
    // A remote caller does not know the working directory of the hub.
    if (isAbsolute(expanded)) return resolve(expanded);
    throw new ToolcribError("invalid_arguments", `${JSON.stringify(path)} is not an absolute path.`, {
      hint: "Start it at the root, or with ~ for the home of the hub's user.",
    });
  }

  async #lookAt(root: string): Promise<InspectedSkills> {
    const { inspectSkills: lookAtSkills } = await import("../../skills/find/inspect-skills.ts");
    return lookAtSkills(root, this.#options.machine());
  }

  async #import(
    candidates: readonly Candidate[],
    options: { readonly source: string; readonly force?: boolean; readonly dryRun: boolean },
  ): Promise<Imported[]> {
    const { importSkills } = await import("../../skills/registry/import-skills.ts");
    return importSkills(await this.#options.registry.get(), candidates, options);
  }
}

/** Undefined for a failure that is not a decision about the skill. */
function statusOf(outcome: Imported["outcome"]): ScannedSkill["status"] | undefined {
  if (outcome.status !== "failed") return outcome.status === "added" ? "new" : outcome.status;
  const { code } = outcome.failure;
  return code === "blocked" ? "refused" : code === "conflict" ? "conflict" : undefined;
}

interface ResultParts {
  readonly from: string;
  /** Of those that were not even tried. */
  readonly failures: readonly SkillFailure[];
  readonly totalScanned: number;
}

function resultOf(done: readonly Imported[], { from, failures, totalScanned }: ResultParts): SkillImportReport {
  const imported: ImportedSkill[] = [];
  const unchanged: ImportedSkill[] = [];
  const failed: SkillFailure[] = [...failures];
  for (const { candidate, outcome } of done) {
    if (outcome.status === "failed") failed.push(outcome.failure);
    else (outcome.status === "unchanged" ? unchanged : imported).push(importedSkill(candidate, outcome.id, from));
  }
  return { imported, unchanged, failed, totalScanned };
}

function importedSkill({ skill, missing }: Candidate, skillId: string, from: string): ImportedSkill {
  const record = recordOf(skill, {
    ...{ id: skillId, tool: toolNameOf(skillId), from, sourcePath: skill.dir },
    ...{ findings: [], missing },
  });
  return {
    skillId,
    name: skill.name,
    path: skill.dir,
    manifest: recordInfo({ ...record, keywords: ["imported", ...record.keywords] }),
    warnings: [...skill.warnings, ...missingWarnings(missing)].map(warningInfo),
    dependenciesMet: isMet(missing),
  };
}

/** With the text of each SKILL.md, as it is at its source. */
async function withInstructions(report: SkillImportReport): Promise<SkillImportReport> {
  const { readSkill } = await import("../../skills/read/read-skill.ts");
  const read = (skill: ImportedSkill): Promise<ImportedSkill> =>
    readSkill(skill.path).then(
      ({ body }) => ({ ...skill, instructions: body.trim() }),
      () => skill,
    );
  const [imported, unchanged] = await Promise.all(
    [report.imported, report.unchanged].map((all) => Promise.all(all.map(read))),
  );
  return { ...report, imported: imported ?? [], unchanged: unchanged ?? [] };
}

function withDialect(candidate: Candidate, dialect: SkillDialect): Candidate {
  return { ...candidate, skill: { ...candidate.skill, dialect } };
}

function recordInfo(record: SkillRecord): SkillManifestInfo {
  const { id, name, version, author, description, category, icon, keywords, tools, source, from, sourcePath } = record;
  return {
    ...{ id, name, version, author, description, category, icon, source, from, sourcePath },
    keywords: [...keywords],
    tools: tools.map((tool) => ({ ...tool })),
  };
}

export function manifestInfo(skill: OfferedSkill): SkillManifestInfo {
  const { id, key, facts, from, missing, findings, dir, manifest } = skill;
  const record =
    manifest ?? recordOf(facts, { id, tool: SKILL_PREFIX + key, from, sourcePath: dir ?? from, findings, missing });
  return recordInfo(record);
}

function notFound(only: readonly string[], { candidates, unreadable }: InspectedSkills): SkillFailure[] {
  const found = new Set([...candidates.map(({ skill }) => skill.dir), ...unreadable.map(({ path }) => path)]);
  return only
    .filter((path) => !found.has(path))
    .map((path) => ({ path, name: path, code: "not_found", message: `There is no skill in ${path}.` }));
}

function failureOf({ path, name, code, message }: InspectedSkills["unreadable"][number]): SkillFailure {
  return { path, name, code, message };
}

function isSkillItself({ candidates, unreadable }: InspectedSkills, root: string): boolean {
  const [dir] = [...candidates.map(({ skill }) => skill.dir), ...unreadable.map(({ path }) => path)];
  // A path to the SKILL.md itself names the skill as well.
  return dir === root || root.startsWith(`${dir}/`);
}

export interface SkillContext {
  /** The server that it comes from; undefined for the user's own. */
  readonly server: string | undefined;
  /** Of the config. */
  readonly servers: readonly ServerSpec[];
}

export function skillInfo(skill: OfferedSkill, { server, servers }: SkillContext): SkillInfo {
  const { facts, manifest } = skill;
  const version = manifest?.version ?? facts.version;
  const author = manifest?.author ?? facts.author;
  return {
    id: skill.id,
    name: facts.name,
    description: facts.description,
    source: sourceOf(facts),
    from: skill.from,
    status: skillStatus(skill.missing),
    ...(skill.missing.servers.length === 0 ? {} : { setup: setupCommand(skill) }),
    icon: manifest?.icon ?? facts.emoji,
    keywords: [...(manifest?.keywords ?? [])],
    kind: manifest !== undefined ? "imported" : server !== undefined ? "server" : "folder",
    dialect: facts.dialect,
    version,
    author,
    removable: manifest !== undefined,
    ...(manifest === undefined ? {} : { importedAt: manifest.importedAt }),
    requires: needsInfo(facts.needs),
    missing: missingInfo(skill.missing),
    dependenciesMet: isMet(skill.missing),
    servers: facts.servers.map((each) => ({
      name: each.name,
      present: findMatchingServer(each, servers) !== undefined,
    })),
    warnings: facts.warnings.map(warningInfo),
    findings: skill.findings.map(findingInfo),
  };
}

interface SkillUse {
  /** Public names of what it offers to whoever asks. */
  readonly tools: readonly string[];
  readonly injectedFor: readonly string[];
}

export function skillDetail(skill: OfferedSkill, surroundings: SkillContext, use: SkillUse): SkillDetail {
  return {
    ...skillInfo(skill, surroundings),
    uri: fileUri(skill, mainFile(skill)),
    files: skill.facts.files.map(({ path, size }) => ({ path, size })),
    tools: [...use.tools],
    injectedFor: [...use.injectedFor],
    promptEntry: catalogEntry(skill),
  };
}

function scannedSkill({ skill, findings, missing }: Candidate, status: ScannedSkill["status"]): ScannedSkill {
  return {
    name: skill.name,
    description: skill.description,
    path: skill.dir,
    source: sourceOf(skill),
    dialect: skill.dialect,
    status,
    requires: needsInfo(skill.needs),
    missing: missingInfo(missing),
    dependenciesMet: isMet(missing),
    otherOs: missing.os.length > 0,
    warnings: [...skill.warnings, ...missingWarnings(missing)].map(warningInfo),
    findings: findings.map(findingInfo),
  };
}

const NOTHING: SkillNeeds = { bins: [], anyBins: [], env: [], config: [], os: [] };

function brokenInfo({ id, name, message }: BrokenSkill): SkillInfo {
  return {
    ...{ id, name, description: message, from: "", keywords: [], status: "broken", kind: "imported", removable: true },
    source: isOpenclawId(id) ? "openclaw" : "agentskills",
    dialect: isOpenclawId(id) ? "openclaw" : "agent-skills",
    requires: needsInfo(NOTHING),
    missing: missingInfo({ ...NOTHING, servers: [] }),
    dependenciesMet: false,
    servers: [],
    warnings: [{ code: "BROKEN", message }],
    findings: [],
  };
}

function warningInfo({ code, message, line }: SkillWarning): ScannedSkill["warnings"][number] {
  return { code, message, line };
}

function findingInfo({ code, severity, message, file, line }: SkillFinding): ScannedSkill["findings"][number] {
  return { code, severity, message, file, line };
}

function missingInfo(missing: MissingNeeds): SkillInfo["missing"] {
  return { ...needsInfo(missing), servers: [...missing.servers] };
}

function needsInfo({ bins, anyBins, env, config, os }: SkillNeeds): ScannedSkill["requires"] {
  return { bins: [...bins], anyBins: [...anyBins], env: [...env], config: [...config], os: [...os] };
}

/** Folders in which skills usually are: those of agent clients, and those of the folder that the hub works in. */
function skillPlaces(clients: readonly AgentClient[], place: ClientEnvironment): SkillPlace[] {
  const { home, projectDir } = place;
  const known: [path: string, label: string][] = [
    [join(home, ".openclaw", "workspace", "skills"), "OpenClaw, workspace"],
    [join(home, ".openclaw", "skills"), "OpenClaw"],
    [join(home, ".claude", "skills"), "Claude Code"],
    [join(home, ".agents", "skills"), "Agent Skills"],
    ...clients.flatMap((client) =>
      client
        .skillDirs(place, "user")
        .map((path): [string, string] => [path, (ownerOf(path, clients, place) ?? client).name]),
    ),
    [join(projectDir, "skills"), "skills of this folder"],
    [join(projectDir, ".claude", "skills"), "Claude Code, this folder"],
  ];
  const byPath = new Map<string, string>();
  for (const [path, label] of known) if (!byPath.has(path)) byPath.set(path, label);
  return [...byPath].map(([path, label]) => ({ path, label, exists: existsSync(path) }));
}

/** Several clients read one folder: the one that it is called after, such as `.codex`, comes first. */
function ownerOf(path: string, clients: readonly AgentClient[], place: ClientEnvironment): AgentClient | undefined {
  const folder = basename(dirname(path)).replace(/^\./, "");
  return clients.find(
    (client) => `${client.id}-`.startsWith(`${folder}-`) && client.skillDirs(place, "user").includes(path),
  );
}
