/** Reads, scans and checks what is to be installed. Nothing is written. */
import { dirname } from "node:path";
import { assertInside } from "../../files/assert-inside.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { MissingNeeds, Skill, SkillFinding } from "../../model/skill.ts";
import { isMet, missingNeeds } from "../../skills/needs/check-needs.ts";
import { thisMachine } from "../../skills/needs/this-machine.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import { scanSkill, worst } from "../../skills/scan/scan-skill.ts";
import { containerChoice } from "../skills/container-choice.ts";
import type { InstallPlace } from "./install-place.ts";
import { type ReadOptions, type ReadSource, readSource, type WantedSource } from "./read-source.ts";
import { type PlannedServer, requiredServers } from "./required-servers.ts";
import { lockedDifference, readSkillsLock } from "./skills-lock.ts";

export interface PlannedSkill {
  /** Its id in the registry. */
  readonly id: string;
  readonly skill: Skill;
  /** What to fetch it by again. */
  readonly source: string;
  /** A commit, a package's version. */
  readonly resolved?: string;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

type LookedAt = Omit<PlannedSkill, "id">;

export interface InstallPlan {
  readonly skills: readonly PlannedSkill[];
  readonly servers: readonly PlannedServer[];
  readonly warnings: readonly string[];
  readonly lockFile: string;
  /** Removes what was fetched. */
  dispose(): Promise<void>;
}

export interface PlanOptions extends Omit<ReadOptions, "env"> {
  readonly lockFile: string;
  /** Take also what the scan refuses, what another source brought, and what differs from the lock file. */
  readonly force: boolean;
}

/** Throws `blocked` for what the scan refuses, `conflict` for what is there already from elsewhere. */
export async function planInstall(
  sources: readonly WantedSource[],
  place: InstallPlace,
  options: PlanOptions,
): Promise<InstallPlan> {
  const read: ReadSource[] = [];
  const dispose = async (): Promise<void> => {
    for (const { fetched } of read) await fetched.dispose();
  };
  try {
    for (const source of sources) read.push(await readSource(source, { ...options, env: place.env }));
    const machine = thisMachine(place.env);
    const looked: LookedAt[] = [];
    for (const { fetched, skills: found } of read) {
      for (const skill of found) {
        looked.push({
          skill,
          source: fetched.source,
          resolved: fetched.resolved,
          findings: await scanSkill(skill),
          missing: missingNeeds(skill.needs, machine),
        });
      }
    }
    assertDistinct(looked);
    if (!options.force) refuse(looked);
    assertInside(dirname(options.lockFile), options.lockFile);
    if (!options.force) await assertAsLocked(looked, options.lockFile);
    const skills = await withIds(looked, place.registry, options.force);
    const choose = await containerChoice(
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
      ...skills.flatMap(warningsOf),
      ...serverWarnings(servers),
      ...chosen.filter((notice) => notice !== undefined),
    ];
    return { skills, servers, warnings, lockFile: options.lockFile, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function assertDistinct(skills: readonly LookedAt[]): void {
  const seen = new Map<string, string>();
  for (const { skill, source } of skills) {
    const other = seen.get(skill.name);
    if (other !== undefined) {
      throw new ToolcribError(
        "conflict",
        `Two of the skills are called ${skill.name}: from ${other} and from ${source}.`,
        {
          hint: "Install one of them; --select names them by their folders too.",
        },
      );
    }
    seen.set(skill.name, source);
  }
}

function refuse(skills: readonly LookedAt[]): void {
  const bad = skills.filter(({ findings }) => worst(findings) === "refuse");
  if (bad.length === 0) return;
  const lines = bad.flatMap(({ skill, findings }) =>
    findings.filter(({ severity }) => severity === "refuse").map((finding) => `  ${skill.name}: ${shown(finding)}`),
  );
  throw new ToolcribError(
    "blocked",
    `The scan refuses ${bad.map(({ skill }) => skill.name).join(", ")}:\n${lines.join("\n")}`,
    {
      hint: "Nothing was installed. If you have read it and want it all the same: --force.",
      details: { findings: bad.map(({ skill, findings }) => ({ name: skill.name, findings })) },
    },
  );
}

async function assertAsLocked(skills: readonly LookedAt[], lockFile: string): Promise<void> {
  const lock = await readSkillsLock(lockFile);
  const different = skills.flatMap((planned) => lockedDifference(lock, lockFile, planned) ?? []);
  if (different.length === 0) return;
  throw new ToolcribError(
    "conflict",
    `Not what ${lockFile} says:\n${different.map((line) => `  ${line}`).join("\n")}`,
    {
      hint: "Nothing was installed. --force installs what is there now and writes that down.",
    },
  );
}

async function withIds(looked: readonly LookedAt[], registry: SkillRegistry, force: boolean): Promise<PlannedSkill[]> {
  const outcomes = await registry.preview(looked, { replace: force });
  return looked.map((each, index) => {
    const outcome = outcomes[index];
    if (outcome === undefined) throw new ToolcribError("internal", `${each.skill.name} was not planned.`);
    if (outcome.status !== "failed") return { ...each, id: outcome.id };
    const { message } = outcome.failure;
    throw new ToolcribError("conflict", `${each.skill.name}: ${message}`);
  });
}

function warningsOf({ skill, findings, missing }: PlannedSkill): string[] {
  const notes = skill.warnings.map(
    ({ message, line }) => `${skill.name}: ${line === undefined ? "" : `line ${line}: `}${message}`,
  );
  const found = findings
    .filter(({ severity }) => severity !== "note")
    .map((finding) => `${skill.name}: ${shown(finding)}`);
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

function shown({ code, message, file, line, severity }: SkillFinding): string {
  return `${file}${line === undefined ? "" : `:${line}`}: ${severity}: ${code}: ${message}`;
}
