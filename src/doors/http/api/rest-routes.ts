/** REST: each request is one operation, decoded from HTTP and encoded back. */
import { httpClientInfo } from "../http-client-info.ts";
import { hash } from "node:crypto";
import { OPERATIONS } from "../../../contract/operations.ts";
import {
  API_DOCS_PATH,
  API_DOCUMENT_PATH,
  API_PATH,
  AUDIT_EXPORT_PATH,
  EXCLUDED_EXPORT_INPUTS,
  REST_ROUTES,
  type RestRoute,
} from "../../../contract/rest.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { matchesEtag } from "../../../hub/servers/server-entry.ts";
import { asToolcribError, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { baseOf, redirectBaseOf } from "../hosts.ts";
import type { HttpExchange, HttpRequest, HttpResponse, HttpRoute } from "../http-exchange.ts";
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
import type { Operations } from "./run-operation.ts";
import { withClusterIds, toOwner } from "./session-ids.ts";

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
    throw notFoundAt(exchange.path, `${API_DOCUMENT_PATH} lists all routes, ${API_DOCS_PATH} describes them.`);
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
  const input = parts.ids === undefined ? given : await toOwner(parts.ids, exchange, route.operation, given);
  if (input === undefined) return;
  const { serverId } = params;
  if (serverId !== undefined && (route.method === "PATCH" || route.method === "DELETE")) {
    const ifMatch = request.headers["if-match"];
    await changeServer(exchange, parts, route, ifMatch === undefined ? input : { ...input, ifMatch });
  } else {
    const output = await runOperation(exchange, parts, route, input);
    respondOutput(exchange, parts, route, withClusterIds(parts.ids, route.operation, given, output));
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
    respondOutput(exchange, parts, route, await runOperation(exchange, parts, route, input));
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
    session: sessions.of(caller, request),
    clientInfo: httpClientInfo(request, caller),
    signal: abortOnClose(response),
    baseUrl: baseOf(hub.config.config.http, request),
    redirectBase: redirectBaseOf(hub.config.config.http, request),
  });
}

/** Aborts when the client disconnects before the response. */
function abortOnClose(response: HttpResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => (response.writableFinished ? undefined : gone.abort()));
  return gone.signal;
}

function respondOutput(
  { request, response }: HttpExchange,
  { hub }: RestParts,
  route: RestRoute,
  output: unknown,
): void {
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
  if (made !== undefined) {
    const before = pathBefore(hub.config.config.http, request);
    headers["location"] = `${before}${API_PATH}${route.path}/${encodeURIComponent(made)}`;
  }
  sendJsonText(response, route.status ?? 200, text, headers);
}

/** The path before the hub's own, as the client knows it: the proxy at `publicUrl` may have taken it off. */
function pathBefore(
  { publicUrl, basePath = "" }: { readonly publicUrl?: string | undefined; readonly basePath?: string | undefined },
  { headers }: HttpRequest,
): string {
  const known = publicUrl === undefined ? null : URL.parse(publicUrl);
  const isPublic = known !== null && URL.parse(`http://${headers.host}`)?.hostname === known.hostname;
  return isPublic ? known.pathname.replace(/\/$/, "") : basePath;
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

export async function readInput(
  exchange: HttpExchange,
  { from, method }: RestRoute,
  params: Readonly<Record<string, string>>,
): Promise<JsonObject> {
  const query = readQuery(exchange.query, params);
  if (method === "GET" || method === "DELETE" || from === undefined) return { ...query, ...params };
  const [stray] = Object.keys(query);
  if (stray !== undefined) throw invalidInput([{ path: stray, message: "belongs in the body, not in the query" }]);
  const body = await readJson(exchange);
  return { ...fromBody(from, body), ...params };
}

function readQuery(query: URLSearchParams, params: Readonly<Record<string, string>> = {}): JsonObject {
  const input: JsonObject = {};
  for (const [key, value] of query) {
    if (Object.hasOwn(input, key) || Object.hasOwn(params, key)) {
      throw invalidInput([{ path: key, message: "was given more than once" }]);
    }
    if (key !== "__proto__") input[key] = value;
  }
  return input;
}

function fromBody(from: RestRoute["from"], body: unknown): JsonObject {
  // No body is the same as an empty object.
  const object = body === undefined ? {} : body;
  if (!isJsonObject(object)) throw invalidInput([{ path: "", message: "The body must be a JSON object" }]);
  switch (from) {
    case "entry":
      return entryInput(object);
    case "updates":
      return { updates: object };
    case "arguments":
      return argumentsInput(object);
    default:
      return object;
  }
}

/** `{serverId, config}`, or the entry itself with its `id`. */
function entryInput(body: JsonObject): JsonObject {
  const { config, id, serverId, ...rest } = body;
  if (isJsonObject(config) && rest["command"] === undefined && rest["url"] === undefined) {
    return { config, serverId: serverId ?? id, ...rest };
  }
  return { config: { ...rest, ...(config === undefined ? {} : { config }) }, serverId: id ?? serverId };
}

const CALL_KEYS: ReadonlySet<string> = new Set(["arguments", ...Object.keys(OPERATIONS.callTool.input.shape)]);

function argumentsInput({ arguments: named, ...body }: JsonObject): JsonObject {
  const stray = Object.keys(body).filter((key) => !CALL_KEYS.has(key));
  if (stray.length > 0) {
    const { message, details } = invalidInput(stray.map((path) => ({ path, message: "is not known" })));
    const hint = `Arguments of the tool go into \`arguments\`: {"arguments": {${JSON.stringify(stray[0])}: …}}.`;
    throw new ToolcribError("invalid_arguments", message, { hint, details });
  }
  if (named === undefined) return body;
  if (body["args"] !== undefined)
    throw invalidInput([{ path: "args", message: "is the same as arguments; send only one" }]);
  return { ...body, args: named };
}

/** A web page can send other types to any address without asking first; JSON it cannot. */
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** Whether there is a body that says it is something else. */
function hasNonJsonBody({ headers }: HttpRequest): boolean {
  const type = headers["content-type"];
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  return hasBody && type !== undefined && !JSON_TYPE.test(type);
}

async function readJson(exchange: HttpExchange): Promise<unknown> {
  const body = await exchange.readBody();
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    throw new ToolcribError("invalid_arguments", "The body is not valid JSON.");
  }
}

