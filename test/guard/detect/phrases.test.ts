import { describe, expect, it } from "vitest";
import { phraseBook } from "../../../src/guard/detect/phrases/book.ts";
import { tokenise } from "../../../src/guard/detect/tokenise.ts";

const matches = (phrase: string, text: string): string[] => {
  const book = phraseBook({ animal: "cat dog", file: ".env" }, [{ label: "x", phrase }]);
  const tokens = tokenise(text, book.vocabulary);
  const found: string[] = [];
  book.match(tokens, ({ first, last }) => found.push(text.slice(tokens.startOf(first), tokens.endOf(last))));
  return found;
};

describe("a phrase", () => {
  it("takes classes, alternatives, gaps and optional parts", () => {
    expect(matches("feed ~2 @animal", "feed the big cat")).toEqual(["feed the big cat"]);
    expect(matches("feed ~1 @animal", "feed the big cat")).toEqual([]);
    expect(matches("feed|pet the? dog now", "pet dog now, feed the dog now")).toEqual([
      "pet dog now",
      "feed the dog now",
    ]);
  });

  it("stays in its sentence unless the gap may cross", () => {
    expect(matches("feed ~3 cat", "feed it. the cat sleeps")).toEqual([]);
    expect(matches("feed ~~3 cat", "feed it. the cat sleeps")).toEqual(["feed it. the cat"]);
    expect(matches("feed ~3 cat", "feed it;\ncat")).toEqual([]);
  });

  it("tries a later word when an earlier one leads nowhere", () => {
    expect(matches("a ~4 cat now", "a cat and a cat now")).toEqual(["a cat and a cat now", "a cat now"]);
  });

  it("reads digits for letters, apostrophes, and dot files", () => {
    expect(matches("feed c4t|cat", "f33d c4t")).toEqual(["f33d c4t"]);
    expect(matches("don't feed", "don't feed")).toEqual(["don't feed"]);
    expect(matches("read ~1 @file", "read the .env")).toHaveLength(1);
    expect(matches("read ~1 @file", "read process.env")).toEqual([]);
  });

  it("of an unknown class is a fault of the table", () => {
    expect(() => phraseBook({}, [{ label: 1, phrase: "@nothing" }])).toThrow("@nothing");
  });
});
