/** POST requests of the modern era: each has its version and its client's capabilities in `_meta`. */
import type { IncomingHttpHeaders } from "node:http";
import { CancelController, type CancelSignal } from "../../../base/async.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import {
  CLIENT_INFO_KEY,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  type RpcError,
  type RpcRequest,
  type ToolDefinition,
} from "../../../model/protocol.ts";
import { KeptResults } from "../../../sessions/kept-results.ts";
import { mirroredParams } from "../../../upstream/http/mcp-headers.ts";
import { localPeer } from "../../http/http-client-info.ts";
import { type HttpExchange, type HttpResponse, onceClosed } from "../../http/http-exchange.ts";
import { MAX_SILENT_TICKS, type PendingReply, SseConnection } from "../../http/open-streams.ts";
import { envelopeError } from "../mcp-handshake.ts";
import { ParkedCalls } from "../parked-calls.ts";
import { type Encoded, errorCodeOf, type MessageSink, metaOf } from "../rpc-messages.ts";
import { sharedMethod } from "../shared-requests.ts";
import { httpPeer, type RequestOrigin } from "../view-scope.ts";
import { decodeHeaderValue, headerOf, refuseRpc, respondJson } from "./http-messages.ts";
import { admitOrRefuseRequests, answerOrError, forwardToOwner, type McpPost, type Transport } from "./transport.ts";

export async function postModern(post: McpPost, message: RpcRequest): Promise<void> {
  const { transport, exchange, accepts, scope } = post;
  const { request, response, caller } = exchange;
  const error = headerError(message, request.headers);
  if (error !== undefined) return refuseRpc(response, 400, message.id, error);
  if (transport.ids !== undefined && (await forwardToCallOwner(transport, exchange, message))) return;
  if (!admitOrRefuseRequests(post, [message])) return;
  const locate = (): ReturnType<typeof localPeer> => localPeer(request.socket);
  const origin: RequestOrigin = { caller, scope, peer: httpPeer("http", exchange.query), locate };
  const mismatch = message.method === "tools/call" ? paramHeaderError(transport, origin, message, exchange) : undefined;
  if (mismatch !== undefined) return refuseRpc(response, 400, message.id, mismatch);
  const { streams } = transport;
  const isListen = message.method === "subscriptions/listen";
  if (isListen && !accepts.stream) {
    const text = "subscriptions/listen answers with text/event-stream: the header Accept must allow it.";
    return refuseRpc(response, 406, message.id, { code: INVALID_PARAMS, message: text });
  }
  const full = isListen ? streams.reachedFor(caller) : undefined;
  if (full !== undefined) return transport.refuseFull(response, message.id, "streams", full);
  const reply = new ModernReply(post);
  // A shutdown does not wait for a stream that only listens.
  if (!isListen) streams.owe(reply);
  const answer = await answerOrError(message.id, () => transport.door.modern(message, origin, reply, reply.signal));
  reply.finish(answer, statusOf(message.method, answer));
  streams.settle(reply);
}

/** Forwards to the node that has the parked call or the kept result. True if that is answered. */
async function forwardToCallOwner(
  { ids }: Transport,
  exchange: HttpExchange,
  { id, params }: RpcRequest,
): Promise<boolean> {
  const { requestState, uri } = params ?? {};
  const round = ParkedCalls.idOf(requestState);
  if (round !== undefined) return forwardToOwner(ids, exchange, "round", round, id);
  const result = typeof uri === "string" ? KeptResults.idOf(uri) : undefined;
  return result !== undefined && forwardToOwner(ids, exchange, "result", result, id);
}

function paramHeaderError(
  { door }: Transport,
  origin: RequestOrigin,
  { params }: RpcRequest,
  { request }: HttpExchange,
): ReturnType<typeof paramError> {
  const name = params?.["name"];
  if (typeof name !== "string") return undefined;
  const tool = door.toolDefinition(origin, name, metaOf(params)[CLIENT_INFO_KEY]);
  return tool === undefined ? undefined : paramError(tool, params, request.headers);
}

/**
 * The HTTP status: the protocol defines one for some errors; all others are 200. So is a server that does not have a method that
 * the hub has.
 */
function statusOf(method: string, answer: Encoded | null): number {
  switch (answer === null ? undefined : errorCodeOf(answer)) {
    case METHOD_NOT_FOUND:
      return sharedMethod(method) === undefined ? 404 : 200;
    case MISSING_CAPABILITY:
      return 400;
    default:
      return 200;
  }
}

