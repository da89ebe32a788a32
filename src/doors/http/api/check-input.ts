/** Checks what a caller sent, and says which field is wrong in words. */
import type { z } from "zod";
import { type CheckedInput, OPERATIONS, type OperationName } from "../../../contract/operations.ts";
import { ToolcribError } from "../../../model/errors.ts";

const MOST_SHOWN = 5;

interface Issue {
  readonly path: string;
  readonly message: string;
}

export function checkInput<Name extends OperationName>(name: Name, input: unknown): CheckedInput<Name> {
  // The schema of that name was what checked it.
  return checkFields(OPERATIONS[name].input, input) as CheckedInput<Name>;
}

export function checkFields<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const checked = schema.safeParse(input);
  if (checked.success) return checked.data;
  throw invalidInput(checked.error.issues.map(issueOf));
}

export function invalidInput(issues: readonly Issue[]): ToolcribError {
  const shown = issues.slice(0, MOST_SHOWN).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = issues.length > MOST_SHOWN ? `; and ${issues.length - MOST_SHOWN} more` : "";
  return new ToolcribError("invalid_arguments", `${shown.join("; ")}${more}.`, { details: { issues } });
}

function issueOf(issue: z.core.$ZodIssue): Issue {
  return { path: issue.path.join("."), message: messageOf(issue) };
}

/** Zod's own words begin with "Invalid input: "; a field that is missing is one of another type to it. */
function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `${issue.keys.map((key) => JSON.stringify(key)).join(", ")} is not known here`;
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "is missing" : `must be ${withArticle(issue.expected)}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    default:
      return issue.message.replace(/^Invalid input: /, "");
  }
}

function withArticle(type: string): string {
  if (type === "record") return "an object";
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}
