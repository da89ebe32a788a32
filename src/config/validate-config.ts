/** Validates a value with a zod schema and describes what is wrong in plain words, with its line. */
import type { z } from "zod";
import { findNearest } from "../base/near-matches.ts";
import { isJsonObject, valueAt } from "../model/json.ts";
import type { Diagnostic } from "../model/loaded-config.ts";
import { maskTokens } from "../secrets/mask.ts";
import type { ConfigDocument, ConfigPath } from "./config-document.ts";
import type { SchemaNode } from "./config-schema.ts";

interface Validation<Output> {
  /** Absent if there is a problem. */
  readonly output?: Output;
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** Keys that may contain secrets: a wrong value there is described by its kind only. */
const SECRET_PLACES = new Set(`env headers auth args url command token key apiKey baseUrl`.split(/\s+/));

export function validateConfig<Schema extends z.ZodType>(
  document: ConfigDocument,
  path: ConfigPath,
  value: unknown,
  schema: Schema,
  node: SchemaNode,
): Validation<z.output<Schema>> {
  const { value: cleaned, warnings } = dropUnknownKeys(document, path, value, node);
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
  readonly document: ConfigDocument;
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
    return report(`this name is not allowed; expected ${issue.issues[0]?.message ?? "another name"}`, true);
  }
  if (issue.code === "unrecognized_keys") {
    const keys = node === undefined ? "" : `; expected ${Object.keys(node.properties ?? {}).join(", ")}`;
    return report(`unknown key ${issue.keys.join(", ")}${keys}`);
  }
  const allowed =
    issue.code === "invalid_format" || issue.code === "custom" || node === undefined
      ? issue.message
      : describeAllowed(node);
  if (found === undefined) return report(`is missing; expected ${allowed}`);
  return report(`found ${describeFound(found, canShow(inner) ? "value" : "kind")}; expected ${allowed}`);
}

function canShow(path: ConfigPath): boolean {
  // In place of a server's entry may be its command line.
  if (path.at(-2) === "mcpServers") return false;
  const isKindOfLogin = path.at(-2) === "auth" && path.at(-1) === "type";
  return isKindOfLogin || !path.some((step) => typeof step === "string" && SECRET_PLACES.has(step));
}

/** Keys of other programs' files that people carry over, and what they are called here. */
const FOREIGN_KEYS: Readonly<Record<string, string>> = {
  type: "transport",
  disabled: "enabled",
  serverUrl: "url",
  httpUrl: "url",
  workingDir: "cwd",
  workingDirectory: "cwd",
  allowedAgentRoles: "roles",
  connectionTimeoutMs: "timeout",
  requestTimeoutMs: "toolTimeout",
  restartOnCrash: "restart",
  maxRestarts: "restart",
  servers: "mcpServers",
};

interface KnownKeys {
  /** The value without its unknown keys. */
  readonly value: unknown;
  readonly warnings: Diagnostic[];
}

/**
 * Walks a value beside its schema before zod sees it: unknown keys become warnings and are dropped, where zod could only
 * say "unrecognized".
 */
function dropUnknownKeys(document: ConfigDocument, path: ConfigPath, value: unknown, node: SchemaNode): KnownKeys {
  const warnings: Diagnostic[] = [];

  function walk(here: ConfigPath, found: unknown, schema: SchemaNode): unknown {
    const options = schema.anyOf ?? schema.oneOf;
    if (options !== undefined) {
      const option = chooseOption(options, found);
      return option === undefined ? found : walk(here, found, option);
    }
    if (Array.isArray(found)) {
      const { items } = schema;
      return items === undefined ? found : found.map((item, index) => walk([...here, index], item, items));
    }
    if (schema.type !== "object" || typeof found !== "object" || found === null) return found;
    return walkObject(here, found, schema);
  }

  function walkObject(here: ConfigPath, found: object, schema: SchemaNode): unknown {
    const kept: Record<string, unknown> = {};
    for (const [key, child] of Object.entries(found)) {
      // Only a config given in code can have it; there it means that the key is absent.
      if (child === undefined) continue;
      const known = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
      const childSchema = known ? schema.properties?.[key] : schema.additionalProperties;
      if (typeof childSchema === "object") kept[key] = walk([...here, key], child, childSchema);
      else if (isRule(here)) kept[key] = child;
      else warnings.push(unknownKey(document, [...here, key], key, Object.keys(schema.properties ?? {})));
    }
    return kept;
  }

  return { value: walk(path, value, node), warnings };
}

/** A condition that is left out could let more through: what is unknown in a rule is an error. */
function isRule(path: ConfigPath): boolean {
  return path.slice(-4).some((step, index, steps) => step === "rules" && typeof steps[index + 1] === "number");
}

