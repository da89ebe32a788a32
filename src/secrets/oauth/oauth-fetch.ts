/**
 * fetch for everything that is asked of authorization servers: with a time limit, a size limit, no redirects, and connections
 * only to where a login may lead. On node:http, because the built-in fetch lets nobody judge the address that it connects to.
 */
import type { IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import { ToolcribError } from "../../model/errors.ts";
import type { LoginReach } from "./login-reach.ts";

export type OAuthFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 1024 * 1024;
const NO_BODY = new Set([204, 205, 304]);

export function oauthFetch(reach: LoginReach, signal?: AbortSignal): OAuthFetch {
  return async (url, init) => {
    const target = new URL(url);
    const lookup = await reach.admit(target);
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signals = [timeout, ...(signal === undefined ? [] : [signal]), ...(init?.signal ? [init.signal] : [])];
    const request = new Request(target, { ...init, signal: AbortSignal.any(signals) });
    const answer = await send(request, target, lookup);
    try {
      const body = await readLimited(answer, target);
      const { statusCode: status = 0, statusMessage: statusText = "" } = answer;
      return new Response(NO_BODY.has(status) ? null : body, { status, statusText, headers: headersOf(answer) });
    } catch (error) {
      throw failure(error, request.signal);
    }
  };
}

async function send(request: Request, target: URL, lookup: LookupFunction): Promise<IncomingMessage> {
  const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
  const { method, signal } = request;
  const headers = {
    accept: "*/*",
    "user-agent": "toolcrib",
    ...Object.fromEntries(request.headers),
    ...(body === undefined ? {} : { "content-length": body.byteLength }),
  };
  const http = process.getBuiltinModule(target.protocol === "https:" ? "node:https" : "node:http");
  return new Promise((resolve, reject) => {
    // A connection of its own: a kept one could have been made by somebody who judged nothing.
    const sent = http.request(target, { method, headers, lookup, signal, agent: false }, resolve);
    sent.on("error", (error) => reject(failure(error, signal)));
    sent.end(body);
  });
}

/** As fetch words it, which the SDK and our own messages tell apart by. */
function failure(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ToolcribError) return error;
  return signal.aborted ? signal.reason : new TypeError("fetch failed", { cause: error });
}

async function readLimited(answer: IncomingMessage, url: URL): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new ToolcribError("unauthorized", `${url.host} answers with more than a login needs`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}
