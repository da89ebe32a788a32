/** fetch for everything that is asked of authorization servers: with a time limit, a size limit, and over https only. */
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../model/loopback.ts";

export type OAuthFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 1024 * 1024;
const NO_BODY = new Set([204, 205, 304]);

/**
 * @param server The MCP server on whose word the addresses are asked: only one on this machine may name plain http or
 * addresses of this machine, so that a remote one cannot have us ask around here.
 */
export function oauthFetch(server: URL, signal?: AbortSignal): OAuthFetch {
  return async (url, init) => {
    const target = assertSecure(new URL(url), server);
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signals = [timeout, ...(signal === undefined ? [] : [signal]), ...(init?.signal ? [init.signal] : [])];
    const response = await fetch(target, { redirect: "manual", ...init, signal: AbortSignal.any(signals) });
    const text = await readLimited(response, target);
    const { status, statusText, headers } = response;
    return new Response(NO_BODY.has(status) ? null : text, { status, statusText, headers });
  };
}

export function assertSecure(url: URL, server: URL): URL {
  const atHome = isLoopback(server.hostname);
  const secure = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
  if (secure && (atHome || !isLoopback(url.hostname))) return url;
  throw new ToolcribError("unauthorized", `${url.protocol}//${url.host} is not asked for a login: it must be https`, {
    hint: "The server, or the authorization server that it names, is set up with a wrong address.",
    details: { sent: false },
  });
}

async function readLimited(response: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new ToolcribError("unauthorized", `${url.host} answers with more than a login needs`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
