/** Watches folders, not what is in them, and keeps to a set of folders that changes. */
import { type FSWatcher, watch } from "node:fs";
import type { Clock } from "../model/clock.ts";

interface Watched {
  readonly watcher: FSWatcher;
  /** A folder that was replaced has the same path and is another one. */
  readonly inode: number;
}

interface FolderWatchersOptions {
  readonly clock: Clock;
  /** Something happened in a folder, or to it. */
  readonly onEvent: () => void;
  /** For where the system tells of no changes, as when it can watch no more folders. */
  readonly pollMs: number;
  readonly onPoll: () => void;
}

export class FolderWatchers {
  readonly #options: FolderWatchersOptions;
  readonly #folders = new Map<string, Watched>();
  #stopPolling: (() => void) | undefined;

  constructor(options: FolderWatchersOptions) {
    this.#options = options;
  }

  /** From now on exactly these, by path and inode. True if one is watched that was not before. */
  follow(wanted: ReadonlyMap<string, number>): boolean {
    for (const [path, { watcher, inode }] of this.#folders) {
      if (wanted.get(path) === inode) continue;
      watcher.close();
      this.#folders.delete(path);
    }
    let isNew = false;
    for (const [path, inode] of wanted) {
      if (this.#folders.has(path)) continue;
      try {
        const watcher = watch(path, { persistent: false }, this.#options.onEvent);
        // As when the folder is removed.
        watcher.on("error", this.#options.onEvent);
        this.#folders.set(path, { watcher, inode });
        isNew = true;
      } catch {
        this.#poll();
      }
    }
    return isNew;
  }

  close(): void {
    this.#stopPolling?.();
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #poll(): void {
    const { clock, pollMs, onPoll } = this.#options;
    this.#stopPolling ??= clock.after(pollMs, () => {
      this.#stopPolling = undefined;
      onPoll();
    });
  }
}
