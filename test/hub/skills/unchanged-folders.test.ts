/** A refresh of `skills.dirs`, counted by the files that are opened. */
import fs, { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { skillText, writeSkill } from "../../support/skill-folder.ts";

let place: string;
let skills: string;
let hub: Hub | undefined;
let opened: string[] = [];
const { openSync } = fs;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "toolcrib-unchanged-"));
  skills = join(place, "skills");
  fs.openSync = (path, ...rest) => {
    if (typeof path === "string" && path.startsWith(skills)) opened.push(relative(skills, path));
    return openSync(path, ...rest);
  };
  syncBuiltinESMExports();
});

afterEach(async () => {
  fs.openSync = openSync;
  syncBuiltinESMExports();
  await hub?.close();
  rmSync(place, { recursive: true, force: true });
});

const described = (): (string | undefined)[] => hub?.skills.list().map(({ description }) => description) ?? [];

async function refresh(): Promise<string[]> {
  opened = [];
  await hub?.skills.refresh();
  return opened.toSorted();
}

it("[speed-08c] a refresh reads the skills that changed, and no others", { timeout: 60_000 }, async () => {
  for (const name of ["one", "two", "three"]) writeSkill(skills, name, { files: { "notes/more.md": `Of ${name}.` } });
  hub = await createHub({ skills: { dirs: [skills] } }, { home: join(place, "home") });
  expect(opened.toSorted()).toEqual(
    ["one", "three", "two"].flatMap((name) => [join(name, "SKILL.md"), join(name, "notes/more.md")]),
  );
  // Until the files are old enough for their times to be relied on, all are read.
  await expect.poll(refresh, { interval: 200 }).toEqual([]);

  writeFileSync(join(skills, "two", "SKILL.md"), skillText("two", { description: "Another." }));
  expect(await refresh()).toEqual([join("two", "SKILL.md"), join("two", "notes/more.md")]);
  expect(described()).toEqual(["Knows all about one.", "Knows all about three.", "Another."]);

  // The same size, and a time that was set back: the inode's own time tells.
  await expect.poll(refresh, { interval: 200 }).toEqual([]);
  const main = join(skills, "one", "SKILL.md");
  const { atime, mtime } = fs.statSync(main);
  writeFileSync(main, skillText("one", { description: "Knows all about none" }));
  utimesSync(main, atime, mtime);
  expect(await refresh()).toContain(join("one", "SKILL.md"));
  expect(described()).toContain("Knows all about none");

  await expect.poll(refresh, { interval: 200 }).toEqual([]);
  rmSync(join(skills, "three"), { recursive: true });
  writeSkill(skills, "four");
  expect(await refresh()).toEqual([join("four", "SKILL.md")]);
  expect(described()).toEqual(["Knows all about four.", "Knows all about none", "Another."]);
});
