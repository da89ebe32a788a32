/**
 * The fenced blocks of a document, and what is to be done with each. That stands in a comment on the line above the fence, which
 * readers of the rendered page do not see:
 *
 * - `<!-- run -->`: it is run; `<!-- run for 2 s -->`: it would go on, and is ended
 * - `<!-- prints -->`: what the block before prints, with `…` for anything
 * - `<!-- file: name -->`: a file of the folder in which the examples run
 * - `<!-- starts the hub -->`: it is run beside all that follows
 * - `<!-- not run: reason -->`
 */
export type Mark =
  | { readonly kind: "run"; readonly seconds?: number }
  | { readonly kind: "prints" }
  | { readonly kind: "file"; readonly name: string }
  | { readonly kind: "hub" }
  | { readonly kind: "not run"; readonly reason: string }
  | { readonly kind: "unknown" };

export interface Example {
  /** Of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly mark: Mark;
  readonly text: string;
}

export function examplesIn(markdown: string): Example[] {
  const lines = markdown.split("\n");
  const examples: Example[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const language = /^```(\w*)$/.exec(lines[at] ?? "")?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf("```", at + 1);
    if (end === -1) throw new Error(`The block of line ${at + 1} has no end.`);
    examples.push({
      line: at + 1,
      language,
      mark: markOf(lines[at - 1] ?? ""),
      text: lines.slice(at + 1, end).join("\n"),
    });
    at = end;
  }
  return examples;
}

function markOf(line: string): Mark {
  const words = /^<!-- (.+) -->$/.exec(line)?.[1] ?? "";
  if (words === "run") return { kind: "run" };
  if (words === "prints") return { kind: "prints" };
  if (words === "starts the hub") return { kind: "hub" };
  const seconds = /^run for (\d+) s$/.exec(words)?.[1];
  if (seconds !== undefined) return { kind: "run", seconds: Number(seconds) };
  const name = /^file: ([\w./-]+)$/.exec(words)?.[1];
  if (name !== undefined) return { kind: "file", name };
  const reason = /^not run: (.+)$/.exec(words)?.[1];
  return reason === undefined ? { kind: "unknown" } : { kind: "not run", reason };
}
