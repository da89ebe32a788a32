/** The folders of a session, which paths are in them, and which files are protected. */
import { lstatSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import type { Hub } from "../../hub/hub.ts";
import type { AcpDoorOptions } from "./acp-options.ts";

export interface Workspace {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
}

/** Whether a path is in the folders of a session, by its text alone. */
export function isInside(path: string, { cwd, additionalDirectories }: Workspace): boolean {
  return [cwd, ...additionalDirectories].some((dir) => isBelow(path, dir));
}

/** The same with links followed, as far as the files are on this machine. A dangling link is outside. */
export function isReallyInside(path: string, workspace: Workspace): boolean {
  const { cwd, additionalDirectories } = workspace;
  const real = realPath(path);
  if (real === undefined || !isInside(path, workspace)) return false;
  return [cwd, ...additionalDirectories].some((dir) => isBelow(real, realPath(dir) ?? dir));
}

/** True for the folder itself too. */
function isBelow(path: string, dir: string): boolean {
  const way = relative(dir, path);
  return way !== ".." && !way.startsWith("../") && !way.startsWith("..\\") && !isAbsolute(way);
}

/** The real path; a part that does not exist yet stays as written. Undefined for a dangling link. */
function realPath(path: string): string | undefined {
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

/** Files that decide what the hub can do. The model cannot reach them through the client. */
export class ProtectedPaths {
  readonly #hub: Hub;
  readonly #home: string;

  constructor({ hub, home, env }: Pick<AcpDoorOptions, "hub" | "home" | "env">) {
    this.#hub = hub;
    this.#home = home ?? toolcribHome(env);
  }

  /** Keys and tokens are there. */
  isOfHome(path: string): boolean {
    return isBelow(path, this.#home) || isBelow(realPathOr(path), realPathOr(this.#home));
  }

  /** Whether the file can make the hub run commands, now or at its next start. */
  decides(path: string): boolean {
    const { files, watched = [] } = this.#hub.config;
    return (
      this.isOfHome(path) ||
      [...files, ...watched].some((file) => file === path || realPathOr(file) === realPathOr(path))
    );
  }

  /** The config files and skill folders, which can add servers, inside the folders of a session. */
  in({ cwd, additionalDirectories }: Workspace): readonly string[] {
    const { files, inCode, config } = this.#hub.config;
    const dirs = [cwd, ...additionalDirectories].map(realPathOr);
    const places = [...(inCode ? [] : files), ...config.skills.dirs];
    return places.filter((place) => dirs.some((dir) => isBelow(realPathOr(place), dir)));
  }
}

function realPathOr(path: string): string {
  return realPath(path) ?? path;
}
