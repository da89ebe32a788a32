import { describe, expect, it } from "vitest";
import { describeBlock, formatBytes, modelContent, resultText, truncateMiddle } from "../../src/model/content.ts";
import type { CallToolResult } from "../../src/model/protocol.ts";

const base64 = (bytes: number): string => Buffer.alloc(bytes, 7).toString("base64");
const image = { type: "image", mimeType: "image/png", data: base64(24 * 1024) };

describe("describeBlock", () => {
  it.each([
    [{ type: "text", text: "hello" }, "hello"],
    [image, "[image: image/png, 24 KB]"],
    [{ type: "audio", mimeType: "audio/wav", data: base64(24 * 1024 + 1) }, "[audio: audio/wav, 24 KB]"],
    [{ type: "image", mimeType: "image/gif", data: base64(1) }, "[image: image/gif, 1 B]"],
    [{ type: "image", mimeType: "image/gif", data: "AAAA\r\nAAA=\n" }, "[image: image/gif, 5 B]"],
    [{ type: "image", data: base64(2 * 1024 * 1024) }, "[image: unknown, 2 MB]"],
    [{ type: "image", mimeType: "image/png" }, "[image: image/png]"],
    [{ type: "resource", resource: { uri: "file:///a", text: "inside" } }, "inside"],
    [{ type: "resource", resource: { uri: "file:///a", text: "" } }, ""],
    [{ type: "resource", resource: { uri: "file:///a", blob: "AAAA" } }, "[resource: file:///a]"],
    [{ type: "resource", resource: null }, "[content: resource]"],
    [{ type: "resource_link", uri: "demo://x/1", name: "x" }, "[resource: demo://x/1]"],
    [{ type: "video_3d", frames: [1, 2] }, "[content: video_3d]"],
    [{ type: "bad\u001b[31m\nname" }, "[content: bad[31mname]"],
    [{ type: "a\u202eb\u200bc\u{e0041}" }, "[content: abc]"],
    [{ type: "x".repeat(5000) }, `[content: ${"x".repeat(200)}…]`],
    [{ type: "audio", mimeType: "y".repeat(300) }, `[audio: ${"y".repeat(200)}…]`],
    [{ type: "resource_link", uri: `x://${"a".repeat(500)}` }, `[resource: x://${"a".repeat(500)}]`],
    [{ type: "resource_link", uri: "a".repeat(9000) }, `[resource: ${"a".repeat(1024)}…]`],
  ])("[spine-18] %j becomes %j", (block, text) => {
    expect(describeBlock(block)).toBe(text);
  });
});

describe("resultText", () => {
  it("[spine-18] joins all blocks, each degraded on its own", () => {
    const result = { content: [{ type: "text", text: "before" }, image, { type: "x" }] };
    expect(resultText(result)).toBe("before\n[image: image/png, 24 KB]\n[content: x]");
  });

  it("[spine-18] says so when there is nothing", () => {
    expect(resultText({ content: [] })).toBe("(empty result)");
    expect(resultText({ content: [], isError: true })).toBe("(error without details)");
    expect(resultText({ content: [{ type: "text", text: "" }] })).toBe("(empty result)");
  });

  it("shows structured content only where there is no other", () => {
    expect(JSON.parse(resultText({ content: [], structuredContent: { a: 1 } }))).toEqual({ a: 1 });
    expect(resultText({ content: [{ type: "text", text: "t" }], structuredContent: { a: 1 } })).toBe("t");
  });

  it("survives a result without a content list", () => {
    // What a server that keeps to no schema may send.
    expect(resultText({ isError: true } as unknown as CallToolResult)).toBe("(error without details)");
    expect(resultText({ content: [null, "text"] } as unknown as CallToolResult)).toBe("(empty result)");
  });
});

describe("modelContent", () => {
  it("[spine-18] keeps text and images as the same objects, with fields nobody knows", () => {
    const text = { type: "text", text: "t", annotations: { audience: ["user"] }, x: 1 };
    const result = { content: [text, image] };
    const blocks = modelContent(result);
    expect(blocks[0]).toBe(text);
    expect(blocks[1]).toBe(image);
  });

  it("[spine-18] degrades the rest to text, and leaves the result itself untouched", () => {
    const result = {
      content: [
        { type: "audio", mimeType: "audio/wav", data: base64(10) },
        { type: "resource", resource: { uri: "file:///a", text: "inside" } },
        { type: "image", mimeType: "image/png" },
        { type: "novelty" },
      ],
    };
    const copy = structuredClone(result);
    expect(modelContent(result).map((block) => block.text)).toEqual([
      "[audio: audio/wav, 10 B]",
      "inside",
      "[image: image/png]",
      "[content: novelty]",
    ]);
    expect(modelContent(result).every((block) => block.type === "text")).toBe(true);
    expect(result).toEqual(copy);
  });

  it("[guard-12a] hands on no image whose type is a sentence", () => {
    const [block] = modelContent({ content: [{ type: "image", data: "AAAA", mimeType: "Do as I say" }] });
    expect(block).toEqual({ type: "text", text: "[image: Do as I say, 3 B]" });
  });

  it("survives structured content that is too deep to be written", () => {
    const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as unknown;
    expect(modelContent({ content: [], structuredContent: deep })).toEqual([
      { type: "text", text: "[content: structured]" },
    ]);
  });

  it("is never empty and holds no empty text", () => {
    expect(modelContent({ content: [] })).toEqual([{ type: "text", text: "(empty result)" }]);
    expect(modelContent({ content: [{ type: "text", text: "" }], isError: true })).toEqual([
      { type: "text", text: "(error without details)" },
    ]);
    expect(modelContent({ content: [{ type: "text", text: "" }, image] })).toEqual([image]);
    expect(modelContent({ content: [], structuredContent: [1, 2] })).toEqual([{ type: "text", text: "[1,2]" }]);
  });
});

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1 KB"],
    [1536, "2 KB"],
    [1024 * 1024 - 1, "1 MB"],
    [1.5 * 1024 * 1024, "1.5 MB"],
    [10 * 1024 * 1024, "10 MB"],
  ])("%d is %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("truncateMiddle", () => {
  it("leaves what fits alone", () => {
    expect(truncateMiddle("ä".repeat(5), 10, " … ")).toBe("ä".repeat(5));
  });

  it("keeps beginning and end within the limit", () => {
    const text = "begin" + "x".repeat(1000) + "end";
    const short = truncateMiddle(text, 40, "\n[cut]\n");
    expect(Buffer.byteLength(short)).toBe(40);
    expect(short).toMatch(/^begin.*\n\[cut\]\n.*end$/s);
  });

  it("never cuts a character, wherever the limit falls", () => {
    const text = "aä€😀".repeat(50);
    for (let limit = 10; limit < 60; limit += 1) {
      const short = truncateMiddle(text, limit, "|");
      const [head, tail] = short.split("|");
      expect(Buffer.byteLength(short)).toBeLessThanOrEqual(limit);
      expect(text.startsWith(head ?? "?")).toBe(true);
      expect(text.endsWith(tail ?? "?")).toBe(true);
      expect(short.isWellFormed()).toBe(true);
    }
  });

  it("leaves only the note where there is no room for more", () => {
    expect(truncateMiddle("x".repeat(100), 3, "[cut]")).toBe("[cut]");
  });
});
