/** Reads one file of a skill and makes sure that it is the one that is on record. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { SkillFile } from "../../model/skill.ts";
import { bytesDigest } from "../read/digest.ts";

/** Why a file is not what it was; undefined bytes go with it. */
export type ReadBack = { readonly bytes: Buffer } | { readonly bytes: undefined; readonly reason: "gone" | "changed" };

export async function readBack(path: string, { size, digest }: Pick<SkillFile, "size" | "digest">): Promise<ReadBack> {
  let handle;
  try {
    // Without waiting: a named pipe put in the file's place would never open.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return { bytes: undefined, reason: "gone" };
    throw error;
  }
  try {
    const found = await handle.stat();
    // Looked at first, so that a file that grew without bounds is not read.
    if (!found.isFile() || found.size !== size) return { bytes: undefined, reason: "changed" };
    const bytes = await handle.readFile();
    return bytesDigest(bytes) === digest ? { bytes } : { bytes: undefined, reason: "changed" };
  } finally {
    await handle.close();
  }
}
