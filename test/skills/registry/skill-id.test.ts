import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSafePath } from "../../../src/skills/verified-files.ts";
import { isSkillId, numberedId, skillId, toolNameOf } from "../../../src/skills/registry/skill-id.ts";

describe("[skill-06a] ids of skills", () => {
  it("follow the dialect and the name", () => {
    expect(skillId("notes", "agent-skills")).toBe("skill-notes");
    expect(skillId("notes", "claude-code")).toBe("skill-notes");
    expect(skillId("notes", "openclaw")).toBe("openclaw-skill-notes");
    expect(skillId("a".repeat(64), "agent-skills")).toBe(`skill-${"a".repeat(64)}`);
  });

  it("forgive case and blanks", () => {
    expect(skillId(" My Notes ", "agent-skills")).toBe("skill-my-notes");
    expect(skillId("snake_case", "agent-skills")).toBe("skill-snake_case");
  });

  it("keep names apart whose letters are lost", () => {
    const names = [
      "../../etc/passwd",
      "..",
      "/",
      "日本語",
      "中文",
      "a/b",
      "a.b",
      "café",
      "",
      "a".repeat(65),
      `${"a".repeat(64)}b`,
    ];
    const ids = names.map((name) => skillId(name, "agent-skills"));
    expect(new Set(ids).size).toBe(names.length);
    for (const id of ids) expect(id).toMatch(/^skill-[a-z0-9_-]+$/);
    expect(ids[0]).toMatch(/^skill-etc-passwd-[0-9a-f]{8}$/);
  });

  it("are safe for any name, and so are the names of tools", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 200 }),
        fc.constantFrom("agent-skills", "openclaw"),
        (name, dialect) => {
          const id = skillId(name, dialect);
          expect(isSkillId(id)).toBe(true);
          expect(isSkillId(numberedId(id, 1234))).toBe(true);
          expect(isSafePath(`files/${id}/0123456789abcdef`)).toBe(true);
          expect(toolNameOf(id)).toMatch(/^skill__[a-z0-9_-]{1,57}$/);
        },
      ),
    );
  });

  it("give the tool skill__<name>, cut where a tool's name must be shorter", () => {
    expect(toolNameOf("skill-notes")).toBe("skill__notes");
    expect(toolNameOf("openclaw-skill-notes")).toBe("skill__notes");
    const long = ["a", "b"].map((end) => toolNameOf(`skill-${"x".repeat(63)}${end}`));
    expect(new Set(long).size).toBe(2);
  });
});

describe("[skill-06c] paths inside a skill", () => {
  it.each(["", ".", "..", "/etc/passwd", "a/../b", "a//b", "a/./b", "a/", "a\0b"])("%j is not safe", (path) => {
    expect(isSafePath(path)).toBe(false);
  });

  it.each(["SKILL.md", "scripts/run.sh", "..a/b..", ".hidden"])("%j is safe", (path) => {
    expect(isSafePath(path)).toBe(true);
  });
});
