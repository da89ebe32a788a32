/**
 * A sentence with "never", "only" or "cannot" in the documents on security is a promise. Each is followed by a comment that
 * names the requirements which prove it: `Secrets are never logged. <!-- proof: guard-10b -->`. That every requirement is
 * cited by a test is checked in test/requirements.test.ts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { REQUIREMENTS } from "../requirements.ts";

const docs = join(import.meta.dirname, "..", "..", "docs");
const DOCUMENTS = ["security.md", "policy.md", "secrets.md", "isolation.md"];

/** Not "read-only", which names a state. */
const ABSOLUTE = /(?<!-)\b(?:never|only|cannot)\b/i;
const PROOF = /<!-- proof: ([^>]*?) -->/g;

interface Claim {
  readonly sentence: string;
  readonly ids: readonly string[];
}

/** The sentences of a Markdown text that promise something absolute, with the ids behind each. */
function claimsIn(markdown: string): Claim[] {
  return blocksOf(markdown).flatMap((block) => {
    // The proof stays with the sentence that it follows.
    const sentences = block.match(/.+?(?:[.!?](?=\s|$)|$)(?:\s*<!-- proof: [^>]*? -->)*/gs) ?? [];
    return sentences.flatMap((raw): Claim[] => {
      const sentence = raw.replaceAll(PROOF, "").trim();
      if (!ABSOLUTE.test(sentence)) return [];
      return [{ sentence, ids: [...raw.matchAll(PROOF)].flatMap(([, list = ""]) => list.split(/,\s*/)) }];
    });
  });
}

/** Paragraphs, list items and table cells, each on one line; code says nothing. */
function blocksOf(markdown: string): string[] {
  const prose = markdown
    .replaceAll(/^ *(`{3,})[\s\S]*?^ *\1 *$/gm, "")
    .replaceAll(/`[^`\n]+`/g, "`code`")
    .replaceAll(/\]\([^)]*\)/g, "]");
  return prose
    .split(/\n\s*\n|\n(?=\s*[-*#] )|\n(?=\|)/)
    .flatMap((block) => (block.startsWith("|") ? block.split("|") : [block]))
    .map((block) => block.replaceAll(/\s+/g, " ").trim())
    .filter((block) => block !== "");
}

describe("claims", () => {
  it("[trust-20a] a sentence is found whatever it stands in, with the proof behind it alone", () => {
    const text = [
      "It is fine. It never\nlies. <!-- proof: a-01, a-02 --> Only two! It is read-only.",
      "- one cannot",
      "- two <!-- proof: b-01 -->",
      "| x | only here. <!-- proof: c-01 --> | y |",
      "```sh\nnever\n```",
      "`never` and [x](only.md)",
    ].join("\n\n");
    expect(claimsIn(text)).toEqual([
      { sentence: "It never lies.", ids: ["a-01", "a-02"] },
      { sentence: "Only two!", ids: [] },
      { sentence: "- one cannot", ids: [] },
      { sentence: "only here.", ids: ["c-01"] },
    ]);
  });

  it.each(DOCUMENTS)("[trust-20a] every absolute sentence of docs/%s names requirements that prove it", (name) => {
    const claims = claimsIn(readFileSync(join(docs, name), "utf8"));
    const isUnproved = ({ ids }: Claim) => ids.length === 0 || ids.some((id) => !Object.hasOwn(REQUIREMENTS, id));
    expect(claims.filter(isUnproved)).toEqual([]);
  });
});
