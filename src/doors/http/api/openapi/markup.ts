/** HTML as text: whatever is put in is escaped, unless it is HTML already. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Markup | string | number | undefined | readonly Part[];

/** markup`<p>${text}</p>` */
export function markup(pieces: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(pieces.map((piece, index) => piece + rendered(parts[index])).join(""));
}

/** Text in which `code` stands in backticks, with paragraphs between blank lines. */
export function prose(text: string): Markup[] {
  return text.split(/\n\s*\n/).map((paragraph) => markup`<p>${inline(paragraph)}</p>`);
}

export function inline(text: string): Markup[] {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 0 ? new Markup(escaped(part)) : markup`<code>${part}</code>`));
}

function rendered(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(rendered).join("");
  return escaped(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
