/** Words that people and tools use for the same thing. A synonym counts, but for less than the word itself. */
import { stem } from "./words.ts";

const GROUPS = [
  "create add new make insert",
  "get read fetch retrieve show view",
  "list enumerate show",
  "search find query lookup locate",
  "update edit modify change patch",
  "delete remove erase drop destroy",
  "send post publish",
  "write save store",
  "run execute invoke start launch",
  "copy duplicate clone",
  "move rename relocate",
  "directory folder dir",
  "file document",
  "repository repo",
  "image picture photo screenshot",
  "email mail",
  "message msg chat",
  "database db sql",
  "calendar schedule event meeting appointment",
  "user person people member account",
  "task todo ticket issue",
  "web internet website online",
  "url link address",
  "config configuration settings",
  "environment env",
  "error exception failure bug",
  "sum add plus",
  "weather forecast",
  "pay payment charge",
  "knowledge memory",
] as const;

const BY_TERM = new Map<string, Set<string>>();
for (const group of GROUPS) {
  const terms = group.split(" ").map(stem);
  for (const term of terms) {
    const others = BY_TERM.get(term) ?? new Set();
    for (const other of terms) if (other !== term) others.add(other);
    BY_TERM.set(term, others);
  }
}

const NONE: ReadonlySet<string> = new Set();

export function synonymsOf(term: string): ReadonlySet<string> {
  return BY_TERM.get(term) ?? NONE;
}
