/** The cookie of the web page, and when it counts: only for requests that our own page makes. */
import type { IncomingMessage } from "node:http";
import type { HttpConfig } from "../../../model/http-config.ts";
import type { PageKeys } from "./page-logins.ts";

/** The page sends its key in it, with every request; no form and no foreign page can send such a header. */
const PAGE_HEADER = "x-toolcrib";
/** Browsers let a page set no header of a WebSocket; the key travels as a protocol that is offered. */
const PAGE_PROTOCOL = "page.";
const SECONDS = 7 * 24 * 3600;

/**
 * @param place The port, because cookies are shared between all ports of a host, and several hubs may run on one; the name of
 * the cluster for nodes of one, which are to have the cookie in common.
 */
function cookieName({ publicUrl }: Pick<HttpConfig, "publicUrl">, place: number | string): string {
  return publicUrl?.startsWith("https:") === true ? "__Host-toolcrib" : `toolcrib-${place}`;
}

export function setCookie(http: Pick<HttpConfig, "publicUrl">, place: number | string, key: string | null): string {
  const name = cookieName(http, place);
  const secure = name.startsWith("__Host-") ? "; Secure" : "";
  const value = key === null ? "; Max-Age=0" : `; Max-Age=${SECONDS}`;
  return `${name}=${key ?? ""}; Path=/; HttpOnly; SameSite=Strict${value}${secure}`;
}

/** Both keys, if the request comes from our own page; undefined otherwise. */
export function pageKeys(
  request: IncomingMessage,
  http: Pick<HttpConfig, "publicUrl">,
  place: number | string,
): PageKeys | undefined {
  const { headers } = request;
  const pageKey = headers[PAGE_HEADER] ?? offeredProtocol(headers["sec-websocket-protocol"], PAGE_PROTOCOL);
  if (headers.cookie === undefined || typeof pageKey !== "string" || !isOwnPage(request, http)) return undefined;
  const name = cookieName(http, place);
  for (const pair of headers.cookie.split(";")) {
    const at = pair.indexOf("=");
    if (at !== -1 && pair.slice(0, at).trim() === name) return { cookie: pair.slice(at + 1).trim(), pageKey };
  }
  return undefined;
}

/** What is behind a prefix in the protocols that a WebSocket's client offers. */
export function offeredProtocol(offered: string | undefined, prefix: string): string | undefined {
  return offered
    ?.split(",")
    .map((name) => name.trim())
    .find((name) => name.startsWith(prefix))
    ?.slice(prefix.length);
}

/**
 * Pages on other ports of this host are of the same site, so SameSite alone does not keep them out. A read needs that the
 * browser does not call it foreign; a write and a WebSocket need our own origin, and all but the WebSocket our header.
 */
export function isOwnPage(request: IncomingMessage, http: Pick<HttpConfig, "publicUrl">): boolean {
  const { origin, host = "" } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (origin !== undefined && !isOwnOrigin(origin, host, http)) return false;
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  if (request.headers.upgrade?.toLowerCase() === "websocket") return origin !== undefined;
  if (request.headers[PAGE_HEADER] === undefined) return false;
  return request.method === "GET" || request.method === "HEAD" || origin !== undefined || site === "same-origin";
}

function isOwnOrigin(origin: string, host: string, { publicUrl }: Pick<HttpConfig, "publicUrl">): boolean {
  if (publicUrl !== undefined && origin === URL.parse(publicUrl)?.origin) return true;
  return /^https?:\/\//.test(origin) && origin.replace(/^https?:\/\//, "").toLowerCase() === host.toLowerCase();
}