/** Checks that the headers match the body, so that proxies that routed by them routed right. Undefined if they do. */
function headerError(request: RpcRequest, headers: IncomingHttpHeaders): RpcError | undefined {
  const { method, params } = request;
  const header = headerOf(headers["mcp-protocol-version"]);
  const error = envelopeError(request, (version) =>
    header === version ? undefined : mismatch("MCP-Protocol-Version", header, version),
  );
  if (error !== undefined) return error;
  const methodHeader = headerOf(headers["mcp-method"]);
  if (methodHeader !== method) return mismatch("Mcp-Method", methodHeader, method);
  const name = namedTarget(method, params);
  if (typeof name !== "string") return undefined;
  const nameHeader = headerOf(headers["mcp-name"]);
  const matches = nameHeader !== undefined && decodeHeaderValue(nameHeader) === name;
  return matches ? undefined : mismatch("Mcp-Name", nameHeader, name);
}

function namedTarget(method: string, params: JsonObject | undefined): unknown {
  switch (method) {
    case "tools/call":
    case "prompts/get":
      return params?.["name"];
    case "resources/read":
      return params?.["uri"];
    case "tasks/get":
    case "tasks/update":
    case "tasks/cancel":
      return params?.["taskId"];
    default:
      return undefined;
  }
}

type MirroredParams = readonly { readonly header: string; readonly path: readonly string[] }[];
const mirroredByTool = new WeakMap<ToolDefinition, MirroredParams>();

/** Arguments that the tool wants repeated in `Mcp-Param-*` headers. */
function paramError(
  tool: ToolDefinition,
  params: JsonObject | undefined,
  headers: IncomingHttpHeaders,
): RpcError | undefined {
  for (const { header, path } of mirroredParamsOf(tool)) {
    const value = path.reduce<unknown>((at, key) => (isJsonObject(at) ? at[key] : undefined), params?.["arguments"]);
    const sent = headerOf(headers[`mcp-param-${header.toLowerCase()}`]);
    if (!headerMatches(sent, value)) return mismatch(`Mcp-Param-${header}`, sent, value);
  }
  return undefined;
}

/** A tool with invalid annotations has none: clients must not offer it, and no proxy routed by them. */
function mirroredParamsOf(tool: ToolDefinition): MirroredParams {
  let found = mirroredByTool.get(tool);
  if (found === undefined) {
    const checked = mirroredParams(tool);
    found = checked.ok ? checked.params : [];
    mirroredByTool.set(tool, found);
  }
  return found;
}

function headerMatches(header: string | undefined, value: unknown): boolean {
  if (value === undefined || value === null) return header === undefined;
  // A header cannot carry other values; the tool's own schema refuses them.
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return true;
  if (header === undefined) return false;
  const decoded = decodeHeaderValue(header);
  if (decoded === undefined) return false;
  if (typeof value === "number") return decoded.trim() !== "" && Number(decoded) === value;
  return decoded === String(value);
}

function mismatch(header: string, sent: string | undefined, body: unknown): RpcError {
  const said = sent === undefined ? "is missing" : `"${shorten(sent)}" does not match the body`;
  return { code: HEADER_MISMATCH, message: `Header mismatch: ${header} ${said}; the body says "${shorten(body)}".` };
}

function shorten(value: unknown): string {
  const text = String(value);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/** The response to one POST of a modern client: JSON, or an event stream that ends with the answer. It cannot be resumed. */
class ModernReply implements MessageSink, PendingReply {
  readonly #post: McpPost;
  readonly #response: HttpResponse;
  readonly #gone = new CancelController();
  #connection: SseConnection | undefined;
  #ticks = 0;
  #done = false;

  constructor(post: McpPost) {
    this.#post = post;
    this.#response = post.exchange.response;
    onceClosed(this.#response, () => {
      if (!this.#done) this.#gone.abort();
    });
  }

  /** Aborted when the client has closed the connection, which cancels the request. */
  get signal(): CancelSignal {
    return this.#gone;
  }

  /** A message that cannot be sent before the answer is dropped: it only reports progress. */
  send(message: Encoded): void {
    if (!this.#done) (this.#connection ?? this.#open())?.send(message);
  }

  stillPending(): void {
    this.#ticks += 1;
    if (this.#ticks >= MAX_SILENT_TICKS && this.#connection === undefined) this.#open()?.open();
  }

  /** @param status For an answer that comes as JSON. */
  finish(answer: Encoded | null, status: number): void {
    if (answer !== null && !this.#post.accepts.json) this.#open(true);
    this.#done = true;
    if (this.#connection !== undefined) {
      if (answer !== null) this.#connection.send(answer);
      this.#connection.end();
    } else if (answer !== null) respondJson(this.#response, status, answer);
    else this.#response.destroy();
  }

  #open(isOnlyWay = false): SseConnection | undefined {
    const response = this.#response;
    const { accepts, exchange, transport } = this.#post;
    if (this.#connection !== undefined) return this.#connection;
    if (!accepts.stream || response.headersSent || response.destroyed) return undefined;
    if (!isOnlyWay && transport.streams.reachedFor(exchange.caller) !== undefined) return undefined;
    this.#connection = new SseConnection(response);
    transport.streams.add(this.#connection, exchange.caller);
    return this.#connection;
  }
}
