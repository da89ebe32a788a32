/** Which variables the texts of a config need, and other ways to write them. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { parseReferences, type Part, type Reference } from "../../secrets/references.ts";
import type { EnvText, Variable } from "./deployment.ts";

/** Every process has them, also in a container. */
const STANDARD = new Set(["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "PWD", "HOSTNAME"]);

export function variableOf(reference: Reference): Variable | undefined {
  if (reference.kind === "secret") {
    return reference.provider === "env" ? { name: reference.path, needed: true } : undefined;
  }
  if (STANDARD.has(reference.name)) return undefined;
  return { name: reference.name, needed: reference.fallback === undefined };
}

/** Each once, in the order of their names. One that is needed anywhere is needed. */
export function variablesIn(value: unknown): Variable[] {
  const found = new Map<string, Variable>();
  for (const text of textsOf(value)) {
    for (const part of partsOf(text)) {
      const variable = typeof part === "string" ? undefined : variableOf(part);
      if (variable !== undefined && found.get(variable.name)?.needed !== true) found.set(variable.name, variable);
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A copy with other texts for the references that `write` knows. */
export function rewriteReferences(value: JsonObject, write: (variable: Variable) => string | undefined): JsonObject {
  const rewrite = (item: unknown): unknown => {
    if (typeof item === "string") return rewritten(item, write);
    if (Array.isArray(item)) return item.map(rewrite);
    if (!isJsonObject(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, each]) => [key, rewrite(each)]));
  };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rewrite(each)]));
}

function rewritten(text: string, write: (variable: Variable) => string | undefined): string {
  const parts = partsOf(text);
  if (parts.every((part) => typeof part === "string")) return text;
  return parts
    .map((part) => {
      // One pass took the escapes away.
      if (typeof part === "string") return part.replaceAll("${", "$${");
      const variable = variableOf(part);
      return (variable === undefined ? undefined : write(variable)) ?? part.text;
    })
    .join("");
}

/** For a program that reads its environment itself. `lost` is asked for what no variable can stand for. */
export function envText(text: string, lost: (reference: Reference) => Variable): EnvText {
  return partsOf(text).map((part) => {
    if (typeof part === "string") return part;
    if (part.kind === "variable" && part.fallback !== undefined) return part.fallback;
    return variableOf(part) ?? lost(part);
  });
}

/** References to other places than the environment, by provider. */
export function providersIn(value: unknown): Set<string> {
  const providers = textsOf(value).flatMap((text) =>
    partsOf(text).flatMap((part) => (typeof part !== "string" && part.kind === "secret" ? [part.provider] : [])),
  );
  return new Set(providers.filter((provider) => provider !== "env"));
}

export function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return isJsonObject(value) ? Object.values(value).flatMap(textsOf) : [];
}

/** A text that only looks like a reference stands for itself. */
export function partsOf(text: string): Part[] {
  try {
    return parseReferences(text);
  } catch {
    return [text];
  }
}
