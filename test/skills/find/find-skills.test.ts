import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findSkills, readSkillFolders } from "../../../src/skills/find/find-skills.ts";

let root: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-find-")));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function skill(...path: string[]): string {
  const dir = join(root, ...path);
  write(join(dir, "SKILL.md"), `---\nname: ${path.at(-1) ?? "root"}\ndescription: Test.\n---\nBody.\n`);
  return dir;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function found(from = root, options = {}): Promise<string[]> {
  const { dirs } = await findSkills(from, options);
  return dirs.map((dir) => relative(root, dir).replaceAll("\\", "/"));
}

describe("[skill-05a] finding skills", () => {
  it("finds those of subfolders, nested and hidden ones too, in order of path", async () => {
    skill("b");
    skill("a", "z");
    skill("a-b");
    skill("plugins", "one", ".claude", "skills", "deep");
    write(join(root, "notes", "README.md"), "no skill");
    expect(await found()).toEqual(["a/z", "a-b", "b", "plugins/one/.claude/skills/deep"]);
  });

  it("takes the folder itself, and its SKILL.md, for a skill", async () => {
    const dir = skill("one");
    expect(await found(dir)).toEqual(["one"]);
    expect(await found(join(dir, "SKILL.md"))).toEqual(["one"]);
  });

  it("takes what lies below a skill as part of it, and tells of further skills there", async () => {
    skill("one");
    skill("one", "examples", "inner");
    skill("one", "examples", "other");
    skill("two");
    skill("two", "template");
    write(join(root, "two", "1", "2", "3", "4", "5", "6", "7", "deep.md"), "text");
    expect(await found()).toEqual(["one", "two"]);
    const { problems } = await findSkills(root);
    expect(problems.map(({ path, code }) => [relative(root, path), code])).toEqual([
      ["one", "nested"],
      ["two", "nested"],
    ]);
    expect(problems[0]?.message).toContain(
      `contains 2 more skills, read as part of it: ${join("examples", "inner")} first`,
    );
    expect(problems[1]?.message).toContain("contains 1 more skill,");
  });

  it("takes those in a folder called skills below a skill as skills too, as plugins have them", async () => {
    skill("nest");
    skill("nest", "skills", "a");
    skill("nest", "skills", "b");
    skill("nest", "skills", "b", "examples", "inner");
    skill("nest", "plugins", "p", ".claude", "skills", "c");
    const { dirs, problems } = await findSkills(join(root, "nest"));
    expect(dirs.map((dir) => relative(root, dir).replaceAll("\\", "/"))).toEqual([
      "nest",
      "nest/plugins/p/.claude/skills/c",
      "nest/skills/a",
      "nest/skills/b",
    ]);
    expect(problems).toMatchObject([{ path: join(root, "nest", "skills", "b"), code: "nested" }]);
  });

  it("takes the one skill whose SKILL.md is named", async () => {
    skill("nest");
    skill("nest", "skills", "a");
    expect(await found(join(root, "nest", "SKILL.md"))).toEqual(["nest"]);
  });

  it("reads the name in any case, but not of a folder", async () => {
    write(join(root, "lower", "skill.md"), "text");
    mkdirSync(join(root, "folder", "SKILL.md"), { recursive: true });
    expect(await found()).toEqual(["lower"]);
  });

  it("leaves node_modules and version control out", async () => {
    skill("node_modules", "package");
    skill(".git", "hooks");
    skill("kept");
    expect(await found()).toEqual(["kept"]);
  });

  it("looks no deeper than the bound, and says so", async () => {
    skill("1", "2", "3");
    skill("top");
    const { dirs, problems } = await findSkills(root, { depth: 2 });
    expect(dirs).toEqual([join(root, "top")]);
    expect(problems).toMatchObject([{ code: "too_deep" }]);
    expect(problems[0]?.message).toContain(join(root, "1", "2", "3"));
    expect(await found(root, { depth: 3 })).toEqual(["1/2/3", "top"]);
  });

  it("looks into no more folders than the bound, and says so once", async () => {
    for (let number = 0; number < 20; number++) skill(`s${number}`);
    const { dirs, problems } = await findSkills(root, { folders: 6 });
    expect(dirs).toHaveLength(5);
    expect(problems).toMatchObject([{ code: "too_many" }]);
  });

  it("follows links to skills elsewhere, ends in loops, and takes a folder with two names once", async () => {
    const elsewhere = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-find-other-")));
    try {
      write(join(elsewhere, "linked", "SKILL.md"), "text");
      write(join(elsewhere, "tree", "hidden", "SKILL.md"), "text");
      skill("own");
      symlinkSync(join(elsewhere, "linked"), join(root, "link"));
      symlinkSync(join(elsewhere, "tree"), join(root, "tree"));
      symlinkSync(root, join(root, "up"));
      symlinkSync(join(root, "own"), join(root, "z-again"));
      symlinkSync(join(root, "nowhere"), join(root, "broken"));
      symlinkSync(join(root, "round"), join(root, "round"));
      expect(await found()).toEqual(["link", "own"]);
    } finally {
      rmSync(elsewhere, { recursive: true, force: true });
    }
  });

  it("a link back up ends also where the root itself was reached through a link", async () => {
    skill("real", "own");
    symlinkSync(join(root, "real"), join(root, "real", "up"));
    symlinkSync(join(root, "real"), join(root, "entrance"));
    expect(await found(join(root, "entrance"))).toEqual(["entrance/own"]);
  });

  it.skipIf(process.getuid?.() === 0)("tells of a folder that may not be looked into, and goes on", async () => {
    skill("closed", "inner");
    skill("open");
    chmodSync(join(root, "closed"), 0);
    const { dirs, problems } = await findSkills(root);
    chmodSync(join(root, "closed"), 0o700);
    expect(dirs).toEqual([join(root, "open")]);
    expect(problems).toMatchObject([{ path: join(root, "closed"), code: "unreadable" }]);
  });

  it("refuses a folder that is not there and a file that is none", async () => {
    await expect(findSkills(join(root, "no"))).rejects.toMatchObject({ code: "not_found" });
    write(join(root, "a.zip"), "text");
    await expect(findSkills(join(root, "a.zip"))).rejects.toMatchObject({
      code: "invalid_arguments",
      hint: expect.stringContaining("skill install"),
    });
  });
});

describe("[skill-05c] reading folders of skills", () => {
  it("goes on past what cannot be read, and takes a folder that is named twice once", async () => {
    skill("good");
    write(join(root, "large", "SKILL.md"), "x".repeat(1024 * 1024 + 1));
    const { skills, problems } = await readSkillFolders([root, join(root, "good"), join(root, "absent")]);
    expect(skills.map(({ name }) => name)).toEqual(["good"]);
    expect(problems.map(({ path, code }) => [relative(root, path), code])).toEqual([
      ["absent", "not_found"],
      ["large", "too_large"],
    ]);
  });
});
