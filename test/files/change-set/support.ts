import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder for one test; `journals` is beside `root`, as it is in life. */
export async function makePlace(): Promise<{ root: string; journals: string }> {
  const dir = await mkdtemp(join(tmpdir(), "toolcrib-changes-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const root = join(dir, "root");
  await mkdir(root);
  return { root, journals: join(dir, "journals") };
}

/** Every path below a folder with its mode and contents. */
export async function snapshot(root: string): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const name of (await readdir(root, { recursive: true })).toSorted()) {
    const path = join(root, name);
    const stats = await lstat(path);
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isSymbolicLink()) seen[name] = `link ${await readlink(path)}`;
    else if (stats.isDirectory()) seen[name] = `folder ${mode}`;
    else seen[name] = `file ${mode} ${await readFile(path, "latin1")}`;
  }
  return seen;
}

/** What `interrupted.ts` changes. */
export async function fill(root: string): Promise<void> {
  await writeFile(join(root, "a.json"), '{ "secret": 1 }\r\n', { mode: 0o640 });
  await writeFile(join(root, "gone.json"), "\uFEFFkeep me", { mode: 0o600 });
  for (const folder of ["source/scripts", "skills/one", "skills/three"])
    await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, "source/SKILL.md"), "new one\n");
  await writeFile(join(root, "source/scripts/run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  await writeFile(join(root, "skills/one/SKILL.md"), "old one\n");
  await writeFile(join(root, "skills/three/SKILL.md"), "three\n");
}
