/** Validates a value with a zod schema and says what is wrong in a person's words, at the line where it stands. */
import type { z } from "zod";
import { isJsonObject } from "../model/json.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";
import { inspect, schemaAt } from "./inspect.ts";
import type { SchemaNode } from "./json-schema.ts";
import { allowedBy, foundIn } from "./schema-words.ts";

interface Validation<Output> {
  /** Absent if there is a problem. */
  readonly output?: Output;
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** Where secrets stand: a wrong value there is described by its kind only. */
const SECRET_PLACES = new Set([
  "env",
  "headers",
  "auth",
  "args",
  "url",
  "command",
  "token",
  "key",
  "apiKey",
  "baseUrl",
]);

export function validate<Schema extends z.ZodType>(
  document: Document,
  path: ConfigPath,
  value: unknown,
  schema: Schema,
  node: SchemaNode,
): Validation<z.output<Schema>> {
  const { value: cleaned, warnings } = inspect(document, path, value, node);
  // A schema is used once or a few times: making code for it takes longer than it saves.
  const parsed = schema.safeParse(cleaned, { jitless: true });
  const described = (parsed.error?.issues ?? []).flatMap((issue) =>
    describeIssue({ document, path, value: cleaned, node }, issue),
  );
  // zod may fault one value twice, for its type and for its length.
  const problems: Diagnostic[] = [];
  const faulted = new Set<string>();
  for (const problem of described) {
    if (!faulted.has(problem.path)) problems.push(problem);
    faulted.add(problem.path);
  }
  if (problems.length > 0 || !parsed.success) return { problems: problems.toSorted(byPlace), warnings };
  return { output: parsed.data, problems, warnings };
}

function byPlace(a: Diagnostic, b: Diagnostic): number {
  return a.line - b.line || a.column - b.column;
}

interface Place {
  readonly document: Document;
  /** Of the value that was validated. */
  readonly path: ConfigPath;
  readonly value: unknown;
  readonly node: SchemaNode;
}

function describeIssue(place: Place, issue: z.core.$ZodIssue, before: ConfigPath = []): Diagnostic[] {
  const inner = [...before, ...issue.path.filter((step) => typeof step !== "symbol")];
  if (issue.code === "invalid_union") {
    // A branch that got past its own type is the one that was meant.
    const meant = issue.errors.find((branch) => branch.length > 0 && branch.every((one) => one.path.length > 0));
    if (meant !== undefined) return meant.flatMap((one) => describeIssue(place, one, inner));
  }
  const node = schemaAt(place.node, inner, place.value);
  const found = valueAt(place.value, inner);
  const report = (message: string, atKey = false): Diagnostic[] => [
    place.document.report([...place.path, ...inner], { severity: "error", code: "wrong_value", message, atKey }),
  ];
  if (issue.code === "invalid_key") {
    return report(`this name is not allowed; allowed is ${issue.issues[0]?.message ?? "another name"}`, true);
  }
  const allowed = issue.code === "invalid_format" || node === undefined ? issue.message : allowedBy(node);
  if (found === undefined) return report(`is missing; allowed is ${allowed}`);
  return report(`found ${foundIn(found, mayShow(inner) ? "value" : "kind")}; allowed is ${allowed}`);
}

function mayShow(path: ConfigPath): boolean {
  return path.at(-1) === "type" || !path.some((step) => typeof step === "string" && SECRET_PLACES.has(step));
}

function valueAt(value: unknown, path: ConfigPath): unknown {
  let here = value;
  for (const step of path) {
    if (typeof step === "number") here = Array.isArray(here) ? here[step] : undefined;
    else here = isJsonObject(here) && Object.hasOwn(here, step) ? here[step] : undefined;
  }
  return here;
}
