/** A map of a SKILL.md by its keys in camelCase, however they are written. Reports keys that nothing reads. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { abbreviate, typeName } from "../read/read-warnings.ts";

export type FieldPath = readonly (string | number)[];
export type Warn = (code: string, message: string, path: FieldPath) => void;

export interface Field {
  readonly value: unknown;
  readonly path: FieldPath;
}

export class ServerFields {
  readonly path: FieldPath;
  readonly #fields = new Map<string, Field>();
  /** The object around this one, whose keys count where this one has none. */
  readonly #outer: ServerFields | undefined;

  constructor(object: JsonObject, path: FieldPath, outer?: ServerFields) {
    this.path = path;
    this.#outer = outer;
    for (const [key, value] of Object.entries(object)) {
      const name = camelCase(key);
      // A key without a value says nothing.
      if (value === null || value === undefined || this.#fields.has(name)) continue;
      this.#fields.set(name, { value, path: [...path, key] });
    }
  }

  /** The first of these names that is there; all of them count as known from now on. */
  take(...names: readonly string[]): Field | undefined {
    let found: Field | undefined;
    for (const name of names) {
      found ??= this.#fields.get(name);
      this.#fields.delete(name);
    }
    const outer = this.#outer?.take(...names);
    return found ?? outer;
  }

  /** The object under one of these names, or this one if there is none. */
  inside(warn: Warn, ...names: readonly string[]): ServerFields {
    const field = this.take(...names);
    if (field === undefined) return this;
    if (isJsonObject(field.value)) return new ServerFields(field.value, field.path, this);
    warnOfType(field, "a map", warn);
    return this;
  }

  has(...names: readonly string[]): boolean {
    return names.some((name) => this.#fields.has(name));
  }

  /** Text, or a number or boolean as text; anything else is reported and ignored. */
  takeText(warn: Warn, ...names: readonly string[]): string | undefined {
    const field = this.take(...names);
    return field === undefined ? undefined : textOf(field, warn);
  }

  warnOfRest(warn: Warn): void {
    for (const { path } of this.#fields.values()) {
      const key = JSON.stringify(abbreviate(String(path.at(-1))));
      warn("UNKNOWN_SERVER_FIELD", `The key ${key} has no meaning here.`, path);
    }
    this.#fields.clear();
    this.#outer?.warnOfRest(warn);
  }
}

export function textOf(field: Field, warn: Warn): string | undefined {
  const text = scalarText(field.value);
  if (text === undefined) warnOfType(field, "text", warn);
  return text === "" ? undefined : text;
}

/** Text with the space around it gone; a number or a truth value as text; undefined for anything else. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value.trim();
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

export function warnOfType(field: Field, allowed: string, warn: Warn): void {
  warn("INVALID_TYPE", `Found ${typeName(field.value)} where ${allowed} is expected; it is ignored.`, field.path);
}

/** `config-template`, `config_template` and `configTemplate` are one. */
function camelCase(key: string): string {
  return key.trim().replace(/(?<![-_ ])[-_ ]+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
