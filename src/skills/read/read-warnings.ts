/** Repairs are collected while a file is read; a file in good order makes none. */
import type { SkillWarning } from "../../model/skill.ts";

/** Enough to see what is wrong with a file; a hostile one could otherwise give a warning for each of its lines. */
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

  /** By line; what belongs to no line comes last. */
  sorted(): SkillWarning[] {
    return this.#warnings.toSorted((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || 0);
  }
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
