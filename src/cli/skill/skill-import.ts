/** `toolcrib skill import <dir>`: finds skills, shows them, lets the user choose, and imports them. */
import { basename, relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline/promises";
import { findNearest } from "../../base/near-matches.ts";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import {
  type Candidate,
  type InspectedSkills,
  inspectSkills,
  type UnreadableSkill,
} from "../../skills/find/inspect-skills.ts";
import { thisMachine } from "../../skills/needs.ts";
import { type Imported, importSkills } from "../../skills/registry/import-skills.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { type Invocation, splitNames } from "../command.ts";
import { loadConfigForStore } from "../load-with-trust.ts";
import { detailLines, plain, type SkillEntry, skillEntry, unreadableEntry } from "./describe-skill.ts";
import { withRegistry } from "./known-skills.ts";

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
  /** Folders that could not be searched. */
  readonly problems?: InspectedSkills["problems"];
}

/** Exits with 1 if any of the chosen skills could not be imported. */
export async function run(invocation: Invocation): Promise<number> {
  const { args, out, flags, env, cwd } = invocation;
  const [given] = args;
  if (given === undefined || args.length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one folder to import skills from.", {
      hint: "Example: toolcrib skill import ~/.openclaw/skills --dry-run",
    });
  }
  const root = resolve(cwd, expandTilde(given, userHome(env)));
  const servers = await serversOf(invocation);
  const looked = await inspectSkills(root, thisMachine(env, servers), { onProgress: out.progressBar("Reading") });
  for (const { message } of looked.problems) out.warn(message);
  if (looked.totalScanned === 0) {
    throw new ToolcribError("not_found", `There is no SKILL.md in ${root} or its subfolders.`);
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
      onProgress: out.progressBar("Importing"),
    }),
  );
  const result = resultOf(done, unreadable, looked, dryRun);
  if (out.json) out.value(result);
  else summarize(invocation, result);
  return result.failed.length > 0 ? 1 : 0;
}

/** Skills can be imported without a config. */
async function serversOf(invocation: Invocation): Promise<readonly ServerSpec[]> {
  if (invocation.flags.text("config") !== undefined) return (await loadConfigForStore(invocation)).servers;
  return loadConfigForStore(invocation).then(
    ({ servers }) => servers,
    () => [],
  );
}

