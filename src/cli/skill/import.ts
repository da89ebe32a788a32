/** `toolcrib skill import <dir>`: looks, shows, lets choose, and takes in. */
import { resolve } from "node:path";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { type Candidate, type LookedAt, lookAtSkills, type UnreadableSkill } from "../../skills/find/look-at.ts";
import { thisMachine } from "../../skills/needs/this-machine.ts";
import { type Imported, importSkills } from "../../skills/registry/import-skills.ts";
import type { Invocation } from "../command.ts";
import { askWhich, type Choice, namesText, selectNamed } from "./choose.ts";
import { detailLines, plain, type SkillEntry, skillEntry, unreadableEntry } from "./describe.ts";
import { progressBar } from "./progress-bar.ts";
import { withRegistry } from "./with-registry.ts";

/** A found skill, readable or not. */
interface Found extends Choice {
  readonly what: Candidate | UnreadableSkill;
}

interface FailedEntry extends SkillEntry {
  readonly code: string;
  readonly message: string;
}

interface Result {
  readonly imported: readonly (SkillEntry & { readonly id: string; readonly status: string })[];
  readonly failed: readonly FailedEntry[];
  readonly totalScanned: number;
  readonly dryRun?: true;
  /** Folders that were not looked into. */
  readonly problems?: LookedAt["problems"];
}

/** Exits with 1 if any of the chosen skills could not be taken in, also where others were. */
export async function run(invocation: Invocation): Promise<number> {
  const { args, out, flags, env, cwd } = invocation;
  const [given] = args;
  if (given === undefined || args.length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one folder to import skills from.", {
      hint: "toolcrib skill import ~/.openclaw/skills --dry-run",
    });
  }
  const root = resolve(cwd, expandTilde(given, userHome(env)));
  const looked = await lookAtSkills(root, thisMachine(env), { onProgress: progressBar(out, "Reading") });
  for (const { message } of looked.problems) out.warn(message);
  if (looked.totalScanned === 0) {
    throw new ToolcribError("not_found", `There is no SKILL.md in ${root} or in the folders below it.`);
  }
  const chosen = await choose(invocation, inOrder(looked), root);
  const candidates = chosen.flatMap(({ what }) => ("skill" in what ? [what] : []));
  const unreadable = chosen.flatMap(({ what }) => ("skill" in what ? [] : [what]));
  const dryRun = flags.has("dryRun");
  const done = await withRegistry(invocation, (registry) =>
    importSkills(registry, candidates, {
      source: root,
      force: flags.has("force"),
      dryRun,
      onProgress: progressBar(out, "Importing"),
    }),
  );
  const result = resultOf(done, unreadable, looked, dryRun);
  if (out.json) out.value(result);
  else summarize(invocation, result);
  return result.failed.length > 0 ? 1 : 0;
}

/** Shows what was found or chosen, and gives what is to be imported. */
async function choose(invocation: Invocation, found: readonly Found[], root: string): Promise<readonly Found[]> {
  const { flags, stdin, out } = invocation;
  const select = flags.text("select");
  if (select !== undefined && flags.has("all")) {
    throw new ToolcribError("invalid_arguments", "Give --select or --all, not both.");
  }
  if (select !== undefined) return shown(invocation, selectNamed(found, select, root));
  if (flags.has("all") || flags.has("dryRun") || found.length === 1) return shown(invocation, found);
  if (stdin.isTTY && !flags.has("yes") && !out.json) {
    return askWhich(invocation, shown(invocation, found, { numbered: true }), root);
  }
  throw new ToolcribError("invalid_arguments", `There are ${found.length} skills in ${root}; say which to import.`, {
    hint: `--all imports every one, --select <names> these of them: ${namesText(found.map(({ name }) => name))}.`,
  });
}

function shown<T extends Found>(
  { out }: Invocation,
  found: readonly T[],
  { numbered = false }: { readonly numbered?: boolean } = {},
): readonly T[] {
  for (const [index, { what }] of out.json ? [] : found.entries()) {
    const number = numbered ? `${index + 1}. ` : "";
    if (!("skill" in what)) {
      out.line(`${number}${out.paint("bold", plain(what.name))}  ${out.paint("red", "cannot be read")}`);
      out.line(`  ${plain(what.message, Infinity)}`);
      continue;
    }
    const entry = skillEntry(what.skill, what);
    const state = entry.dependenciesMet ? out.paint("green", "ready") : out.paint("yellow", "requirements missing");
    out.line(`${number}${out.paint("bold", plain(entry.name))}  ${state}`);
    for (const line of detailLines(out, entry)) out.line(line);
  }
  return found;
}

function inOrder({ candidates, unreadable }: LookedAt): Found[] {
  const found = [
    ...candidates.map((what): Found => ({ name: what.skill.name, path: what.skill.dir, what })),
    ...unreadable.map((what): Found => ({ name: what.name, path: what.path, what })),
  ];
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function resultOf(
  done: readonly Imported[],
  unreadable: readonly UnreadableSkill[],
  { totalScanned, problems }: LookedAt,
  dryRun: boolean,
): Result {
  const imported: Result["imported"][number][] = [];
  const failed: FailedEntry[] = unreadable.map(({ code, message, ...place }) => ({
    ...unreadableEntry(place),
    code,
    message,
  }));
  for (const { candidate, outcome } of done) {
    const entry = skillEntry(candidate.skill, candidate);
    if (outcome.status === "failed") {
      failed.push({ ...entry, code: outcome.failure.code, message: outcome.failure.message });
    } else imported.push({ ...entry, id: outcome.id, status: outcome.status });
  }
  return {
    imported,
    failed,
    totalScanned,
    ...(dryRun ? { dryRun } : {}),
    ...(problems.length > 0 ? { problems } : {}),
  };
}

const WORDS = { added: "new", updated: "updated", unchanged: "unchanged" };

function summarize({ out }: Invocation, { imported, failed, totalScanned, dryRun }: Result): void {
  if (imported.length + failed.length > 0) out.line("");
  for (const { name, path, message } of failed) {
    out.line(`${out.paint("red", "failed")}  ${plain(name)} (${path}): ${plain(message, Infinity)}`);
  }
  const counts = Object.entries(WORDS).flatMap(([status, word]) => {
    const count = imported.filter((each) => each.status === status).length;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  const verb = dryRun === true ? "Would import" : "Imported";
  const parts = counts.length === 0 ? "" : ` (${counts.join(", ")})`;
  const bad = failed.length === 0 ? "" : `, ${failed.length} failed`;
  out.line(`${verb} ${imported.length} of ${totalScanned} skills${parts}${bad}.`);
  const unready = imported.filter((each) => !each.dependenciesMet).length;
  if (unready > 0) out.note(`${lacking(unready)} on this machine; see "missing" above.`);
  const needing = imported.filter((each) => each.servers.length > 0);
  if (needing.length > 0) {
    out.note(
      `MCP servers are needed by ${namesText(needing.map(({ name }) => name))}: ` +
        "`toolcrib skill install <folder> --with-mcp` sets them up.",
    );
  }
}

function lacking(count: number): string {
  return count === 1 ? "1 skill does not have everything it needs" : `${count} skills do not have everything they need`;
}
