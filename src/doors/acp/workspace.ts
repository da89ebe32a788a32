/** The folders of a session, and what lies in them. */
import { lstatSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";

export interface Workspace {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
}

/** Whether a path lies in the folders of a session; by its words alone. */
export function isInside(path: string, { cwd, additionalDirectories }: Workspace): boolean {
  return [cwd, ...additionalDirectories].some((dir) => isBelow(path, dir));
}

/** The same with links followed, as far as the files are on this machine. What a link leads to that is not there is outside. */
export function isReallyInside(path: string, workspace: Workspace): boolean {
  const { cwd, additionalDirectories } = workspace;
  const real = realPath(path);
  if (real === undefined || !isInside(path, workspace)) return false;
  return [cwd, ...additionalDirectories].some((dir) => isBelow(real, realPath(dir) ?? dir));
}

/** True for the folder itself too. */
export function isBelow(path: string, dir: string): boolean {
  const way = relative(dir, path);
  return way !== ".." && !way.startsWith("../") && !way.startsWith("..\\") && !isAbsolute(way);
}

/** Where a path leads; what is not there yet stays as it is written. Undefined for a link that leads nowhere. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    if (isLink(path)) return undefined;
    const above = parent === path ? parent : realPath(parent);
    return above === undefined ? undefined : join(above, relative(parent, path));
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}
