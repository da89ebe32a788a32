/** Typed access to a map that people wrote by hand: a value of another type is accepted if its meaning is clear. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { SourceLocations } from "./frontmatter.ts";
import { abbreviate, type ReadWarnings, typeName } from "./read-warnings.ts";
import type { ValuePath } from "./yaml-text.ts";

export class FrontmatterFields {
  readonly #value: JsonObject;
  readonly #path: ValuePath;
  readonly #places: SourceLocations;
  readonly #warnings: ReadWarnings;
  /** From the kebab-case name to the name as it was written. */
  readonly #keys = new Map<string, string>();

  constructor(value: JsonObject, path: ValuePath, places: SourceLocations, warnings: ReadWarnings) {
    this.#value = value;
    this.#path = path;
    this.#places = places;
    this.#warnings = warnings;
    for (const key of Object.keys(value)) {
      const kebab = kebabCase(key);
      // The exact name wins over one in another case.
      if (kebab === key || !this.#keys.has(kebab)) this.#keys.set(kebab, key);
    }
  }

  has(name: string): boolean {
    return this.#keys.has(name);
  }

  get(name: string): unknown {
    const key = this.#keys.get(name);
    return key === undefined ? undefined : this.#value[key];
  }

  pathOf(name: string): ValuePath {
    return [...this.#path, this.#keys.get(name) ?? name];
  }

  /** The name as it was written. */
  writtenAs(name: string): string | undefined {
    return this.#keys.get(name);
  }

  lineOf(name: string): number {
    return this.#places.lineOf(this.pathOf(name));
  }

  /** @param code Of the warning. */
  warn(name: string, code: string, message: string): void {
    this.#warnings.add(code, message, this.lineOf(name));
  }

  /** Undefined if there is no text or only white space. */
  text(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string") return value.trim() === "" ? undefined : value.trim();
    const text = this.#asText(name, value);
    if (text === "") {
      this.warn(name, "WRONG_TYPE", `"${name}" must be text, not ${typeName(value)}; it is ignored.`);
      return undefined;
    }
    this.warn(
      name,
      "WRONG_TYPE",
      `"${name}" must be text, not ${typeName(value)}; it is read as "${abbreviate(text)}".`,
    );
    return text;
  }

  /** Text that may well look like a number: versions such as 1.10 are numbers to YAML. */
  label(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === "number" || typeof value === "boolean" ? this.#asText(name, value) : this.text(name);
  }

  #asText(name: string, value: unknown): string {
    if (Array.isArray(value)) return value.filter(isScalar).join(", ");
    // `Use when: …` on its own line is a map to YAML.
    if (isJsonObject(value)) {
      const pairs = Object.entries(value).filter(([, item]) => isScalar(item));
      return pairs.map(([key, item]) => `${key}: ${String(item)}`).join("; ");
    }
    return this.#places.sourceOf(this.pathOf(name)) ?? String(value);
  }

  flag(name: string, otherwise: boolean): boolean {
    const value = this.get(name);
    if (typeof value === "boolean") return value;
    if (value === undefined || value === null) return otherwise;
    const word = isScalar(value) ? String(value).trim().toLowerCase() : "";
    const meant =
      ["true", "yes", "on", "1"].includes(word) || (["false", "no", "off", "0"].includes(word) ? false : undefined);
    const read = meant ?? otherwise;
    this.warn(
      name,
      "WRONG_TYPE",
      `"${name}" must be true or false, not ${typeName(value)} "${abbreviate(value)}"; it is read as ${read}.`,
    );
    return read;
  }

  /** Accepts text with commas or spaces and the keys of a map; maps in a list count by their name. */
  list(name: string): string[] {
    const value = this.get(name);
    if (value === undefined || value === null) return [];
    if (typeof value === "string") return value.split(/[\s,]+/).filter((one) => one !== "");
    if (isJsonObject(value)) return Object.keys(value);
    if (isScalar(value)) {
      this.warn(
        name,
        "WRONG_TYPE",
        `"${name}" must be a list, not ${typeName(value)}; it is read as "${abbreviate(value)}".`,
      );
      return [String(value)];
    }
    if (!Array.isArray(value)) return [];
    const texts = value.map(nameOfItem);
    const bad = texts.findIndex((text) => text === undefined);
    if (bad !== -1) this.warn(name, "WRONG_TYPE", `"${name}" must be a list of strings; other values are ignored.`);
    return texts.filter((text) => text !== undefined);
  }

  /** Undefined if there is none. */
  object(name: string): FrontmatterFields | undefined {
    const value = this.get(name);
    return isJsonObject(value)
      ? new FrontmatterFields(value, this.pathOf(name), this.#places, this.#warnings)
      : undefined;
  }
}

/** `userInvocable`, `user_invocable` and `User-Invocable` are one. */
function kebabCase(key: string): string {
  if (/^[a-z0-9-]+$/.test(key)) return key;
  return key
    .trim()
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replaceAll(/[_\s]+/g, "-")
    .toLowerCase();
}

export function camelCase(kebab: string): string {
  return kebab.replaceAll(/(?<!-)-+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function nameOfItem(item: unknown): string | undefined {
  if (isScalar(item)) return String(item).trim() === "" ? undefined : String(item).trim();
  if (!isJsonObject(item)) return undefined;
  const name = item["name"] ?? item["key"] ?? item["id"];
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}
