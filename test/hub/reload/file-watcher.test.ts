import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { watchFiles } from "../../../src/hub/reload/file-watcher.ts";

const FDS = "/proc/self/fdinfo";
const WAIT = { timeout: 60_000, interval: 10 };

/** A folder, and how often a change of the files in it was told of. */
class Watched {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-watch-"));
  changes = 0;
  #stop = (): void => {};

  constructor() {
    onTestFinished(() => {
      this.#stop();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  watch(...names: string[]): void {
    this.#stop = watchFiles(
      names.map((name) => this.path(name)),
      () => (this.changes += 1),
      { debounceMs: 20 },
    );
  }

  stop(): void {
    this.#stop();
  }

  /** Waits until the change that `cause` makes was told of, and only once. */
  async expectChange(cause: () => void): Promise<void> {
    const before = this.changes;
    cause();
    await vi.waitFor(() => expect(this.changes).toBe(before + 1), WAIT);
  }

  /** A change that counts, after one that must not: both would have been told of by then. */
  async expectNone(cause: () => void, change: () => void): Promise<void> {
    cause();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await this.expectChange(change);
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

describe("[gate-07a] watching a config file", () => {
  it("notices a write in place and an atomic replacement", async () => {
    const watched = new Watched();
    watched.write("a.json", "1");
    watched.watch("a.json");
    await watched.expectChange(() => watched.write("a.json", "2"));
    await watched.expectChange(() => {
      watched.write("a.json.tmp", "3");
      renameSync(watched.path("a.json.tmp"), watched.path("a.json"));
    });
    await watched.expectChange(() => watched.write("a.json", "4"));
    expect(watched.changes).toBe(3);
  });

  it("does not take a touched file, the same content or another file for a change", async () => {
    const watched = new Watched();
    watched.write("a.json", "1");
    watched.watch("a.json");
    const nothing = (): void => {
      utimesSync(watched.path("a.json"), new Date(), new Date());
      watched.write("a.json", "1");
      watched.write("toolcrib.lock", "x");
    };
    await watched.expectNone(nothing, () => watched.write("a.json", "2"));
    expect(watched.changes).toBe(1);
  });

  it("[speed-03b] looks now and then where other files are written all the time", async () => {
    const watched = new Watched();
    // As the system lists what this process watches.
    const inode = ` ino:${statSync(watched.dir).ino.toString(16)} `;
    const isWatching = (): boolean => readdirSync(FDS).some((fd) => contentOf(join(FDS, fd)).includes(inode));
    watched.write("a.json", "1");
    watched.watch("a.json");
    expect(isWatching()).toBe(true);
    const writing = setInterval(() => watched.write("database", `${Math.random()}`), 1);
    onTestFinished(() => clearInterval(writing));
    await vi.waitFor(() => expect(isWatching()).toBe(false), WAIT);
    await watched.expectChange(() => watched.write("a.json", "2"));
    clearInterval(writing);
    await vi.waitFor(() => expect(isWatching()).toBe(true), WAIT);
    await watched.expectChange(() => watched.write("a.json", "3"));
  });

  it("takes a file that is missing for a moment for what it is afterwards", async () => {
    const watched = new Watched();
    watched.write("a.json", "1");
    watched.watch("a.json");
    const flicker = (): void => {
      rmSync(watched.path("a.json"));
      watched.write("a.json", "1");
    };
    await watched.expectNone(flicker, () => watched.write("a.json", "2"));
    await watched.expectChange(() => rmSync(watched.path("a.json")));
    await watched.expectChange(() => watched.write("a.json", "2"));
    expect(watched.changes).toBe(3);
  });

  it("notices each of several files, also one in a folder that is made later", async () => {
    const watched = new Watched();
    watched.write("a.json", "1");
    watched.watch("a.json", "later/deep/b.json");
    await watched.expectChange(() => {
      mkdirSync(watched.path("later/deep"), { recursive: true });
      watched.write("later/deep/b.json", "1");
    });
    await watched.expectChange(() => watched.write("later/deep/b.json", "2"));
    await watched.expectChange(() => watched.write("a.json", "2"));
    expect(watched.changes).toBe(3);
  });

  it("notices a folder that is replaced, and a file behind a link", async () => {
    const watched = new Watched();
    for (const name of ["one", "two", "real"]) mkdirSync(watched.path(name));
    watched.write("one/a.json", "1");
    watched.write("two/a.json", "2");
    watched.write("real/b.json", "1");
    symlinkSync(watched.path("real/b.json"), watched.path("one/b.json"));
    watched.watch("one/a.json", "one/b.json");
    await watched.expectChange(() => watched.write("real/b.json", "2"));
    await watched.expectChange(() => {
      symlinkSync(watched.path("real/b.json"), watched.path("two/b.json"));
      renameSync(watched.path("one"), watched.path("gone"));
      renameSync(watched.path("two"), watched.path("one"));
    });
    await watched.expectChange(() => watched.write("one/a.json", "3"));
    expect(watched.changes).toBe(3);
  });

  it("says nothing any more once it was ended", async () => {
    const watched = new Watched();
    watched.write("a.json", "1");
    watched.watch("a.json");
    watched.stop();
    watched.write("a.json", "2");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(watched.changes).toBe(0);
  });
});
