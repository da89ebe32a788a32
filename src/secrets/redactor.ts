/** Masks known secret values in text that is shown or logged. */

const SHORTEST = 4;
const MASK = "[redacted]";

export class Redactor {
  readonly #forms = new Set<string>();
  #pattern: RegExp | undefined;

  /** Values under four characters are not masked: they would blot out ordinary text and protect nothing. */
  add(value: string): void {
    if (value.length < SHORTEST) return;
    const before = this.#forms.size;
    for (const form of formsOf(value)) if (form.length >= SHORTEST) this.#forms.add(form);
    if (this.#forms.size !== before) this.#pattern = undefined;
  }

  mask(text: string): string {
    if (this.#forms.size === 0 || text === "") return text;
    this.#pattern ??= alternation(this.#forms);
    return text.replace(this.#pattern, MASK);
  }
}

/** A value as it turns up in URLs, in JSON, in basic-auth headers and in logs of them. */
function formsOf(value: string): string[] {
  const base64 = Buffer.from(value, "utf8").toString("base64");
  return [
    value,
    percentEncoded(value),
    percentEncoded(value).replaceAll("%20", "+"),
    JSON.stringify(value).slice(1, -1),
    base64,
    base64.replace(/=+$/, ""),
    Buffer.from(value, "utf8").toString("base64url"),
  ];
}

/** encodeURIComponent throws on a lone surrogate; such a value is masked in its other forms. */
function percentEncoded(value: string): string {
  return value.isWellFormed() ? encodeURIComponent(value) : value;
}

/** Longest first, so that a secret that holds another one is masked whole. */
function alternation(forms: ReadonlySet<string>): RegExp {
  const longestFirst = [...forms].toSorted((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
}
