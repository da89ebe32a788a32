/** Replaces a file whole or not at all, whatever happens in between. */
import { randomUUID } from "node:crypto";
import { mkdir, open, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

interface WriteAtomicOptions {
  /** Of a file that does not exist yet; an existing file keeps its own. */
  readonly mode?: number;
  /** Asked right before the replacement; false leaves the file as it is. */
  readonly stillWanted?: () => Promise<boolean>;
}

/** Follows symbolic links, so that a linked file stays linked. False if `stillWanted` said no. */
export async function writeAtomic(
  file: string,
  contents: string | Uint8Array,
  options: WriteAtomicOptions = {},
): Promise<boolean> {
  const target = await realTarget(file);
  const folder = dirname(target);
  await mkdir(folder, { recursive: true });
  const before = await stat(target).catch(() => undefined);
  // In the same folder, because a rename across file systems is not atomic.
  const temporary = join(folder, `.${basename(target)}.${process.pid}.${randomUUID().slice(0, 8)}.tmp`);
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(contents, "utf8");
      // Not from open(): there the umask would take bits away.
      await handle.chmod(before === undefined ? (options.mode ?? 0o600) : before.mode & 0o7777);
      if (before !== undefined && before.uid !== process.getuid?.()) {
        // Works for root only, which is when it matters.
        await handle.chown(before.uid, before.gid).catch(() => undefined);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (options.stillWanted !== undefined && !(await options.stillWanted())) {
      await rm(temporary, { force: true });
      return false;
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
  return true;
}

/** Where a path leads in the end, also where the last link points at nothing yet. */
export async function realTarget(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const link = await readlink(file).catch(() => undefined);
    return link === undefined ? resolve(file) : resolve(dirname(file), link);
  }
}

/** Makes the rename itself survive a power cut; not every platform can open a folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined);
  if (handle === undefined) return;
  try {
    await handle.sync();
  } catch {
    // The file is in place; only its durability is as good as the platform's.
  } finally {
    await handle.close();
  }
}
