/** Which preview a resource or a message gets. */
import { describe, expect, it } from "vitest";
import { fileName, messagePreview, resourcePreview } from "../../web/src/views/resources/preview.ts";

const blob = (text: string): string => btoa(text);

describe("[joy-01d] the preview", () => {
  it.each([
    [{ uri: "a:///b", text: "x", mimeType: "text/markdown" }, "markdown"],
    [{ uri: "a:///b.MD", text: "x" }, "markdown"],
    [{ uri: "a:///b.md", text: "x", mimeType: "text/plain" }, "markdown"],
    [{ uri: "a:///b.md", text: "<p>", mimeType: "text/html" }, "text"],
    [{ uri: "a:///b", text: "[1]", mimeType: "application/json" }, "text"],
    [{ uri: "a:///b", blob: blob("x"), mimeType: "image/png" }, "image"],
    [{ uri: "a:///b", blob: blob("x"), mimeType: "audio/wav" }, "audio"],
    [{ uri: "a:///b", blob: blob("# x"), mimeType: "text/markdown" }, "markdown"],
    [{ uri: "a:///b", blob: blob("%PDF"), mimeType: "application/pdf" }, "file"],
    [{ uri: "a:///b", blob: blob("x") }, "file"],
    [{ uri: "a:///b", blob: "not base64!", mimeType: "application/pdf" }, "unknown"],
    [{ uri: "a:///b", blob: blob("x"), mimeType: 'image/png" onerror="x' }, "unknown"],
    [{ uri: "a:///b" }, "unknown"],
  ])("of %o is %s", (content, kind) => {
    expect(resourcePreview(content)).toMatchObject({ uri: content.uri, preview: { kind } });
  });

  it("of a message is that of its text, its resource or its link", () => {
    expect(messagePreview({ type: "text", text: "hello" })).toMatchObject({ uri: "", preview: { kind: "text" } });
    const resource = { uri: "a:///b.md", text: "x" };
    expect(messagePreview({ type: "resource", resource })).toMatchObject({
      uri: "a:///b.md",
      preview: { kind: "markdown" },
    });
    expect(messagePreview({ type: "resource_link", uri: "a:///c", name: "c" }).preview).toMatchObject({ kind: "link" });
  });

  it("saves under a name that is one", () => {
    expect(fileName("a:///x/report?v=1#2", "application/pdf")).toBe("report.pdf");
    expect(fileName("a:///x/..%2fetc", "text/plain")).toBe(".._2fetc");
    expect(fileName("a:///", "text/plain")).toBe("resource");
  });
});
