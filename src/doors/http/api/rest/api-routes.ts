/** REST: each request is one operation, decoded from HTTP and encoded back. */
import type { ServerResponse } from "node:http";
import { API_PATH, type RestRoute } from "../../../../contract/rest.ts";
import type { OwnedIds } from "../../../../hub/cluster/owned-ids.ts";
import { matchesEtag } from "../../../../hub/servers/etag.ts";
import { asToolcribError, ToolcribError } from "../../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import { sendError, sendJsonText } from "../../answers.ts";
import type { HttpExchange, HttpRoute } from "../../exchange.ts";
import { nothingAt, refuseMethod } from "../../own-routes.ts";
import type { CallerSessions } from "../caller-sessions.ts";
import type { ApiParts } from "../operation.ts";
import { Operations } from "../operations.ts";
import { DOCS_PATH, docsRoutes, DOCUMENT_PATH } from "./docs-routes.ts";
import { EXPORT_PATH, exportAudit } from "./audit-export.ts";
import { bodyTag, isKnown } from "./etag.ts";
import { matchRoute } from "./match-route.ts";
import { namedForAll, namedHere } from "./named-sessions.ts";
import { isOtherThanJson, readInput } from "./read-input.ts";

export interface RestParts extends ApiParts {
  readonly operations: Operations;
  readonly sessions: CallerSessions;
  /** In a cluster: ids that say which node has what they stand for. */
  readonly ids?: OwnedIds | undefined;
}

export function apiRoutes(parts: RestParts): HttpRoute[] {
  return [
    // Each operation says what it needs.
    { path: API_PATH, access: "any", handle: (exchange) => answer(exchange, parts) },
    ...docsRoutes(parts.version),
  ];
}

async function answer(exchange: HttpExchange, parts: RestParts): Promise<void> {
  const { request, response, caller } = exchange;
  const path = exchange.path.slice(API_PATH.length);
  if (path === EXPORT_PATH) return exportAudit(exchange, parts.hub.audit);
  const match = matchRoute(request.method ?? "", path);
  if (match === undefined)
    throw nothingAt(exchange.path, `${DOCUMENT_PATH} says what there is, ${DOCS_PATH} shows it.`);
  if ("allowed" in match) {
    refuseMethod(exchange, match.allowed);
    return;
  }
  const { route, params } = match;
  const scope = Operations.scopeOf(route.operation);
  if (!caller.scopes.has(scope)) {
    exchange.refuseScope(scope);
    return;
  }
  if (isOtherThanJson(request)) {
    sendError(response, new ToolcribError("invalid_arguments", "The body must be application/json."), { status: 415 });
    return;
  }
  const given = await readInput(exchange, route, params);
  const input = parts.ids === undefined ? given : await namedHere(parts.ids, exchange, route.operation, given);
  if (input === undefined) return;
  const { serverId } = params;
  if (serverId !== undefined && (route.method === "PATCH" || route.method === "DELETE")) {
    const ifMatch = request.headers["if-match"];
    await changeServer(exchange, parts, route, ifMatch === undefined ? input : { ...input, ifMatch });
  } else {
    const output = await run(exchange, parts, route, input);
    send(exchange, route, namedForAll(parts.ids, route.operation, given, output));
  }
}

/** An entry that is another one by now has a status of its own. */
async function changeServer(
  exchange: HttpExchange,
  parts: RestParts,
  route: RestRoute,
  input: JsonObject,
): Promise<void> {
  const { ifMatch, serverId } = input;
  try {
    send(exchange, route, await run(exchange, parts, route, input));
  } catch (thrown) {
    const error = asToolcribError(thrown);
    if (error.code !== "conflict" || typeof ifMatch !== "string" || typeof serverId !== "string") throw thrown;
    const now = await parts.hub.server(serverId);
    if (now === undefined || !now.editable || matchesEtag(ifMatch, now.etag)) throw thrown;
    sendError(exchange.response, error, { status: 412, headers: { etag: now.etag } });
  }
}

function run(exchange: HttpExchange, parts: RestParts, route: RestRoute, input: JsonObject): Promise<unknown> {
  const { request, response, caller } = exchange;
  const { operations, sessions, hub } = parts;
  const base = hub.config.config.http.publicUrl?.replace(/\/$/, "") ?? `http://${request.headers.host}`;
  return operations.run(route.operation, input, {
    caller,
    session: sessions.of(caller),
    signal: untilGone(response),
    baseUrl: base,
  });
}

/** Aborts when the client has gone before its answer. */
function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => (response.writableFinished ? undefined : gone.abort()));
  return gone.signal;
}

function send({ request, response }: HttpExchange, route: RestRoute, output: unknown): void {
  const text = JSON.stringify(output);
  const server = serverIn(output);
  const headers: Record<string, string> = {};
  if (server?.etag !== undefined) headers["etag"] = server.etag;
  else if (route.method === "GET") {
    const tag = bodyTag(text);
    if (isKnown(request, tag)) {
      response.writeHead(304, { etag: tag, "cache-control": "no-store" }).end();
      return;
    }
    headers["etag"] = tag;
  }
  const made = route.status === 201 ? (server?.id ?? sessionIn(output)) : undefined;
  if (made !== undefined) headers["location"] = `${API_PATH}${route.path}/${encodeURIComponent(made)}`;
  sendJsonText(response, route.status ?? 200, text, headers);
}

function sessionIn(output: unknown): string | undefined {
  const id = isJsonObject(output) ? output["sessionId"] : undefined;
  return typeof id === "string" ? id : undefined;
}

/** The one server that an answer is about; its etag is that of the entry, not of what else is said of it. */
function serverIn(output: unknown): { readonly id: string; readonly etag: string | undefined } | undefined {
  const server = isJsonObject(output) ? output["server"] : undefined;
  if (!isJsonObject(server) || typeof server["id"] !== "string") return undefined;
  const { id, etag } = server;
  return { id, etag: typeof etag === "string" ? etag : undefined };
}
