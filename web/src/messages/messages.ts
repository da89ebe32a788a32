/**
 * The language of the page. A message has all four languages side by side, so that none can be forgotten; the files beside this one are the catalog.
 * By hand, because a package for it weighs more than the messages of a view.
 */

export const LANGUAGES = { en: "English", de: "Deutsch", zh: "中文", ja: "日本語" } as const;
export type Language = keyof typeof LANGUAGES;

/** `{name}` stands for a value. With a `count`, `one | many` gives two forms. */
export type Message = Readonly<Record<Language, string>>;
export type Catalog = Readonly<Record<string, Message>>;
type Values = Readonly<Record<string, string | number>>;

export function isLanguage(text: string | null | undefined): text is Language {
  return text !== null && text !== undefined && Object.hasOwn(LANGUAGES, text);
}

/** The first of the browser's languages that the catalog has. */
export function languageFor(preferred: readonly string[]): Language {
  return preferred.map((tag) => tag.toLowerCase().split("-")[0]).find(isLanguage) ?? "en";
}

let language: Language = "en";
let plural = new Intl.PluralRules("en");
let number = new Intl.NumberFormat("en");

export function setLanguage(next: Language): void {
  language = next;
  plural = new Intl.PluralRules(next);
  number = new Intl.NumberFormat(next);
}

export function currentLanguage(): Language {
  return language;
}

function form(message: Message, values: Readonly<Record<string, unknown>>): string {
  // In the built page a message is its text in the page's language (vite.config.ts).
  const text = typeof message === "string" ? (message as string) : message[language];
  const count = values["count"];
  if (typeof count !== "number") return text;
  const [one = text, many = one] = text.split(" | ");
  return plural.select(count) === "one" ? one : many;
}

const PLACE = /\{(\w+)\}/;

/** A message in the page's language. */
export function t(message: Message, values: Values = {}): string {
  return form(message, values)
    .split(PLACE)
    .map((part, index) => (index % 2 === 0 ? part : valueText(values[part])))
    .join("");
}

function valueText(value: string | number | undefined): string {
  return typeof value === "number" ? number.format(value) : (value ?? "");
}

/** The parts of a message whose values are more than text, and what stands between backticks as code. */
type Part<Value> = { readonly text: string } | { readonly code: string } | { readonly value: Value };

export function partsOf<Value>(message: Message, values: Readonly<Record<string, Value>>): readonly Part<Value>[] {
  return form(message, values)
    .split(PLACE)
    .flatMap((part, index): Part<Value>[] => {
      if (index % 2 === 0)
        return part
          .split("`")
          .map((piece, at) => (at % 2 === 0 ? { text: piece } : { code: piece }))
          .filter((piece) => !("text" in piece) || piece.text !== "");
      const value = values[part];
      if (typeof value === "number") return [{ text: valueText(value) }];
      return value === undefined ? [] : [{ value }];
    });
}
