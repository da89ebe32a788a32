/** What browsers need to hear before they let a page use an answer. Only ever called for origins that are accepted. */
import type { IncomingMessage, ServerResponse } from "node:http";

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const EXPOSED = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, etag, location";
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;
const PREFLIGHT_SECONDS = 600;

/** No credentials of the browser's own are ever allowed: tokens travel in a header that the page sets itself. */
export function allowOrigin(response: ServerResponse, origin: string): void {
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  response.setHeader("vary", "Origin");
}

/** Answers every OPTIONS, from a browser or not. */
export function answerOptions(request: IncomingMessage, response: ServerResponse): void {
  const wanted = request.headers["access-control-request-headers"];
  if (request.headers.origin !== undefined) {
    response.setHeader("access-control-allow-methods", METHODS);
    response.setHeader("access-control-max-age", PREFLIGHT_SECONDS);
    // Echoed, because `Mcp-Param-*` are as many as tools have parameters.
    if (wanted !== undefined && HEADER_NAMES.test(wanted)) response.setHeader("access-control-allow-headers", wanted);
  }
  response.writeHead(204, { allow: METHODS });
  response.end();
}
