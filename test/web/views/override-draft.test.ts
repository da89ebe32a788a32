import { describe, expect, it } from "vitest";
import {
  costText,
  modeOf,
  shownValue,
  typedValue,
  withDropped,
  withInner,
  withMode,
  withOwn,
} from "../../../web/src/views/tools/override-draft.ts";

describe("[shape-05m] the form of an override", () => {
  it("keeps only what differs from the server's definition", () => {
    expect(withOwn({}, "title", "New", "Old")).toEqual({ title: "New" });
    expect(withOwn({ title: "New", hidden: true }, "title", "Old", "Old")).toEqual({ hidden: true });
    expect(withOwn({ title: "New" }, "title", "")).toEqual({});
    const hint = withInner({}, "annotations", "readOnlyHint", false);
    expect(hint).toEqual({ annotations: { readOnlyHint: false } });
    expect(withInner(hint, "annotations", "readOnlyHint", undefined)).toEqual({});
    expect(withDropped({}, " debug \n\nitems[*].body\n")).toEqual({ output: { drop: ["debug", "items[*].body"] } });
    expect(withDropped({ output: { drop: ["a"] } }, " ")).toEqual({});
  });

  it("moves a value between fixed and default, and forgets the text of what is fixed", () => {
    const described = { description: "Where" };
    expect(modeOf(described)).toBe("free");
    const preset = withMode({ ...described, default: 2 }, "default");
    expect(preset).toEqual({ description: "Where", default: 2 });
    expect(withMode(preset ?? {}, "fixed")).toEqual({ fixed: 2 });
    expect(modeOf({ fixed: false })).toBe("fixed");
    expect(withMode({ fixed: 2 }, "free")).toBeUndefined();
  });

  it("reads a value as JSON where it is some, and shows it so that it reads the same", () => {
    for (const value of [2, true, "acme/web", "2", "${TOKEN}", ["a"], { a: null }, "true", ""]) {
      expect(typedValue(shownValue(value))).toEqual(value);
    }
    expect(shownValue("2")).toBe('"2"');
  });

  it("says what it costs", () => {
    expect(costText(100, 100)).toBe("about 100 tokens, as before");
    expect(costText(2000, 500)).toBe("about 500 tokens, 75 % less than the original's 2,000");
    expect(costText(100, 150)).toContain("50 % more");
  });
});