/** The schema at a path, taking in each union the option that fits the value there. */
function schemaAt(node: SchemaNode, path: ConfigPath, value: unknown): SchemaNode | undefined {
  const [step, ...rest] = path;
  const options = node.anyOf ?? node.oneOf;
  if (step === undefined) return node;
  if (options !== undefined) {
    const option = chooseOption(options, value);
    return option === undefined ? unionOf(options, path, value) : schemaAt(option, path, value);
  }
  if (typeof step === "number") {
    return node.items === undefined
      ? undefined
      : schemaAt(node.items, rest, Array.isArray(value) ? value[step] : undefined);
  }
  const child = node.properties?.[step] ?? node.additionalProperties;
  return typeof child === "object" ? schemaAt(child, rest, isJsonObject(value) ? value[step] : undefined) : undefined;
}

/** The schema at a path in any of the options, for a value that fits none of them, such as an unknown `auth.type`. */
function unionOf(options: readonly SchemaNode[], path: ConfigPath, value: unknown): SchemaNode | undefined {
  const found = options.flatMap((option) => {
    const child = schemaAt(option, path, value);
    return child === undefined ? [] : [child];
  });
  return found.length > 1 ? { anyOf: found } : found[0];
}

export function unknownKey(
  document: ConfigDocument,
  path: ConfigPath,
  key: string,
  known: readonly string[],
): Diagnostic {
  const here = FOREIGN_KEYS[key];
  const meant = here !== undefined && known.includes(here) ? here : findNearest(key, known);
  return document.report(path, {
    severity: "warning",
    code: "unknown_key",
    message: `unknown key ${JSON.stringify(key)} is ignored`,
    hint: meant === undefined ? `known keys here: ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`,
    atKey: true,
  });
}

function chooseOption(options: readonly SchemaNode[], value: unknown): SchemaNode | undefined {
  return options.find((option) => isMeantFor(option, value));
}

/** Shallow: whether a value is meant for this option, not whether it is right in every part. */
function isMeantFor(node: SchemaNode, value: unknown): boolean {
  const options = node.anyOf ?? node.oneOf;
  if (options !== undefined) return options.some((option) => isMeantFor(option, value));
  if (node.const !== undefined) return node.const === value;
  if (node.enum !== undefined) return node.enum.includes(value);
  switch (node.type) {
    case "object":
      return (
        isJsonObject(value) &&
        Object.entries(node.properties ?? {}).every(
          ([key, child]) => child.const === undefined || child.const === value[key],
        )
      );
    case "array":
      return Array.isArray(value);
    case "integer":
    case "number":
      return typeof value === "number" && value >= (node.minimum ?? -Infinity);
    case "null":
      return value === null;
    case undefined:
      return true;
    default:
      return typeof value === node.type;
  }
}

/** Such as `a whole number above 0`, `"stdio", "http" or "sse"`, `false or an object`. */
export function describeAllowed(node: SchemaNode): string {
  const options = node.anyOf ?? node.oneOf;
  if (options !== undefined) {
    const kinds = options.map((option) => option.properties?.["type"]?.const);
    if (kinds.every((kind) => kind !== undefined)) {
      return `an object with type ${joinOr(kinds.map((kind) => JSON.stringify(kind)))}`;
    }
    return joinOr(options.map(describeAllowed));
  }
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum !== undefined) return joinOr(node.enum.map((value) => JSON.stringify(value)));
  switch (node.type) {
    case "string":
      return (node.minLength ?? 0) > 0 ? "a non-empty string" : "a string";
    case "integer":
      return `a whole number${describeBound(node)}`;
    case "number":
      return `a number${describeBound(node)}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    case "array":
      return `a list${node.items?.type === "string" ? " of strings" : ""}`;
    case "object": {
      const values = node.additionalProperties;
      return typeof values === "object" && values.type === "string" ? "an object of strings" : "an object";
    }
    default:
      return "any value";
  }
}

/** The kind of a value, or the value itself where it cannot be a secret. */
export function describeFound(value: unknown, show: "value" | "kind"): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isJsonObject(value)) return "an object";
  if (value === "") return "an empty text";
  const shown = JSON.stringify(value);
  if (show === "value" && shown !== undefined && shown.length <= 42 && maskTokens(shown) === shown) return shown;
  return typeof value === "string" ? "a string" : `a ${typeof value}`;
}

function describeBound(node: SchemaNode): string {
  if (node.exclusiveMinimum !== undefined) return ` above ${node.exclusiveMinimum}`;
  return node.minimum === undefined ? "" : ` from ${node.minimum}`;
}

function joinOr(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "nothing";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
