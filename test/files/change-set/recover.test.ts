import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ChangeSet, recoverChanges } from "../../../src/files/change-set/change-set.ts";
import { fill, makePlace, snapshot } from "./support.ts";

const PROGRAM = join(import.meta.dirname, "interrupted.ts");

/** Runs until it kills itself at the point, or is killed after a while. */
async function interrupt(root: string, journals: string, point: string, killAfterMs?: number): Promise<void> {
  const child = fork(PROGRAM, [root, journals, point], { stdio: "ignore" });
  const exit = once(child, "exit");
  if (killAfterMs !== undefined) {
    await once(child, "message");
    await new Promise((resolve) => setTimeout(resolve, killAfterMs));
    child.kill("SIGKILL");
  }
  expect(await exit).toEqual([null, "SIGKILL"]);
}

describe("[skill-11e] [skill-15b] after a process was killed", () => {
  it.each(["first file", "second file", "first file again", "end"])("everything goes back: at %s", async (point) => {
    const { root, journals } = await makePlace();
    await fill(root);
    const before = await snapshot(root);
    await interrupt(root, journals, point);
    if (point !== "first file") expect(await snapshot(root)).not.toEqual(before);
    const restored = await recoverChanges(journals);
    expect(restored.includes(join(root, "a.json"))).toBe(point !== "first file");
    expect(withoutLocks(await snapshot(root))).toEqual(before);
    expect(await journalsIn(journals)).toEqual([]);
  });

  it("everything goes back: at any moment", async () => {
    for (const killAfterMs of [0, 3, 7, 12, 20, 35]) {
      const { root, journals } = await makePlace();
      await fill(root);
      const before = await snapshot(root);
      await interrupt(root, journals, "never", killAfterMs);
      await recoverChanges(journals);
      expect(withoutLocks(await snapshot(root)), `${killAfterMs} ms`).toEqual(before);
      expect(await journalsIn(journals)).toEqual([]);
    }
  });

  it("a folder goes though the dead process held a lock in it", async () => {
    const { root, journals } = await makePlace();
    const paths = [join(root, "new"), join(root, "new/deep")];
    await mkdir(join(root, "new/deep"), { recursive: true });
    const dead = join(journals, "99999999.dead");
    await mkdir(dead, { recursive: true });
    await writeFile(join(dead, "journal"), `${JSON.stringify({ kind: "made", id: 1, paths })}\n`);
    await symlink(JSON.stringify({ pid: 99999999, host: hostname(), token: "t" }), join(root, "new/deep/b.json.lock"));
    await recoverChanges(journals);
    expect(await readdir(root)).toEqual([]);
  });

  it("a folder stays if a living process holds a lock in it", async () => {
    const { root, journals } = await makePlace();
    await mkdir(join(root, "new"));
    const dead = join(journals, "99999999.dead");
    await mkdir(dead, { recursive: true });
    await writeFile(join(dead, "journal"), `${JSON.stringify({ kind: "made", id: 1, paths: [join(root, "new")] })}\n`);
    const lock = join(root, "new/b.json.lock");
    await symlink(JSON.stringify({ pid: process.pid, host: hostname(), token: "t" }), lock);
    await recoverChanges(journals);
    expect(await readdir(join(root, "new"))).toEqual(["b.json.lock"]);
  });

  it("what somebody changed since is left and named", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    await interrupt(root, journals, "end");
    await writeFile(join(root, "a.json"), "theirs");
    const kept: string[] = [];
    const restored = await recoverChanges(journals, { onKept: (path) => kept.push(path) });
    expect(kept).toEqual([join(root, "a.json")]);
    expect(restored).toContain(join(root, "gone.json"));
    expect(await readFile(join(root, "a.json"), "utf8")).toBe("theirs");
  });

  it("what a living process does is left alone", async () => {
    const { root, journals } = await makePlace();
    await writeFile(join(root, "a"), "x");
    const changes = new ChangeSet({ journalDir: journals });
    await changes.editFile(join(root, "a"), () => "y");
    expect(await recoverChanges(journals)).toEqual([]);
    expect(await readFile(join(root, "a"), "utf8")).toBe("y");
    await changes.undo();
    expect(await readFile(join(root, "a"), "utf8")).toBe("x");
  });

  it("several clear up at once, and each thing is put back once", async () => {
    const { root, journals } = await makePlace();
    await fill(root);
    const before = await snapshot(root);
    await interrupt(root, journals, "end");
    const all = await Promise.all([recoverChanges(journals), recoverChanges(journals), recoverChanges(journals)]);
    expect(all.flat().filter((path) => path === join(root, "gone.json"))).toHaveLength(1);
    expect(withoutLocks(await snapshot(root))).toEqual(before);
  });

  it("a set that was done is only cleared up, and a journal that says nothing goes", async () => {
    const { root, journals } = await makePlace();
    await mkdir(join(root, ".old"));
    await writeFile(join(root, "a"), "new");
    const dead = join(journals, "99999999.dead");
    await mkdir(dead, { recursive: true });
    await mkdir(join(journals, "99999999.empty"));
    const lines = [
      { kind: "file", id: 1, path: join(root, "a"), before: null, after: "0" },
      { kind: "folder", id: 2, path: join(root, "gone"), fresh: null, old: join(root, ".old") },
      { kind: "done" },
    ];
    await writeFile(join(dead, "journal"), `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"kind":"fi`);
    expect(await recoverChanges(journals)).toEqual([]);
    expect(await readdir(root)).toEqual(["a"]);
    expect(await readdir(journals)).toEqual([]);
  });

  it("there may be no journal at all", async () => {
    const { journals } = await makePlace();
    expect(await recoverChanges(journals)).toEqual([]);
  });
});

/** There is no folder for them before the first step. */
async function journalsIn(journals: string): Promise<string[]> {
  return readdir(journals).catch(() => []);
}

/** A lock of a dead process counts for nothing; the next one that wants the file takes it away. */
function withoutLocks(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).filter(([name]) => !name.endsWith(".lock")));
}
