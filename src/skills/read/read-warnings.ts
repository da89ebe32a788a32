/** Warnings that are collected while a SKILL.md is read. */
import type { SkillWarning } from "../../model/skill.ts";

/** Enough to see what is wrong with a file; a hostile one could otherwise cause a warning on every line. */
const MAX_WARNINGS = 100;

export class ReadWarnings {
  readonly #warnings: SkillWarning[] = [];

  add(code: string, message: string, line?: number): void {
    if (this.#warnings.length > MAX_WARNINGS) return;
    if (this.#warnings.length === MAX_WARNINGS) {
      this.#warnings.push({
        code: "MORE_WARNINGS",
        message: `There are more than ${MAX_WARNINGS} warnings; the rest is omitted.`,
      });
      return;
    }
    this.#warnings.push(line === undefined ? { code, message } : { code, message, line });
  }

  /** By line; warnings without a line come last. */
  sorted(): SkillWarning[] {
    return this.#warnings.toSorted((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || 0);
  }
}

/** The type of a value of a SKILL.md, for a message. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "text";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

/** Short and printable, for a message. */
export function abbreviate(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const clean = text
    .slice(0, 400)
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .trim();
  return clean.length > 60 ? `${clean.slice(0, 57).toWellFormed()}…` : clean;
}
