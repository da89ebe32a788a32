/** The requests that both eras have: from MCP's params to the hub, and from its Outcome to an answer. */
import type { Hub } from "../../hub/hub.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Outcome } from "../../model/outcome.ts";
import { encodeError, encodeNotification, encodeResultText, inEra, resourceNotFound, rpcErrorOf } from "./encode.ts";
import type { Encoded, Outlet } from "./encoded.ts";
import type { Incoming } from "./incoming.ts";
import { listBytes } from "./lists.ts";
import {
  foreignMeta,
  invalidParams,
  metaOf,
  objectParam,
  type ProgressToken,
  progressTokenOf,
  refuseCursor,
  textParam,
  textsParam,
} from "./params.ts";
import { getSkill, listSkills, readDirectory } from "./skills.ts";

type Answer = (hub: Hub, incoming: Incoming) => Promise<Encoded> | Encoded;

/** Undefined for a method that is not among them. */
export function sharedMethod(method: string): Answer | undefined {
  return METHODS.get(method);
}

const METHODS: ReadonlyMap<string, Answer> = new Map<string, Answer>([
  ["tools/list", (hub, incoming) => list(hub, incoming, "tools", () => hub.offered(incoming.session))],
  ["resources/list", (hub, incoming) => list(hub, incoming, "resources", () => hub.view(incoming.session).resources)],
  [
    "resources/templates/list",
    (hub, incoming) => list(hub, incoming, "resourceTemplates", () => hub.view(incoming.session).templates),
  ],
  ["prompts/list", (hub, incoming) => list(hub, incoming, "prompts", () => hub.view(incoming.session).prompts)],
  ["tools/call", callTool],
  ["resources/read", readResource],
  ["prompts/get", getPrompt],
  ["completion/complete", complete],
  ["skills/list", listSkills],
  ["skills/get", getSkill],
  ["resources/directory/read", readDirectory],
]);

/** How long a list may be taken for the present one; whoever wants to know at once listens. */
const LIST_TTL_MS = 30_000;
const CACHE_FIELDS = `"resultType":"complete","ttlMs":${LIST_TTL_MS},"cacheScope":"private",`;

/** Servers that are being connected at the start are waited for, so that clients that list once see them. */
async function list(
  hub: Hub,
  { id, params, era, method }: Incoming,
  key: string,
  capabilities: () => Parameters<typeof listBytes>[0],
): Promise<Encoded> {
  refuseCursor(params, method);
  await hub.settled();
  const bytes = listBytes(capabilities());
  return encodeResultText(id, `{${era === "modern" ? CACHE_FIELDS : ""}"${key}":`, bytes, "}");
}

async function callTool(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  const name = textParam(params, "name", method);
  const args = objectParam(params, "arguments", method) ?? {};
  const { task } = params;
  if (task !== undefined) throw invalidParams("Tasks are not supported here: call the tool without `task`.");
  const extra = otherParams(params, ["name", "arguments"]);
  const outcome = await hub.call(session, { name, arguments: args, keepLarge: true, ...options(incoming, extra) });
  return answer(incoming, outcome);
}

async function readResource(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  const uri = textParam(params, "uri", method);
  const outcome = await hub.read(session, { uri, ...options(incoming, otherParams(params, ["uri"])) });
  return answer(incoming, outcome, { ttlMs: 0, cacheScope: "private" });
}

async function getPrompt(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  const name = textParam(params, "name", method);
  const args = textsParam(params, "arguments", method) ?? {};
  const extra = otherParams(params, ["name", "arguments"]);
  return answer(incoming, await hub.prompt(session, { name, arguments: args, ...options(incoming, extra) }));
}

async function complete(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  const argument = objectParam(params, "argument", method) ?? {};
  const name = textParam(argument, "name", `argument of ${method}`);
  const value = textParam(argument, "value", `argument of ${method}`);
  const context = objectParam(params, "context", method);
  const extra = otherParams(params, ["ref", "argument", "context"]);
  const outcome = await hub.complete(session, {
    ref: refOf(params, method),
    argument: { ...argument, name, value },
    context,
    ...options(incoming, extra),
  });
  return answer(incoming, outcome);
}

function refOf(
  params: JsonObject,
  method: string,
): { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string } {
  const ref = objectParam(params, "ref", method) ?? {};
  const { type } = ref;
  if (type === "ref/prompt") return { ...ref, type, name: textParam(ref, "name", `ref of ${method}`) };
  if (type === "ref/resource") return { ...ref, type, uri: textParam(ref, "uri", `ref of ${method}`) };
  throw invalidParams(`"ref" of ${method} must be a ref/prompt or a ref/resource.`);
}

const ENVELOPE = new Set(["_meta", "inputResponses", "requestState"]);

/** Params that nobody here knows belong to the client and the server. */
function otherParams(params: JsonObject, known: readonly string[]): JsonObject | undefined {
  let others: [string, unknown][] | undefined;
  for (const key in params) {
    if (ENVELOPE.has(key) || known.includes(key)) continue;
    (others ??= []).push([key, params[key]]);
  }
  // Not by assignment: a key may be `__proto__`.
  return others && Object.fromEntries(others);
}

type Options = Omit<Parameters<Hub["read"]>[1], "uri">;

function options(incoming: Incoming, extra: JsonObject | undefined): Options {
  const { params, outlet, signal, client, onAsk, onNotice, logLevel, input } = incoming;
  const meta = metaOf(params);
  const token = progressTokenOf(meta);
  return {
    signal,
    client,
    onAsk,
    onNotice,
    logLevel,
    input,
    extra,
    meta: foreignMeta(meta),
    onProgress: token === undefined ? undefined : progressTo(outlet, token),
  };
}

function progressTo(outlet: Outlet, progressToken: ProgressToken): NonNullable<Options["onProgress"]> {
  return (progress) => outlet.send(encodeNotification("notifications/progress", { progressToken, ...progress }));
}

/** @param cacheFields Fields that the modern era wants in a result of this kind, for servers that did not send them. */
export function answer(incoming: Incoming, outcome: Outcome, cacheFields: JsonObject = {}): Encoded {
  const { id, era, method, params } = incoming;
  const instead = outcome.ok ? undefined : incoming.insteadOfFailure?.();
  if (instead !== undefined) return encodeError(id, instead);
  if (outcome.ok || outcome.result !== undefined) {
    const result = outcome.result ?? {};
    return encodeResultText(id, JSON.stringify(era === "modern" ? modern(result, cacheFields) : legacy(result)));
  }
  const { error } = outcome;
  const isMissing = error.code === "not_found" && error.details?.["rpc"] === undefined;
  const uri = method.startsWith("resources/") ? params["uri"] : undefined;
  if (isMissing && typeof uri === "string") return encodeError(id, resourceNotFound(era, uri, error));
  const rpc = rpcErrorOf(error);
  // Only there does the code mean a missing resource; anywhere else it is the server's own.
  return encodeError(id, method.startsWith("resources/") ? inEra(era, rpc) : rpc);
}

function modern(result: JsonObject, cacheFields: JsonObject): JsonObject {
  if (result["resultType"] !== undefined) return result;
  return { resultType: "complete", ...cacheFields, ...result };
}

/** A legacy client takes every result for complete. */
function legacy(result: JsonObject): JsonObject {
  if (result["resultType"] !== "complete") return result;
  const { resultType: _always, ...rest } = result;
  return rest;
}
