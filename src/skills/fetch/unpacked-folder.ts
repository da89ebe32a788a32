/** The folder that an archive is unpacked into: plain files only, each written once, everything counted as it comes. */
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { ArchiveLimits } from "./archive-limits.ts";
import { entryPath, refused, sameNameKey } from "./entry-path.ts";

/** A file whose bytes are still coming. */
export interface OpenFile {
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export class UnpackedFolder {
  readonly dir: string;
  readonly #limits: ArchiveLimits;
  readonly #packedBytes: number;
  readonly #seen = new Set<string>();
  #entries = 0;
  #bytes = 0;

  /** `dir` must be empty and nobody else's: that no link is ever made in it is what keeps writes inside. */
  constructor(dir: string, packedBytes: number, limits: ArchiveLimits) {
    this.dir = dir;
    this.#packedBytes = packedBytes;
    this.#limits = limits;
  }

  /** Called for every entry before anything else, so that endless lists end. */
  countEntry(): void {
    this.#entries += 1;
    if (this.#entries > this.#limits.entries) {
      throw tooLarge(`The archive has more than ${this.#limits.entries} entries.`);
    }
  }

  /** Called with the number of unpacked bytes, also of those that belong to no file. */
  countBytes(bytes: number): void {
    this.#bytes += bytes;
    const { totalBytes, ratio, ratioFrom } = this.#limits;
    if (this.#bytes > totalBytes) throw tooLarge(`The archive unpacks to more than ${megabytes(totalBytes)}.`);
    if (this.#bytes > ratioFrom && this.#bytes > this.#packedBytes * ratio) {
      throw tooLarge(`The archive unpacks to more than ${ratio} times its size.`);
    }
  }

  async addFolder(name: string): Promise<void> {
    const parts = entryPath(name);
    if (parts.length > 0) await this.#makeFolder(name, parts);
  }

  async openFile(name: string, { executable }: { readonly executable: boolean }): Promise<OpenFile> {
    const parts = entryPath(name);
    if (parts.length === 0) throw refused(name, "is a file without a name");
    const key = sameNameKey(parts);
    if (this.#seen.has(key)) throw refused(name, "is there twice");
    this.#seen.add(key);
    await this.#makeFolder(name, parts.slice(0, -1));
    const handle = await this.#create(name, join(this.dir, ...parts), executable ? 0o755 : 0o644);
    return this.#bounded(name, handle);
  }

  async #makeFolder(name: string, parts: readonly string[]): Promise<void> {
    try {
      await mkdir(join(this.dir, ...parts), { recursive: true, mode: 0o755 });
    } catch (error) {
      if (isTaken(error)) throw refused(name, "has the name of another entry as its folder");
      throw error;
    }
  }

  async #create(name: string, path: string, mode: number): Promise<FileHandle> {
    try {
      return await open(path, "wx", mode);
    } catch (error) {
      if (isTaken(error)) throw refused(name, "is there twice");
      throw error;
    }
  }

  #bounded(name: string, handle: FileHandle): OpenFile {
    let size = 0;
    return {
      write: async (chunk) => {
        size += chunk.length;
        if (size > this.#limits.fileBytes) {
          await handle.close();
          throw tooLarge(`${JSON.stringify(name)} is larger than ${megabytes(this.#limits.fileBytes)}.`);
        }
        await handle.writeFile(chunk);
      },
      close: () => handle.close(),
    };
  }
}

function isTaken(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EEXIST" || code === "ENOTDIR" || code === "EISDIR";
}

export function tooLarge(message: string): ToolcribError {
  return new ToolcribError("too_large", message, { hint: "Unpack it yourself, and install from the folder." });
}

function megabytes(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${Math.round(bytes / 1024 / 1024)} MiB` : `${bytes} bytes`;
}
