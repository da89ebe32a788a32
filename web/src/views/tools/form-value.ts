/** Values of a form: where they begin, and what is wrong with them. The hub checks again and has the last word. */
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { type FormField, fieldOf } from "./form-field.ts";
import { isObject, type Schema } from "./schema.ts";

/** The initial value of a part: its default, its only possible value, or nothing. Required parts get their own parts. */
export function startValue(schema: unknown, root: Schema, required = true, depth = 0): unknown {
  const field = fieldOf(schema, root, { depth });
  if (field.schema["default"] !== undefined) return field.schema["default"];
  if (!required) return undefined;
  switch (field.kind) {
    case "one-of":
      return field.values.length === 1 ? field.values[0] : undefined;
    case "boolean":
      return false;
    case "list":
      return [];
    case "choice":
      return startValue(field.options[0]?.schema ?? {}, root, true, depth + 1);
    case "object": {
      const entries = field.properties
        .map(({ name, required, schema }) => [name, startValue(schema, root, required, depth + 1)] as const)
        .filter(([, value]) => value !== undefined);
      return Object.fromEntries(entries);
    }
    case "text":
    case "number":
    case "json":
      return undefined;
  }
}

export interface Problem {
  /** As `filter.tags.0`; empty for the whole. */
  readonly path: string;
  readonly message: string;
}

export function problemsOf(schema: unknown, value: unknown, root: Schema, path = "", depth = 0): Problem[] {
  const field = fieldOf(schema, root, { depth });
  const wrong = ownProblem(field, value);
  if (wrong !== undefined) return [{ path, message: wrong }];
  const below = (key: string | number): string => (path === "" ? String(key) : `${path}.${key}`);
  if (field.kind === "object" && isObject(value))
    return field.properties.flatMap(({ name, required, schema: inner }) => {
      const each = value[name];
      if (each !== undefined) return problemsOf(inner, each, root, below(name), depth + 1);
      return required ? [{ path: below(name), message: t(toolWords.needsThis) }] : [];
    });
  if (field.kind === "list" && Array.isArray(value))
    return value.flatMap((each, index) =>
      each === undefined
        ? [{ path: below(index), message: t(toolWords.needsThis) }]
        : problemsOf(field.items, each, root, below(index), depth + 1),
    );
  return [];
}

function ownProblem({ kind, schema, ...field }: FormField, value: unknown): string | undefined {
  switch (kind) {
    case "text":
      if (typeof value !== "string") return t(toolWords.needsText);
      return textProblem(schema, value);
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return t(toolWords.needsNumber);
      // `field` keeps `integer` of this kind.
      if ("integer" in field && field.integer && !Number.isInteger(value)) return t(toolWords.needsInteger);
      return numberProblem(schema, value);
    case "boolean":
      return typeof value === "boolean" ? undefined : t(toolWords.needsBoolean);
    case "list":
      if (!Array.isArray(value)) return t(toolWords.needsList);
      if (value.length < Number(schema["minItems"] ?? 0))
        return t(toolWords.minEntries, { min: String(schema["minItems"]) });
      if (value.length > Number(schema["maxItems"] ?? Infinity))
        return t(toolWords.maxEntries, { max: String(schema["maxItems"]) });
      return undefined;
    case "object":
      return isObject(value) ? undefined : t(toolWords.needsObject);
    case "one-of":
    case "choice":
    case "json":
      return undefined;
  }
}

function textProblem(schema: Schema, value: string): string | undefined {
  if (value.length < Number(schema["minLength"] ?? 0))
    return t(toolWords.minCharacters, { min: String(schema["minLength"]) });
  if (value.length > Number(schema["maxLength"] ?? Infinity))
    return t(toolWords.maxCharacters, { max: String(schema["maxLength"]) });
  return undefined;
}

function numberProblem(schema: Schema, value: number): string | undefined {
  if (value < Number(schema["minimum"] ?? -Infinity)) return t(toolWords.atLeast, { min: String(schema["minimum"]) });
  if (value > Number(schema["maximum"] ?? Infinity)) return t(toolWords.atMost, { max: String(schema["maximum"]) });
  return undefined;
}

/** Without the key when the value is nothing. */
export function withKey(
  object: Readonly<Record<string, unknown>>,
  key: string,
  value: unknown,
): Record<string, unknown> {
  const { [key]: _, ...rest } = object;
  return value === undefined ? rest : { ...object, [key]: value };
}
