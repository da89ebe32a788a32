/** Values of a form: where they begin, and what is wrong with them. The hub checks again and has the last word. */
import { type FormField, fieldOf } from "./form-field.ts";
import { isObject, type Schema } from "./schema.ts";

/** What a part begins with: its default, the only possible value, else nothing. Parts that must be there get their own parts. */
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
      return required ? [{ path: below(name), message: "This is required." }] : [];
    });
  if (field.kind === "list" && Array.isArray(value))
    return value.flatMap((each, index) =>
      each === undefined
        ? [{ path: below(index), message: "This is required." }]
        : problemsOf(field.items, each, root, below(index), depth + 1),
    );
  return [];
}

function ownProblem({ kind, schema, ...field }: FormField, value: unknown): string | undefined {
  switch (kind) {
    case "text":
      if (typeof value !== "string") return "Text is required.";
      return textProblem(schema, value);
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return "A number is required.";
      // `field` keeps `integer` of this kind.
      if ("integer" in field && field.integer && !Number.isInteger(value)) return "A whole number is required.";
      return numberProblem(schema, value);
    case "boolean":
      return typeof value === "boolean" ? undefined : "Yes or no is required.";
    case "list":
      if (!Array.isArray(value)) return "A list is required.";
      if (value.length < Number(schema["minItems"] ?? 0))
        return `At least ${String(schema["minItems"])} entries are required.`;
      if (value.length > Number(schema["maxItems"] ?? Infinity))
        return `At most ${String(schema["maxItems"])} entries are allowed.`;
      return undefined;
    case "object":
      return isObject(value) ? undefined : "An object is required.";
    case "one-of":
    case "choice":
    case "json":
      return undefined;
  }
}

function textProblem(schema: Schema, value: string): string | undefined {
  if (value.length < Number(schema["minLength"] ?? 0))
    return `At least ${String(schema["minLength"])} characters are required.`;
  if (value.length > Number(schema["maxLength"] ?? Infinity))
    return `At most ${String(schema["maxLength"])} characters are allowed.`;
  return undefined;
}

function numberProblem(schema: Schema, value: number): string | undefined {
  if (value < Number(schema["minimum"] ?? -Infinity)) return `It must be at least ${String(schema["minimum"])}.`;
  if (value > Number(schema["maximum"] ?? Infinity)) return `It must be at most ${String(schema["maximum"])}.`;
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
