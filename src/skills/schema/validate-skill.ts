/** What is wrong with a skill, by the schema and by what the reader had to repair. */
import type { Skill, SkillWarning } from "../../model/skill.ts";
import { readFrontmatter } from "../read/frontmatter.ts";
import { StandardSchema } from "./frontmatter-schema.ts";
import type { ProblemCode } from "./problem-codes.ts";
import { type SchemaProblem, schemaProblems } from "./schema-problems.ts";

export interface SkillProblem {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
  readonly severity: "error" | "warning";
}

export interface ValidateOptions {
  /** The Agent Skills standard to the letter: what it does not allow is an error, and so is what had to be repaired. */
  readonly strict: boolean;
  readonly dirName: string;
}

/**
 * Leniently only warnings: what can be read can be used, and what cannot is no Skill. A file that conforms to the standard
 * gives nothing either way.
 */
export function validateSkill(skill: Omit<Skill, "dir">, { strict, dirName }: ValidateOptions): SkillProblem[] {
  const front = readFrontmatter(skill.bytes);
  const found = [...schemaProblems(skill.frontmatter, { strict }), ...nameProblems(skill, dirName)]
    // What is required there is read with care of its own, and warned about in more detail.
    .filter(({ path }) => strict || path[0] !== "requires-mcp-servers")
    .map((problem): Located => ({
      ...problem,
      line: problem.code === "MISSING_FIELD" ? 1 : front.lineOf(problem.path),
    }));
  const repairs = [...skill.warnings];
  const problems = found.flatMap(({ code, message, path, line }): SkillProblem[] => {
    const repair = takeRepair(repairs, { path, line });
    if (strict) return [{ code, message, line, severity: "error" }];
    // The reader found it under another spelling.
    if (code === "MISSING_FIELD" && repair === undefined) return [];
    // What the reader made of it is more to the point than the rule.
    return [{ code, message: repair?.message ?? message, line, severity: "warning" }];
  });
  const standardLines = new Set(standardFieldsOf(skill).map((field) => front.lineOf([field])));
  const isAside = ({ code, line = 0 }: SkillWarning): boolean =>
    BEYOND_STANDARD.has(code) || (code === "WRONG_TYPE" && !standardLines.has(line));
  const rest = repairs.map((warning): SkillProblem => {
    return { ...warning, severity: strict && !isAside(warning) ? "error" : "warning" };
  });
  return [...problems, ...rest].toSorted((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || 0);
}

interface Located extends SchemaProblem {
  readonly line: number;
}

function standardFieldsOf({ frontmatter }: Pick<Skill, "frontmatter">): string[] {
  return Object.keys(StandardSchema.shape).filter((field) => Object.hasOwn(frontmatter, field));
}

/** Warnings about things of which the standard says nothing. */
const BEYOND_STANDARD: ReadonlySet<string> = new Set([
  ...["DISPATCH_UNKNOWN", "DISPATCH_WITHOUT_TOOL", "VENDOR_BLOCK_UNREADABLE"],
  ...["ASSUMED_SENSITIVE", "COMMAND_LINE", "CONTAINER_ONLY", "DUPLICATE_SERVER", "IMPLIED_PARAMETER", "INVALID_DOCKER"],
  ...["INVALID_PARAMETER", "INVALID_PLACEHOLDER", "INVALID_SERVER", "INVALID_SERVER_NAME", "PLAIN_CREDENTIAL"],
  ...["REFERENCE_IN_TEMPLATE", "SENSITIVE_DEFAULT", "SERVER_AMBIGUOUS", "UNKNOWN_SERVER", "UNKNOWN_SERVER_FIELD"],
  ...["UNKNOWN_VARIABLE", "UNUSED_PARAMETER"],
]);

/** The reader's warnings that say the same of a field as the schema does. */
const SAME: Readonly<Record<string, string>> = {
  NAME_FROM_FOLDER: "name",
  NAME_CHANGED: "name",
  DESCRIPTION_FROM_BODY: "description",
  METADATA_UNREADABLE: "metadata",
};

/** So do these, of whatever stands in their line. */
const SAME_LINE: ReadonlySet<string> = new Set(["WRONG_TYPE", "KEY_RENAMED", "DISPATCH_UNKNOWN"]);

function takeRepair(
  repairs: SkillWarning[],
  { path, line }: { path: readonly string[]; line: number },
): SkillWarning | undefined {
  const index = repairs.findIndex(({ code, line: at }) =>
    Object.hasOwn(SAME, code) ? SAME[code] === path[0] : SAME_LINE.has(code) && at === line,
  );
  return index === -1 ? undefined : repairs.splice(index, 1)[0];
}

/** Of the name that was written; one that comes from the folder cannot differ from it. */
function nameProblems(skill: Omit<Skill, "dir">, dirName: string): SchemaProblem[] {
  const name = skill.frontmatter["name"];
  if (typeof name !== "string" || name === "" || name === dirName) return [];
  const code: ProblemCode = "NAME_MISMATCH";
  return [{ code, message: `The name is not that of the folder, which is "${dirName}".`, path: ["name"] }];
}
