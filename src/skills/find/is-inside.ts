import { isAbsolute, relative, sep } from "node:path";

/** Whether a path is the folder or lies below it; both are absolute and without links. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  // On Windows the way to another drive is an absolute path.
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
