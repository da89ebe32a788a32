import { describe, expect, it } from "vitest";
import { resourceContents, mimeTypeOf } from "../../../src/skills/offer/skills-source.ts";

describe("[skill-07b] contents of a file", () => {
  it("are text only where the same bytes come back", () => {
    const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
    expect(resourceContents("u", "a.txt", Buffer.from("é")).text).toBe("é");
    expect(resourceContents("u", "a.txt", bytes(0xef, 0xbb, 0xbf, 0x41)).text).toBe("\uFEFFA");
    expect(resourceContents("u", "a.txt", bytes(0xff, 0x41)).blob).toBe("/0E=");
    expect(resourceContents("u", "a.txt", bytes(0x41, 0)).blob).toBe("QQA=");
    expect(resourceContents("u", "Makefile", Buffer.from("all:")).mimeType).toBe("text/plain");
    expect(mimeTypeOf("a/b.MD")).toBe("text/markdown");
  });
});
