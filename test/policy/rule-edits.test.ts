import { describe, expect, it } from "vitest";
import { withVerdict } from "../../src/policy/rule-edits.ts";

const push = { names: ["git__push"] };

describe("a verdict for a pattern", () => {
  it.each([
    [{}, "deny", { deny: ["git__push"], ask: [] }],
    [{ ask: ["git__push"] }, "deny", { deny: ["git__push"], ask: [] }],
    [{ deny: ["git__push"] }, "ask", { deny: [], ask: ["git__push"] }],
    [{ deny: ["git__*"] }, "ask", { deny: ["git__*", "!git__push"], ask: ["git__push"] }],
    [{ deny: ["git__*"], ask: ["*"] }, "allow", { deny: ["git__*", "!git__push"], ask: ["*", "!git__push"] }],
    [{ deny: ["git__push", "*__push"] }, "allow", { deny: ["*__push", "!git__push"], ask: [] }],
    [{ allow: ["files__*"] }, "allow", { allow: ["files__*", "git__push"], deny: [], ask: [] }],
    [{ allow: ["git__*"] }, "allow", { allow: ["git__*"], deny: [], ask: [] }],
    [{ allow: ["git__*"] }, "deny", { allow: ["git__*"], deny: ["git__push"], ask: [] }],
    [{ deny: ["git__push"], ask: ["!git__push"] }, "none", { deny: [], ask: [] }],
    [{ allow: ["git__push"] }, "none", { allow: [], deny: [], ask: [] }],
    [{ deny: ["git__push(branch=main)"] }, "allow", { deny: ["git__push(branch=main)"], ask: [] }],
  ] as const)("[joy-03b] %j, %s: %j", (rules, verdict, expected) => {
    const lists = withVerdict(rules as Parameters<typeof withVerdict>[0], "git__push", verdict, push);
    expect(JSON.parse(JSON.stringify(lists))).toEqual(expected);
  });

  it("[joy-03b] of a pattern that names more than one thing leaves narrower rules alone", () => {
    expect(withVerdict({ deny: ["git__push", "git__*"] }, "git__*", "allow", undefined)).toEqual({
      allow: undefined,
      deny: ["git__push"],
      ask: [],
    });
  });
});
