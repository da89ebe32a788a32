/** `toolcrib skill update [names…]`: imports skills again whose source has changed; all of them without names. */
import { toolcribHome } from "../../config/find-config.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { thisMachine } from "../../skills/needs.ts";
import { type UpdatedSkills, updateInstalled } from "../../hub/install/update-installed.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import type { UpdateOutcome } from "../../skills/registry/update-skills.ts";
import type { Invocation } from "../command.ts";
import { plain } from "./describe-skill.ts";
import { requireSkill, withRegistry } from "./known-skills.ts";

/** Exits with 1 if an update failed. Without names, a skill whose source is gone is only reported. */
export function run(invocation: Invocation): Promise<number> {
  return withRegistry(invocation, (registry) => update(invocation, registry));
}

async function update(invocation: Invocation, registry: SkillRegistry): Promise<number> {
  const { args, out, env, cwd, flags } = invocation;
  const named: SkillManifest[] = [];
  for (const name of args) named.push(await requireSkill(registry, name));
  const dryRun = flags.has("dryRun");
  const wanted = args.length === 0 ? await registry.list() : [...new Set(named)];
  const { outcomes, ...copies } = await updateInstalled(registry, wanted, {
    home: toolcribHome(env),
    machine: thisMachine(env),
    fetch: { cwd, env },
    force: flags.has("force"),
    dryRun,
    onProgress: out.progressBar("Updating"),
  });
  const settled = args.length === 0 ? outcomes : outcomes.map(skippedIsFailed);
  if (out.json) showJson(invocation, settled, copies, dryRun);
  else show(invocation, settled, copies, dryRun);
  for (const path of copies.kept)
    out.warn(`${path} was edited since it was installed and was kept. Use --force to replace it.`);
  return settled.some(({ status }) => status === "failed") ? 1 : 0;
}

function skippedIsFailed(outcome: UpdateOutcome): UpdateOutcome {
  return outcome.status === "skipped" ? { ...outcome, status: "failed" } : outcome;
}

type CopiesOfSkills = Omit<UpdatedSkills, "outcomes">;

function showJson(
  { out }: Invocation,
  outcomes: readonly UpdateOutcome[],
  { renewed, kept }: CopiesOfSkills,
  dryRun: boolean,
): void {
  const of = (status: UpdateOutcome["status"]): object[] =>
    outcomes
      .filter((outcome) => outcome.status === status)
      .map(({ before: { id, name, from, digest }, candidate, code, message }) => ({
        id,
        name,
        from,
        digest: candidate?.skill.digest ?? digest,
        code,
        message,
      }));
  out.value({
    updated: of("updated"),
    unchanged: of("unchanged"),
    skipped: of("skipped"),
    failed: of("failed"),
    copies: { renewed, kept },
    ...(dryRun ? { dryRun } : {}),
  });
}

function show(
  { out }: Invocation,
  outcomes: readonly UpdateOutcome[],
  { renewed }: CopiesOfSkills,
  dryRun: boolean,
): void {
  const count = (status: UpdateOutcome["status"]): number => outcomes.filter((each) => each.status === status).length;
  for (const { before, status, message = "" } of outcomes) {
    const name = plain(before.name);
    if (status === "updated") out.line(`${out.paint("green", dryRun ? "would update" : "updated")}  ${name}`);
    if (status === "skipped") out.line(`${out.paint("yellow", "kept")}  ${name}: ${plain(message, Infinity)}`);
    if (status === "failed") out.line(`${out.paint("red", "failed")}  ${name}: ${plain(message, Infinity)}`);
  }
  for (const path of renewed) out.line(`  copy ${path}`);
  const parts = [`${count("unchanged")} unchanged`, `${count("skipped")} kept`, `${count("failed")} failed`];
  out.line(
    `${dryRun ? "Would update" : "Updated"} ${count("updated")} of ${outcomes.length} skills (${parts.join(", ")}).`,
  );
}
