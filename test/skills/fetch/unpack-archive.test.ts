import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  ARCHIVE_LIMITS,
  type ArchiveLimits,
  entryPath,
  unpackTar,
  unpackZip,
} from "../../../src/skills/fetch/unpack-archive.ts";
import { fetchSkills } from "../../../src/skills/fetch/fetch-skills.ts";
import { SKILL_TEXT, tarOf, type TarMember, tgzOf, zipOf, type ZipMember } from "./archives.ts";

let place: string;
let target: string;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "toolcrib-unpack-"));
  target = mkdtempSync(join(place, "target-"));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function fileOf(name: string, bytes: Buffer): string {
  const file = join(place, name);
  writeFileSync(file, bytes);
  return file;
}

const unzip = (members: readonly ZipMember[], limits?: Partial<ArchiveLimits>): Promise<void> =>
  unpackZip(fileOf("a.zip", zipOf(members)), target, { limits: { ...ARCHIVE_LIMITS, ...limits } });
const untar = (members: readonly TarMember[], limits?: Partial<ArchiveLimits>): Promise<void> =>
  unpackTar(fileOf("a.tgz", tgzOf(members)), target, { limits: { ...ARCHIVE_LIMITS, ...limits } });

/** Everything below the place but the archives, to see that nothing landed elsewhere. */
const written = (): string[] =>
  (readdirSync(place, { recursive: true }) as string[]).filter((path) => !path.startsWith("a."));

describe("honest archives", () => {
  it("[skill-10a] unpacks files, folders and the executable bit, and no other bits", async () => {
    await unzip([
      { name: "notes/", mode: 0o040777 },
      { name: "notes/SKILL.md", content: SKILL_TEXT },
      { name: "notes/scripts/run.sh", content: "#!/bin/sh\n", mode: 0o104755, stored: true },
    ]);
    expect(readFileSync(join(target, "notes/SKILL.md"), "utf8")).toBe(SKILL_TEXT);
    expect(statSync(join(target, "notes/scripts/run.sh")).mode & 0o7777).toBe(0o755 & ~process.umask());
    expect(statSync(join(target, "notes/SKILL.md")).mode & 0o111).toBe(0);
  });

  it("[skill-10a] unpacks tar, gzipped or not, with names that begin with ./", async () => {
    const members = [
      { name: "./", type: "5" },
      { name: "./notes/SKILL.md", content: SKILL_TEXT },
      { name: "./notes/run.sh", content: "x".repeat(200_000), mode: 0o6755 },
    ];
    await unpackTar(fileOf("a.tar", tarOf(members)), target);
    const gzipped = mkdtempSync(join(place, "second-"));
    await unpackTar(fileOf("a.tgz", tgzOf(members)), gzipped);
    for (const dir of [target, gzipped]) {
      expect(readFileSync(join(dir, "notes/SKILL.md"), "utf8")).toBe(SKILL_TEXT);
      expect(statSync(join(dir, "notes/run.sh")).size).toBe(200_000);
      expect(statSync(join(dir, "notes/run.sh")).mode & 0o7777).toBe(0o755 & ~process.umask());
    }
  });
});

const ESCAPES = [
  "../evil",
  "a/../../evil",
  "/tmp/toolcrib-evil",
  "..\\evil",
  "C:/evil",
  "C:\\evil",
  "a/..",
  "x\u0001y",
];

describe("archives that want out", () => {
  it.each(ESCAPES)("[skill-10a] refuses the name %j in both formats", async (name) => {
    const before = written();
    await expect(unzip([{ name, content: "x" }])).rejects.toMatchObject({ code: "blocked" });
    await expect(untar([{ name, content: "x" }])).rejects.toMatchObject({ code: "blocked" });
    expect(written()).toEqual(before);
  });

  it("[skill-10a] refuses links and devices", async () => {
    const link = { name: "link", mode: 0o120777, content: "/etc/passwd" };
    await expect(unzip([link])).rejects.toMatchObject({ code: "blocked" });
    for (const type of ["1", "2", "3", "4", "6"]) {
      const target = type < "3" ? { link: "/etc/passwd" } : {};
      await expect(untar([{ name: "link", type, ...target }])).rejects.toMatchObject({ code: "blocked" });
    }
    expect(readdirSync(target)).toEqual([]);
  });

  it("[skill-10a] refuses what is there twice, also in another case or under a file", async () => {
    const twice = [
      { name: "SKILL.md", content: "one" },
      { name: "./SKILL.md", content: "two" },
    ];
    await expect(unzip(twice)).rejects.toMatchObject({ code: "blocked" });
    rmSync(join(target, "SKILL.md"));
    await expect(untar([{ name: "SKILL.md" }, { name: "skill.MD" }])).rejects.toMatchObject({ code: "blocked" });
    await expect(untar([{ name: "a" }, { name: "a/b" }])).rejects.toMatchObject({ code: "blocked" });
  });

  it("[skill-10a] refuses encrypted zips", async () => {
    await expect(unzip([{ name: "SKILL.md", content: "x", encrypted: true }])).rejects.toMatchObject({
      code: "blocked",
      message: expect.stringContaining("encrypted"),
    });
  });

  it("knows names that are harmless here and not on Windows", () => {
    expect(entryPath("a/b:c", "linux")).toEqual(["a", "b:c"]);
    expect(() => entryPath("a/b:c", "win32")).toThrow(/Windows/);
    expect(entryPath("a//./b/", "linux")).toEqual(["a", "b"]);
  });
});

