/**
 * Requests that other nodes hand on to this one. Each goes through Node's own HTTP code over a pair of streams in memory, so
 * that routes get a request and a response like any other: with flow control, and an end that is noticed on both sides.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import type { Cluster, IncomingCall } from "../../../cluster/cluster.ts";
import { asToolcribError, ToolcribError } from "../../../model/errors.ts";
import { sendError } from "../http-responses.ts";
import { Exchange, parseTarget, type RouteTable } from "../http-exchange.ts";
import { responseHeaders, decodeHead, type ForwardedHead, forwardAddress } from "./forward-request.ts";

// Not imported as a module: that loads Node's whole fetch as well.
const { createServer, request: httpRequest } = process.getBuiltinModule("node:http");

/** After so much the other node is asked whether its client has read it. */
const WINDOW_BYTES = 256 * 1024;
const REFUSED_SCOPE = "toolcrib-refused-scope";

interface ServeForwardedOptions {
  readonly cluster: Cluster;
  readonly routes: RouteTable;
  readonly bodyBytes: () => number;
  /** A fault of ours, without secrets. */
  readonly warn: (message: string) => void;
}

/** Takes them until the returned function is called. */
export function serveForwarded(options: ServeForwardedOptions): () => void {
  const heads = new WeakMap<Duplex, ForwardedHead>();
  const server = createServer({ keepAlive: false }, (request, response) => {
    const head = heads.get(request.socket);
    if (head === undefined) response.destroy();
    else routeForwarded(options, head, request, response);
  });
  // Time is the concern of the node that has the client.
  server.timeout = server.requestTimeout = server.headersTimeout = server.keepAliveTimeout = 0;
  const { cluster } = options;
  return cluster.serve(forwardAddress(cluster.node.id), async (call) => {
    const head = decodeHead(call.head);
    if (head === undefined) throw new ToolcribError("invalid_arguments", "This is no request that a node hands on.");
    const [near, far] = duplexPair();
    heads.set(far, head);
    // What was written whole is still to be read; what was cut never comes to its end.
    far.once("close", () => (far.writableFinished ? undefined : near.destroy()));
    server.emit("connection", far);
    try {
      await relayResponse(call, await responseTo(head, call, near), call.signal);
      return { head: {} };
    } finally {
      near.destroy();
      far.destroy();
    }
  });
}

/** Never forwards: an exchange that came from a node has no `handOn`. */
function routeForwarded(
  { routes, bodyBytes, warn }: ServeForwardedOptions,
  { url, caller }: ForwardedHead,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const fail = (thrown: unknown): void => {
    if (!(thrown instanceof ToolcribError)) warn(`A request of another node could not be answered: ${String(thrown)}`);
    if (response.headersSent) response.destroy();
    else sendError(response, asToolcribError(thrown));
  };
  try {
    const target = parseTarget(url);
    const found = routes.find(target.path);
    if (found === undefined) throw new ToolcribError("not_found", `There is nothing at ${target.path}.`);
    const exchange = new Exchange({
      request,
      response,
      target,
      caller,
      bodyBytes: bodyBytes(),
      refuseScope: (scope) => void response.writeHead(403, { [REFUSED_SCOPE]: scope }).end(),
    });
    const handled = found.handle(exchange);
    if (handled instanceof Promise) handled.catch(fail);
  } catch (error) {
    fail(error);
  }
}

function responseTo(
  { method, url, headers }: ForwardedHead,
  call: IncomingCall,
  connection: Duplex,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { body } = call;
    const length = body === undefined ? {} : { "content-length": body.length };
    const sent = httpRequest({
      method,
      path: url,
      headers: { host: "node", ...headers, ...length, connection: "close" },
      createConnection: () => connection,
    });
    sent.on("response", resolve);
    sent.on("error", reject);
    const giveUp = (): void => void connection.destroy();
    if (call.signal.aborted) giveUp();
    else call.signal.addEventListener("abort", giveUp, { once: true });
    sent.end(body);
  });
}

async function relayResponse({ emit, ask }: IncomingCall, answer: IncomingMessage, signal: AbortSignal): Promise<void> {
  const { [REFUSED_SCOPE]: refusedScope, ...headers } = answer.headers;
  if (typeof refusedScope === "string") {
    answer.resume();
    await emit({ refusedScope });
    return;
  }
  await emit({ status: answer.statusCode ?? 500, headers: responseHeaders(headers) });
  let unread = 0;
  // Rejects if the answer is cut, here or there; the other node then cuts its own. Chunks are bytes, as nothing decodes them.
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    await emit({}, chunk);
    unread += chunk.length;
    if (unread < WINDOW_BYTES) continue;
    await ask({ read: unread }, signal);
    unread = 0;
  }
}
