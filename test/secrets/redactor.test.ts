import { expect, it } from "vitest";
import { Redactor } from "../../src/secrets/redactor.ts";

function redactorOf(...values: string[]): Redactor {
  const redactor = new Redactor();
  for (const value of values) redactor.add(value);
  return redactor;
}

it("masks a value wherever it stands and in the forms it travels in", () => {
  const secret = "p@ss w/ord+\"1\"";
  const base64 = Buffer.from(secret).toString("base64");
  const redactor = redactorOf(secret);
  for (const form of [secret, encodeURIComponent(secret), base64, base64.replace(/=+$/, ""), Buffer.from(secret).toString("base64url"), JSON.stringify(secret).slice(1, -1)]) {
    expect(redactor.mask(`a ${form} b ${form}`)).toBe("a [redacted] b [redacted]");
  }
});

it("masks the longer of two values that overlap", () => {
  expect(redactorOf("abcd", "abcdefgh").mask("abcdefgh abcd abc")).toBe("[redacted] [redacted] abc");
});

it("leaves short values and everything else alone", () => {
  const redactor = redactorOf("abc", "");
  expect(redactor.mask("abc abcabc")).toBe("abc abcabc");
  expect(new Redactor().mask("text")).toBe("text");
});

it("takes values in at any time, and those with signs of regular expressions", () => {
  const redactor = redactorOf("a.c*");
  expect(redactor.mask("a.c* abcc")).toBe("[redacted] abcc");
  redactor.add("(x|y)[0]");
  expect(redactor.mask("(x|y)[0] x")).toBe("[redacted] x");
  redactor.add("\ud800lone");
  expect(redactor.mask("\ud800lone")).toBe("[redacted]");
});
