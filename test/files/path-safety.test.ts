import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assertInside } from "../../src/files/path-safety.ts";

let dir: string;
let project: string;

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-inside-")));
  project = join(dir, "project");
  mkdirSync(join(project, "real/deep"), { recursive: true });
  mkdirSync(join(dir, "elsewhere"));
  mkdirSync(join(dir, "project-two"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

function link(to: string, name: string): void {
  symlinkSync(to, join(project, name));
}

describe("[skill-10d] [skill-14d] what is written for a project", () => {
  it.each(["", ".", "file", "new/folder/file", "real/deep/../file", "inner/file", "dangling", "chain"])(
    "may be %s",
    (target) => {
      link("real", "inner");
      link("real/not-there-yet", "dangling");
      link("dangling", "chain");
      expect(() => assertInside(project, join(project, target))).not.toThrow();
    },
  );

  it.each([
    ["../file"],
    ["../project-two/file"],
    ["out/file"],
    ["out/new/folder/file"],
    ["dangling"],
    ["chain"],
    ["real/up/file"],
    ["circle"],
    ["absolute"],
  ])("may not be %s", (target) => {
    link("../elsewhere", "out");
    link("../elsewhere/not-there-yet", "dangling");
    link("dangling", "chain");
    link("../..", "real/up");
    link("circle", "circle");
    writeFileSync(join(dir, "elsewhere/there"), "");
    link(join(dir, "elsewhere/there"), "absolute");
    expect(() => assertInside(project, join(project, target))).toThrow(
      expect.objectContaining({ code: "denied", message: expect.stringContaining("leads out of the project") }),
    );
  });

  it("the project itself may be reached by a link", () => {
    symlinkSync(project, join(dir, "alias"));
    expect(() => assertInside(join(dir, "alias"), join(dir, "alias/new/file"))).not.toThrow();
    expect(() => assertInside(join(dir, "alias"), join(project, "file"))).not.toThrow();
  });
});
