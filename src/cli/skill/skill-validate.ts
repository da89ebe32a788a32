/** `toolcrib skill validate <path…>`: a linter for skills, lenient by default. */
import { readFile } from "node:fs/promises";
import { basename, isAbsolute, join, relative, resolve } from "node:path";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import {
  type Candidate,
  type InspectedSkills,
  inspectSkills,
  type UnreadableSkill,
} from "../../skills/find/inspect-skills.ts";
import { thisMachine } from "../../skills/needs.ts";
import { readFrontmatter } from "../../skills/read/frontmatter.ts";
import { type SkillProblem, validateSkill } from "../../skills/schema/validate-skill.ts";
import type { Invocation } from "../command.ts";
import { plain, type SkillEntry, skillEntry, unreadableEntry } from "./describe-skill.ts";
import { counted } from "../table.ts";

interface Checked {
  /** SKILL.md, or a path that could not be read. */
  readonly file: string;
  readonly problems: readonly SkillProblem[];
  /** Its warnings include all problems. */
  readonly entry: SkillEntry;
}

/** Exits with 1 if any skill is invalid, or a path has none, unless `--warn-only` is given. */
export async function run(invocation: Invocation): Promise<number> {
  const { args, out, flags, env, cwd } = invocation;
  if (args.length === 0) {
    const message = "Name a SKILL.md file, the folder of a skill, or a folder of skills.";
    const hint = "Example: toolcrib skill validate ./my-skill --strict";
    throw new ToolcribError("invalid_arguments", message, { hint });
  }
  const strict = flags.has("strict");
  const checked = new Map<string, Checked>();
  const add = (one: Checked): void => void (checked.has(one.file) || checked.set(one.file, one));
  for (const arg of args) {
    const path = resolve(cwd, expandTilde(arg, userHome(env)));
    const looked = await lookAt(path, invocation);
    for (const candidate of looked.candidates) add(await checkSkill(candidate, strict));
    for (const unreadable of looked.unreadable) add(await cannotBeUsed(unreadable));
    for (const { path: folder, code, message } of looked.problems) {
      if (code === "unreadable") add(failure(folder, "UNREADABLE", message));
      else out.warn(message);
    }
  }
  const all = [...checked.values()].toSorted((a, b) => (a.file < b.file ? -1 : 1));
  if (out.json) out.value(resultOf(all));
  else print(invocation, all);
  return all.some(isInvalid) && !flags.has("warnOnly") ? 1 : 0;
}

/** Never rejects: a missing path is reported and does not stop the others. */
async function lookAt(path: string, { env, out }: Invocation): Promise<InspectedSkills> {
  const failed = (code: string, message: string): InspectedSkills => ({
    candidates: [],
    unreadable: [{ path, name: basename(path), code, message }],
    problems: [],
    totalScanned: 1,
  });
  try {
    const looked = await inspectSkills(path, thisMachine(env), { onProgress: out.progressBar("Checking") });
    const isEmpty = looked.totalScanned === 0 && looked.problems.length === 0;
    return isEmpty ? failed("not_found", `There is no SKILL.md in ${path} or its subfolders.`) : looked;
  } catch (error) {
    const { code, message } = asToolcribError(error);
    return failed(code, message);
  }
}

async function checkSkill(candidate: Candidate, strict: boolean): Promise<Checked> {
  const { skill } = candidate;
  const file = join(skill.dir, skill.files[0]?.path ?? "SKILL.md");
  const bytes = await readFile(file).catch(() => undefined);
  if (bytes === undefined)
    return failure(skill.dir, "UNREADABLE", `${file} is gone, or cannot be read any more.`, file);
  const problems = validateSkill({ ...skill, bytes }, { strict, dirName: basename(skill.dir) });
  return { file, problems, entry: { ...skillEntry(skill, candidate), warnings: problems } };
}

/** The only unusable text is one without content; all other problems are about files. */
async function cannotBeUsed({ path, code, message }: UnreadableSkill): Promise<Checked> {
  const file = join(path, "SKILL.md");
  const bytes = code === "invalid_config" ? await readFile(file).catch(() => undefined) : undefined;
  if (bytes === undefined) return failure(path, code.toUpperCase(), message);
  const { value, body } = readFrontmatter(bytes);
  const isSilent = body.trim() === "" && (value["description"] ?? "") === "";
  return failure(path, isSilent ? "MISSING_FIELD" : code.toUpperCase(), message, file);
}

function failure(path: string, code: string, message: string, file = path): Checked {
  const problems: SkillProblem[] = [{ code, message, severity: "error" }];
  return { file, problems, entry: { ...unreadableEntry({ name: basename(path), path }), warnings: problems } };
}

function isInvalid({ problems }: Checked): boolean {
  return problems.some(({ severity }) => severity === "error");
}

function resultOf(all: readonly Checked[]): Record<string, unknown> {
  const failed = all.filter(isInvalid).map(({ entry, problems }) => {
    const errors = problems.filter(({ severity }) => severity === "error");
    return { ...entry, code: errors[0]?.code, message: errors[0]?.message, errors };
  });
  const valid = all.filter((one) => !isInvalid(one)).map(({ entry }) => entry);
  return { valid, failed, totalScanned: all.length };
}

function print({ out, cwd }: Invocation, all: readonly Checked[]): void {
  for (const { file, problems } of all) {
    for (const { code, message, line = 1, severity } of problems) {
      const paint = severity === "error" ? "red" : "yellow";
      out.line(`${shownPath(file, cwd)}:${line}: ${out.paint(paint, code)} ${plain(message, Infinity)}`);
    }
  }
  const failed = all.filter(isInvalid).length;
  const warnings = all.flatMap(({ problems }) => problems.filter(({ severity }) => severity === "warning")).length;
  const findings = all.flatMap(({ entry }) => entry.findings.filter(({ severity }) => severity !== "note")).length;
  out.note(
    `Checked ${counted(all.length, "skill")}: ${all.length - failed} valid, ${failed} invalid, ${counted(warnings, "warning")}.`,
  );
  if (findings > 0)
    out.note(`The scan has ${counted(findings, "finding")}. Run toolcrib skill import --dry-run to see them.`);
}

/** Relative to the working directory if it is inside: editors link such paths. */
function shownPath(file: string, cwd: string): string {
  const short = relative(cwd, file);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? file : short;
}
