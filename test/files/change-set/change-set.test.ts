import { chmod, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ChangeSet } from "../../../src/files/change-set/change-set.ts";
import { fill, makePlace, snapshot } from "./support.ts";

const append = (text: string | null): string => `${text ?? ""}+`;

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o7777).toString(8);
}

describe("editing a file", () => {
  it("[skill-15a] [skill-15b] keeps the mode, and makes one backup with the same mode", async () => {
    const { root, journals } = await makePlace();
    const file = join(root, "a.json");
    await writeFile(file, "one");
    await chmod(file, 0o640);
    // An older copy that everybody may read must not take the new contents.
    await writeFile(`${file}.toolcrib-backup`, "older", { mode: 0o644 });
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(file, append, { backup: true });
    await changes.editFile(file, append, { backup: true });
    await changes.done();
    expect(await snapshot(root)).toEqual({ "a.json": "file 640 one++", "a.json.toolcrib-backup": "file 640 one" });
    expect(await readdir(journals)).toEqual([]);
  });

  it("makes a file with the mode asked for, and 600 if none is", async () => {
    const { root, journals } = await makePlace();
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(join(root, "a"), append);
    await changes.editFile(join(root, "b"), append, { mode: 0o644, backup: true });
    await changes.done();
    expect(await snapshot(root)).toEqual({ a: "file 600 +", b: "file 644 +" });
  });

  it("does nothing, and makes no folder and no journal, where there is nothing to change", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "a"), "x");
    const before = await stat(join(root, "a"));
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(join(root, "a"), (text) => text, { backup: true });
    await changes.editFile(join(root, "no/such/folder/b"), () => null);
    await changes.removeFolder(join(root, "no"));
    await changes.done();
    expect(await readdir(root)).toEqual(["a"]);
    expect((await stat(join(root, "a"))).ino).toBe(before.ino);
  });

  it("[skill-15b] calls the edit again on what somebody wrote in between", async () => {
    const { root, journals } = await makePlace();
    const file = join(root, "a");
    await writeFile(file, "mine");
    const seen: (string | null)[] = [];
    const changes = new ChangeSet({ journalDir: journals });
    const { writeFileSync } = await import("node:fs");
    await changes.editFile(file, (text) => {
      seen.push(text);
      // An editor that knows nothing of locks saves right now.
      if (seen.length === 1) writeFileSync(file, "theirs");
      return append(text);
    });
    expect(seen).toEqual(["mine", "theirs"]);
    expect(await readFile(file, "utf8")).toBe("theirs+");
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(await readFile(file, "utf8")).toBe("theirs");
  });

  it("[skill-15b] gives up on a file that keeps changing, without having touched it", async () => {
    const { root, journals } = await makePlace();
    const file = join(root, "a");
    await writeFile(file, "0");
    let count = 0;
    const { writeFileSync } = await import("node:fs");
    const changes = new ChangeSet({ journalDir: journals });
    const edited = changes.editFile(file, (text) => {
      writeFileSync(file, String(++count));
      return append(text);
    });
    await expect(edited).rejects.toMatchObject({ code: "conflict" });
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(await snapshot(root)).toMatchObject({ a: expect.stringMatching(/^file \d+ 5$/) });
  });

  it("[skill-15b] changes the target of a link, and leaves the link", async () => {
    const { root, journals } = await makePlace();
    await mkdir(join(root, "dotfiles"));
    await writeFile(join(root, "dotfiles/mcp.json"), "x");
    await symlink("dotfiles/mcp.json", join(root, "mcp.json"));
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(join(root, "mcp.json"), append);
    expect((await lstat(join(root, "mcp.json"))).isSymbolicLink()).toBe(true);
    expect(await readFile(join(root, "dotfiles/mcp.json"), "utf8")).toBe("x+");
    await changes.editFile(join(root, "mcp.json"), () => null);
    expect(await readdir(join(root, "dotfiles"))).toEqual([]);
    await changes.undo();
    expect(await readFile(join(root, "mcp.json"), "utf8")).toBe("x");
  });

  it("[skill-15b] refuses what is no text or no file, and names it", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "binary"), Buffer.from([0x61, 0xff, 0x62]));
    await mkdir(join(root, "folder"));
    const changes = new ChangeSet({ journalDir: journals });
    for (const name of ["binary", "folder"]) {
      const error: unknown = await changes.editFile(join(root, name), append).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "invalid_config", message: expect.stringContaining(join(root, name)) });
    }
    await changes.undo();
    expect(await readFile(join(root, "binary"))).toEqual(Buffer.from([0x61, 0xff, 0x62]));
  });

  it("says which file cannot be written, and passes on what the edit throws", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "plain"), "x");
    const changes = new ChangeSet({ journalDir: journals });
    const file = join(root, "plain/below");
    await expect(changes.editFile(file, append)).rejects.toMatchObject({ code: "invalid_config" });
    const own = new RangeError("mine");
    const edited = changes.editFile(join(root, "plain"), () => {
      throw own;
    });
    await expect(edited).rejects.toBe(own);
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(await readdir(root)).toEqual(["plain"]);
  });
});

