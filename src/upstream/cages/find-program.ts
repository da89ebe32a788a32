import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, resolve } from "node:path";

/** Where `command` is, as the shell would find it; undefined if nowhere. Relative folders in PATH are not searched. */
export function findProgram(
  command: string,
  path: string | undefined,
  cwd: string = process.cwd(),
): string | undefined {
  if (command.includes("/")) return isProgram(resolve(cwd, command)) ? resolve(cwd, command) : undefined;
  const folders = (path ?? "/usr/bin:/bin").split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => resolve(folder, command)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The path without symbolic links; the path itself where that cannot be known. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Whether `inner` is `outer` or below it; both absolute. */
export function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
}