describe("archives that flood", () => {
  it("[skill-10a] stops at the number of entries", async () => {
    const many = Array.from({ length: 12 }, (_, index) => ({ name: `f${index}` }));
    await expect(unzip(many, { entries: 10 })).rejects.toMatchObject({ code: "too_large" });
    await expect(untar(many, { entries: 10 })).rejects.toMatchObject({ code: "too_large" });
  });

  it("[skill-10a] stops at the size of one file and of all, whatever the headers claim", async () => {
    const big = "ab".repeat(5000);
    await expect(unzip([{ name: "big", content: big }], { fileBytes: 4000 })).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(untar([{ name: "big2", content: big }], { fileBytes: 4000 })).rejects.toMatchObject({
      code: "too_large",
    });
    const three = (...names: string[]): ZipMember[] => names.map((name) => ({ name, content: big }));
    await expect(unzip(three("x", "y", "z"), { totalBytes: 25_000 })).rejects.toMatchObject({ code: "too_large" });
    await expect(untar(three("u", "v", "w"), { totalBytes: 25_000 })).rejects.toMatchObject({ code: "too_large" });
    const liar = { name: "liar", content: "0".repeat(1_000_000), claimedSize: 10 };
    await expect(unzip([liar])).rejects.toMatchObject({ code: "invalid_config" });
    expect(statSync(join(target, "liar")).size).toBeLessThan(200_000);
  });

  it("[skill-10a] stops at the ratio, also for bytes that belong to no entry", async () => {
    const zeros = Buffer.alloc(3_000_000);
    const limits = { ratioFrom: 100_000, ratio: 50 };
    await expect(unzip([{ name: "zeros", content: zeros }], limits)).rejects.toMatchObject({ code: "too_large" });
    const file = fileOf("a.tgz", gzipSync(Buffer.concat([tarOf([{ name: "SKILL.md" }]), zeros])));
    await expect(unpackTar(file, target, { limits: { ...ARCHIVE_LIMITS, ...limits } })).rejects.toMatchObject({
      code: "too_large",
    });
  });

  it("says so when a file is no archive, is cut short or is packed twice", async () => {
    const broken = [
      () => unpackZip(fileOf("a.zip", Buffer.from("not a zip")), target),
      () => unpackTar(fileOf("a.tar", Buffer.from("not a tar".repeat(100))), target),
      () => unpackTar(fileOf("a.tgz", tgzOf([{ name: "x", content: "y".repeat(9000) }]).subarray(0, 60)), target),
      () => unpackTar(fileOf("a.tar.gz", gzipSync(tgzOf([{ name: "x" }]))), target),
    ];
    for (const each of broken) await expect(each()).rejects.toMatchObject({ code: "invalid_config" });
  });

  it("stops when it is told to", async () => {
    const signal = AbortSignal.abort();
    const file = fileOf("a.zip", zipOf([{ name: "x" }]));
    await expect(unpackZip(file, target, { signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("fetchSkills from files", () => {
  const options = { cwd: "/", env: {} };

  it("[skill-10a] takes a folder as it is, and SKILL.md for its folder", async () => {
    writeFileSync(join(target, "SKILL.md"), SKILL_TEXT);
    for (const source of [target, join(target, "SKILL.md")]) {
      const fetched = await fetchSkills(source, options);
      expect(fetched).toMatchObject({ dir: target, source: target, temporary: false });
      await fetched.dispose();
    }
    expect(readdirSync(target)).toEqual(["SKILL.md"]);
  });

  it("[skill-10a] unpacks archives into a folder that goes again, also after a refusal", async () => {
    const inTemp = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("toolcrib-skill-"));
    const before = inTemp();
    const file = fileOf("notes.zip", zipOf([{ name: "SKILL.md", content: SKILL_TEXT }]));
    const fetched = await fetchSkills("notes.zip", { cwd: place, env: {} });
    expect(fetched).toMatchObject({ source: file, temporary: true });
    expect(fetched.dir).toMatch(/\/notes$/);
    expect(readFileSync(join(fetched.dir, "SKILL.md"), "utf8")).toBe(SKILL_TEXT);
    await fetched.dispose();
    const evil = fileOf("evil.tar.gz", tgzOf([{ name: "../evil" }]));
    await expect(fetchSkills(evil, options)).rejects.toMatchObject({ code: "blocked" });
    // Other tests may have folders of theirs at the moment; ours are gone.
    expect(
      inTemp().filter((name) => !before.includes(name) && readdirSync(join(tmpdir(), name)).includes("notes")),
    ).toEqual([]);
  });

  it("says what a source can be", async () => {
    await expect(fetchSkills("left-pad", options)).rejects.toMatchObject({
      code: "not_found",
      hint: expect.stringContaining("npm:left-pad"),
    });
    await expect(fetchSkills("./nowhere/at/all", options)).rejects.toMatchObject({ code: "not_found" });
    await expect(fetchSkills(fileOf("a.txt", Buffer.from("x")), options)).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });

  it("finds ~ where the environment says", async () => {
    const fetched = await fetchSkills("~/", { cwd: "/", env: { HOME: target } });
    expect(fetched.dir).toBe(target);
  });
});
