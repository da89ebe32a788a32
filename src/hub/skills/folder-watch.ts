/**
 * Notices changes anywhere below some folders. Folders are watched one by one and files not at all: Node's recursive watch
 * loses a file that is replaced by a rename, which is how editors save, and takes a watch for every file.
 */
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../model/clock.ts";
import { FolderWatchers } from "../folder-watchers.ts";

/** How long things must rest before a change counts. */
const REST_MS = 300;
/** Where the system tells of no changes, as when it can watch no more folders. */
const POLL_MS = 5000;
const MOST_FOLDERS = 20_000;
const DEEPEST = 8;

/** The returned function ends it. */
export function watchFolders(roots: readonly string[], onChange: () => void, clock: Clock): () => void {
  const watched = new WatchedFolders(roots, onChange, clock);
  return () => watched.close();
}

class WatchedFolders {
  readonly #roots: readonly string[];
  readonly #onChange: () => void;
  readonly #clock: Clock;
  readonly #folders: FolderWatchers;
  #stopTimer: (() => void) | undefined;
  #closed = false;

  constructor(roots: readonly string[], onChange: () => void, clock: Clock) {
    this.#roots = roots;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#folders = new FolderWatchers({ clock, onEvent: this.#soon, pollMs: POLL_MS, onPoll: this.#soon });
    this.#watchAll();
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
    this.#folders.close();
  }

  readonly #soon = (): void => {
    if (this.#closed) return;
    this.#stopTimer?.();
    this.#stopTimer = this.#clock.after(REST_MS, () => {
      this.#stopTimer = undefined;
      this.#watchAll();
      this.#onChange();
    });
  };

  #watchAll(): void {
    const wanted = new Map<string, number>();
    for (const root of this.#roots) collect(root, wanted);
    this.#folders.follow(wanted);
  }
}

/** The folder and those below it; where it is not there, what is there of the way to it. */
function collect(root: string, found: Map<string, number>): void {
  let nearest = root;
  while (inodeOf(nearest) === undefined && nearest !== dirname(nearest)) nearest = dirname(nearest);
  if (nearest === root) walk(root, found, 0);
  else found.set(nearest, inodeOf(nearest) ?? 0);
}

function walk(folder: string, found: Map<string, number>, depth: number): void {
  const inode = inodeOf(folder);
  if (inode === undefined || depth > DEEPEST || found.size >= MOST_FOLDERS) return;
  found.set(folder, inode);
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const isLeftOut = entry.name === "node_modules" || entry.name === ".git";
      if (entry.isDirectory() && !isLeftOut) walk(join(folder, entry.name), found, depth + 1);
    }
  } catch {
    // Gone, or not ours to read.
  }
}

function inodeOf(path: string): number | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isDirectory() === true ? stat.ino : undefined;
}
