/** Notices that a config file, or a file that it imports, has other content than before. */
import { createHash } from "node:crypto";
import { type FSWatcher, lstatSync, readFileSync, realpathSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";

export interface WatchOptions {
  readonly clock?: Clock;
  /** How long the files must rest before a change counts; 200 by default. */
  readonly debounceMs?: number;
}

const DEFAULT_DEBOUNCE_MS = 200;
/** Where the system reports no changes, as when it can watch no more folders. */
const POLL_MS = 2000;
/** Events of other files in the same folders after which the folders are looked at once a second instead. */
const MAX_OTHERS = 30;
const REST_MS = 1000;

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
  /** By folder. */
  #names = new Map<string, Set<string>>();
  /** The content that was reported last, and that was seen last. */
  #reported: string;
  #seen: string;
  #stopTimer: (() => void) | undefined;
  #others = 0;
  #closed = false;

  constructor(files: readonly string[], onChange: () => void, { clock, debounceMs }: WatchOptions) {
    this.#files = files;
    this.#onChange = onChange;
    this.#clock = clock ?? systemClock;
    // Content counts when two looks in a row find the same.
    this.#pauseMs = (debounceMs ?? DEFAULT_DEBOUNCE_MS) / 2;
    this.#reported = this.#seen = contentOf(files);
    this.#folders = new FolderWatcher({
      clock: this.#clock,
      onEvent: (folder, name) => {
        if (name === null || this.#concerns(folder, name)) this.#lookSoon();
        else this.#passOver();
      },
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

  /** The database is in a watched folder too: each page that a thread writes to it would wake the event loop. */
  #passOver(): void {
    this.#others += 1;
    if (this.#others < MAX_OTHERS || this.#closed || this.#stopTimer !== undefined) return;
    this.#folders.follow(new Map());
    this.#stopTimer = this.#clock.after(REST_MS, () => {
      this.#stopTimer = undefined;
      this.#others = 0;
      this.#look();
    });
  }

  #look(): void {
    // Something may have happened in a folder that is watched only from now on.
    if (this.#watchFolders()) this.#lookSoon();
    const content = contentOf(this.#files);
    const isAtRest = content === this.#seen;
    this.#seen = content;
    if (content === this.#reported) return;
    if (!isAtRest) return this.#lookSoon();
    this.#reported = content;
    this.#onChange();
  }

  /** True if a folder is watched that was not before. */
  #watchFolders(): boolean {
    const folders = this.#files.flatMap(foldersOf);
    this.#names = new Map<string, Set<string>>();
    for (const { path, name } of folders) this.#names.set(path, (this.#names.get(path) ?? new Set()).add(name));
    return this.#folders.follow(new Map(folders.map(({ path, inode }) => [path, inode])));
  }

  /** Other files of a folder do not count. */
  #concerns(folder: string, name: string): boolean {
    const names = this.#names.get(folder);
    return names === undefined || names.has(name) || names.has(ANY_NAME) || name === basename(folder);
  }
}

/** Of a link: what it leads through may be swapped under any name. */
const ANY_NAME = "";

interface WatchedFolder {
  readonly path: string;
  readonly inode: number;
  /** The entry of the folder that leads to the file. */
  readonly name: string;
}

/** The nearest existing folder on the way to a file; of a link also that of the file behind it. */
function foldersOf(file: string): WatchedFolder[] {
  const folder = nearestFolder(file);
  if (folder === undefined) return [];
  try {
    const real = realpathSync(file);
    if (real === join(realpathSync(dirname(file)), basename(file))) return [folder];
    return [{ ...folder, name: ANY_NAME }, nearestFolder(real) ?? []].flat();
  } catch {
    // Not there now, or a link that leads nowhere.
    return [{ ...folder, name: isLink(file) ? ANY_NAME : folder.name }];
  }
}

function isLink(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function nearestFolder(file: string): WatchedFolder | undefined {
  for (let path = dirname(file), name = basename(file); ; name = basename(path), path = dirname(path)) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) return { path, inode: found.ino, name };
    if (path === dirname(path)) return undefined;
  }
}

function contentOf(files: readonly string[]): string {
  return files.map(hashOf).join(" ");
}

/** A file that cannot be read counts as missing. */
function hashOf(file: string): string {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch {
    return "none";
  }
}

interface Watched {
  readonly watcher: FSWatcher;
  /** A folder that was replaced has the same path and is another one. */
  readonly inode: number;
}

interface FolderWatcherOptions {
  readonly clock: Clock;
  /** Something happened in a folder, or to it; the name is that of its entry, as far as the system says. */
  readonly onEvent: (folder: string, name: string | null) => void;
  /** For where the system reports no changes, as when it can watch no more folders. */
  readonly pollMs: number;
  readonly onPoll: () => void;
}

/** Watches folders, not what is in them, and keeps to a set of folders that changes. */
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
        const { onEvent } = this.#options;
        const watcher = watch(path, { persistent: false }, (_type, name) => onEvent(path, name));
        // As when the folder is removed.
        watcher.on("error", () => onEvent(path, null));
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
