import { describe, expect, it } from "vitest";
import { pageOf } from "../../../../src/doors/http/api/operation-handler.ts";

const own = (entry: string): string => entry;

function walk(lists: readonly (readonly string[])[], limit: number): string[] {
  const seen: string[] = [];
  let cursor: string | undefined;
  for (const list of lists) {
    const { entries, next } = pageOf(list, { limit, cursor }, own);
    seen.push(...entries);
    cursor = next.nextCursor;
    if (cursor === undefined) break;
  }
  return seen;
}

const LETTERS = ["a", "b", "c", "d", "e", "f", "g"];

describe("[oper-04c] pages", () => {
  it.each([1, 2, 3, 7, 100])("of %d give every entry once", (limit) => {
    expect(
      walk(
        Array.from({ length: 8 }, () => LETTERS),
        limit,
      ),
    ).toEqual(LETTERS);
  });

  it("say how many there are, and end without a cursor", () => {
    expect(pageOf(LETTERS, { limit: 7 }, own)).toEqual({ entries: LETTERS, total: 7, next: {} });
    expect(pageOf([], { limit: 7 }, own)).toEqual({ entries: [], total: 0, next: {} });
    expect(pageOf(LETTERS, { limit: 6 }, own).next.nextCursor).toBeTypeOf("string");
  });

  it("go on behind the last entry when others came or went before it", () => {
    const more = ["0", ...LETTERS];
    const fewer = LETTERS.slice(1);
    expect(walk([LETTERS, more, more, more], 3)).toEqual(LETTERS);
    expect(walk([LETTERS, fewer, fewer], 3)).toEqual(LETTERS);
  });

  it("go on nearby when the last entry itself is gone", () => {
    expect(walk([LETTERS, LETTERS.filter((letter) => letter !== "c"), LETTERS], 3)).toEqual(LETTERS);
  });

  it.each(["", "x", "e30", "WzBd", "WyJhIiwxXQ", "%%%"])("refuse a cursor of %j", (cursor) => {
    const page = (): unknown => pageOf(LETTERS, { limit: 2, cursor }, own);
    expect(page).toThrow(
      expect.objectContaining({ code: "invalid_arguments", message: expect.stringContaining("cursor") }),
    );
  });
});
