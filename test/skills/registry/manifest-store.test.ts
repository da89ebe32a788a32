import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LazyStore } from "../../../src/store/lazy-store.ts";
import type { SkillManifest } from "../../../src/model/skill.ts";
import { registryFile } from "../../../src/skills/registry/manifest-store.ts";
import { SkillRegistry } from "../../../src/skills/registry/skill-registry.ts";
import { databaseFile, openStore } from "../../../src/store/open-store.ts";
import { closeRegistries, registryAt } from "../../support/skill-registry.ts";
import { makeSkill, temporaryFolder, toPut } from "./made-skills.ts";

afterEach(closeRegistries);

/** A home as an earlier version left it: manifests in registry.json, and no database. */
async function homeWithFile(...names: string[]): Promise<{ home: string; manifests: readonly SkillManifest[] }> {
  const root = temporaryFolder();
  const home = join(root, "home");
  const registry = registryAt(home);
  for (const name of names) await registry.put([await toPut(makeSkill(join(root, "source"), name))]);
  const manifests = await registry.list();
  await closeRegistries();
  rmSync(databaseFile(home));
  writeFileSync(registryFile(home), JSON.stringify({ version: 1, skills: manifests }));
  return { home, manifests };
}

describe("[oper-02c] manifests of an earlier version", () => {
  it("are taken into the store when they are first asked for, and the file is kept under another name", async () => {
    const { home, manifests } = await homeWithFile("a", "b");
    const text = readFileSync(registryFile(home), "utf8");
    const registry = registryAt(home);
    expect(await registry.list()).toEqual(manifests);
    expect(existsSync(registryFile(home))).toBe(false);
    expect(readFileSync(`${registryFile(home)}.moved`, "utf8")).toBe(text);
    expect(await registryAt(home).list()).toEqual(manifests);
    for (const manifest of manifests) expect((await registry.readFile(manifest, "SKILL.md")).length).toBeGreaterThan(0);
  });

  it("are there once after a kill between the store and the file, and what changed since stays changed", async () => {
    const { home, manifests } = await homeWithFile("a", "b");
    const fixture = resolve(import.meta.dirname, "../../fixtures/move-in-and-die.ts");
    const child = spawn(process.execPath, [fixture, home], { stdio: "inherit" });
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    expect(existsSync(registryFile(home))).toBe(true);
    const store = await openStore({ home });
    expect((await store?.skills.list())?.map(({ id }) => id)).toEqual(["skill-a", "skill-b"]);
    await store?.close();
    const registry = registryAt(home);
    expect(await registry.list()).toEqual(manifests);
    expect(existsSync(registryFile(home))).toBe(false);
    await registry.remove("skill-a");
    expect((await registryAt(home).list()).map(({ id }) => id)).toEqual(["skill-b"]);
  });

  it("are taken in once by several at a time", async () => {
    const { home, manifests } = await homeWithFile("a", "b");
    const lists = await Promise.all([1, 2, 3].map(() => registryAt(home).list()));
    for (const list of lists) expect(list).toEqual(manifests);
  });

  it("can be read, and not changed, by a program without a store", async () => {
    const { home, manifests } = await homeWithFile("a");
    const registry = new SkillRegistry(home, async () => undefined);
    expect(await registry.list()).toEqual(manifests);
    await expect(registry.remove("skill-a")).rejects.toMatchObject({ code: "invalid_config" });
    expect(existsSync(registryFile(home))).toBe(true);
    expect(existsSync(databaseFile(home))).toBe(false);
  });
});

describe("[oper-02c] a home without imported skills", () => {
  it("has an empty list, and gets no database by being looked at", async () => {
    const home = join(temporaryFolder(), "home");
    mkdirSync(home);
    const registry = registryAt(home);
    expect(await registry.list()).toEqual([]);
    await expect(registry.remove("skill-a")).rejects.toMatchObject({ code: "not_found" });
    await registry.sweep();
    expect(existsSync(databaseFile(home))).toBe(false);
  });
});

describe("[oper-02c] two stores that share a home", () => {
  it("leave each other's files, and each removes its own", async () => {
    const root = temporaryFolder();
    const home = join(root, "home");
    const first = registryAt(home);
    const another = new LazyStore(() => openStore({ home: join(root, "another") }));
    const second = new SkillRegistry(home, another.open);
    const [a, b] = [makeSkill(join(root, "source"), "a"), makeSkill(join(root, "source"), "b")];
    await first.put([await toPut(a), await toPut(b)]);
    await second.put([await toPut(a)]);
    await second.sweep();
    for (const manifest of await first.list())
      expect((await first.readFile(manifest, "SKILL.md")).length).toBeGreaterThan(0);
    const orphan = join(home, "skills", `${(await first.list())[1]?.dir}-2`);
    mkdirSync(orphan);
    await second.remove("skill-a");
    expect(existsSync(orphan)).toBe(true);
    await first.put([await toPut(a)]);
    expect(readdirSync(join(home, "skills", "files", "skill-a"))).toHaveLength(1);
    expect(existsSync(orphan)).toBe(false);
    expect(await first.list()).toHaveLength(2);
    await another.close();
  });
});
