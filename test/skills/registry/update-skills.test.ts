import { rmSync } from "node:fs";
import { join } from "node:path";
import * as tar from "tar";
import { afterEach, describe, expect, it } from "vitest";
import type { SkillManifest } from "../../../src/model/skill.ts";
import type { Machine } from "../../../src/skills/needs.ts";
import type { SkillRegistry } from "../../../src/skills/registry/skill-registry.ts";
import { type UpdateOutcome, updateSkills } from "../../../src/skills/registry/update-skills.ts";
import { closeRegistries, registryAt } from "../../support/skill-registry.ts";
import { makeSkill, temporaryFolder, toPut } from "./made-skills.ts";

afterEach(closeRegistries);

const machine: Machine = { platform: "linux", env: {}, hasConfig: () => false, servers: [] };

async function update(registry: SkillRegistry, more: { dryRun?: boolean } = {}): Promise<UpdateOutcome[]> {
  return updateSkills(registry, await registry.list(), { machine, fetch: { cwd: "/", env: {} }, ...more });
}

/** An archive with skills of one name and one other, imported as `install` does it: from a folder that is gone then. */
async function imported(): Promise<{ registry: SkillRegistry; pack: (bodies: readonly string[]) => Promise<void> }> {
  const root = temporaryFolder();
  const archive = join(root, "skills.tgz");
  const folders = ["a/notes", "b/notes", "c/other"];
  const write = (to: string, bodies: readonly string[]): string[] =>
    folders.flatMap((folder, index) => {
      const body = bodies[index];
      return body === undefined ? [] : [makeSkill(to, folder.slice(2), { folder, body })];
    });
  const pack = async (bodies: readonly string[]): Promise<void> => {
    const from = join(root, "packed");
    rmSync(from, { recursive: true, force: true });
    write(from, bodies);
    await tar.create({ file: archive, gzip: true, cwd: from }, ["."]);
  };
  const unpacked = join(root, "unpacked");
  const registry = registryAt(join(root, "home"));
  const dirs = write(unpacked, ["1", "2", "3"]);
  await registry.put(await Promise.all(dirs.map((dir) => toPut(dir, archive))));
  rmSync(unpacked, { recursive: true });
  return { registry, pack };
}

async function bodies(registry: SkillRegistry): Promise<string[]> {
  const list = await registry.list();
  return Promise.all(
    list.map(async (each: SkillManifest) => {
      const text = Buffer.from(await registry.readFile(each, "SKILL.md")).toString("utf8");
      return `${each.id} ${text.split("\n")[4] ?? ""}`;
    }),
  );
}

const statuses = (outcomes: readonly UpdateOutcome[]): string[] =>
  outcomes.map(({ before, status }) => `${before.id} ${status}`);

describe("[skill-06b] updating from an archive", () => {
  it("takes what changed, also of two skills of one name", async () => {
    const { registry, pack } = await imported();
    expect(await bodies(registry)).toEqual(["skill-notes 1", "skill-notes-2 2", "skill-other 3"]);
    await pack(["1", "two", "3"]);
    const wanted = ["skill-notes unchanged", "skill-notes-2 updated", "skill-other unchanged"];
    expect(statuses(await update(registry, { dryRun: true }))).toEqual(wanted);
    expect(await bodies(registry)).toEqual(["skill-notes 1", "skill-notes-2 2", "skill-other 3"]);
    expect(statuses(await update(registry))).toEqual(wanted);
    expect(await bodies(registry)).toEqual(["skill-notes 1", "skill-notes-2 two", "skill-other 3"]);
  });

  it("keeps what the archive holds no more, and everything where it is gone", async () => {
    const { registry, pack } = await imported();
    await pack(["1", "2"]);
    expect(statuses(await update(registry))).toEqual([
      "skill-notes unchanged",
      "skill-notes-2 unchanged",
      "skill-other skipped",
    ]);
    const { registry: other } = await imported();
    expect((await update(other)).map(({ status, code }) => [status, code])).toEqual([
      ["failed", "not_found"],
      ["failed", "not_found"],
      ["failed", "not_found"],
    ]);
    expect(await bodies(other)).toHaveLength(3);
  });

  it("leaves what a server offers to the server", async () => {
    const root = temporaryFolder();
    const registry = registryAt(join(root, "home"));
    await registry.put([await toPut(makeSkill(root, "notes"), "server:files")]);
    expect(statuses(await update(registry))).toEqual(["skill-notes skipped"]);
  });
});
