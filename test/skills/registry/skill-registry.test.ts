import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { SkillManifest } from "../../../src/model/skill.ts";
import type { SkillRegistry } from "../../../src/skills/registry/skill-registry.ts";
import { registryFile } from "../../../src/skills/registry/manifest-store.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { closeRegistries, registryAt } from "../../support/skill-registry.ts";
import { makeSkill, NOTHING, skillText, temporaryFolder, toPut, writeFile } from "./made-skills.ts";

afterEach(closeRegistries);

interface Place {
  readonly home: string;
  readonly source: string;
  readonly registry: SkillRegistry;
}

function place(): Place {
  const root = temporaryFolder();
  const home = join(root, "home");
  return { home, source: join(root, "source"), registry: registryAt(home, new FakeClock()) };
}

/** Folders with copies, as `id/copy`. */
function copies(home: string): string[] {
  const files = join(home, "skills", "files");
  return existsSync(files)
    ? readdirSync(files).flatMap((id) => readdirSync(join(files, id)).map((copy) => `${id}/${copy}`))
    : [];
}

async function textOf(registry: SkillRegistry, manifest: SkillManifest, path = "SKILL.md"): Promise<string> {
  return Buffer.from(await registry.readFile(manifest, path)).toString("utf8");
}

describe("[skill-06a] manifests", () => {
  it("have the fields of the contract and its defaults", async () => {
    const { source, registry } = place();
    const dir = makeSkill(source, "notes");
    const { imported } = await registry.put([await toPut(dir)]);
    const [manifest] = imported;
    expect(manifest).toMatchObject({
      id: "skill-notes",
      name: "notes",
      version: "1.0.0",
      author: "unknown",
      description: "Does notes.",
      category: "tools",
      icon: expect.stringMatching(/./),
      tools: [{ name: "skill__notes", description: "Does notes." }],
      keywords: ["imported", "agentskills"],
      source: "agentskills",
      from: source,
      sourcePath: dir,
      warnings: [],
      findings: [],
      dependenciesMet: true,
      importedAt: new Date(1_000_000).toISOString(),
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    });
    expect(manifest?.facts.files.map(({ path }) => path)).toEqual(["SKILL.md"]);
    expect(JSON.stringify(manifest)).not.toContain("Body.");
  });

  it("of OpenClaw's dialect have its id, author, icon and systems, and the tool that it hands over to", async () => {
    const { source, registry } = place();
    const more =
      'version: 2.1.0\ncommand-dispatch: tool\ncommand-tool: files__read\nmetadata: {"openclaw": {"emoji": "🌦", "os": ["linux", "darwin"], "requires": {"bins": ["curl"]}}}\n';
    const dir = makeSkill(source, "weather", { more });
    const missing = { ...NOTHING, bins: ["curl"] };
    const { imported } = await registry.put([await toPut(dir, source, { missing })]);
    expect(imported).toMatchObject([
      {
        id: "openclaw-skill-weather",
        version: "2.1.0",
        author: "OpenClaw Community",
        icon: "🌦",
        tools: [{ name: "files__read" }],
        source: "openclaw",
        keywords: ["imported", "openclaw", "linux", "darwin"],
        dependenciesMet: false,
        missing,
      },
    ]);
  });

  it("are there for another process, found by id and by name, in order of id", async () => {
    const { home, source, registry } = place();
    await registry.put([await toPut(makeSkill(source, "b")), await toPut(makeSkill(source, "a"))]);
    const other = registryAt(home);
    expect((await other.list()).map(({ id }) => id)).toEqual(["skill-a", "skill-b"]);
    expect((await other.get("skill-a"))?.name).toBe("a");
    expect((await other.get("b"))?.id).toBe("skill-b");
    expect(await other.get("c")).toBeUndefined();
  });

  it("are seen anew as soon as another process has written them", async () => {
    const { home, source, registry } = place();
    expect(await registry.list()).toEqual([]);
    await registryAt(home).put([await toPut(makeSkill(source, "a"))]);
    expect(await registry.list()).toHaveLength(1);
    await registryAt(home).remove("skill-a");
    expect(await registry.list()).toEqual([]);
  });
});

