import { execFileSync } from "node:child_process";
import { chmod, link, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSkill, readSkill } from "../../../src/skills/read/read-skill.ts";
import { codes, parse } from "./support.ts";

const GOOD = "---\nname: tides\ndescription: Water.\n---\nGo.\n";
const posix = process.platform !== "win32";

/** Node itself cannot make one. */
function makePipe(path: string): void {
  const program = "mkfifo";
  execFileSync(program, [path]);
}

let home: string;
let dir: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "toolcrib-read-"));
  dir = join(home, "tides");
  await mkdir(dir);
  await writeFile(join(dir, "SKILL.md"), GOOD);
});
afterEach(() => rm(home, { recursive: true, force: true }));

describe("frontmatter is data", () => {
  it.each(["js", "javascript", "coffee", "toml", "ts"])("[skill-01b] ---%s stays text and is never run", (language) => {
    // A name of the test's own, which no type of the global object knows.
    const probe = globalThis as { ran?: boolean };
    delete probe.ran;
    const text = `---${language}\n(globalThis.ran = true, {name: "evil", description: "x"})\n---\n\nReal text.\n`;
    for (let round = 0; round < 2; round += 1) {
      const skill = parse(text);
      expect(skill.name).toBe("harbour");
      expect(skill.body).toBe(text);
      expect(skill.description).toBe("Real text.");
      expect(codes(skill)).toContain("FRONTMATTER_LANGUAGE");
    }
    expect(probe.ran).toBeUndefined();
  });

  it("[skill-01b] aliases are followed, but a bomb of them fizzles out", () => {
    const small = parse(
      "---\nname: tides\ndescription: &d Water.\nmetadata:\n  a: *d\n  b: &l [1, 2]\n  c: *l\n---\nGo.\n",
    );
    expect(small.frontmatter["metadata"]).toEqual({ a: "Water.", b: [1, 2], c: [1, 2] });
    expect(small.warnings).toEqual([]);

    const letters = [..."abcdefghijkl"];
    const rows = letters.map((letter, index) => {
      const before = letters[index - 1];
      return `${letter}: &${letter} [${Array(9)
        .fill(before === undefined ? '"lol"' : `*${before}`)
        .join(", ")}]`;
    });
    const bomb = parse(`---\nname: tides\ndescription: Water.\n${rows.join("\n")}\n---\nGo.\n`);
    expect(bomb).toMatchObject({ name: "tides", description: "Water." });
    expect(codes(bomb)).toEqual(["ALIAS_LIMIT"]);
    expect(JSON.stringify(bomb.frontmatter).length).toBeLessThan(50_000);
  });

  it("[skill-01b] an alias to what holds it ends there", () => {
    const skill = parse("---\nname: tides\ndescription: Water.\nmetadata: &m\n  self: *m\n---\nGo.\n");
    expect(skill.frontmatter["metadata"]).toEqual({ self: null });
  });

  it("[skill-01b] nesting without end, and keys without number", () => {
    for (const metadata of [
      "[".repeat(20_000),
      `${"[".repeat(5000)}${"]".repeat(5000)}`,
      `${'{"a":'.repeat(500)}1${"}".repeat(500)}`,
    ]) {
      const skill = parse(`---\nname: tides\ndescription: Water.\nmetadata: ${metadata}\n---\nGo.\n`);
      expect(skill).toMatchObject({ name: "tides", description: "Water.", body: "Go.\n" });
      expect(skill.warnings).not.toEqual([]);
      expect(() => JSON.stringify(skill.frontmatter)).not.toThrow();
    }
    const keys = Array.from({ length: 5000 }, (_, index) => `k${index}: ${index}`).join("\n");
    expect(parse(`---\nname: tides\ndescription: Water.\n${keys}\n---\nGo.\n`).name).toBe("tides");
    const large = parse(`---\nname: tides\ndescription: ${"Water. ".repeat(20_000)}\n---\nGo.\n`);
    expect(codes(large)).toContain("FRONTMATTER_TOO_LARGE");
    expect(large.name).toBe("tides");
    expect(large.description).toMatch(/^(?:Water\. ?)+$/);
  });

  it("[skill-01b] __proto__ reaches no prototype, in YAML and in JSON5", () => {
    for (const metadata of [
      "metadata:\n  __proto__:\n    polluted: true",
      'metadata: {"__proto__": {"polluted": true}}',
      `metadata: "{__proto__: {polluted: true}}"`,
    ]) {
      const skill = parse(`---\nname: tides\ndescription: Water.\n${metadata}\n---\nGo.\n`);
      expect("polluted" in (skill.frontmatter["metadata"] as object)).toBe(false);
    }
    expect("polluted" in {}).toBe(false);
  });
});

