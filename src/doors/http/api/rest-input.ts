/** Finds the operation of a REST request, and its input in path, query and body. */
import type { IncomingMessage } from "node:http";
import { OPERATIONS } from "../../../contract/operations.ts";
import { REST_ROUTES, type RestRoute } from "../../../contract/rest.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { HttpExchange } from "../http-exchange.ts";
import { invalidInput } from "./operation-handler.ts";

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

export function readQuery(query: URLSearchParams, params: Readonly<Record<string, string>> = {}): JsonObject {
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
    const given = serverId ?? id;
    return { config, serverId: given, ...rest };
  }
  const given = id ?? serverId;
  return {
    config: { ...rest, ...(config === undefined ? {} : { config }) },
    serverId: given,
  };
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
export function hasNonJsonBody({ headers }: IncomingMessage): boolean {
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
