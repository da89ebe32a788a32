/**
 * Checks the Host and Origin headers. A web page whose name resolves to this machine (DNS rebinding) gets this far with the
 * user's browser; it is refused here, before tokens are checked.
 */
import { isIP, type Socket } from "node:net";
import { hostname } from "node:os";
import type { HttpRequest, HttpResponse } from "./http-exchange.ts";
import { isLoopback } from "../../base/network-address.ts";
import type { HttpConfig } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { sendError } from "./http-responses.ts";

export interface HostRules {
  /** `header` as it came, with or without a port. */
  acceptsHost(header: string): boolean;
  /** @param host The Host header of the same request, which was accepted. */
  acceptsOrigin(header: string, host: string): boolean;
}

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];
const HOST_HEADER = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?$/;

export function hostRules(http: HttpConfig): HostRules {
  const bound = hostInUrl(http.host);
  const names = new Set<string>([bound, ...http.allowedHosts.map(normal)]);
  if (http.publicUrl !== undefined) names.add(normal(new URL(http.publicUrl).hostname));
  if (isLoopbackHost(http.host)) for (const name of LOOPBACK_NAMES) names.add(name);
  const wildcard = isWildcard(http.host);
  if (wildcard) for (const name of ["localhost", normal(hostname())]) names.add(name);
  const origins = new Set([...http.cors, ...http.allowedOrigins].map((origin) => origin.toLowerCase()));
  if (http.publicUrl !== undefined) origins.add(new URL(http.publicUrl).origin);
  const accepts = (name: string): boolean => names.has(name) || (wildcard && isAddress(name));
  // Nearly all requests name the host that the one before them did.
  let lastAccepted: string | undefined;
  return {
    acceptsHost: (header) => {
      if (header === lastAccepted) return true;
      const name = HOST_HEADER.exec(header)?.[1];
      if (name === undefined || !accepts(normal(name))) return false;
      lastAccepted = header;
      return true;
    },
    acceptsOrigin: (header, host) => {
      if (origins.has(header.toLowerCase())) return true;
      const url = URL.parse(header);
      // A path, a user or "null" is not an origin that a browser sends for the hub's own page.
      if (url === null || url.origin !== header.toLowerCase() || !/^https?:$/.test(url.protocol)) return false;
      return isAt(url, host);
    },
  };
}

/** The hub's URL as this client knows it. The Host header was checked before. */
export function baseOf(http: HttpConfig, request: HttpRequest): string {
  return http.publicUrl?.replace(/\/$/, "") ?? `http://${request.headers.host}`;
}

/**
 * The same, if browsers may bring a code there: the header is the caller's own word, who may have someone else open the link. Undefined
 * for another port, which is another program's, for names that are not in the config, and where a caller from elsewhere names this machine.
 */
export function redirectBaseOf(http: HttpConfig, request: HttpRequest): string | undefined {
  const base = baseOf(http, request);
  if (http.publicUrl !== undefined) return base;
  const [, name = "", port = "80"] = HOST_HEADER.exec(request.headers.host ?? "") ?? [];
  const names = [
    ...(isLocalPeer(request.socket) ? LOOPBACK_NAMES : []),
    ...http.allowedHosts.map(normal),
    ...(isWildcard(http.host) ? [] : [hostInUrl(http.host)]),
  ];
  return names.includes(normal(name)) && Number(port) === request.socket.localPort ? base : undefined;
}

/** Whether the page comes from where the request goes to. Another port, or another name of this machine, is another program's. */
function isAt(page: URL, host: string): boolean {
  const [, name = "", port = ""] = HOST_HEADER.exec(host) ?? [];
  // Without a port in the header it is the one that the protocol has anyway, as in the page's address.
  return normal(page.hostname) === normal(name) && page.port === URL.parse(`${page.protocol}//host:${port}`)?.port;
}

/** Whether the other end of the connection is on this machine. */
export function isLocalPeer(socket: Pick<Socket, "remoteAddress">): boolean {
  return isLoopbackHost(peerAddress(socket));
}

/** An IPv4 address as such, also where the listener takes both kinds. */
export function peerAddress({ remoteAddress = "" }: Pick<Socket, "remoteAddress">): string {
  return remoteAddress.replace(/^::ffff:/, "");
}

/** Whether only this machine can reach what listens at this host. A name that merely resolves so does not count. */
export function isLoopbackHost(host: string): boolean {
  return isLoopback(hostInUrl(host));
}

/** Whether every address of the machine is listened at. */
export function isWildcard(host: string): boolean {
  return /^(?:0\.0\.0\.0|\[?(?:::|0(?::0){7})\]?)$/.test(host);
}

/** The host as in a URL: IPv6 in brackets and in its shortest form. */
export function hostInUrl(host: string): string {
  const bare = host.replace(/^\[|\]$/g, "");
  return normal(isIP(bare) === 6 ? `[${bare}]` : bare);
}

function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[|\]$/g, "")) !== 0;
}

/** Lower case, without the root's dot; `[0:0:0:0:0:0:0:1]` as `[::1]`. */
function normal(name: string): string {
  const plain = name.toLowerCase().replace(/\.$/, "");
  return plain.startsWith("[") ? (URL.parse(`http://${plain}`)?.hostname ?? plain) : plain;
}

/** False if the request was refused, which is then answered. A repeated header is refused: a proxy may have read the other one. */
export function admitOrRefuse(request: HttpRequest, response: HttpResponse, hosts: HostRules): boolean {
  const repeated = repeatedHeader(request.rawHeaders);
  if (repeated !== undefined) {
    sendError(response, new ToolcribError("invalid_arguments", `The header ${repeated} was sent more than once.`));
    return false;
  }
  const { host, origin } = request.headers;
  if (host === undefined || !hosts.acceptsHost(host)) {
    const error = new ToolcribError("denied", "The name in the Host header is not a name of this hub.", {
      hint: "List further names in http.allowedHosts.",
    });
    sendError(response, error);
    return false;
  }
  if (origin === undefined) return true;
  if (!hosts.acceptsOrigin(origin, host)) {
    const error = new ToolcribError("denied", "Web pages of this origin cannot use this hub.", {
      hint: "Only its own page can; list further origins in `http.cors`.",
    });
    sendError(response, error, { headers: { vary: "Origin" } });
    return false;
  }
  allowOrigin(response, origin);
  return true;
}

const SINGLE_HEADERS = ["host", "origin", "authorization"];

function repeatedHeader(raw: readonly string[]): string | undefined {
  let seen = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? "";
    // Lengths of the three names: lower-casing every name would cost more than the rest of the check.
    if (name.length !== 4 && name.length !== 6 && name.length !== 13) continue;
    const which = SINGLE_HEADERS.indexOf(name.toLowerCase());
    if (which === -1) continue;
    if ((seen & (1 << which)) !== 0) return SINGLE_HEADERS[which];
    seen |= 1 << which;
  }
  return undefined;
}

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const EXPOSED = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, etag, location";
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;
const PREFLIGHT_SECONDS = 600;

/** Browser credentials are never allowed: the page sends its token in a header. */
function allowOrigin(response: HttpResponse, origin: string): void {
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  response.setHeader("vary", "Origin");
}

/** Answers every OPTIONS, from a browser or not. */
export function answerOptions(request: HttpRequest, response: HttpResponse): void {
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
