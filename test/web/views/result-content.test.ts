import { describe, expect, it } from "vitest";
import { blocksOf, markOf, resourceShown, shownOf } from "../../../web/src/views/tools/result-content.ts";

describe("blocks of a result", () => {
  it("[oper-09c] shows text, and text that is JSON as a tree too", () => {
    expect(shownOf({ type: "text", text: "hello" })).toEqual({ kind: "text", text: "hello", json: undefined });
    expect(shownOf({ type: "text", text: '{"a":[1]}' })).toMatchObject({ json: { a: [1] } });
    expect(shownOf({ type: "text", text: "{not json" })).toMatchObject({ json: undefined });
    expect(shownOf({ type: "text", text: "12" })).toMatchObject({ json: undefined });
  });

  it("[oper-09c] shows images and audio from their own data only", () => {
    expect(shownOf({ type: "image", data: "aGk=", mimeType: "image/png" })).toMatchObject({
      kind: "image",
      source: "data:image/png;base64,aGk=",
    });
    expect(shownOf({ type: "audio", data: "aGk=", mimeType: "audio/wav" })).toMatchObject({ kind: "audio" });
  });

  it.each([
    { type: "image", data: "aGk=", mimeType: "text/html" },
    { type: "image", data: "aGk=", mimeType: "image/png,<script>" },
    { type: "image", data: "https://evil.example/x.png", mimeType: "image/png" },
    { type: "audio", data: "aGk=", mimeType: "image/png" },
    { type: "image", data: 5, mimeType: "image/png" },
    { type: "hologram", beam: true },
  ])("[oper-07d] shows what it does not know as plain data: %o", (block) => {
    expect(shownOf(block)).toEqual({ kind: "unknown", type: block.type, value: block });
  });

  it("shows links to resources and embedded ones", () => {
    expect(shownOf({ type: "resource_link", uri: "file:///a", name: "a" })).toEqual({
      kind: "link",
      uri: "file:///a",
      name: "a",
      description: undefined,
    });
    expect(shownOf({ type: "resource", resource: { uri: "x:1", text: "t" } })).toMatchObject({
      kind: "resource",
      uri: "x:1",
      shown: { kind: "text", text: "t" },
    });
    expect(resourceShown({ uri: "x:2", blob: "aGk=", mimeType: "image/png" })).toMatchObject({
      shown: { kind: "image" },
    });
    expect(resourceShown({ uri: "x:3", blob: "aGk=", mimeType: "application/zip" })).toMatchObject({
      shown: { kind: "bytes", type: "application/zip", size: 2 },
    });
    expect(resourceShown({ uri: "x:4", blob: "aGk=", mimeType: "text/plain" })).toMatchObject({
      shown: { kind: "text", text: "hi" },
    });
    expect(resourceShown({ uri: "x:5", blob: "aGk9a", mimeType: "text/plain" })).toMatchObject({
      shown: { kind: "unknown", type: "text/plain" },
    });
  });
});

it("shows structured content once, also where the text repeats it", () => {
  const content = [
    { type: "text", text: '{ "a": 1 }' },
    { type: "text", text: "more" },
  ];
  expect(blocksOf({ content, structuredContent: { a: 1 } })).toEqual([{ kind: "text", text: "more", json: undefined }]);
  expect(blocksOf({ content })).toHaveLength(2);
});

describe("the guard's mark", () => {
  it("is read from _meta", () => {
    const findings = [{ code: "instruction", severity: "warn" }];
    expect(markOf({ _meta: { "dev.toolcrib/untrusted": { wrapped: true, findings } } })).toEqual({
      wrapped: true,
      findings,
    });
  });

  it("is absent where it is not there or malformed", () => {
    expect(markOf({})).toBeUndefined();
    expect(markOf({ _meta: { "dev.toolcrib/untrusted": "yes" } })).toBeUndefined();
    expect(markOf({ _meta: { "dev.toolcrib/untrusted": { findings: "no" } } })).toEqual({
      wrapped: false,
      findings: [],
    });
  });
});
