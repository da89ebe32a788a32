/** A hand-written HTTP server and a wire on it, with what each of them saw. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { ToolcribError } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Wire } from "../../../src/upstream/wire.ts";
import type { RequestId, RpcMessage } from "../../../src/model/protocol.ts";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
}

export type Answer = (seen: Seen, response: ServerResponse) => void;

export interface HttpBench {
  readonly url: string;
  readonly seen: Seen[];
  readonly server: Server;
  /** Requests of one method. */
  of(method: string): Seen[];
}

export async function serve(answer: Answer): Promise<HttpBench> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    void text(request).then((raw) => {
      const { method = "", url: path = "", headers } = request;
      const one = { method, path, headers, body: raw === "" ? {} : JSON.parse(raw) };
      seen.push(one);
      answer(one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, seen, server, of: (method) => seen.filter((one) => one.method === method) };
}

export function json(
  response: ServerResponse,
  body: unknown,
  headers: Record<string, string> = {},
  status = 200,
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** Begins an event stream. */
export function stream(response: ServerResponse): ServerResponse {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  return response;
}

export const event = (data: unknown, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

export const result = (id: unknown, value: JsonObject = {}): JsonObject => ({ jsonrpc: "2.0", id, result: value });

export interface Heard {
  readonly messages: { message: RpcMessage; related?: RequestId }[];
  readonly failed: { id: RequestId; error: ToolcribError }[];
  readonly lost: ToolcribError[];
  readonly warnings: string[];
}

export function listenTo(wire: Wire): Heard {
  onTestFinished(() => wire.close());
  const heard: Heard = { messages: [], failed: [], lost: [], warnings: [] };
  wire.listen({
    message: (one) => heard.messages.push(one),
    failed: (one) => heard.failed.push(one),
    lost: (error) => heard.lost.push(error),
    warning: (warning) => heard.warnings.push(warning),
  });
  return heard;
}

export const ask = (id: RequestId, method = "tools/call", params: JsonObject = {}): RpcMessage => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});
export const note = (method: string): RpcMessage => ({ jsonrpc: "2.0", method });
