/** A file that this process appends to. */
import { chmodSync, closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";

export class OpenFile {
  readonly path: string;
  readonly name: string;
  readonly #fd: number;
  #size = 0;

  /** Throws if the file is there already or cannot be made. */
  constructor(path: string) {
    const dir = dirname(path);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // A folder that was there before may be open to others.
    chmodSync(dir, 0o700);
    this.path = path;
    this.name = basename(path);
    this.#fd = openSync(path, "ax", 0o600);
  }

  get size(): number {
    return this.#size;
  }

  /** True once somebody removed it: what is written from then on would be lost. */
  get isRemoved(): boolean {
    try {
      return fstatSync(this.#fd).nlink === 0;
    } catch {
      // A file system of another machine knows nothing any more of a file that was removed there.
      return true;
    }
  }

  /** Writes all of it or nothing, and throws if nothing. */
  append(text: string): void {
    const bytes = Buffer.from(text, "utf8");
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(this.#fd, bytes, written);
    } catch (error) {
      this.#undo();
      throw error;
    }
    this.#size += bytes.length;
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** A full disk takes the beginning of a batch; half a line in the middle of a chain would look like an attack. */
  #undo(): void {
    try {
      ftruncateSync(this.#fd, this.#size);
    } catch {
      // Then the torn line stays, and is reported by whoever verifies.
    }
  }
}
