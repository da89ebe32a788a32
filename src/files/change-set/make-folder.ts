import { mkdir } from "node:fs/promises";
import { missingFolders } from "./file-state.ts";
import type { Journal } from "./journal.ts";

/** Makes a folder with those around it, so that undoing removes just the ones that were not there. */
export async function makeFolder(journal: Journal, folder: string): Promise<void> {
  const paths = await missingFolders(folder);
  if (paths.length === 0) return;
  await journal.begin({ kind: "made", paths });
  await mkdir(folder, { recursive: true });
}
