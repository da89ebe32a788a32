import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  lockedDifference,
  lockedSource,
  parseInstalled,
  parseSkillsLock,
  renderSkillsLock,
  sourceFromLock,
} from "../../../src/hub/install/installed-skills.ts";
import { declaredSkills } from "../../../src/hub/install/plan-install.ts";
import { assertReplaceable, clientFolders, folderName } from "../../../src/hub/install/skill-folders.ts";
import { CLIENTS } from "../../../src/clients/clients.ts";
import { readSkill } from "../../../src/skills/read/read-skill.ts";
import { put, writeSkill } from "./skills.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-records-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe("[skill-12b] the lock file", () => {
  const entry = (digest: string) => ({ source: "./s", version: "1.0.0", digest, servers: [], clients: [] });

  it("is sorted, ends with a line break, and is gone when it is empty", () => {
    const text = renderSkillsLock({ b: entry("2"), a: entry("1") }) ?? "";
    expect(Object.keys(parseSkillsLock("f", text))).toEqual(["a", "b"]);
    expect(text.endsWith("}\n")).toBe(true);
    expect(renderSkillsLock({})).toBeNull();
    expect(parseSkillsLock("f", null)).toEqual({});
  });

  it("holds paths relative to itself where it can, and reads them back", () => {
    const file = "/p/toolcrib-skills.lock";
    for (const [source, kept] of [
      ["/p/skills/a", "./skills/a"],
      ["/p", "."],
      ["/elsewhere/a", "/elsewhere/a"],
      ["https://example.com/a.git#main", "https://example.com/a.git#main"],
      ["npm:@a/b", "npm:@a/b"],
    ] as const) {
      expect(lockedSource(source, file)).toBe(kept);
      expect(sourceFromLock(kept, file)).toBe(source);
    }
  });

  it("tells a change of the same source, and not another source", async () => {
    const skill = await readSkill(writeSkill(dir, "s"));
    const file = join(dir, "toolcrib-skills.lock");
    const lock = { s: entry("sha256:0000000000000000") };
    expect(lockedDifference(lock, file, { skill, source: join(dir, "s") })).toContain("s from ./s has changed");
    expect(lockedDifference(lock, file, { skill, source: "/other" })).toBeUndefined();
    expect(lockedDifference({ s: entry(skill.digest) }, file, { skill, source: join(dir, "s") })).toBeUndefined();
  });

  it("is not written over if it cannot be read", () => {
    for (const text of ["{", "[]", '{"lockfileVersion": 2, "skills": {}}']) {
      expect(() => parseSkillsLock("/x/lock", text)).toThrow(expect.objectContaining({ code: "invalid_config" }));
      expect(() => parseInstalled("/x/installed.json", text)).toThrow(
        expect.objectContaining({ code: "invalid_config" }),
      );
    }
  });
});

describe("[skill-12a] package.json", () => {
  it("is found upward, and its paths start from it", async () => {
    put(join(dir, "package.json"), JSON.stringify({ agentskills: { skills: { a: "./x", b: "npm:y" } } }));
    put(join(dir, "deep/er/file"), "");
    const { file, sources } = await declaredSkills(join(dir, "deep/er"));
    expect(file).toBe(join(dir, "package.json"));
    expect(sources).toEqual([
      { source: "./x", name: "a", cwd: dir },
      { source: "npm:y", name: "b", cwd: dir },
    ]);
  });

  it.each(["{", '{"agentskills": 3}', '{"agentskills": {"skills": []}}', '{"agentskills": {"skills": {"a": ""}}}'])(
    "is refused as %s",
    async (text) => {
      put(join(dir, "package.json"), text);
      await expect(declaredSkills(dir)).rejects.toMatchObject({ code: "invalid_config" });
    },
  );
});

describe("[skill-10d] folders of clients", () => {
  const place = { platform: "linux", home: "/h", env: {}, projectDir: "/p" } as const;

  it("are named after the skill, whatever its name is", () => {
    const of = (name: string): string => folderName({ name, dialect: "agent-skills" });
    expect(of("notes")).toBe("notes");
    for (const name of ["../../evil", "a/b", "..", "", "Über schön", "con.", "a\u0000b"]) {
      expect(of(name)).toMatch(/^[A-Za-z0-9_-]+$/);
    }
  });

  it("are one for clients that share it, and are the first that a client reads", async () => {
    const skill = await readSkill(writeSkill(dir, "s"));
    const folders = clientFolders(skill, CLIENTS, place, "project");
    const paths = folders.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    expect(paths).toContain("/p/.claude/skills/s");
    expect(folders.flatMap(({ clients }) => clients)).toContain("claude-code");
    for (const path of paths) expect(path.startsWith("/p/")).toBe(true);
  });

  it("are replaced only if they are as they were placed", async () => {
    const path = writeSkill(dir, "s");
    const { digest } = await readSkill(path);
    const record = { name: "s", source: "", digest, run: "", servers: [], entries: [], lockFile: "" };
    const ours = { "skill-s": { ...record, folders: [{ clients: ["cursor"], path, digest }] } };
    await expect(assertReplaceable(path, "skill-s", ours)).resolves.toBeUndefined();
    await expect(assertReplaceable(join(dir, "absent"), "skill-s", ours)).resolves.toBeUndefined();
    await expect(assertReplaceable(path, "skill-s", {})).rejects.toThrow("did not put it there");
    put(join(path, "more.md"), "x");
    await expect(assertReplaceable(path, "skill-s", ours)).rejects.toThrow("was changed since");
  });
});