describe("the folder", () => {
  it("[skill-01b] a SKILL.md above its limit is refused, in bytes and on disk", async () => {
    expect(() => parseSkill(new Uint8Array(1024 * 1024 + 1), "tides")).toThrowError(
      expect.objectContaining({ code: "too_large" }),
    );
    await expect(readSkill(dir, { bytes: 10 })).rejects.toMatchObject({ name: "ToolcribError", code: "too_large" });
    await expect(readSkill(dir, { bytes: GOOD.length })).resolves.toMatchObject({ name: "tides" });
    // Sparse: it takes no room and must not be read.
    await truncate(join(dir, "SKILL.md"), 40 * 1024 ** 3);
    await expect(readSkill(dir)).rejects.toMatchObject({ code: "too_large" });
  });

  it("[skill-01b] too many files, and too many bytes, are refused", async () => {
    await mkdir(join(dir, "a/b"), { recursive: true });
    for (const name of ["a/1", "a/2", "a/b/3"]) await writeFile(join(dir, name), "x".repeat(100));
    await expect(readSkill(dir, { files: 6 })).resolves.toMatchObject({ warnings: [] });
    await expect(readSkill(dir, { files: 5 })).rejects.toMatchObject({ code: "too_large" });
    await expect(readSkill(dir, { totalBytes: GOOD.length + 300 })).resolves.toMatchObject({ warnings: [] });
    await expect(readSkill(dir, { totalBytes: GOOD.length + 299 })).rejects.toMatchObject({ code: "too_large" });
  });

  it("digests large files without holding them", async () => {
    const large = Buffer.alloc(700_000, "tide ");
    await writeFile(join(dir, "large.bin"), large);
    const skill = await readSkill(dir);
    expect(skill.files[1]).toMatchObject({ path: "large.bin", size: 700_000 });
    const { bytesDigest } = await import("../../../src/skills/verified-files.ts");
    expect(skill.files[1]?.digest).toBe(bytesDigest(large));
  });

  it.runIf(posix)("[skill-01b] links that leave the folder are refused, those inside are files", async () => {
    await writeFile(join(home, "secret"), "secret");
    await mkdir(join(home, "tides-other"));
    await writeFile(join(home, "tides-other/secret"), "secret");
    await mkdir(join(dir, "docs"));
    await writeFile(join(dir, "docs/units.md"), "metres");
    await symlink("../secret", join(dir, "out"));
    await symlink(join(home, "tides-other"), join(dir, "out-dir"));
    await symlink("nowhere", join(dir, "broken"));
    await symlink("docs/units.md", join(dir, "inside.md"));
    await symlink("docs", join(dir, "inside"));
    await symlink("..", join(dir, "docs/up"));
    await symlink(".", join(dir, "docs/here"));
    const skill = await readSkill(dir);
    expect(skill.files.map(({ path }) => path)).toEqual(["SKILL.md", "docs/units.md", "inside.md", "inside/units.md"]);
    const told = skill.warnings.map(({ code, message }) => `${code} ${/"([^"]*)"/.exec(message)?.[1]}`).toSorted();
    expect(told).toEqual([
      "SYMLINK_BROKEN broken",
      "SYMLINK_LOOP docs/here",
      "SYMLINK_LOOP docs/up",
      "SYMLINK_LOOP inside/here",
      "SYMLINK_LOOP inside/up",
      "SYMLINK_OUTSIDE out",
      "SYMLINK_OUTSIDE out-dir",
    ]);
  });

  it.runIf(posix)("[skill-01b] a SKILL.md that is a link out of the folder is refused", async () => {
    await writeFile(join(home, "elsewhere.md"), GOOD);
    await rm(join(dir, "SKILL.md"));
    await symlink("../elsewhere.md", join(dir, "SKILL.md"));
    await expect(readSkill(dir)).rejects.toMatchObject({ code: "invalid_config" });
    await rm(join(dir, "SKILL.md"));
    await writeFile(join(dir, "text.md"), GOOD);
    await symlink("text.md", join(dir, "SKILL.md"));
    await expect(readSkill(dir)).resolves.toMatchObject({ name: "tides", warnings: [] });
  });

  it.runIf(posix)("[skill-01b] a folder that is itself reached by a link is fine", async () => {
    await symlink(dir, join(home, "linked"));
    const skill = await readSkill(join(home, "linked"));
    expect(skill).toMatchObject({ dir: join(home, "linked"), warnings: [] });
  });

  it.runIf(posix)("[skill-01b] pipes and sockets are left out, and nothing hangs", async () => {
    makePipe(join(dir, "pipe"));
    const server = createServer();
    await new Promise<void>((done) => server.listen(join(dir, "socket"), done));
    try {
      const skill = await readSkill(dir);
      expect(skill.files.map(({ path }) => path)).toEqual(["SKILL.md"]);
      expect(codes(skill)).toEqual(["SPECIAL_FILE", "SPECIAL_FILE"]);
    } finally {
      await new Promise((done) => server.close(done));
    }
    await rm(join(dir, "SKILL.md"));
    makePipe(join(dir, "SKILL.md"));
    await expect(readSkill(dir)).rejects.toMatchObject({ code: "invalid_config" });
  });

  it.runIf(posix)("tells which files may be run, and leaves odd names out", async () => {
    await writeFile(join(dir, "run.sh"), "echo");
    await chmod(join(dir, "run.sh"), 0o755);
    await link(join(dir, "run.sh"), join(dir, "hard.sh"));
    await writeFile(join(dir, "a\nb"), "x");
    await writeFile(join(dir, "..\\..\\up"), "x");
    const skill = await readSkill(dir);
    expect(skill.files.map(({ path, executable }) => [path, executable])).toEqual([
      ["SKILL.md", false],
      ["hard.sh", true],
      ["run.sh", true],
    ]);
    expect(codes(skill)).toEqual(["FILE_NAME_ODD", "FILE_NAME_ODD"]);
  });

  it("leaves out what belongs to other programs", async () => {
    for (const folder of [".git", "node_modules/x"]) {
      await mkdir(join(dir, folder), { recursive: true });
      await writeFile(join(dir, folder, "file"), "x");
    }
    await writeFile(join(dir, ".DS_Store"), "x");
    const skill = await readSkill(dir);
    expect(skill.files).toHaveLength(1);
    expect(codes(skill)).toEqual(["FOLDER_LEFT_OUT"]);
  });

  it("finds skill.md in another case, and says what is missing", async () => {
    await rm(join(dir, "SKILL.md"));
    await expect(readSkill(dir)).rejects.toMatchObject({ code: "not_found", message: expect.stringContaining(dir) });
    await writeFile(join(dir, "skill.md"), GOOD);
    const skill = await readSkill(dir);
    expect(skill.files[0]?.path).toBe("skill.md");
    expect(codes(skill)).toEqual(["FILE_NAME"]);
    await expect(readSkill(join(home, "nothing"))).rejects.toMatchObject({ code: "not_found" });
    await writeFile(join(home, "file.txt"), "x");
    await expect(readSkill(join(home, "file.txt"))).rejects.toMatchObject({ code: "invalid_config" });
    await rm(join(dir, "skill.md"));
    await mkdir(join(dir, "SKILL.md"));
    await expect(readSkill(dir)).rejects.toMatchObject({ code: "invalid_config" });
  });
});
