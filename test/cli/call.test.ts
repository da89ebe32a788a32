import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { extensionForMimeType, partsOfBlocks, partsOfContents, SaveTarget } from "../../src/cli/commands/call.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-save-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const image = { type: "image", mimeType: "image/png", data: Buffer.from("png").toString("base64") };
const audio = { type: "audio", mimeType: "audio/mpeg", data: Buffer.from("mp3").toString("base64") };
const zip = {
  type: "resource",
  resource: { uri: "x:///a.zip", mimeType: "application/zip", blob: Buffer.from("zip").toString("base64") },
};

describe("[spine-19b] --out", () => {
  it.each([
    ["image/png", ".png"],
    ["image/jpeg", ".jpg"],
    ["IMAGE/SVG+XML; charset=utf-8", ".svg"],
    ["audio/mpeg", ".mp3"],
    ["application/x-tar", ".tar"],
    ["application/vnd.api+json", ".json"],
    ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".bin"],
    ["../../etc", ".bin"],
    ["", ".bin"],
  ])("%s is saved as %s", (mimeType, extension) => {
    expect(extensionForMimeType(mimeType)).toBe(extension);
  });

  it("takes images, audio and blobs, and leaves text and unknown blocks", () => {
    const parts = partsOfBlocks(
      [{ type: "text", text: "t" }, image, audio, zip, { type: "later", data: "AA==" }],
      "tool",
    );
    expect(parts.map((part) => part.bytes.toString())).toEqual(["png", "mp3", "zip"]);
  });

  it("numbers several and keeps one exactly where it was wanted", () => {
    const several = new SaveTarget("out.png", { cwd, force: false }).save(partsOfBlocks([image, audio], "tool"));
    expect(several.map((path) => basename(path))).toEqual(["out-1.png", "out-2.mp3"]);
    const one = new SaveTarget("deep/one.dat", { cwd, force: false }).save(partsOfBlocks([image], "tool"));
    expect(one).toEqual([join(cwd, "deep/one.dat")]);
    expect(readFileSync(join(cwd, "deep/one.dat"), "utf8")).toBe("png");
  });

  it("never overwrites without force, and never leaves the folder for a server's name", () => {
    writeFileSync(join(cwd, "taken.png"), "mine");
    expect(() => new SaveTarget("taken.png", { cwd, force: false })).toThrow(/already exists/);
    const numbered = new SaveTarget("taken", { cwd, force: false }).save(partsOfBlocks([image], "tool"));
    expect(numbered).toEqual([join(cwd, "taken-2.png")]);
    expect(readFileSync(join(cwd, "taken.png"), "utf8")).toBe("mine");
    const [outside] = new SaveTarget("folder/", { cwd, force: true }).save(
      partsOfBlocks([image], "../../../etc/passwd"),
    );
    expect(outside).toBe(join(cwd, "folder", "passwd.png"));
    // Whoever made the part.
    const [made] = new SaveTarget("folder/", { cwd, force: true }).save([
      { bytes: Buffer.from("x"), mimeType: "__proto__", name: "../.config/evil" },
    ]);
    expect(made).toBe(join(cwd, "folder", "evil.bin"));
  });

  it("saves a resource whole, text included", () => {
    const contents = [{ uri: "file:///notes/read%20me.md", mimeType: "text/markdown", text: "# hi" }];
    const [path] = new SaveTarget("docs/", { cwd, force: false }).save(partsOfContents(contents));
    expect(path).toBe(join(cwd, "docs", "read-20me.md"));
  });
});
