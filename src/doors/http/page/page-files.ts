/** The files of the built web page, read once and kept ready to be sent. */
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

export interface PageFile {
  readonly bytes: Buffer;
  /** Undefined where it would not be smaller. */
  readonly gzip: Buffer | undefined;
  readonly type: string;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".woff2": "font/woff2",
};
/** Compressed already. */
const DENSE = new Set([".png", ".ico", ".woff2"]);

export class PageFiles {
  readonly #dir: string;
  readonly #read = new Map<string, PageFile>();
  #paths: ReadonlySet<string> | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** False for a checkout in which the page was not built. */
  get isThere(): boolean {
    return existsSync(join(this.#dir, "index.html"));
  }

  /** By its path below the folder, with slashes. Only what was there at the first look is ever given. */
  get(path: string): PageFile | undefined {
    this.#paths ??= new Set(filesBelow(this.#dir));
    if (!this.#paths.has(path)) return undefined;
    let file = this.#read.get(path);
    if (file === undefined) {
      file = readPageFile(join(this.#dir, path));
      this.#read.set(path, file);
    }
    return file;
  }
}

function filesBelow(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const found = readdirSync(dir, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)).split(sep).join("/"));
}

function readPageFile(path: string): PageFile {
  const bytes = readFileSync(path);
  const kind = extname(path);
  const gzip = DENSE.has(kind) ? undefined : gzipSync(bytes, { level: 9 });
  return {
    bytes,
    gzip: gzip !== undefined && gzip.length < bytes.length ? gzip : undefined,
    type: TYPES[kind] ?? "application/octet-stream",
    etag: `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`,
  };
}
