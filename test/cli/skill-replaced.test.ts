import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { put, treeOf, writeSkill } from "../hub/install/skills.ts";
import { furnished, run } from "./furnished-home.ts";

const INSTALL = ["install", "notes", "--client", "cursor"];
const FORCED = [...INSTALL, "--force"];

interface Place extends ReturnType<typeof furnished> {
  /** Where the copy for Cursor is. */
  readonly folder: string;
}

function withOwnFolder(): Place {
  const place = furnished();
  writeSkill(place.dir, "notes");
  const folder = join(place.home, ".cursor/skills/notes");
  put(join(folder, "NOTES.md"), "mine\n");
  put(join(folder, "bin/run.sh"), "#!/bin/sh\n", 0o755);
  return Object.assign(place, { folder });
}

const copies = ({ toolcribHome }: Place): string[] => {
  const dir = join(toolcribHome, "replaced");
  return existsSync(dir) ? readdirSync(dir) : [];
};

describe("a folder of the user's own that --force replaces", () => {
  it("[skill-10d] [skill-12c] is kept, and is there again after the removal", async () => {
    const place = withOwnFolder();
    const before = treeOf(place.home);
    expect((await run(place, FORCED)).stdout).toMatch(
      /the previous content of \S+notes is kept in \S+replaced\/notes-\w+; removing the skill restores it/,
    );
    expect(existsSync(join(place.folder, "NOTES.md"))).toBe(false);
    expect(existsSync(join(place.folder, "SKILL.md"))).toBe(true);

    // Another install of the same skill does not forget it, nor take its own copy for the user's.
    writeSkill(place.dir, "notes", [], "# Changed");
    expect((await run(place, [...FORCED, "--json"])).json()).toMatchObject({ replaced: [] });
    const dry = await run(place, ["remove", "notes", "--dry-run"]);
    expect(dry.stdout).toContain(`Would restore the previous content of ${place.folder}`);
    const removed = await run(place, ["remove", "notes"]);
    expect(removed.stdout).toContain(`Restored the previous content of ${place.folder}.`);
    const after = treeOf(join(place.home, ".cursor"));
    const had = Object.entries(before).filter(([path]) => path.startsWith(".cursor/"));
    expect(after).toEqual(Object.fromEntries(had.map(([path, what]) => [path.slice(".cursor/".length), what])));
    expect(copies(place)).toEqual([]);
  });

  it("[skill-12c] comes back too when it goes from that client only, and when the copy was deleted", async () => {
    const place = withOwnFolder();
    expect((await run(place, FORCED)).code).toBe(0);
    expect((await run(place, ["remove", "notes", "--client", "cursor"])).code).toBe(0);
    expect(readFileSync(join(place.folder, "NOTES.md"), "utf8")).toBe("mine\n");
    expect((await run(place, FORCED)).code).toBe(0);
    rmSync(place.folder, { recursive: true });
    expect((await run(place, ["remove", "notes", "--json"])).json()).toMatchObject({ restored: [place.folder] });
    expect(readFileSync(join(place.folder, "NOTES.md"), "utf8")).toBe("mine\n");
  });

  it("[skill-12c] stays kept, and is named, where the copy was changed and stays", async () => {
    const place = withOwnFolder();
    expect((await run(place, FORCED)).code).toBe(0);
    put(join(place.folder, "more.md"), "more");
    const removed = await run(place, ["remove", "notes"]);
    const [copy = ""] = copies(place);
    expect(removed.stderr).toContain(`The previous content of ${place.folder} is kept in `);
    expect(removed.stderr).toContain(copy);
    expect(readFileSync(join(place.toolcribHome, "replaced", copy, "NOTES.md"), "utf8")).toBe("mine\n");
  });

  it("[skill-10d] a changed copy that --force replaces is kept, and does not come back", async () => {
    const place = withOwnFolder();
    rmSync(place.folder, { recursive: true });
    expect((await run(place, INSTALL)).code).toBe(0);
    put(join(place.folder, "mine.md"), "mine");
    const forced = await run(place, FORCED);
    expect(forced.stdout).toContain("is kept in");
    expect(forced.stdout).not.toContain("restores");
    const [copy = ""] = copies(place);
    expect((await run(place, ["remove", "notes"])).code).toBe(0);
    expect(existsSync(place.folder)).toBe(false);
    expect(readFileSync(join(place.toolcribHome, "replaced", copy, "mine.md"), "utf8")).toBe("mine");
  });

  it("[skill-12c] a link is a link again, and what it leads to is untouched", async () => {
    const place = withOwnFolder();
    rmSync(place.folder, { recursive: true });
    put(join(place.dir, "elsewhere/NOTES.md"), "mine\n");
    symlinkSync(join(place.dir, "elsewhere"), place.folder);
    expect((await run(place, FORCED)).stdout).toContain("restores the link");
    expect(existsSync(join(place.folder, "SKILL.md"))).toBe(true);
    expect(treeOf(join(place.dir, "elsewhere"))).toHaveProperty("NOTES.md");
    expect((await run(place, ["remove", "notes"])).code).toBe(0);
    expect(readlinkSync(place.folder)).toBe(join(place.dir, "elsewhere"));
    expect(readFileSync(join(place.folder, "NOTES.md"), "utf8")).toBe("mine\n");
  });

  it("[skill-11e] an install that fails leaves it where it was", async () => {
    const place = withOwnFolder();
    put(join(place.home, ".cursor/mcp.json"), "{");
    const broken = `\n  - name: broken\n    config-template: {command: toolcrib-no-such-program}`;
    writeSkill(place.dir, "notes", [broken]);
    const before = treeOf(place.home);
    expect((await run(place, [...FORCED, "--with-mcp"])).code).not.toBe(0);
    expect(treeOf(place.home)).toEqual(before);
  });
});

describe("links in a project", () => {
  it("[skill-10d] lead nothing out of it that is meant for it", async () => {
    const place = furnished();
    writeSkill(place.dir, "notes");
    const elsewhere = mkdtempSync(join(tmpdir(), "toolcrib-elsewhere-"));
    try {
      put(join(place.dir, ".cursor/keep.txt"), "here\n");
      symlinkSync(elsewhere, join(place.dir, ".cursor/skills"));
      const before = treeOf(place.home);
      const { code, stderr } = await run(place, [...INSTALL, "--scope", "project"]);
      expect(stderr).toContain("leads out of the project");
      expect(code).toBe(3);
      expect(treeOf(place.home)).toEqual(before);
      expect(readdirSync(elsewhere)).toEqual([]);
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });
});
