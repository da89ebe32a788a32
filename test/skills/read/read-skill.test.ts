import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SkillFile } from "../../../src/model/skill.ts";
import { readSkill } from "../../../src/skills/read/read-skill.ts";
import { skillDigest } from "../../../src/skills/verified-files.ts";
import { FIXTURES, parse } from "./support.ts";

const sha256 = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

describe("a Skill", () => {
  it("[skill-01c] is frozen through and through", async () => {
    const skill = await readSkill(join(FIXTURES, "garden-camera"));
    const seen = new Set<object>();
    const check = (value: unknown): void => {
      if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
      seen.add(value);
      expect(Object.isFrozen(value)).toBe(true);
      for (const member of Object.values(value)) check(member);
    };
    check(skill);
    check(parse("no frontmatter"));
    expect(seen.size).toBeGreaterThan(20);
  });

  it("[skill-01c] holds the bytes as they are, the body, and every file with its digest", async () => {
    const dir = join(FIXTURES, "tide-tables");
    const skill = await readSkill(dir);
    const bytes = await readFile(join(dir, "SKILL.md"));
    expect(skill.dir).toBe(dir);
    expect(Buffer.from(skill.bytes).equals(bytes)).toBe(true);
    expect(bytes.toString().endsWith(`---\n${skill.body}`)).toBe(true);
    for (const { path, size, digest } of skill.files) {
      const file = await readFile(join(dir, path));
      expect({ size, digest }).toEqual({ size: file.length, digest: sha256(file) });
    }
    expect(skill.digest).toBe(skillDigest(skill.files));
  });

  it("[skill-01c] facts are plain JSON", async () => {
    const { body, bytes, dir, ...facts } = await readSkill(join(FIXTURES, "release-notes"));
    expect([body, bytes, dir]).toHaveLength(3);
    expect(JSON.parse(JSON.stringify(facts))).toEqual(facts);
  });

  it("the path of SKILL.md stands for its folder", async () => {
    const dir = join(FIXTURES, "tide-tables");
    expect(await readSkill(join(dir, "SKILL.md"))).toEqual(await readSkill(dir));
  });

  it("the digest depends on paths and contents, not on order or modes", () => {
    const file = (path: string, text: string, executable = false): SkillFile => ({
      path,
      size: text.length,
      digest: sha256(Buffer.from(text)),
      executable,
    });
    const [a, b] = [file("SKILL.md", "one"), file("a.md", "two")];
    expect(skillDigest([a, b])).toBe(skillDigest([b, { ...a, executable: true }]));
    expect(skillDigest([a, b])).toMatch(/^sha256:[0-9a-f]{64}$/);
    const others = [
      [a],
      [a, file("b.md", "two")],
      [a, file("a.md", "three")],
      [file("a.md", "one"), file("SKILL.md", "two")],
    ];
    expect(new Set([[a, b], ...others].map(skillDigest)).size).toBe(5);
  });

  it("SKILL.md alone is a skill of one file", () => {
    const skill = parse("---\nname: tides\ndescription: Water.\n---\nGo.\n");
    expect(skill.files).toEqual([{ path: "SKILL.md", size: 44, digest: sha256(skill.bytes), executable: false }]);
    expect(skill.digest).toBe(skillDigest(skill.files));
  });
});
