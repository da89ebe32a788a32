/**
 * The hub in step with its config, for as long as no session can write there: a model that writes a server into a config
 * that is taken up would run commands without anybody being asked.
 */
import { basename } from "node:path";
import type { Hub } from "../../hub/hub.ts";
import { watchConfig } from "../../hub/config-watch.ts";
import type { GuardedPaths } from "./guarded-paths.ts";
import type { Notice } from "./notices.ts";
import type { Workspace } from "./workspace.ts";

interface Told {
  log(message: string): void;
  tell(notice: Notice): void;
}

export class FollowedConfig {
  readonly #hub: Hub;
  readonly #guarded: GuardedPaths;
  readonly #told: Told;
  readonly #stopListening: () => void;
  #stopFollowing: (() => void) | undefined;
  #stopLooking: (() => void) | undefined;
  /** The hub itself wrote an answer down, and has taken it up. */
  #isOurs = false;

  constructor(hub: Hub, guarded: GuardedPaths, told: Told) {
    this.#hub = hub;
    this.#guarded = guarded;
    this.#told = told;
    this.#stopFollowing = hub.watch();
    this.#stopListening = hub.on("answer", ({ answer }) => {
      if (answer === "always") this.#isOurs = true;
    });
  }

  /** From now on a session may write in these folders. It holds for good: what is written stays when the session ends. */
  exposedTo(workspace: Workspace): void {
    if (this.#stopFollowing === undefined) return;
    if (this.#guarded.in(workspace).length === 0) return;
    this.#stopFollowing();
    this.#stopFollowing = undefined;
    const { files, inCode } = this.#hub.config;
    if (!inCode) this.#stopLooking = watchConfig(files, () => this.#changed(files));
  }

  close(): void {
    this.#stopFollowing?.();
    this.#stopLooking?.();
    this.#stopListening();
  }

  #changed(files: readonly string[]): void {
    if (this.#isOurs) {
      this.#isOurs = false;
      return;
    }
    const names = [...new Set(files.map((file) => basename(file)))].join(" or ");
    const message = `${names} changed. Restart the agent to take it up.`;
    this.#told.log(message);
    this.#told.tell({ level: "warning", message });
  }
}
