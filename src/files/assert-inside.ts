/** Keeps what is written for a project in the project: a repository may bring links that lead elsewhere. */
import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { ToolcribError } from "../model/errors.ts";

/** As the systems have it. */
const MOST_LINKS = 40;

/**
 * Throws `denied` if writing to the target, which need not exist, would write outside of the root: by `..`, or through a
 * link on the way, also one that points at nothing yet.
 */
export function assertInside(root: string, target: string): void {
  const real = leadsTo(resolve(target), MOST_LINKS);
  if (real !== undefined && isWithin(leadsTo(resolve(root), MOST_LINKS) ?? resolve(root), real)) return;
  const where = real === undefined ? "a link that leads nowhere" : real;
  throw new ToolcribError("denied", `${target} leads out of the project ${root}, to ${where}.`, {
    hint: "Nothing was written. Remove the link if you do not want it, or work in the folder that it leads to.",
    details: { root, target },
  });
}

/** The real path of what would be written; undefined for links in a circle. */
function leadsTo(path: string, links: number): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    if (links === 0) return undefined;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) {
    const above = leadsTo(parent, links);
    return above === undefined ? undefined : join(above, basename(path));
  }
  // A relative link counts from the real place of the folder that it stands in.
  const above = leadsTo(parent, links);
  return above === undefined ? undefined : leadsTo(resolve(above, readlinkSync(path)), links - 1);
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
