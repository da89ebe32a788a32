import { describe, expect, it } from "vitest";
import { failureOf } from "../../web/src/failure.ts";
import { bytesText, countText, leftText, millisecondsText, sinceText } from "../../web/src/text.ts";

describe("texts of the page", () => {
  it.each([
    [0, "just now"],
    [59_000, "59 s ago"],
    [61_000, "1 min ago"],
    [7_200_000, "2 h ago"],
    [3 * 86_400_000, "3 d ago"],
    [-30_000, "in 30 s"],
  ])("tells how long ago %i ms are", (ms, text) => {
    expect(sinceText(new Date(1_000_000_000_000), 1_000_000_000_000 + ms)).toBe(text);
  });

  it("has words for a time that is none", () => {
    expect(sinceText(new Date("soon"), 0)).toBe("at an unknown time");
  });

  it.each([
    [-5, "0:00"],
    [59_001, "1:00"],
    [3_661_000, "1:01:01"],
  ])("counts down from %i ms", (ms, text) => {
    expect(leftText(ms)).toBe(text);
  });

  it("rounds durations and sizes", () => {
    expect([0.4, 12.6, 1234, 90_000].map(millisecondsText)).toEqual(["<1 ms", "13 ms", "1.2 s", "1 min"]);
    expect([5, 2048, 3 * 1024 * 1024].map(bytesText)).toEqual(["5 B", "2.0 KB", "3.0 MB"]);
    expect([countText(1, "tool"), countText(5000, "tool"), countText(0, "entry", "entries")]).toEqual([
      "1 tool",
      "5,000 tools",
      "0 entries",
    ]);
  });
});

describe("errors on the page", () => {
  it("keep code, message, hint and details of the hub", () => {
    const given = Object.assign(new Error("No."), { code: "denied", hint: "Ask.", details: { rule: 1 } });
    expect(failureOf(given)).toEqual({ code: "denied", message: "No.", hint: "Ask.", details: { rule: 1 } });
  });

  it("have a message whatever was thrown", () => {
    expect(failureOf("odd")).toMatchObject({ code: "internal", message: "odd" });
    expect(failureOf({})).toMatchObject({ code: "internal", message: "Something went wrong." });
    expect(failureOf(new TypeError("Failed to fetch"))).toMatchObject({ code: "server_unavailable" });
  });
});
