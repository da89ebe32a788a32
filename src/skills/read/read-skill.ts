/** Reads a skill, from its folder or from the bytes of its SKILL.md alone. */
import { basename, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { buildSkill } from "./build-skill.ts";
import { bytesDigest } from "./digest.ts";
import { listFolder } from "./folder.ts";
import { Notes } from "./notes.ts";

export { skillDigest } from "./digest.ts";

export interface ReadLimits {
  /** Of SKILL.md; 1 MiB unless said. */
  readonly bytes?: number;
  /** How many files; 1,000 unless said. */
  readonly files?: number;
  /** Of all files together; 64 MiB unless said. */
  readonly totalBytes?: number;
}

const LIMITS = { bytes: 1024 * 1024, files: 1000, totalBytes: 64 * 1024 * 1024 } as const;

/** Rejects with ToolcribError (invalid_config, too_large, not_found) when the folder cannot be used at all. */
export async function readSkill(dir: string, limits: ReadLimits = {}): Promise<Skill> {
  const notes = new Notes();
  const { dir: folder, files, main } = await listFolder(resolve(dir), { ...LIMITS, ...limits }, notes);
  return Object.freeze({ dir: folder, ...buildSkill(main, basename(folder), files, notes) });
}

/** SKILL.md alone, without its folder. `dirName` gives the name where the text has none. */
export function parseSkill(bytes: Uint8Array, dirName: string): Omit<Skill, "dir"> {
  if (bytes.length > LIMITS.bytes) {
    throw new ToolcribError("too_large", `SKILL.md of "${dirName}" has more than ${LIMITS.bytes} bytes.`);
  }
  const file = { path: "SKILL.md", size: bytes.length, digest: bytesDigest(bytes), executable: false };
  return buildSkill(bytes, dirName, [file], new Notes());
}
