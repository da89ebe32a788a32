/** Digests of files and of skills. */
import { hash } from "node:crypto";
import type { SkillFile } from "../../model/skill.ts";

export function bytesDigest(bytes: Uint8Array): string {
  return `sha256:${hash("sha256", bytes, "hex")}`;
}

/** Of all files together. The order of the list does not matter, and neither do modes, which not every system has. */
export function skillDigest(files: readonly SkillFile[]): string {
  const pairs = files.map(({ path, digest }) => [path, digest] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `sha256:${hash("sha256", JSON.stringify(pairs), "hex")}`;
}
