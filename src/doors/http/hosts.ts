/**
 * Which Host and Origin headers are taken. A web page that has its own name resolve to this machine (DNS rebinding) gets
 * this far with the user's browser; here it is sent away, before anything is said about tokens.
 */
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { HttpConfig } from "../../model/http-config.ts";
import { isLoopback } from "../../model/loopback.ts";

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
  return {
    acceptsHost: (header) => {
      const name = HOST_HEADER.exec(header)?.[1];
      return name !== undefined && accepts(normal(name));
    },
    acceptsOrigin: (header, host) => {
      if (origins.has(header.toLowerCase())) return true;
      const url = URL.parse(header);
      // A path, a user or "null" is no origin that a browser sends for a page of ours.
      if (url === null || url.origin !== header.toLowerCase() || !/^https?:$/.test(url.protocol)) return false;
      return isAt(url, host);
    },
  };
}

/** Whether the page comes from where the request goes to. Another port, or another name of this machine, is another program's. */
function isAt(page: URL, host: string): boolean {
  const [, name = "", port = ""] = HOST_HEADER.exec(host) ?? [];
  // Without a port in the header it is the one that the protocol has anyway, as in the page's address.
  return normal(page.hostname) === normal(name) && page.port === URL.parse(`${page.protocol}//host:${port}`)?.port;
}

/** Whether only this machine can reach what listens at this host. A name that merely resolves so does not count. */
export function isLoopbackHost(host: string): boolean {
  return isLoopback(hostInUrl(host));
}

/** Whether every address of the machine is listened at. */
export function isWildcard(host: string): boolean {
  return /^(?:0\.0\.0\.0|\[?(?:::|0(?::0){7})\]?)$/.test(host);
}

/** As it stands in a URL: IPv6 in brackets and in its shortest form. */
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
