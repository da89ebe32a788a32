import { afterEach, describe, expect, it } from "vitest";
import { failureOf } from "../../web/src/failure.ts";
import { type Language, setLanguage } from "../../web/src/messages/messages.ts";
import {
  bytesText,
  dayText,
  leftText,
  millisecondsText,
  momentText,
  numberText,
  shareText,
  sinceText,
} from "../../web/src/text.ts";

describe("texts of the page", () => {
  it.each([
    [0, "just now"],
    [59_000, "59 sec. ago"],
    [61_000, "1 min. ago"],
    [7_200_000, "2 hr. ago"],
    [3 * 86_400_000, "3 days ago"],
    [-30_000, "in 30 sec."],
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
    expect([0.4, 12.6, 1234, 90_000].map(millisecondsText)).toEqual(["<1 ms", "13 ms", "1.2 sec", "1 min"]);
    expect([5, 2048, 3 * 1024 * 1024].map(bytesText)).toEqual(["5 B", "2.0 KB", "3.0 MB"]);
  });
});

describe("texts of the page in another language", () => {
  afterEach(() => setLanguage("en"));
  const at = new Date(2026, 10, 7, 21, 5, 9);

  it.each<readonly [Language, readonly string[]]>([
    [
      "de",
      ["gerade eben", "vor 3 Min.", "in 2 Std.", "1,5 Sek.", "<1 ms", "1,5 KB", "12.345", "2,5", "33,3 %", "7. Nov."],
    ],
    ["zh", ["刚刚", "3分钟前", "2小时后", "1.5秒", "<1毫秒", "1.5 KB", "12,345", "2.5", "33.3%", "11月7日"]],
    ["ja", ["たった今", "3 分前", "2 時間後", "1.5 秒", "<1 ms", "1.5 KB", "12,345", "2.5", "33.3%", "11月7日"]],
  ])("[joy-09h] are those of %s", (language, texts) => {
    setLanguage(language);
    const written = [
      ...[0, -180_000, 7_200_000].map((ms) => sinceText(new Date(1e12 + ms), 1e12)),
      ...[1500, 0.5].map(millisecondsText),
      bytesText(1536),
      numberText(12_345),
      numberText(2.5),
      shareText(1, 3),
      dayText(at),
    ];
    // Some spaces do not break.
    expect(written.map((text) => text.replaceAll(/\s/g, " "))).toEqual(texts);
  });

  it("[joy-09h] name a moment in full, by a clock of 24 hours", () => {
    setLanguage("en");
    expect(momentText(at)).toBe("Nov 7, 2026, 21:05:09");
    setLanguage("de");
    expect(momentText(at)).toBe("07.11.2026, 21:05:09");
    expect(momentText(new Date("soon"))).toBe("zu unbekannter Zeit");
    expect(sinceText(new Date("soon"), 0)).toBe("zu unbekannter Zeit");
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
