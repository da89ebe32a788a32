import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assertInside, followLinks } from "../../src/files/path-safety.ts";

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

describe("[shape-01e] what a path leads to", () => {
  it("is followed through links, and to what is not there yet", async () => {
    link("real/deep", "to-deep");
    expect(await followLinks(`${project}/to-deep/../new`)).toBe(join(project, "real/new"));
    expect(await followLinks(join(project, "real"))).toBe(join(project, "real"));
  });

  it.runIf(process.platform === "linux")("cannot be told where each process has a link of its own", async () => {
    link("/proc/self/cwd", "here");
    const ends = ["here/a", "here"].map((name) => join(project, name));
    for (const path of [
      ...ends,
      "/proc/self/cwd/a",
      "/proc/thread-self/root/etc",
      "/dev/fd/0",
      `/proc/${process.pid}/cwd`,
    ])
      expect([path, await followLinks(path)]).toEqual([path, null]);
  });
});