type RouteMatch =
  | { readonly route: RestRoute; readonly params: Readonly<Record<string, string>> }
  /** Something is there, for other methods. */
  | { readonly allowed: readonly string[] };

interface Pattern {
  readonly route: RestRoute;
  readonly segments: readonly string[];
}

/** Routes with fewer parameters first: `/skills/places` is not a skill. */
const PATTERNS: readonly Pattern[] = REST_ROUTES.map((route) => ({
  route,
  segments: route.path.slice(1).split("/"),
})).toSorted((a, b) => parameterCount(a) - parameterCount(b));

/**
 * The operation behind a method and a path; undefined if nothing is there.
 * @param path Below `/api/v1`, decoded.
 */
export function matchRoute(method: string, path: string): RouteMatch | undefined {
  const given = path.slice(1).split("/");
  const wanted = method === "HEAD" ? "GET" : method;
  const allowed = new Set<string>();
  for (const { route, segments } of PATTERNS) {
    const params = paramsOf(segments, given);
    if (params === undefined) continue;
    if (route.method === wanted) return { route, params };
    allowed.add(route.method);
    if (route.method === "GET") allowed.add("HEAD");
  }
  return allowed.size === 0 ? undefined : { allowed: [...allowed] };
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const text = given[index] ?? "";
    const name = parameterName(segment);
    if (name !== undefined) params[name] = text;
    else if (segment !== text) return undefined;
  }
  return params;
}

function parameterCount({ segments }: Pattern): number {
  return segments.filter((segment) => parameterName(segment) !== undefined).length;
}

function parameterName(segment: string): string | undefined {
  return /^\{(\w+)\}$/.exec(segment)?.[1];
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
  let goOn = (): void => {};
  response.on("drain", () => goOn());
  response.on("close", () => goOn());
  for await (const text of exportText(first, lines)) {
    const isTaken = response.write(text);
    if (!isTaken && !response.destroyed) await new Promise<void>((resolve) => (goOn = resolve));
    // A client that leaves early is not a fault.
    if (response.destroyed) return;
  }
  response.end();
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
    readOnlyRoute(API_DOCUMENT_PATH, async ({ request, response }) => {
      const { document } = await texts();
      const etag = bodyEtag(document);
      if (matchesIfNoneMatch(request, etag)) response.writeHead(304, { etag }).end();
      else sendJsonText(response, 200, document, { etag });
    }),
    readOnlyRoute(API_DOCS_PATH, async ({ response }) => {
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
function matchesIfNoneMatch({ headers }: HttpRequest, tag: string): boolean {
  const given = headers["if-none-match"];
  if (given === undefined) return false;
  return given.trim() === "*" || given.split(",").map(bareTag).includes(bareTag(tag));
}

/** Also without quotes, as people type them. */
function bareTag(tag: string): string {
  return tag
    .trim()
    .replace(/^W\//, "")
    .replace(/^"(.*)"$/, "$1");
}
