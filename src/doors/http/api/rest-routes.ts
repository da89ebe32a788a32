/** REST: each request is one operation, decoded from HTTP and encoded back. */
import { hash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { OPERATIONS } from "../../../contract/operations.ts";
import { API_PATH, AUDIT_EXPORT_PATH, EXCLUDED_EXPORT_INPUTS, type RestRoute } from "../../../contract/rest.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { matchesEtag } from "../../../hub/servers/server-entry.ts";
import { asToolcribError, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { HttpExchange, HttpRoute } from "../http-exchange.ts";
import {
  notFoundAt,
  readOnlyRoute,
  refuseMethodUnless,
  refuseUnlessRead,
  sendError,
  sendJsonText,
} from "../http-responses.ts";
import type { CallerSessions } from "./caller-sessions.ts";
import { type ApiParts, checkInput, invalidInput } from "./operation-handler.ts";
import { hasNonJsonBody, matchRoute, readInput, readQuery } from "./rest-input.ts";
import type { Operations } from "./run-operation.ts";
import { withClusterIds, toLocalSession } from "./session-ids.ts";

export interface RestParts extends ApiParts {
  readonly operations: Operations;
  readonly sessions: CallerSessions;
  /** In a cluster: ids that name the node that has the session. */
  readonly ids?: RoutableIds | undefined;
}

export function apiRoutes(parts: RestParts): HttpRoute[] {
  return [
    // Each operation says what it needs.
    { path: API_PATH, access: "any", handle: (exchange) => respond(exchange, parts) },
    ...docsRoutes(parts.version),
  ];
}

async function respond(exchange: HttpExchange, parts: RestParts): Promise<void> {
  const { request, response, caller } = exchange;
  const path = exchange.path.slice(API_PATH.length);
  if (path === AUDIT_EXPORT_PATH) return exportAudit(exchange, parts.hub.audit);
  const match = matchRoute(request.method ?? "", path);
  if (match === undefined) {
    throw notFoundAt(exchange.path, `${DOCUMENT_PATH} lists all routes, ${DOCS_PATH} describes them.`);
  }
  if ("allowed" in match) return void refuseMethodUnless(exchange, match.allowed);
  const { route, params } = match;
  const { scope } = OPERATIONS[route.operation];
  // Before the body is read; what runs from here on is authorized.
  if (!caller.scopes.has(scope)) return exchange.refuseScope(scope);
  if (hasNonJsonBody(request)) {
    const error = new ToolcribError("invalid_arguments", "The body must be application/json.");
    return sendError(response, error, { status: 415 });
  }
  const given = await readInput(exchange, route, params);
  const input = parts.ids === undefined ? given : await toLocalSession(parts.ids, exchange, route.operation, given);
  if (input === undefined) return;
  const { serverId } = params;
  if (serverId !== undefined && (route.method === "PATCH" || route.method === "DELETE")) {
    const ifMatch = request.headers["if-match"];
    await changeServer(exchange, parts, route, ifMatch === undefined ? input : { ...input, ifMatch });
  } else {
    const output = await runOperation(exchange, parts, route, input);
    respondOutput(exchange, route, withClusterIds(parts.ids, route.operation, given, output));
  }
}

/** An entry that has changed since the client read it has a status of its own. */
async function changeServer(
  exchange: HttpExchange,
  parts: RestParts,
  route: RestRoute,
  input: JsonObject,
): Promise<void> {
  const { ifMatch, serverId } = input;
  try {
    respondOutput(exchange, route, await runOperation(exchange, parts, route, input));
  } catch (thrown) {
    const error = asToolcribError(thrown);
    if (error.code !== "conflict" || typeof ifMatch !== "string" || typeof serverId !== "string") throw thrown;
    const now = await parts.hub.servers.get(serverId);
    if (now === undefined || !now.editable || matchesEtag(ifMatch, now.etag)) throw thrown;
    sendError(exchange.response, error, { status: 412, headers: { etag: now.etag } });
  }
}

function runOperation(exchange: HttpExchange, parts: RestParts, route: RestRoute, input: JsonObject): Promise<unknown> {
  const { request, response, caller } = exchange;
  const { operations, sessions, hub } = parts;
  return operations.runAuthorized(route.operation, input, {
    caller,
    session: sessions.of(caller),
    signal: abortOnClose(response),
    baseUrl: hub.config.config.http.publicUrl?.replace(/\/$/, "") ?? `http://${request.headers.host}`,
  });
}

/** Aborts when the client disconnects before the response. */
function abortOnClose(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => (response.writableFinished ? undefined : gone.abort()));
  return gone.signal;
}

function respondOutput({ request, response }: HttpExchange, route: RestRoute, output: unknown): void {
  const text = JSON.stringify(output);
  const server = serverIn(output);
  const headers: Record<string, string> = {};
  if (server?.etag !== undefined) headers["etag"] = server.etag;
  else if (route.method === "GET") {
    const tag = bodyEtag(text);
    if (matchesIfNoneMatch(request, tag)) {
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

/** The server in an output; its etag is that of the entry, not of the whole response. */
function serverIn(output: unknown): { readonly id: string; readonly etag: string | undefined } | undefined {
  const server = isJsonObject(output) ? output["server"] : undefined;
  if (!isJsonObject(server) || typeof server["id"] !== "string") return undefined;
  const { id, etag } = server;
  return { id, etag: typeof etag === "string" ? etag : undefined };
}

type AuditLines = Pick<Hub["audit"], "exportLines">;

/** The audit log as lines, as many as there are: nothing is gathered in memory, and a slow reader slows it down. */
export async function exportAudit(exchange: HttpExchange, audit: AuditLines): Promise<void> {
  const { request, response, caller, query } = exchange;
  const { scope } = OPERATIONS.listAudit;
  if (!caller.scopes.has(scope)) return exchange.refuseScope(scope);
  if (refuseUnlessRead(exchange)) return;
  const given = readQuery(query);
  for (const key of EXCLUDED_EXPORT_INPUTS) {
    if (!Object.hasOwn(given, key)) continue;
    throw invalidInput([{ path: key, message: "does not apply here: the export has all records, the oldest first" }]);
  }
  const lines: AsyncIterator<string> = audit.exportLines(checkInput("listAudit", given))[Symbol.asyncIterator]();
  // A failure before the first line is answered as an error; after it, the connection can only be cut.
  const first = await lines.next();
  response.writeHead(200, {
    "content-type": "application/x-ndjson",
    "content-disposition": 'attachment; filename="toolcrib-audit.jsonl"',
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  if (request.method === "HEAD") {
    response.end();
    await lines.return?.();
    return;
  }
  await pipeline(Readable.from(exportText(first, lines), { objectMode: false }), response).catch((error: unknown) => {
    // A client that leaves early is not a fault.
    if (!response.destroyed) throw error;
  });
}

async function* exportText(first: IteratorResult<string>, rest: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) {
      yield next.value.endsWith("\n") ? next.value : `${next.value}\n`;
    }
  } finally {
    await rest.return?.();
  }
}

const DOCUMENT_PATH = `${API_PATH}/openapi.json`;
const DOCS_PATH = "/api/docs";

interface Texts {
  readonly document: string;
  readonly page: string;
  readonly policy: string;
}

/** The description of the API, for programs and for people. It says nothing about this hub, so it needs no token. */
function docsRoutes(version: string): HttpRoute[] {
  let made: Promise<Texts> | undefined;
  const texts = (): Promise<Texts> => (made ??= createTexts(version));
  return [
    readOnlyRoute(DOCUMENT_PATH, async ({ request, response }) => {
      const { document } = await texts();
      const etag = bodyEtag(document);
      if (matchesIfNoneMatch(request, etag)) response.writeHead(304, { etag }).end();
      else sendJsonText(response, 200, document, { etag });
    }),
    readOnlyRoute(DOCS_PATH, async ({ response }) => {
      const { page, policy } = await texts();
      response.writeHead(200, {
        "content-type": "text/html; charset=utf-8",
        "content-length": Buffer.byteLength(page),
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
      });
      response.end(page);
    }),
  ];
}

/** Made for the first request: the document and the page are large. */
async function createTexts(version: string): Promise<Texts> {
  const [{ openApiDocument }, { docsPage, DOCS_POLICY }] = await Promise.all([
    import("./openapi-document.ts"),
    import("./docs-page.ts"),
  ]);
  const document = openApiDocument(version);
  return { document: JSON.stringify(document), page: docsPage(document), policy: DOCS_POLICY };
}

function bodyEtag(body: string): string {
  return `"${hash("sha1", body, "base64url")}"`;
}

/** Whether the client has this response already. */
function matchesIfNoneMatch({ headers }: IncomingMessage, tag: string): boolean {
  const given = headers["if-none-match"];
  if (given === undefined) return false;
  return given.trim() === "*" || tagsIn(given).includes(bareTag(tag));
}

/** Also without quotes, as people type them. */
function tagsIn(header: string): string[] {
  return header
    .split(",")
    .map((tag) => bareTag(tag.trim()))
    .filter((tag) => tag !== "");
}

function bareTag(tag: string): string {
  return tag.replace(/^W\//, "").replace(/^"(.*)"$/, "$1");
}
