/** `env` and `headers`: texts by name, where a missing text is a parameter. */
import { isJsonObject } from "../../model/json.ts";
import type { ServerParameter } from "../../model/skill.ts";
import { isPlainText, looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { type Field, type FieldPath, scalarText, shown, type Warn, warnOfType } from "./fields.ts";
import { readParameter } from "./parameters.ts";
import { placeholdersIn } from "./placeholders.ts";

export interface NamedValues {
  readonly values?: Readonly<Record<string, string>>;
  /** Declared by an object in the place of a text: `API_KEY: {description: …, sensitive: true}`. */
  readonly parameters: readonly ServerParameter[];
}

type Entry = readonly [key: string, value: unknown, path: FieldPath];

/** A map, or a list of `NAME=value`, of `{name, value}` or of names alone. */
export function readNamedValues(field: Field | undefined, warn: Warn): NamedValues {
  const parameters: ServerParameter[] = [];
  const values = entriesOf(field, warn).flatMap(([key, value, path]) => {
    const name = parameterName(key);
    if (value === null || value === undefined || value === "") return [[key, `\${${name}}`] as const];
    if (isJsonObject(value)) {
      const declared = readParameter(name, value, path, warn);
      if (declared !== undefined) parameters.push(declared);
      return [[key, `\${${name}}`] as const];
    }
    const text = typeof value === "string" ? value : scalarText(value);
    if (text !== undefined) return [[key, withoutCredential(key, text, path, warn)] as const];
    warnOfType({ value, path }, "a text", warn);
    return [];
  });
  return { parameters, ...(values.length === 0 ? {} : { values: Object.fromEntries(values) }) };
}

function entriesOf(field: Field | undefined, warn: Warn): Entry[] {
  if (field === undefined) return [];
  const { value, path } = field;
  if (isJsonObject(value)) return Object.entries(value).map(([key, one]): Entry => [key, one, [...path, key]]);
  if (!Array.isArray(value)) {
    warnOfType(field, "a map of texts", warn);
    return [];
  }
  return value.flatMap((item: unknown, index): Entry[] => {
    const at = [...path, index];
    const [, key, text] = (typeof item === "string" && /^\s*([\w-]+)(?:\s*[=:]\s*(.*))?$/s.exec(item)) || [];
    if (key !== undefined) return [[key, text, at]];
    if (isJsonObject(item) && typeof item["name"] === "string") return [[item["name"], item["value"] ?? item, at]];
    warnOfType({ value: item, path: at }, "NAME=value", warn);
    return [];
  });
}

/** What is written out in a published file is a sample of what to put there, or should never have been published. */
function withoutCredential(key: string, text: string, path: FieldPath, warn: Warn): string {
  const [, scheme = "", token = text] = /^(Bearer |Basic |Token )(.*)$/is.exec(text) ?? [];
  if (!looksLikeCredential(key) || !isPlainText(token) || placeholdersIn(token).length > 0) return text;
  warn("PLAIN_CREDENTIAL", `A value for ${shown(key)} is written out; a parameter takes its place.`, path);
  return `${scheme}\${${parameterName(key)}}`;
}

/** `X-Api-Key` as a name that can stand in a placeholder. */
function parameterName(key: string): string {
  return key.replaceAll(/[^A-Za-z0-9_]/g, "_").replace(/^(?=\d|$)/, "_");
}