/** Shows the skills and returns those to import. */
async function choose(invocation: Invocation, found: readonly Found[], root: string): Promise<readonly Found[]> {
  const { flags, stdin, out } = invocation;
  const select = flags.text("select");
  if (select !== undefined && flags.has("all")) {
    throw new ToolcribError("invalid_arguments", "Use either --select or --all, not both.");
  }
  if (select !== undefined) return shown(invocation, selectNamed(found, select, root));
  if (flags.has("all") || flags.has("dryRun") || found.length === 1) return shown(invocation, found);
  if (stdin.isTTY && !flags.has("yes") && !out.json) {
    return askWhich(invocation, shown(invocation, found, { numbered: true }), root);
  }
  throw new ToolcribError("invalid_arguments", `There are ${found.length} skills in ${root}. Choose which to import.`, {
    hint: `Use --all to import every skill, or --select with some of these names: ${namesText(found.map(({ name }) => name))}.`,
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

function inOrder({ candidates, unreadable }: InspectedSkills): Found[] {
  const found = [
    ...candidates.map((what): Found => ({ name: what.skill.name, path: what.skill.dir, what })),
    ...unreadable.map((what): Found => ({ name: what.name, path: what.path, what })),
  ];
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function resultOf(
  done: readonly Imported[],
  unreadable: readonly UnreadableSkill[],
  { totalScanned, problems }: InspectedSkills,
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
  if (unready > 0) out.note(`${lacking(unready)} on this machine. See "missing" above.`);
  const needing = imported.filter((each) => each.missing.servers.length > 0);
  if (needing.length > 0) {
    out.note(
      `These skills need MCP servers that are not set up: ${namesText(needing.map(({ name }) => name))}. ` +
        "Set them up with toolcrib skill install <folder> --with-mcp.",
    );
  }
}

function lacking(count: number): string {
  return count === 1 ? "1 skill does not have everything it needs" : `${count} skills do not have everything they need`;
}

interface Choice {
  readonly name: string;
  /** The folder. */
  readonly path: string;
}

const MAX_NAMED_SKILLS = 20;

/** The skills of `--select a,b`: by name, by folder name, or by path below the root if names are ambiguous. */
function selectNamed<T extends Choice>(choices: readonly T[], text: string, root: string): T[] {
  const wanted = splitNames(text);
  if (wanted.length === 0) throw new ToolcribError("invalid_arguments", "--select needs at least one name.");
  const chosen = new Set<T>();
  const unknown: string[] = [];
  for (const name of wanted) {
    const named = matching(choices, name, root);
    if (named.length === 0) unknown.push(name);
    for (const choice of named) chosen.add(choice);
  }
  const [first] = unknown;
  if (first === undefined) return choices.filter((choice) => chosen.has(choice));
  const names = choices.map(({ name }) => name);
  const near = unknown.length === 1 ? findNearest(first, names) : undefined;
  throw new ToolcribError("not_found", `There is no skill ${unknown.join(", ")} in ${root}.`, {
    hint: near === undefined ? `Found: ${namesText(names)}.` : `Did you mean ${near}?`,
  });
}

/** Asks until the answer is valid; an empty one selects none. */
async function askWhich<T extends Choice>(
  { stdin, out }: Invocation,
  choices: readonly T[],
  root: string,
): Promise<T[]> {
  const terminal = createInterface({ input: stdin, output: out.prompts });
  terminal.setPrompt("Which skills? [a]ll, or numbers or names separated by commas; empty for none: ");
  terminal.prompt();
  let open = true;
  terminal.once("close", () => (open = false));
  try {
    for await (const typed of terminal) {
      const chosen = parseAnswer(choices, typed, root);
      if (chosen !== undefined) return chosen;
      out.note("The answer does not match a skill in the list.");
      // Lines that were typed ahead still arrive after the end of the input.
      if (open) terminal.prompt();
    }
  } finally {
    terminal.close();
  }
  // The input ended, or Ctrl-C was pressed.
  throw new ToolcribError("cancelled", "Nothing was imported.");
}

/** Parses `all`, `1,3-5` or `notes, 4`; undefined if invalid. */
export function parseAnswer<T extends Choice>(choices: readonly T[], typed: string, root: string): T[] | undefined {
  if (/^\s*(a|all)\s*$/i.test(typed)) return [...choices];
  const chosen = new Set<T>();
  for (const word of splitNames(typed)) {
    const named = matching(choices, word, root);
    const picked = named.length > 0 ? named : numbered(choices, word);
    if (picked.length === 0) return undefined;
    for (const choice of picked) chosen.add(choice);
  }
  return choices.filter((choice) => chosen.has(choice));
}

function namesText(names: readonly string[]): string {
  const more = names.length > MAX_NAMED_SKILLS ? ` and ${names.length - MAX_NAMED_SKILLS} more` : "";
  return names.slice(0, MAX_NAMED_SKILLS).join(", ") + more;
}

function matching<T extends Choice>(choices: readonly T[], word: string, root: string): T[] {
  const byName = choices.filter(({ name }) => name === word);
  if (byName.length > 0) return byName;
  const path = word.replaceAll("/", sep);
  return choices.filter((choice) => basename(choice.path) === word || relative(root, choice.path) === path);
}

function numbered<T>(choices: readonly T[], word: string): T[] {
  const [, from = "", to = from] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(word) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === "" || first < 1 || last > choices.length) return [];
  return choices.slice(first - 1, last);
}
