/** Serves the web page: one document for every view, and its scripts and styles under /assets. */
import { PAGE_PATHS } from "../../../contract/page.ts";
import { sendText } from "../answers.ts";
import type { HttpExchange, HttpRoute } from "../exchange.ts";
import { nothingAt, refuseMethod } from "../own-routes.ts";
import type { PageFile, PageFiles } from "./page-files.ts";

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

export const PAGE_HEADERS = {
  "content-security-policy": CONTENT_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

/** @param words What a program that asks for no HTML is told at `/`. */
export function pageRoutes(files: PageFiles, words: () => string): HttpRoute[] {
  return [
    ...PAGE_PATHS.map((path) => route(path, (exchange) => showPage(exchange, path, files, words))),
    route("/icon.svg", (exchange) => {
      const icon = exchange.path === "/icon.svg" ? files.get("icon.svg") : undefined;
      if (icon === undefined) throw nothingAt(exchange.path);
      send(exchange, icon, "no-cache");
    }),
    route("/assets", (exchange) => {
      const file = files.get(exchange.path.slice(1));
      if (file === undefined) throw nothingAt(exchange.path);
      // Their names change with their content.
      send(exchange, file, "public, max-age=31536000, immutable");
    }),
  ];
}

function showPage(exchange: HttpExchange, path: string, files: PageFiles, words: () => string): void {
  const wantsPage = (exchange.request.headers.accept ?? "").includes("text/html");
  const document = files.get("index.html");
  if (document !== undefined && (wantsPage || path !== "/")) send(exchange, document, "no-cache");
  else if (path === "/") sendText(exchange.response, 200, words());
  else throw nothingAt(exchange.path);
}

function send({ request, response }: HttpExchange, file: PageFile, caching: string): void {
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

function route(path: string, show: (exchange: HttpExchange) => void): HttpRoute {
  return {
    path,
    access: "public",
    handle: (exchange) => {
      const { method } = exchange.request;
      if (method === "GET" || method === "HEAD") show(exchange);
      else refuseMethod(exchange, ["GET", "HEAD"]);
    },
  };
}
