/** Serves the web page: one document for every view, and its scripts and styles under /assets. */
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { PAGE_PATHS } from "../../contract/rest.ts";
import type { HttpExchange, HttpRoute } from "./http-exchange.ts";
import { notFoundAt, readOnlyRoute, sendText } from "./http-responses.ts";

/** Nothing from elsewhere, no inline script, no frame around it. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS = {
  "content-security-policy": CONTENT_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

/** @param words The text at `/` for programs that do not ask for HTML. */
export function pageRoutes(files: PageFiles, words: () => string): HttpRoute[] {
  return [
    ...PAGE_PATHS.map((path) =>
      readOnlyRoute(path, (exchange) => showPage(exchange, path, files, words), { below: true }),
    ),
    readOnlyRoute("/icon.svg", (exchange) => showFile(exchange, files, "no-cache")),
    // Their names change with their content.
    readOnlyRoute("/assets", (exchange) => showFile(exchange, files, "public, max-age=31536000, immutable"), {
      below: true,
    }),
  ];
}

function showPage(exchange: HttpExchange, path: string, files: PageFiles, words: () => string): void {
  const wantsPage = (exchange.request.headers.accept ?? "").includes("text/html");
  const document = files.get("index.html");
  if (document !== undefined && (wantsPage || path !== "/"))
    sendFile(exchange, documentAt(exchange, document), "no-cache");
  else if (path === "/") sendText(exchange.response, 200, words());
  else throw notFoundAt(exchange.path);
}

const deeper = new Map<number, PageFile>();
const MAX_DEPTH = 8;

/**
 * The document names its parts from its own folder, so that it works below any path of a proxy. Further down, `/servers/` or
 * `/servers/x`, that folder is above.
 */
function documentAt({ request }: HttpExchange, document: PageFile): PageFile {
  const { url = "/" } = request;
  const depth = Math.min((url.split("?", 1)[0] ?? "/").split("/").length - 2, MAX_DEPTH);
  if (depth <= 0) return document;
  let file = deeper.get(depth);
  if (file === undefined) {
    file = pageFile(
      Buffer.from(document.bytes.toString("utf8").replaceAll('="./', `="${"../".repeat(depth)}`)),
      ".html",
    );
    deeper.set(depth, file);
  }
  return file;
}

function showFile(exchange: HttpExchange, files: PageFiles, caching: string): void {
  const file = files.get(exchange.path.slice(1));
  if (file === undefined) throw notFoundAt(exchange.path);
  sendFile(exchange, file, caching);
}

function sendFile({ request, response }: HttpExchange, file: PageFile, caching: string): void {
  const headers = { ...PAGE_HEADERS, "cache-control": caching, etag: file.etag, vary: "Accept-Encoding" };
  if (request.headers["if-none-match"] === file.etag) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const zipped = /\bgzip\b/.test(request.headers["accept-encoding"]?.toString() ?? "") ? file.gzip : undefined;
  const body = zipped ?? file.bytes;
  response.writeHead(200, {
    ...headers,
    "content-type": file.type,
    "content-length": body.length,
    ...(zipped === undefined ? {} : { "content-encoding": "gzip" }),
  });
  response.end(body);
}

interface PageFile {
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
const COMPRESSED_TYPES = new Set([".png", ".ico", ".woff2"]);

/** The files of the built web page, read once and kept ready to be sent. */
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

  /** By its path below the folder, with slashes. Only files that existed at the first request are served. */
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
  return pageFile(readFileSync(path), extname(path));
}

function pageFile(bytes: Buffer, kind: string): PageFile {
  const { gzipSync } = process.getBuiltinModule("node:zlib");
  const gzip = COMPRESSED_TYPES.has(kind) ? undefined : gzipSync(bytes, { level: 9 });
  return {
    bytes,
    gzip: gzip !== undefined && gzip.length < bytes.length ? gzip : undefined,
    type: TYPES[kind] ?? "application/octet-stream",
    etag: `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`,
  };
}