describe("[skill-06b] files", () => {
  it("are copied with their folders, the bit of programs kept and no other rights given", async () => {
    const { source, registry } = place();
    const dir = makeSkill(source, "notes");
    writeFile(join(dir, "scripts", "deep", "run.sh"), "#!/bin/sh\n");
    chmodSync(join(dir, "scripts", "deep", "run.sh"), 0o4777);
    writeFile(join(dir, "data.bin"), new Uint8Array([0, 255, 128]));
    const { imported } = await registry.put([await toPut(dir)]);
    const manifest = imported[0] as SkillManifest;
    expect([...(await registry.readFile(manifest, "data.bin"))]).toEqual([0, 255, 128]);
    expect(manifest.dir.startsWith(`files/skill-notes/${manifest.digest.slice(7, 23)}-`)).toBe(true);
    expect(registry.fileOf(manifest, "scripts/deep/run.sh")).toBe(
      join(registry.dir, manifest.dir, "scripts", "deep", "run.sh"),
    );
    if (process.platform === "win32") return;
    const mode = (path: string): number => statSync(path).mode & 0o7777;
    expect(mode(registry.fileOf(manifest, "scripts/deep/run.sh"))).toBe(0o700);
    expect(mode(registry.fileOf(manifest, "SKILL.md"))).toBe(0o600);
    for (const folder of [".", "scripts", "scripts/deep"]) expect(mode(registry.fileOf(manifest, folder))).toBe(0o700);
    expect(mode(registry.dir)).toBe(0o700);
  });

  it("are given out only as they were imported", async () => {
    const { source, registry } = place();
    const { imported } = await registry.put([await toPut(makeSkill(source, "notes", { body: "one" }))]);
    const manifest = imported[0] as SkillManifest;
    const file = registry.fileOf(manifest, "SKILL.md");
    const text = readFileSync(file, "utf8");
    expect(await textOf(registry, manifest)).toBe(text);
    writeFileSync(file, text.replace("one", "two"));
    await expect(registry.readFile(manifest, "SKILL.md")).rejects.toMatchObject({ code: "blocked" });
    rmSync(file);
    await expect(registry.readFile(manifest, "SKILL.md")).rejects.toMatchObject({ code: "blocked" });
    for (const path of ["other.md", "../registry.json", "..", ""]) {
      await expect(registry.readFile(manifest, path)).rejects.toMatchObject({ code: "not_found" });
    }
    expect(() => registry.fileOf(manifest, "../../x")).toThrow(/has no file/);
  });

  it("removing takes manifest and files away, and says what it was", async () => {
    const { home, source, registry } = place();
    await expect(registry.remove("skill-a")).rejects.toMatchObject({ code: "not_found" });
    await registry.put([await toPut(makeSkill(source, "a")), await toPut(makeSkill(source, "b"))]);
    expect((await registry.remove("skill-a")).name).toBe("a");
    expect((await registry.list()).map(({ id }) => id)).toEqual(["skill-b"]);
    expect(copies(home)).toEqual([expect.stringContaining("skill-b/")]);
    await expect(registry.remove("skill-a")).rejects.toMatchObject({ code: "not_found" });
  });

  it("of a version that is gone meanwhile are told of as that, not as tampering", async () => {
    const { source, registry } = place();
    const dir = makeSkill(source, "notes");
    const before = (await registry.put([await toPut(dir)])).imported[0] as SkillManifest;
    makeSkill(source, "notes", { body: "new" });
    await registry.put([await toPut(dir)]);
    await expect(registry.readFile(before, "SKILL.md")).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("[skill-06b] imports again", () => {
  it("of the same files change nothing but what was checked", async () => {
    const { home, source, registry } = place();
    const dir = makeSkill(source, "notes");
    const first = (await registry.put([await toPut(dir)])).imported[0] as SkillManifest;
    const before = await registry.list();
    const again = await registry.put([await toPut(dir)]);
    expect(again).toMatchObject({ imported: [], failed: [], unchanged: [{ id: "skill-notes" }] });
    // The same objects: nothing was written, so nothing was read again.
    expect(await registry.list()).toBe(before);
    const findings = [{ code: "x", severity: "note", message: "m", file: "SKILL.md" }] as const;
    await registry.put([await toPut(dir, source, { missing: { ...NOTHING, env: ["TOKEN"] }, findings })]);
    expect(await registry.get("notes")).toMatchObject({ dependenciesMet: false, findings, dir: first.dir });
    expect(copies(home)).toHaveLength(1);
  });

  it("of changed files replace the old copy", async () => {
    const { home, source, registry } = place();
    const dir = makeSkill(source, "notes", { body: "old" });
    await registry.put([await toPut(dir)]);
    makeSkill(source, "notes", { body: "new" });
    const { imported } = await registry.put([await toPut(dir)]);
    expect(await textOf(registry, imported[0] as SkillManifest)).toContain("new");
    expect(await registry.list()).toHaveLength(1);
    expect(copies(home)).toHaveLength(1);
  });

  it("repair a copy that was tampered with", async () => {
    const { home, source, registry } = place();
    const dir = makeSkill(source, "notes");
    const first = (await registry.put([await toPut(dir)])).imported[0] as SkillManifest;
    writeFileSync(registry.fileOf(first, "SKILL.md"), "bad");
    const { imported } = await registry.put([await toPut(dir)]);
    expect(await textOf(registry, imported[0] as SkillManifest)).toBe(skillText("notes"));
    expect(copies(home)).toHaveLength(1);
  });

  it("from a folder that moved follow it", async () => {
    const { source, registry } = place();
    const dir = makeSkill(source, "notes");
    await registry.put([await toPut(dir)]);
    rmSync(dir, { recursive: true });
    const moved = makeSkill(source, "notes", { folder: "group/notes", body: "new" });
    expect((await registry.put([await toPut(moved, source)])).imported).toMatchObject([
      { id: "skill-notes", sourcePath: moved },
    ]);
    rmSync(moved, { recursive: true });
    const elsewhere = makeSkill(temporaryFolder(), "notes", { body: "new" });
    expect((await registry.put([await toPut(elsewhere)])).unchanged).toMatchObject([{ sourcePath: elsewhere }]);
  });
});

describe("[skill-06c] collisions", () => {
  it("with a skill of another source are conflicts that say what to do, and the old one stays", async () => {
    const { source, registry } = place();
    const other = temporaryFolder();
    await registry.put([await toPut(makeSkill(source, "notes", { body: "mine" }))]);
    const items = [await toPut(makeSkill(other, "notes", { body: "theirs" })), await toPut(makeSkill(other, "fresh"))];
    const result = await registry.put(items);
    expect(result.imported).toMatchObject([{ id: "skill-fresh" }]);
    expect(result.failed).toMatchObject([
      { path: join(other, "notes"), name: "notes", code: "conflict", message: expect.stringContaining("--force") },
    ]);
    expect(result.failed[0]?.message).toContain(source);
    expect(result.outcomes.map(({ status }) => status)).toEqual(["failed", "added"]);
    expect(await textOf(registry, (await registry.get("notes")) as SkillManifest)).toContain("mine");

    const replaced = await registry.put(items, { replace: true });
    expect(replaced.outcomes.map(({ status }) => status)).toEqual(["updated", "unchanged"]);
    expect(await textOf(registry, (await registry.get("notes")) as SkillManifest)).toContain("theirs");
  });

  it("within one source get numbers that stay", async () => {
    const { source, registry } = place();
    const folders = ["a/notes", "b/notes", "c/notes"];
    const put = async (bodies: readonly string[]): Promise<string[]> => {
      const items = await Promise.all(
        folders.map((folder, index) =>
          toPut(makeSkill(source, "notes", { folder, body: bodies[index] ?? "" }), source),
        ),
      );
      await registry.put(items.toReversed());
      const list = await registry.list();
      return Promise.all(list.map(async (each) => `${each.id} ${(await textOf(registry, each)).split("\n")[4] ?? ""}`));
    };
    expect(await put(["1", "2", "3"])).toEqual(["skill-notes 3", "skill-notes-2 2", "skill-notes-3 1"]);
    expect(await put(["one", "two", "3"])).toEqual(["skill-notes 3", "skill-notes-2 two", "skill-notes-3 one"]);
    await expect(registry.get("notes")).rejects.toMatchObject({
      code: "invalid_arguments",
      details: { ids: ["skill-notes", "skill-notes-2", "skill-notes-3"] },
    });
    expect((await registry.get("skill-notes"))?.id).toBe("skill-notes");
    expect((await registry.list()).map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ["skill__notes"],
      ["skill__notes-2"],
      ["skill__notes-3"],
    ]);
  });

  it("a number never takes the id of a skill that is called so", async () => {
    const { source, registry } = place();
    const items = [
      await toPut(makeSkill(source, "notes", { folder: "a", body: "1" }), source),
      await toPut(makeSkill(source, "notes", { folder: "b", body: "2" }), source),
      await toPut(makeSkill(source, "notes-2", { folder: "c" }), source),
    ];
    await registry.put(items);
    expect((await registry.list()).map(({ id, sourcePath }) => [id, sourcePath.slice(-1)])).toEqual([
      ["skill-notes", "a"],
      ["skill-notes-2", "c"],
      ["skill-notes-3", "b"],
    ]);
  });

  it("of the same files are no collisions", async () => {
    const { source, registry } = place();
    const copy = temporaryFolder();
    const items = [
      await toPut(makeSkill(source, "notes", { folder: "a" }), source),
      await toPut(makeSkill(source, "notes", { folder: "b" }), source),
    ];
    expect(await registry.put(items)).toMatchObject({
      imported: [{ id: "skill-notes" }],
      unchanged: [{ id: "skill-notes" }],
      failed: [],
    });
    expect((await registry.put([await toPut(makeSkill(copy, "notes"))])).unchanged).toMatchObject([{ from: source }]);
    expect(await registry.list()).toHaveLength(1);
  });

  it("an old copy beside the updated one becomes a second skill, and neither is lost", async () => {
    const { source, registry } = place();
    const a = makeSkill(source, "notes", { folder: "a", body: "old" });
    await registry.put([await toPut(a, source)]);
    makeSkill(source, "notes", { folder: "a", body: "new" });
    const b = makeSkill(source, "notes", { folder: "b", body: "old" });
    await registry.put([await toPut(a, source), await toPut(b, source)]);
    const texts = await Promise.all((await registry.list()).map((each) => textOf(registry, each)));
    expect(texts.map((text) => text.split("\n")[4])).toEqual(["new", "old"]);
  });

  it("of dialects have ids of their own, and a name that both have asks for an id", async () => {
    const { source, registry } = place();
    const more = 'metadata: {"openclaw": {"emoji": "x"}}\n';
    await registry.put([
      await toPut(makeSkill(source, "notes", { folder: "a" }), source),
      await toPut(makeSkill(source, "notes", { folder: "b", more }), source),
    ]);
    await expect(registry.get("notes")).rejects.toMatchObject({
      code: "invalid_arguments",
      hint: expect.stringContaining("openclaw-skill-notes, skill-notes"),
    });
  });

  it("a preview says what would happen and changes nothing", async () => {
    const { home, source, registry } = place();
    const items = [await toPut(makeSkill(source, "a")), await toPut(makeSkill(source, "b"))];
    expect(await registry.preview(items)).toMatchObject([{ status: "added", id: "skill-a" }, { status: "added" }]);
    expect(existsSync(home)).toBe(false);
    await registry.put(items);
    makeSkill(source, "a", { body: "new" });
    const other = await toPut(makeSkill(temporaryFolder(), "b", { body: "other" }));
    const before = await registry.list();
    const again = await registry.preview([await toPut(join(source, "a")), await toPut(join(source, "b")), other]);
    expect(again.map(({ status }) => status)).toEqual(["updated", "unchanged", "failed"]);
    expect(await registry.list()).toBe(before);
  });
});

describe("[skill-06c] failures", () => {
  it("a source that changes while it is copied fails, and the version that was there stays whole", async () => {
    const { home, source, registry } = place();
    const dir = makeSkill(source, "notes", { body: "old" });
    await registry.put([await toPut(dir)]);
    makeSkill(source, "notes", { body: "new" });
    const item = await toPut(dir);
    makeSkill(source, "notes", { body: "wxy" });
    const good = await toPut(makeSkill(source, "good"));
    const { failed, imported } = await registry.put([item, good]);
    expect(failed).toMatchObject([{ name: "notes", code: "conflict" }]);
    expect(imported).toMatchObject([{ name: "good" }]);
    expect(await textOf(registry, (await registry.get("notes")) as SkillManifest)).toContain("old");
    expect(copies(home)).toHaveLength(2);
  });

  it("a path that leads out of the folder is never written", async () => {
    const { source, home, registry } = place();
    const item = await toPut(makeSkill(source, "evil"));
    writeFile(join(source, "out.txt"), "x");
    const digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    const files = [...item.skill.files, { path: "../out.txt", size: 1, digest, executable: false }];
    const { failed } = await registry.put([{ ...item, skill: { ...item.skill, files } }]);
    expect(failed).toMatchObject([{ code: "invalid_config", message: expect.stringContaining("../out.txt") }]);
    expect(copies(home)).toEqual([]);
    expect(existsSync(join(home, "skills", "files", "skill-evil", "out.txt"))).toBe(false);
  });

  it.each([
    ["no JSON", "{"],
    ["nothing of ours", "{}"],
    ["a damaged entry", '{"version": 1, "skills": [{"id": "skill-a"}]}'],
    ["a newer version", '{"version": 2, "skills": []}'],
  ])("a registry with %s is an error that names it, and is never overwritten", async (_what, text) => {
    const { home, source, registry } = place();
    const file = registryFile(home);
    mkdirSync(registry.dir, { recursive: true });
    writeFileSync(file, text);
    const item = await toPut(makeSkill(source, "a"));
    for (const attempt of [
      () => registry.list(),
      () => registry.put([item]),
      () => registry.remove("skill-a"),
      () => registry.get("a"),
    ]) {
      await expect(attempt()).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining(file),
      });
    }
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it.each([
    ["id", { id: "skill-../../x" }],
    ["folder", { dir: "files/skill-a/../../.." }],
    ["folder of another", { dir: "files/skill-b/0" }],
  ])("a registry whose %s leads elsewhere is refused", async (_what, change) => {
    const { home, source, registry } = place();
    const { imported } = await registry.put([await toPut(makeSkill(source, "a"))]);
    const changed = { ...imported[0], ...change };
    writeFileSync(registryFile(home), JSON.stringify({ version: 1, skills: [changed] }));
    await expect(registry.list()).rejects.toMatchObject({ code: "invalid_config" });
    rmSync(registryFile(home));
    const store = await openStore({ home });
    await store?.skills.change([{ id: "skill-a", manifest: changed }], []);
    await store?.close();
    expect(await registry.list()).toEqual([]);
    expect(await registry.broken()).toMatchObject([{ id: "skill-a", name: "a" }]);
  });

  it("what a killed process left is cleaned up, and what was there is whole", async () => {
    const { home, source, registry } = place();
    const dir = makeSkill(source, "notes", { body: "old" });
    await registry.put([await toPut(dir)]);
    makeSkill(source, "notes", { body: "new" });
    for (let number = 0; number < 60; number++) makeSkill(source, `more-${number}`);
    const child = spawn(
      process.execPath,
      [resolve(import.meta.dirname, "../../fixtures/put-and-die.ts"), home, source],
      { stdio: "inherit" },
    );
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    expect([code, signal]).toEqual([null, "SIGKILL"]);
    expect(copies(home).length).toBeGreaterThan(1);
    const kept = (await registry.list())[0] as SkillManifest;
    expect(await registry.list()).toHaveLength(1);
    expect(await textOf(registry, kept)).toContain("old");
    await registry.put([await toPut(join(source, "more-1"))]);
    expect(copies(home).map((copy) => dirname(copy))).toEqual(["skill-more-1", "skill-notes"]);
  });

  it("two processes that put at once both get theirs in", async () => {
    const { home, source } = place();
    const registries = Array.from({ length: 6 }, () => registryAt(home));
    await Promise.all(registries.map(async (each, index) => each.put([await toPut(makeSkill(source, `s${index}`))])));
    expect(await (registries[0] as SkillRegistry).list()).toHaveLength(6);
    expect(copies(home)).toHaveLength(6);
  });
});
