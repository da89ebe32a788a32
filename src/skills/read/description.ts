/** A skill's description; where there is none, the first words of its body. */
import type { Fields } from "./fields.ts";
import type { Notes } from "./notes.ts";

const LONGEST = 1024;

/** @returns undefined if neither the frontmatter nor the body says anything. */
export function readDescription(fields: Fields, body: string, bodyLine: number, notes: Notes): string | undefined {
  const written = fields.text("description");
  if (written !== undefined) return written;
  const found = firstWords(body);
  if (found === undefined) return undefined;
  const line = bodyLine + found.index;
  notes.add("DESCRIPTION_FROM_BODY", `There is no description; the words of line ${line} are taken.`, line);
  return found.text;
}

/** The first paragraph of prose, else the first heading, else the first line with anything in it. */
function firstWords(body: string): { text: string; index: number } | undefined {
  const lines = body.split("\n");
  let heading: { text: string; index: number } | undefined;
  let other: { text: string; index: number } | undefined;
  let fence = "";
  let comment = false;
  const start = afterProgram(lines);
  for (const [index, line] of lines.entries()) {
    if (index < start) continue;
    const text = line.trim();
    const mark = /^(?:`{3,}|~{3,})/.exec(text)?.[0];
    if (comment) {
      comment = !text.includes("-->");
    } else if (mark !== undefined && (fence === "" || text.startsWith(fence))) {
      fence = fence === "" ? mark : "";
    } else if (fence === "" && text.startsWith("<!--")) {
      comment = !text.includes("-->");
    } else if (/[\p{L}\p{N}]/u.test(text)) {
      if (fence === "" && text.startsWith("#")) heading ??= { text: clean(text.replace(/^#+/, "")), index };
      else if (fence === "" && isProse(text)) return { text: clean(paragraph(lines, index)), index };
      else other ??= { text: clean(text), index };
    }
  }
  return heading ?? other;
}

/** Frontmatter in a programming language stays in the body, but its words describe nothing. */
function afterProgram(lines: readonly string[]): number {
  const first = lines.findIndex((line) => line.trim() !== "");
  if (!/^\s*-{3,}[ \t]*[A-Za-z]/.test(lines[first] ?? "")) return 0;
  return lines.findIndex((line, index) => index > first && /^---\s*$/.test(line)) + 1;
}

function isProse(text: string): boolean {
  return !/^(?:[-*+] |\d+[.)] |\||<|!\[|\[!\[|[-=_*]{3,}$)/.test(text);
}

function paragraph(lines: readonly string[], start: number): string {
  const rest = lines.slice(start);
  const end = rest.findIndex((line) => line.trim() === "" || /^\s*(?:#|```|~~~)/.test(line));
  return rest.slice(0, end === -1 ? undefined : end).join(" ");
}

function clean(text: string): string {
  const plain = text
    .replaceAll(/(^|\s)>\s?/g, "$1")
    .replaceAll("**", "")
    .replaceAll(/\s+/g, " ")
    .trim();
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST - 1).toWellFormed()}…`;
}
