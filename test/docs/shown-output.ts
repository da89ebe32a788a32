/** Whether what a document shows is what was printed: `…` stands for anything, and JSON may be laid out for readers. */

export function isAsShown(shown: string, printed: string): boolean {
  const compact = compactJson(printed);
  const wanted = compact === undefined ? tidy(shown).replace(/ ?… ?/g, "…") : withoutLayout(shown);
  const pattern = wanted.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  return new RegExp(`^${pattern.join(String.raw`[\s\S]*?`)}$`).test(compact ?? tidy(printed));
}

/** Columns are as wide as what stands in them. */
function tidy(text: string): string {
  return text
    .replace(/[ \t\r]+$/gm, "")
    .replace(/[ \t]+/g, " ")
    .trim();
}

/** Undefined for what is not one JSON value. */
function compactJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** JSON that is not whole cannot be parsed: white space goes everywhere but in texts. */
function withoutLayout(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, literal: string | undefined) => literal ?? "");
}