describe("[skill-11e] everything or nothing", () => {
  async function changeAll(root: string, changes: ChangeSet): Promise<void> {
    await changes.editFile(join(root, "a.json"), append, { backup: true });
    await changes.editFile(join(root, "new/deep/b.json"), append, { backup: true });
    await changes.editFile(join(root, "gone.json"), () => null, { backup: true });
    await changes.editFile(join(root, "a.json"), append, { backup: true });
    await changes.placeFolder(join(root, "skills/one"), join(root, "source"));
    await changes.placeFolder(join(root, "other/skills/two"), join(root, "source"));
    await changes.removeFolder(join(root, "skills/three"));
  }

  it("undo gives back bytes, modes, absence and folders", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    const before = await snapshot(root);
    const changes = new ChangeSet({ journalDir: journals });
    await changeAll(root, changes);
    expect(await readFile(join(root, "skills/one/SKILL.md"), "utf8")).toBe("new one\n");
    expect(await modeOf(join(root, "skills/one/scripts/run.sh"))).toBe("755");
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(await snapshot(root)).toEqual(before);
    expect(await readdir(journals)).toEqual([]);
  });

  it("done leaves the new state and nothing beside it", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    const changes = new ChangeSet({ journalDir: journals });
    await changeAll(root, changes);
    await changes.done();
    expect(await readdir(journals)).toEqual([]);
    expect((await readdir(join(root, "skills"))).toSorted()).toEqual(["one"]);
    expect((await readdir(root)).toSorted()).toEqual(
      ["a.json", "a.json.toolcrib-backup", "gone.json.toolcrib-backup", "new", "other", "skills", "source"].toSorted(),
    );
    await expect(changes.editFile(join(root, "a.json"), append)).rejects.toMatchObject({ code: "internal" });
    expect(await changes.undo()).toEqual({ kept: [] });
    expect(await readFile(join(root, "a.json"), "utf8")).toContain("++");
  });

  it("undo leaves and names what somebody else changed since", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    const changes = new ChangeSet({ journalDir: journals });
    await changeAll(root, changes);
    await writeFile(join(root, "a.json"), "theirs");
    await writeFile(join(root, "other/skills/two/note"), "theirs");
    await writeFile(join(root, "gone.json"), "theirs");
    await rm(join(root, "new/deep/b.json"));
    const { kept } = await changes.undo();
    expect(kept.toSorted()).toEqual(
      [join(root, "a.json"), join(root, "gone.json"), join(root, "other/skills/two")].toSorted(),
    );
    expect(await readFile(join(root, "a.json"), "utf8")).toBe("theirs");
    expect(await readFile(join(root, "other/skills/two/note"), "utf8")).toBe("theirs");
    // The rest went back, the folders that were made included.
    expect(await readFile(join(root, "skills/one/SKILL.md"), "utf8")).toBe("old one\n");
    expect(await readdir(join(root, "skills"))).toEqual(["one", "three"]);
    expect(await readdir(root)).not.toContain("new");
  });

  it("a folder that was replaced, and changed by somebody since, keeps both and names both", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    const changes = new ChangeSet({ journalDir: journals });
    await changes.placeFolder(join(root, "skills/one"), join(root, "source"));
    await writeFile(join(root, "skills/one/SKILL.md"), "theirs");
    const { kept } = await changes.undo();
    expect(kept).toHaveLength(2);
    expect(await readFile(join(kept[0] ?? "", "SKILL.md"), "utf8")).toBe("theirs");
    expect(await readFile(join(kept[1] ?? "", "SKILL.md"), "utf8")).toBe("old one\n");
  });

  it("steps asked for at the same time are done one after the other", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "a"), "", { mode: 0o600 });
    const changes = new ChangeSet({ journalDir: journals });
    await Promise.all(["1", "2", "3"].map((mark) => changes.editFile(join(root, "a"), (text) => `${text}${mark}`)));
    expect(await readFile(join(root, "a"), "utf8")).toBe("123");
    await changes.undo();
    expect(await readFile(join(root, "a"), "utf8")).toBe("");
  });

  it("the journal and its copies are for their owner alone", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "a"), "token", { mode: 0o644 });
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(join(root, "a"), append);
    expect(await modeOf(journals)).toBe("700");
    const entries = Object.values(await snapshot(journals));
    expect(entries.some((entry) => entry.endsWith(" token"))).toBe(true);
    expect(entries.every((entry) => /^(?:folder 700|file 600)/.test(entry))).toBe(true);
    await changes.undo();
  });
});
