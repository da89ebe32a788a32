/** Reads, scans and checks what is to be installed. Nothing is written. */
import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { AgentClient } from "../../clients/agent-client.ts";
import { readServersOfClient } from "../../config/client-servers.ts";
import { assertInside } from "../../files/path-safety.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { MissingNeeds, Skill, SkillFinding } from "../../model/skill.ts";
import { type Fetched, type FetchProgress, fetchSkills } from "../../skills/fetch/fetch-skills.ts";
import { findSkills } from "../../skills/find/find-skills.ts";
import { isMet, missingNeeds, thisMachine } from "../../skills/needs.ts";
import { readSkill } from "../../skills/read/read-skill.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { scanSkill, worstSeverity } from "../../skills/scan/scan-skill.ts";
import { findMatchingServer } from "../../skills/servers/match-servers.ts";
import { chooseContainers } from "../skills/auto-start.ts";
import type { InstallContext } from "./install-context.ts";
import { lockedDifference, readSkillsLock } from "./installed-skills.ts";
import { missingServers, type PlannedServer, requiredServers } from "./required-servers.ts";

export interface PlannedSkill {
  /** Its id in the registry. */
  readonly id: string;
  readonly skill: Skill;
  /** Fetches it again. */
  readonly source: string;
  /** A commit, a package's version. */
  readonly resolved?: string;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

type ExaminedSkill = Omit<PlannedSkill, "id">;

export interface InstallPlan {
  readonly skills: readonly PlannedSkill[];
  readonly servers: readonly PlannedServer[];
  readonly warnings: readonly string[];
  readonly lockFile: string;
  /** Removes what was fetched. */
  dispose(): Promise<void>;
}

interface PlanOptions extends Omit<ReadOptions, "env"> {
  readonly lockFile: string;
  /** Take also what the scan refuses, what another source brought, and what differs from the lock file. */
  readonly force: boolean;
}

/** Throws `blocked` for what the scan refuses, `conflict` for what is there already from elsewhere. */
export async function planInstall(
  sources: readonly WantedSource[],
  place: InstallContext,
  options: PlanOptions,
): Promise<InstallPlan> {
  const read: ReadSource[] = [];
  const dispose = async (): Promise<void> => {
    for (const { fetched } of read) await fetched.dispose();
  };
  try {
    for (const source of sources) read.push(await readSource(source, { ...options, env: place.env }));
    const machine = thisMachine(place.env);
    const looked: ExaminedSkill[] = [];
    for (const { fetched, skills: found } of read) {
      for (const skill of found) {
        looked.push({
          skill,
          source: fetched.source,
          resolved: fetched.resolved,
          findings: await scanSkill(skill),
          // The install sets the servers up.
          missing: { ...missingNeeds(skill, machine), servers: [] },
        });
      }
    }
    assertDistinct(looked);
    if (!options.force) assertScanPassed(looked);
    assertInside(dirname(options.lockFile), options.lockFile);
    if (!options.force) await assertAsLocked(looked, options.lockFile);
    const skills = await assignIds(looked, place.registry, options.force);
    const choose = await chooseContainers(
      skills.flatMap(({ skill }) => skill.servers),
      place.config,
      place.env,
    );
    const servers = requiredServers(
      skills.map(({ skill }) => skill),
      place.config.servers,
      (server) => choose(server).server,
    );
    const chosen = servers
      .filter(({ configured }) => configured === undefined)
      .map(({ server }) => choose(server).notice);
    const warnings = [
      ...read.flatMap((each) => each.warnings),
      ...skills.flatMap(skillWarnings),
      ...serverWarnings(servers),
      ...chosen.filter((notice) => notice !== undefined),
    ];
    return { skills, servers, warnings, lockFile: options.lockFile, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/**
 * Without servers that every chosen client has already in a file of its own, under whatever name: the skill uses them from
 * there.
 */
export async function withoutClientServers(
  plan: InstallPlan,
  clients: readonly AgentClient[],
  place: InstallContext,
): Promise<InstallPlan> {
  if (clients.length === 0 || missingServers(plan.servers).length === 0) return plan;
  const own = await Promise.all(
    clients.map(async (client) => ({
      name: client.name,
      specs: (await readServersOfClient(client, place.clients)).layers.flatMap((one) => one.servers),
    })),
  );
  const isThere = ({ server, configured }: PlannedServer): boolean =>
    configured === undefined && own.every(({ specs }) => findMatchingServer(server, specs) !== undefined);
  const names = clients.map(({ name }) => name).join(", ");
  const notices = plan.servers.filter(isThere).map(({ id, server }) => {
    const off = own.filter(({ specs }) => findMatchingServer(server, specs)?.enabled === false).map(({ name }) => name);
    const isOff = off.length === 0 ? "" : ` It is disabled in ${off.join(", ")}: enable it there.`;
    return `The server ${id} is already set up in ${names}.${isOff}`;
  });
  const servers = plan.servers.filter((planned) => !isThere(planned));
  return { ...plan, servers, warnings: [...plan.warnings, ...notices] };
}

function assertDistinct(skills: readonly ExaminedSkill[]): void {
  const seen = new Map<string, string>();
  for (const { skill, source } of skills) {
    const other = seen.get(skill.name);
    if (other !== undefined) {
      const message = `Two of the skills are called ${skill.name}: from ${other} and from ${source}.`;
      const hint = "Install one of them; --select names them by their folders too.";
      throw new ToolcribError("conflict", message, { hint });
    }
    seen.set(skill.name, source);
  }
}

function assertScanPassed(skills: readonly ExaminedSkill[]): void {
  const bad = skills.filter(({ findings }) => worstSeverity(findings) === "refuse");
  if (bad.length === 0) return;
  const lines = bad.flatMap(({ skill, findings }) =>
    findings
      .filter(({ severity }) => severity === "refuse")
      .map((finding) => `  ${skill.name}: ${renderScanFinding(finding)}`),
  );
  throw new ToolcribError(
    "blocked",
    `The scan refuses ${bad.map(({ skill }) => skill.name).join(", ")}:\n${lines.join("\n")}`,
    {
      hint: "Nothing was installed. If you have read it and want it anyway, use --force.",
      details: { findings: bad.map(({ skill, findings }) => ({ name: skill.name, findings })) },
    },
  );
}

async function assertAsLocked(skills: readonly ExaminedSkill[], lockFile: string): Promise<void> {
  const lock = await readSkillsLock(lockFile);
  const different = skills.flatMap((planned) => lockedDifference(lock, lockFile, planned) ?? []);
  if (different.length === 0) return;
  const message = `Not what ${lockFile} says:\n${different.map((line) => `  ${line}`).join("\n")}`;
  const hint = "Nothing was installed. --force installs what is there now and updates the lock file.";
  throw new ToolcribError("conflict", message, { hint });
}

async function assignIds(
  looked: readonly ExaminedSkill[],
  registry: SkillRegistry,
  force: boolean,
): Promise<PlannedSkill[]> {
  const outcomes = await registry.preview(looked, { replace: force });
  return looked.map((each, index) => {
    const outcome = outcomes[index];
    if (outcome === undefined) throw new ToolcribError("internal", `${each.skill.name} was not planned.`);
    if (outcome.status !== "failed") return { ...each, id: outcome.id };
    throw new ToolcribError("conflict", `${each.skill.name}: ${outcome.failure.message}`);
  });
}

function skillWarnings({ skill, findings, missing }: PlannedSkill): string[] {
  const notes = skill.warnings.map(
    ({ message, line }) => `${skill.name}: ${line === undefined ? "" : `line ${line}: `}${message}`,
  );
  const found = findings
    .filter(({ severity }) => severity !== "note")
    .map((finding) => `${skill.name}: ${renderScanFinding(finding)}`);
  if (isMet(missing)) return [...notes, ...found];
  const { bins, anyBins, env, config, os } = missing;
  const lacks = [
    ...bins.map((bin) => `the program ${bin}`),
    ...(anyBins.length === 0 ? [] : [`one of the programs ${anyBins.join(", ")}`]),
    ...env.map((name) => `the variable ${name}`),
    ...config.map((path) => `${path} in OpenClaw's config`),
    ...(os.length === 0 ? [] : [`another system (${os.join(", ")})`]),
  ];
  return [...notes, ...found, `${skill.name} needs ${lacks.join(", ")}, which this machine does not have.`];
}

function serverWarnings(servers: readonly PlannedServer[]): string[] {
  return servers
    .filter(({ configured }) => configured?.enabled === false)
    .map(({ id, neededBy }) => `${neededBy.join(", ")} needs the server ${id}, which is disabled in the config.`);
}

function renderScanFinding({ code, message, file, line, severity }: SkillFinding): string {
  return `${file}${line === undefined ? "" : `:${line}`}: ${severity}: ${code}: ${message}`;
}

export interface WantedSource {
  readonly source: string;
  /** Where a relative source starts. */
  readonly cwd: string;
  /** Its name in package.json: selects the skill if the source has several. */
  readonly name?: string;
}

interface ReadOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: FetchProgress | undefined;
  /** Names of skills or of their folders. */
  readonly select?: readonly string[];
  readonly all?: boolean;
}

interface ReadSource {
  readonly fetched: Fetched;
  readonly skills: readonly Skill[];
  readonly warnings: readonly string[];
}

/** The caller disposes what was fetched. */
async function readSource(wanted: WantedSource, options: ReadOptions): Promise<ReadSource> {
  const { env, signal, onProgress } = options;
  const fetched = await fetchSkills(wanted.source, { cwd: wanted.cwd, env, signal, onProgress });
  try {
    const { skills, problems } = await readAll(fetched.dir);
    const told = problems.map(({ path, message }) => `${shortPath(path, fetched)}: ${message}`);
    if (skills.length === 0) {
      throw new ToolcribError("not_found", `${fetched.source} has no skill that can be read.`, {
        hint: told.length === 0 ? "A skill is a folder with a SKILL.md." : told.join("\n  "),
      });
    }
    return { fetched, ...selectSkills(skills, told, fetched.source, wanted.name, options) };
  } catch (error) {
    await fetched.dispose();
    throw error;
  }
}

async function readAll(dir: string): Promise<{ skills: Skill[]; problems: { path: string; message: string }[] }> {
  const found = await findSkills(dir);
  const problems: { path: string; message: string }[] = [...found.problems];
  const skills: Skill[] = [];
  for (const path of found.dirs) {
    try {
      skills.push(await readSkill(path));
    } catch (error) {
      problems.push({ path, message: asToolcribError(error).message });
    }
  }
  return { skills, problems };
}

function selectSkills(
  skills: readonly Skill[],
  told: readonly string[],
  source: string,
  name: string | undefined,
  { select = [], all = false }: ReadOptions,
): Pick<ReadSource, "skills" | "warnings"> {
  if (name !== undefined) return selectDeclaredSkill(skills, name, source);
  if (select.length > 0) {
    const missing = select.filter((each) => !skills.some((skill) => isCalled(skill, each)));
    if (missing.length > 0) {
      throw new ToolcribError("not_found", `${source} has no skill called ${missing.join(", ")}.`, {
        hint: `It has ${namesOfSkills(skills)}.`,
      });
    }
    return { skills: skills.filter((skill) => select.some((each) => isCalled(skill, each))), warnings: [] };
  }
  if (skills.length === 1 || all) return { skills, warnings: told };
  throw new ToolcribError("invalid_arguments", `${source} has ${skills.length} skills: ${namesOfSkills(skills)}.`, {
    hint: "--select a,b takes some of them, --all takes all.",
    details: { skills: skills.map((skill) => skill.name) },
  });
}

function selectDeclaredSkill(
  skills: readonly Skill[],
  name: string,
  source: string,
): Pick<ReadSource, "skills" | "warnings"> {
  const named = skills.filter((skill) => isCalled(skill, name));
  const [first] = skills;
  if (named.length > 0) return { skills: named.slice(0, 1), warnings: [] };
  if (first !== undefined && skills.length === 1) {
    return { skills, warnings: [`package.json calls the skill of ${source} ${name}; it calls itself ${first.name}.`] };
  }
  throw new ToolcribError("not_found", `${source} has no skill called ${name}.`, {
    hint: `It has ${namesOfSkills(skills)}.`,
  });
}

function isCalled(skill: Skill, name: string): boolean {
  return skill.name === name || basename(skill.dir) === name;
}

const MAX_NAMED = 30;

function namesOfSkills(skills: readonly Skill[]): string {
  const shown = skills.slice(0, MAX_NAMED).map((skill) => skill.name);
  return skills.length > MAX_NAMED ? `${shown.join(", ")} and ${skills.length - MAX_NAMED} more` : shown.join(", ");
}

/** Without the temporary folder. */
function shortPath(path: string, { dir, temporary }: Fetched): string {
  return temporary && path.startsWith(dir) ? path.slice(dir.length).replace(/^[/\\]/, "") || "." : path;
}

interface DeclaredSkills {
  readonly file: string;
  readonly sources: readonly WantedSource[];
}

/**
 * Skills that the nearest package.json declares: `"agentskills": {"skills": {"name": "source"}}`. Paths are relative to it.
 */
export async function declaredSkills(cwd: string): Promise<DeclaredSkills> {
  const file = await nearestPackage(cwd);
  if (file === undefined) {
    throw new ToolcribError("invalid_arguments", `Name a source: there is no package.json in ${cwd} or above it.`, {
      hint: "toolcrib skill install <folder, archive, git address or npm:package>",
    });
  }
  const skills = skillsOf(file.text, file.path);
  const sources = Object.entries(skills).map(([name, source]): WantedSource => {
    if (typeof source === "string" && source.trim() !== "") return { source, name, cwd: dirname(file.path) };
    throw new ToolcribError("invalid_config", `${file.path}: agentskills.skills.${name} must be the text of a source.`);
  });
  if (sources.length > 0) return { file: file.path, sources };
  throw new ToolcribError("invalid_arguments", `Name a source: ${file.path} declares no skills.`, {
    hint: 'Declare them with "agentskills": { "skills": { "name": "source" } }.',
  });
}

function skillsOf(text: string, file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (cause) {
    throw new ToolcribError("invalid_config", `${file} is not valid JSON.`, { cause });
  }
  const block = isJsonObject(value) ? value["agentskills"] : undefined;
  const skills = isJsonObject(block) ? (block["skills"] ?? {}) : {};
  if (block !== undefined && (!isJsonObject(block) || !isJsonObject(skills))) {
    throw new ToolcribError("invalid_config", `${file}: agentskills.skills must be an object of names and sources.`);
  }
  return isJsonObject(skills) ? skills : {};
}

export async function nearestPackage(cwd: string): Promise<{ path: string; text: string } | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return { path, text };
    if (folder === dirname(folder)) return undefined;
  }
}
