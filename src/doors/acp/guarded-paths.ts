/** Files that decide what the hub may do. The model gets at none of them through the client. */
import { toolcribHome } from "../../config/find-config.ts";
import type { Hub } from "../../hub/hub.ts";
import type { AcpDoorOptions } from "./acp-options.ts";
import { isBelow, realPath, type Workspace } from "./workspace.ts";

export class GuardedPaths {
  readonly #hub: Hub;
  readonly #home: string;

  constructor({ hub, home, env }: Pick<AcpDoorOptions, "hub" | "home" | "env">) {
    this.#hub = hub;
    this.#home = home ?? toolcribHome(env);
  }

  /** Keys and tokens are there. */
  isOfHome(path: string): boolean {
    return isBelow(path, this.#home) || isBelow(real(path), real(this.#home));
  }

  /** Whether what stands there can make the hub run commands, now or at its next start. */
  decides(path: string): boolean {
    const { files, watched = [] } = this.#hub.config;
    return this.isOfHome(path) || [...files, ...watched].some((file) => file === path || real(file) === real(path));
  }

  /** Of the config and of skills, which may bring servers, what lies in the folders of a session. */
  in({ cwd, additionalDirectories }: Workspace): readonly string[] {
    const { files, inCode, config } = this.#hub.config;
    const dirs = [cwd, ...additionalDirectories].map(real);
    const places = [...(inCode ? [] : files), ...config.skills.dirs];
    return places.filter((place) => dirs.some((dir) => isBelow(real(place), dir)));
  }
}

function real(path: string): string {
  return realPath(path) ?? path;
}
