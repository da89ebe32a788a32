/** `TOOLCRIB_LIMITS_<KEY>`: limits set by the environment, over the file. */
import type { Limits } from "../model/config.ts";
import type { Diagnostic } from "./diagnostics.ts";
import { configNode } from "./json-schema.ts";
import { nearest } from "./nearest.ts";
import { allowedBy } from "./schema-words.ts";

const PREFIX = "TOOLCRIB_LIMITS_";

interface LimitsFromEnv {
  readonly limits: Partial<Limits>;
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** `TOOLCRIB_LIMITS_CALLS_PER_MINUTE` and `TOOLCRIB_LIMITS_CALLSPERMINUTE` both work; an empty value counts as unset. */
export function limitsFromEnv(env: NodeJS.ProcessEnv): LimitsFromEnv {
  const known = configNode().properties?.["limits"]?.properties ?? {};
  const keyOf = new Map(Object.keys(known).map((key) => [key.toLowerCase(), key]));
  const limits: Record<string, number> = {};
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || text === undefined || text.trim() === "") continue;
    const key = keyOf.get(name.slice(PREFIX.length).replaceAll("_", "").toLowerCase());
    const node = key === undefined ? undefined : known[key];
    if (key === undefined || node === undefined) {
      const names = Object.keys(known).map(variableFor);
      const meant = nearest(name, names) ?? names.join(", ");
      warnings.push(about(name, "warning", "unknown_key", "unknown limit is ignored", `did you mean ${meant}?`));
    } else if (!/^\d{1,15}$/.test(text.trim()) || Number(text) === 0) {
      const found = text.length > 40 ? "a text" : JSON.stringify(text);
      problems.push(about(name, "error", "wrong_value", `found ${found}; allowed is ${allowedBy(node)}`));
    } else limits[key] = Number(text);
  }
  return { limits, problems, warnings };
}

/** `callsPerMinute` as `TOOLCRIB_LIMITS_CALLS_PER_MINUTE`. */
export function variableFor(key: string): string {
  return PREFIX + key.replace(/[A-Z]/g, "_$&").toUpperCase();
}

function about(
  name: string,
  severity: Diagnostic["severity"],
  code: string,
  message: string,
  hint?: string,
): Diagnostic {
  const diagnostic = { severity, code, file: "environment", line: 0, column: 0, path: name, message };
  return hint === undefined ? diagnostic : { ...diagnostic, hint };
}
