/** A skill's name, made safe: it becomes part of paths, addresses and tool names. */
import type { Fields } from "./fields.ts";
import { type Notes, shown } from "./notes.ts";

const LONGEST = 64;
/** Wider than the standard, which wants a-z, 0-9 and hyphens: what harms nobody is kept as it is. */
const HARMLESS = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}._-]{0,62}[\p{L}\p{M}\p{N}_-])?$/u;

export function readName(fields: Fields, dirName: string, notes: Notes): string {
  const written = fields.text("name");
  const name = written === undefined ? "" : safeName(written);
  if (name !== "") {
    if (name !== written) fields.warn("name", "NAME_CHANGED", `The name "${shown(written)}" is read as "${name}".`);
    return name;
  }
  const fallback = safeName(dirName) || "skill";
  const why = written === undefined ? "There is no name" : `"${shown(written)}" cannot be a name`;
  notes.add(
    "NAME_FROM_FOLDER",
    `${why}; the folder's is taken: "${fallback}".`,
    fields.has("name") ? fields.lineOf("name") : 1,
  );
  return fallback;
}

function safeName(text: string): string {
  // Nearly all are of the standard's form.
  if (/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(text)) return text;
  const plain = text.normalize("NFC").trim();
  if (HARMLESS.test(plain)) return plain;
  const letters = plain.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}._]+/gu, "-");
  return cutTo(letters, LONGEST).replaceAll(/^[^\p{L}\p{N}]+|[^\p{L}\p{M}\p{N}]+$/gu, "");
}

function cutTo(text: string, length: number): string {
  return text.length <= length
    ? text
    : text
        .slice(0, length)
        .toWellFormed()
        .replace(/\uFFFD$/, "");
}
