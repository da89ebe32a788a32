/** What a new file says of other chains, so that cutting or removing them shows. */
import type { AuditFile } from "./files.ts";
import { readHeads } from "./heads.ts";
import { seenFile } from "./prune.ts";
import type { SeenFile } from "./record.ts";

/** Of each kind: a header must stay a short line. */
const MOST = 8;

/**
 * The newest files in the folder, and the chains that were written to last: their files may be in a store by now.
 *
 * @param others The files of other chains, oldest first.
 */
export function seenFiles(dir: string, chain: string, others: readonly AuditFile[]): SeenFile[] {
  const inFolder = others.slice(-MOST).map(seenFile);
  const names = new Set(others.map((file) => file.name));
  const heads = readHeads(dir);
  const elsewhere = [...(typeof heads === "string" ? [] : heads.heads)]
    .filter(([other, { file }]) => other !== chain && !names.has(file))
    .slice(-MOST)
    .map(([, { file, seq, hash }]) => ({ file, seq, hash }));
  return [...elsewhere, ...inFolder];
}
