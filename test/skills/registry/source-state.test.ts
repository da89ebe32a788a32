import { chmodSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SkillManifest } from "../../../src/model/skill.ts";
import { manifestOf } from "../../../src/skills/registry/skill-manifest.ts";
import { isFolderSource, sourceState } from "../../../src/skills/registry/source-state.ts";
import { makeSkill, skillText, temporaryFolder, toPut, writeFile } from "./made-skills.ts";

const LATER = new Date(Date.now() + 3_600_000).toISOString();
const EARLIER = new Date(0).toISOString();

async function manifest(dir: string, importedAt: string, source?: string): Promise<SkillManifest> {
  return manifestOf(await toPut(dir, source), { id: "skill-notes", dir: "files/skill-notes/0", importedAt });
}

describe("[skill-06b] whether the source has changed", () => {
  it("is told by content, not by time", async () => {
    const dir = makeSkill(temporaryFolder(), "notes");
    const before = await manifest(dir, EARLIER);
    expect(await sourceState(before)).toBe("same");
    writeFileSync(join(dir, "SKILL.md"), skillText("notes"));
    expect(await sourceState(before)).toBe("same");
    writeFileSync(join(dir, "SKILL.md"), skillText("notes", "body."));
    expect(await sourceState(before)).toBe("changed");
  });

  it("is seen of a file that came or went, and of one whose time was set back", async () => {
    const dir = makeSkill(temporaryFolder(), "notes");
    writeFile(join(dir, "data", "a.txt"), "a");
    const before = await manifest(dir, EARLIER);
    writeFile(join(dir, "data", "b.txt"), "b");
    expect(await sourceState(before)).toBe("changed");
    rmSync(join(dir, "data", "b.txt"));
    expect(await sourceState(before)).toBe("same");
    writeFileSync(join(dir, "data", "a.txt"), "b");
    utimesSync(join(dir, "data", "a.txt"), 1, 1);
    expect(await sourceState(before)).toBe("changed");
    rmSync(join(dir, "data"), { recursive: true });
    expect(await sourceState(before)).toBe("changed");
  });

  it.skipIf(process.getuid?.() === 0 || process.platform === "win32")(
    "is known without reading where nothing was touched since the import",
    async () => {
      const dir = makeSkill(temporaryFolder(), "notes");
      const before = await manifest(dir, LATER);
      chmodSync(join(dir, "SKILL.md"), 0);
      expect(await sourceState(before)).toBe("same");
      expect(await sourceState({ ...before, importedAt: EARLIER })).toBe("changed");
    },
  );

  it("is gone with the folder", async () => {
    const dir = makeSkill(temporaryFolder(), "notes");
    const before = await manifest(dir, LATER);
    rmSync(dir, { recursive: true });
    expect(await sourceState(before)).toBe("gone");
  });

  it("is not asked of archives, addresses and packages", async () => {
    const dir = makeSkill(temporaryFolder(), "notes");
    for (const source of ["/somewhere/skills.zip", "https://example.com/skills.git", "npm:skills", "server:files"]) {
      const from = await manifest(dir, EARLIER, source);
      expect(isFolderSource(from)).toBe(false);
      expect(await sourceState(from)).toBe("unchecked");
    }
    expect(isFolderSource(await manifest(dir, EARLIER, dir))).toBe(true);
  });
});
