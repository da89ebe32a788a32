import { copyFile, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";

/** Files and folders only; what a hub removes meanwhile is left out. */
export async function copyInto(from: string, name: string, to: string): Promise<void> {
  const source = join(from, name);
  const entries = await readdir(source, { withFileTypes: true }).catch((error: unknown) => codeOf(error));
  if (entries === "ENOTDIR") return copyOne(source, join(to, name));
  if (entries === "ENOENT") return;
  if (typeof entries === "string") throw unreadable(source, entries);
  await mkdir(join(to, name), { recursive: true, mode: 0o700 });
  // The newest first, where names tell the time: records tell how far older files had come.
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? 1 : -1))) {
    if (entry.isDirectory()) await copyInto(source, entry.name, join(to, name));
    else if (entry.isFile() && !isTemporary(entry.name))
      await copyOne(join(source, entry.name), join(to, name, entry.name));
  }
}

async function copyOne(source: string, target: string): Promise<void> {
  try {
    await copyFile(source, target);
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ENOENT") throw unreadable(source, code);
  }
}

/** Half-written files of others. Their locks are links, which are no files anyway. */
function isTemporary(name: string): boolean {
  return name.endsWith(".tmp");
}

function unreadable(path: string, code: string): ToolcribError {
  return new ToolcribError("internal", `${path} cannot be copied (${code}).`, {
    hint: "Check who owns it, and the disk.",
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
}
