/** Notices that a config file, or a file that it imports, has other content than before. */
import { createHash } from "node:crypto";
import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";

export interface WatchOptions {
  readonly clock?: Clock;
  /** How long the files must rest before a change counts; 200 by default. */
  readonly debounceMs?: number;
}

const DEFAULT_DEBOUNCE_MS = 200;
/** Where the system tells of no changes, as when it can watch no more folders. */
const POLL_MS = 2000;

/**
 * Calls `onChange` after the content of any of the files changed and came to rest. Editors replace files by renaming and
 * leave none for a moment, so it is the folders that are watched. The returned function ends it.
 */
export function watchFiles(files: readonly string[], onChange: () => void, options: WatchOptions = {}): () => void {
  const watched = new FileWatcher(files, onChange, options);
  return () => watched.close();
}

class FileWatcher {
  readonly #files: readonly string[];
  readonly #onChange: () => void;
  readonly #clock: Clock;
  readonly #pauseMs: number;
  readonly #folders: FolderWatcher;
  /** What was told of last, and what was seen last. */
  #told: string;
  #seen: string;
  #stopTimer: (() => void) | undefined;
  #closed = false;

  constructor(files: readonly string[], onChange: () => void, { clock, debounceMs }: WatchOptions) {
    this.#files = files;
    this.#onChange = onChange;
    this.#clock = clock ?? systemClock;
    // Content counts when two looks in a row find the same.
    this.#pauseMs = (debounceMs ?? DEFAULT_DEBOUNCE_MS) / 2;
    this.#told = this.#seen = contentOf(files);
    this.#folders = new FolderWatcher({
      clock: this.#clock,
      onEvent: this.#lookSoon,
      pollMs: POLL_MS,
      onPoll: () => {
        if (!this.#closed) this.#look();
      },
    });
    this.#watchFolders();
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
    this.#folders.close();
  }

  /** A look that is due already is not put off: in a busy folder it would never come. */
  readonly #lookSoon = (): void => {
    if (this.#closed || this.#stopTimer !== undefined) return;
    this.#stopTimer = this.#clock.after(this.#pauseMs, () => {
      this.#stopTimer = undefined;
      this.#look();
    });
  };

  #look(): void {
    // Something may have happened in a folder that is watched only from now on.
    if (this.#watchFolders()) this.#lookSoon();
    const content = contentOf(this.#files);
    const isAtRest = content === this.#seen;
    this.#seen = content;
    if (content === this.#told) return;
    if (!isAtRest) return this.#lookSoon();
    this.#told = content;
    this.#onChange();
  }

  /** True if a folder is watched that was not before. */
  #watchFolders(): boolean {
    return this.#folders.follow(new Map(this.#files.flatMap(foldersOf).map(({ path, inode }) => [path, inode])));
  }
}

/** The folder of a file, or what is there of the way to it; also of the file that it links to. */
function foldersOf(file: string): { path: string; inode: number }[] {
  const folders = [nearestFolder(dirname(file))];
  try {
    const real = dirname(realpathSync(file));
    if (real !== dirname(file)) folders.push(nearestFolder(real));
  } catch {
    // Not there now.
  }
  return folders.filter((folder) => folder !== undefined);
}

function nearestFolder(path: string): { path: string; inode: number } | undefined {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return { path: folder, inode: found.ino };
    if (folder === dirname(folder)) return undefined;
  }
}

function contentOf(files: readonly string[]): string {
  return files.map(hashOf).join(" ");
}

/** A file that cannot be read is as good as none. */
function hashOf(file: string): string {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch {
    return "none";
  }
}

/** Watches folders, not what is in them, and keeps to a set of folders that changes. */

interface Watched {
  readonly watcher: FSWatcher;
  /** A folder that was replaced has the same path and is another one. */
  readonly inode: number;
}

interface FolderWatcherOptions {
  readonly clock: Clock;
  /** Something happened in a folder, or to it. */
  readonly onEvent: () => void;
  /** For where the system tells of no changes, as when it can watch no more folders. */
  readonly pollMs: number;
  readonly onPoll: () => void;
}

export class FolderWatcher {
  readonly #options: FolderWatcherOptions;
  readonly #folders = new Map<string, Watched>();
  #stopPolling: (() => void) | undefined;

  constructor(options: FolderWatcherOptions) {
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
