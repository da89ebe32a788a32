/** Unpacks a backup into a folder and checks it there, before anything is replaced. */
import { chmod, readdir, stat } from "node:fs/promises";
import { ToolcribError } from "../../model/errors.ts";
import { checkCopy } from "../../store/restore-store.ts";
import { join } from "node:path";
import { belongsInHome, DATABASE } from "./home-state.ts";
import { describeFiles, MANIFEST, type Manifest, readManifest } from "./manifest.ts";

/** `dir` is empty. Resolves with the manifest once every file is as it says. */
export async function openBackup(file: string, dir: string): Promise<Manifest> {
  await unpack(file, dir);
  const manifest = await readManifest(dir, file);
  const wanted = new Map(manifest.files.map((each) => [each.path, each]));
  const found = (await describeFiles(dir)).filter(({ path }) => path !== MANIFEST);
  for (const { path, bytes, sha256 } of found) {
    const listed = wanted.get(path);
    if (listed === undefined || !belongsInHome(path)) throw damaged(file, `${path} does not belong into it`);
    if (listed.bytes !== bytes || listed.sha256 !== sha256) throw damaged(file, `${path} is not as it was`);
    wanted.delete(path);
  }
  for (const path of wanted.keys()) throw damaged(file, `${path} is missing`);
  await makePrivate(dir);
  if (found.some(({ path }) => path === DATABASE)) await checkCopy(join(dir, DATABASE));
  return manifest;
}

/** As a hub makes them. Scripts of skills stay what can be run. */
async function makePrivate(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isOpened = entry.isDirectory() || ((await stat(path)).mode & 0o100) !== 0;
    await chmod(path, isOpened ? 0o700 : 0o600);
  }
}

async function unpack(file: string, dir: string): Promise<void> {
  const { extract } = await import("tar");
  try {
    extract({
      file,
      // Otherwise it could go on writing after it has failed.
      sync: true,
      cwd: dir,
      strict: true,
      noChmod: true,
      // No links and no devices: nothing that could lead out of the folder.
      filter: (_path, entry) => "type" in entry && (entry.type === "File" || entry.type === "Directory"),
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "ENOENT") throw new ToolcribError("not_found", `There is no file ${file}.`);
    throw damaged(file, error instanceof Error ? error.message : String(error));
  }
}

function damaged(file: string, why: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `${file} is no usable backup: ${why}.`, {
    hint: "Give another copy of it. Nothing was changed.",
    details: { file },
  });
}
