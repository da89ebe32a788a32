import { ToolcribError } from "../model/errors.ts";

/** Deeper nesting is no honest schema, and providers stop long before. */
export const MAX_DEPTH = 100;

export function tooDeep(path: string): ToolcribError {
  const where = path.length > 80 ? `${path.slice(0, 80)}…` : path;
  return new ToolcribError(
    "invalid_arguments",
    `The schema is nested more than ${MAX_DEPTH} levels deep, at ${where}.`,
  );
}

/** A deep copy of plain JSON; what JSON cannot say is left out. */
export function copyJson(value: unknown, path: string, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw tooDeep(path);
  if (Array.isArray(value)) return value.map((item) => copyJson(item, path, depth + 1) ?? null);
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, inner]) => [key, copyJson(inner, path, depth + 1)] as const);
    return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
  }
  if (typeof value === "number" && !Number.isFinite(value)) return undefined;
  return typeof value === "function" || typeof value === "symbol" || typeof value === "bigint" ? undefined : value;
}

/** The same text for equal JSON, whatever the order of keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [canonical(value), value])).values()];
}
