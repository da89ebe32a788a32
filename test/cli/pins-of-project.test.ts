import { chmodSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { ClonedFolder } from "./cloned-folder.ts";

vi.setConfig({ testTimeout: 120_000 });

/** A trusted project whose server is pinned under `block`; its tool has changed since. */
async function changed(): Promise<{ folder: ClonedFolder; lock: string; homeLock: string }> {
  const folder = new ClonedFolder();
  folder.furnishHome({ guard: { pins: "block" } });
  const says = join(folder.root, "says.mjs");
  const app = { command: process.execPath, args: [says] };
  const server = readFileSync(join(folder.root, "server.mjs"), "utf8").replace(
    "process.argv.slice(2)",
    '["build", "drop"]',
  );
  writeFileSync(says, server);
  folder.write("toolcrib.json", { mcpServers: { app } });
  await folder.trust();
  expect((await folder.tools()).names).toEqual(["app__build", "app__drop", "own__who"]);
  writeFileSync(says, server.replace('?? "t"', '?? "other"'));
  return { folder, lock: join(folder.dir, "toolcrib.lock"), homeLock: join(folder.home, "toolcrib.lock") };
}

describe("[trust-08h] a project's lock file that cannot be used", () => {
  const damages: Record<string, (lock: string) => void> = {
    "has the marks of a merge": (lock) => writeFileSync(lock, `<<<<<<< HEAD\n${readFileSync(lock, "utf8")}`),
    "can be written by everyone": (lock) => chmodSync(lock, 0o666),
    "is a link to nothing": (lock) => {
      rmSync(lock);
      symlinkSync("/nowhere/toolcrib.lock", lock);
    },
  };

  it.skipIf(process.platform === "win32").each(Object.keys(damages))(
    "holds the project's servers where it %s, and the home's go on",
    async (damage) => {
      const { folder, lock, homeLock } = await changed();
      const good = `${lock}.good`;
      writeFileSync(good, readFileSync(lock));
      damages[damage]?.(lock);

      const call = await folder.runHere(["call", "app__build"]);
      expect(call).toMatchObject({ code: 3, stdout: "" });
      expect(call.stderr).toContain(lock);
      expect(call.stderr).not.toContain(homeLock);
      expect((await folder.tools()).names).toEqual(["own__who"]);
      expect((await folder.runHere(["call", "own__who"])).stdout).toContain("who answered");

      for (const what of ["--all", "app", "app__build"]) {
        const approved = await folder.runHere(["pins", "approve", what]);
        expect(approved).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(lock) });
      }
      expect((await folder.runHere(["pins", "reset"])).code).toBe(1);
      expect((await folder.runHere(["pins", "approve", "own"])).code).toBe(0);
      const listed = await folder.runHere(["pins", "list"]);
      expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining(lock) });
      expect(listed.stdout).toContain("who");

      rmSync(lock);
      renameSync(good, lock);
      expect((await folder.runHere(["call", "app__build"])).code).toBe(3);
      expect((await folder.runHere(["pins", "approve", "--all"])).code).toBe(0);
      expect((await folder.runHere(["call", "app__build"])).stdout).toContain("build answered");
    },
  );

  it("is the one that the refusal of a changed tool names", async () => {
    const { folder, lock, homeLock } = await changed();
    const { stdout } = await folder.runHere(["policy", "explain", "app__build"]);
    expect(stdout).toContain(lock);
    expect(stdout).not.toContain(homeLock);
  });
});
