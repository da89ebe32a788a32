import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { REQUIREMENTS } from "./requirements.ts";

const here = import.meta.dirname;

/** Ids in the titles of `it`, `test` and `describe` calls, `.each` tables included; a comment is no proof. */
function citedIds(): Set<string> {
  const cited = new Set<string>();
  for (const file of readdirSync(here, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".test.ts")) continue;
    const text = readFileSync(join(here, file), "utf8");
    // A title is the first of a call's arguments and others follow; with `.each` it opens the second pair of parentheses.
    const titles = text.matchAll(/\(\s*(["'`])((?:(?!\1).)*)\1\s*,/gs);
    for (const [, , title = ""] of titles)
      for (const [, id = ""] of title.matchAll(/\[([a-z]+-\d+[a-z]?)\]/g)) cited.add(id);
  }
  return cited;
}

it("[spine-22] cites every requirement in a test title, and none that does not exist", () => {
  const cited = citedIds();
  const known = new Set<string>(Object.keys(REQUIREMENTS));
  expect([...known].filter((id) => !cited.has(id))).toEqual([]);
  expect([...cited].filter((id) => !known.has(id))).toEqual([]);
});
