/** The requests that both eras have: from MCP params to the hub, and from its Outcome to a response. */
import type { ClientInfo } from "../../model/client-info.ts";
import type { CancelSignal } from "../../base/async.ts";
import { encodedAhead } from "../../base/json-bytes.ts";
import type { Hub } from "../../hub/hub.ts";
import type { Capability } from "../../model/capability.ts";
import type { AskCallback } from "../../model/decision.ts";
import { type ErrorObject, type Outcome, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { hasUiExtension } from "../../model/mcp-apps.ts";
import { isTaskReport, LEGACY_REPORT, METHOD_NOT_FOUND, URL_ELICITATION_REQUIRED } from "../../model/protocol.ts";
import type { Era, RequestId, RpcError } from "../../model/protocol.ts";
import type { ClientSide, InputRound, TaskRequest } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { withoutEmptyMark } from "../../guard/wrap-untrusted.ts";
import { TASKS_NEEDED } from "../../upstream/task-forms.ts";
import { appToolName, asPage, fromPageUri, notePage, withPublicLinks } from "./apps.ts";
import { asListed, publicName } from "./client-names.ts";
import {
  askingForTask,
  beginsTask,
  type KnownTasks,
  ownTask,
  tasksOfClient,
  toolOfTask,
  unknownTask,
  withTaskSupport,
} from "./tasks.ts";
import {
  type Encoded,
  encodeError,
  encodeNotification,
  encodeResult,
  encodeResultText,
  errorInEra,
  forwardedMeta,
  invalidParams,
  type MessageSink,
  objectParam,
  type ProgressToken,
  progressTokenOf,
  refuseCursor,
  resourceNotFound,
  stringMapParam,
  stringParam,
  toRpcError,
} from "./rpc-messages.ts";

type RequestHandler = (hub: Hub, incoming: IncomingRequest) => Promise<Encoded> | Encoded;

/** Undefined for a method that is not among them. */
export function sharedMethod(method: string): RequestHandler | undefined {
  return METHODS.get(method);
}

/** How long a client may cache a list; clients that need changes at once listen. */
const LIST_TTL_MS = 30_000;

/** A list on which servers are still missing is not to be cached. */
function cacheFields(isWhole: boolean): string {
  return `"resultType":"complete","ttlMs":${isWhole ? LIST_TTL_MS : 0},"cacheScope":"private",`;
}

const ENVELOPE = new Set(["_meta", "inputResponses", "requestState"]);
const MAX_CACHED_LIST_BYTES = 64 * 1024 * 1024;
class CachedList {
  bytes: Buffer | undefined;
  readonly cost: number;
  readonly ref = new WeakRef(this);

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.cost = bytes.length + LIST_OVERHEAD_BYTES;
  }
}
const cachedLists = new WeakMap<readonly Capability[], CachedList>();
/** In the order of their last use. Weak: the bytes go when the list is no longer used. */
const recentLists = new Map<WeakRef<CachedList>, number>();
let cachedBytes = 0;
const UNIQUE_FIELD = { tool: "name", prompt: "name", resource: "uri", template: "uriTemplate" } as const;
const METHODS: ReadonlyMap<string, RequestHandler> = new Map<string, RequestHandler>([
  [
    "tools/list",
    (hub, incoming) =>
      answerList(incoming, "tools", () => {
        const { session, client } = incoming;
        // A host that shows pages keeps their tools from its model itself.
        const apps = hasUiExtension(client.capabilities);
        const tools = withPublicLinks(hub, session, hub.internals.offered(session, { apps }));
        const listed = asListed(hub, incoming, tools, hub.view(session).tools);
        return incoming.era === "legacy" ? withTaskSupport(hub, listed) : listed;
      }),
  ],
  ["resources/list", (hub, incoming) => answerList(incoming, "resources", () => hub.view(incoming.session).resources)],
  [
    "resources/templates/list",
    (hub, incoming) => answerList(incoming, "resourceTemplates", () => hub.view(incoming.session).templates),
  ],
  [
    "prompts/list",
    (hub, incoming) =>
      answerList(incoming, "prompts", () => {
        const { prompts } = hub.view(incoming.session);
        return asListed(hub, incoming, prompts, prompts);
      }),
  ],
  ["tools/call", callTool],
  ["resources/read", readResource],
  ["prompts/get", getPrompt],
  ["completion/complete", completeArgument],
  ["tasks/get", runTaskMethod],
  ["tasks/result", runTaskMethod],
  ["tasks/cancel", runTaskMethod],
  ["tasks/update", runTaskMethod],
  ["tasks/list", listTasks],
  ["skills/list", listSkills],
  ["skills/get", getSkill],
  ["resources/directory/read", readDirectory],
]);

/** Waits a moment for servers that are connecting at the start, so that clients that list only once see them. */
async function answerList(
  { id, params, era, method, listed }: IncomingRequest,
  key: string,
  capabilities: () => Parameters<typeof listBytes>[0],
): Promise<Encoded> {
  refuseCursor(params, method);
  const isWhole = await listed();
  const list = capabilities();
  const bytes = listBytes(era === "modern" ? list : asLegacyList(list));
  return encodeResultText(id, `{${era === "modern" ? cacheFields(isWhole) : ""}"${key}":`, bytes, "}");
}

async function callTool(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  const given = publicName(hub, incoming, stringParam(params, "name", method), () => hub.view(session).tools);
  const name = appToolName(hub, session, incoming.client, given);
  const args = objectParam(params, "arguments", method) ?? {};
  const extra = otherParams(params, ["name", "arguments"]);
  const find = () => hub.view(session).tools.find((each) => each.name === name);
  const options = callOptions(incoming, extra, () => find()?.origin.source);
  // A tool that runs tools hands on no task: its id would name the wrong tool.
  const tasks = name.startsWith("toolcrib_") ? undefined : options.tasks;
  const outcome = await hub.call({ session, name, arguments: args, keepLarge: true, ...options, tasks });
  if (!outcome.ok || !beginsTask(outcome.result)) return encodeOutcome(incoming, outcome);
  const tool = find();
  if (tool === undefined) throw unknownTask();
  return encodeOutcome(incoming, { ...outcome, result: incoming.tasks.inResult(hub, session, tool, outcome.result) });
}

async function runTaskMethod(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { id, method, params, session, era, client } = incoming;
  const isOfEra = era === "modern" ? method !== "tasks/result" : method !== "tasks/update";
  if (!isTaskMethod(method) || !isOfEra) return encodeError(id, methodNotFound(method));
  if (tasksOfClient(era, client) === "none") return encodeError(id, TASKS_NEEDED);
  const { outcome, tool } = await aboutTask(hub, incoming, method, stringParam(params, "taskId", method));
  if (outcome.result === undefined) return encodeOutcome(incoming, outcome);
  const result = incoming.tasks.inResult(hub, session, tool, outcome.result);
  return encodeOutcome(incoming, { ...outcome, result });
}

async function aboutTask(hub: Hub, incoming: IncomingRequest, method: TaskRequest["method"], taskId: string) {
  const { params, session, era, client } = incoming;
  const own = ownTask(hub, session, taskId);
  const tool = toolOfTask(hub, session, own);
  const extra = otherParams({ ...params, inputResponses: undefined }, ["taskId"]);
  const { inputResponses } = params;
  const request = { taskId: own.id, ...(inputResponses === undefined ? {} : { inputResponses }) };
  const asked = era === "legacy" ? askingForTask(client, taskId) : client;
  const options = { ...callOptions(incoming, extra, () => own.server), client: asked, input: undefined };
  return { outcome: await hub.internals.task(session, tool.name, { method, params: request }, options), tool };
}

/** The caller's tasks that this hub has seen since it started; servers do not say whose the others are. */
async function listTasks(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { id, method, params, session, era, tasks } = incoming;
  if (era === "modern") return encodeError(id, methodNotFound(method));
  refuseCursor(params, method);
  const asked = { ...incoming, params: {} };
  const known = await Promise.all(
    tasks.of(session).map(async (taskId) => {
      try {
        const { outcome, tool } = await aboutTask(hub, asked, "tasks/get", taskId);
        return outcome.ok ? [tasks.inResult(hub, session, tool, outcome.result)] : [];
      } catch {
        // Its server or its tool is gone.
        return [];
      }
    }),
  );
  return encodeResult(id, { tasks: known.flat() });
}

function isTaskMethod(method: string): method is TaskRequest["method"] {
  return ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"].includes(method);
}

function methodNotFound(method: string): RpcError {
  return { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` };
}

async function readResource(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  const asked = stringParam(params, "uri", method);
  const uri = fromPageUri(asked);
  const outcome = await hub.read({ session, uri, ...callOptions(incoming, otherParams(params, ["uri"])) });
  if (outcome.ok) notePage(hub, session, uri);
  const read = outcome.ok && asked !== uri ? { ...outcome, result: asPage(outcome.result, uri, asked) } : outcome;
  return encodeOutcome(incoming, read, { ttlMs: 0, cacheScope: "private" });
}

async function getPrompt(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  const name = publicPrompt(hub, incoming, stringParam(params, "name", method));
  // Some servers tell a call without arguments from one with none.
  const args = stringMapParam(params, "arguments", method);
  const extra = otherParams(params, ["name", "arguments"]);
  return encodeOutcome(incoming, await hub.prompt({ session, name, arguments: args, ...callOptions(incoming, extra) }));
}

async function completeArgument(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  const argument = objectParam(params, "argument", method) ?? {};
  const name = stringParam(argument, "name", `argument of ${method}`);
  const value = stringParam(argument, "value", `argument of ${method}`);
  const context = objectParam(params, "context", method);
  const extra = otherParams(params, ["ref", "argument", "context"]);
  const ref = refOf(params, method);
  const outcome = await hub.internals.complete(session, {
    ref: ref.type === "ref/prompt" ? { ...ref, name: publicPrompt(hub, incoming, ref.name) } : ref,
    argument: { ...argument, name, value },
    context,
    ...callOptions(incoming, extra),
  });
  return encodeOutcome(incoming, outcome);
}

function publicPrompt(hub: Hub, incoming: IncomingRequest, name: string): string {
  return publicName(hub, incoming, name, () => hub.view(incoming.session).prompts);
}

function refOf(
  params: JsonObject,
  method: string,
): { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string } {
  const ref = objectParam(params, "ref", method) ?? {};
  const { type } = ref;
  if (type === "ref/prompt") return { ...ref, type, name: stringParam(ref, "name", `ref of ${method}`) };
  if (type === "ref/resource") return { ...ref, type, uri: stringParam(ref, "uri", `ref of ${method}`) };
  throw invalidParams(`"ref" of ${method} must be a ref/prompt or a ref/resource.`);
}

/** Unknown params are between the client and the server. */
function otherParams(params: JsonObject, known: readonly string[]): JsonObject | undefined {
  let others: [string, unknown][] | undefined;
  for (const key in params) {
    if (ENVELOPE.has(key) || known.includes(key)) continue;
    (others ??= []).push([key, params[key]]);
  }
  // Not by assignment: a key may be `__proto__`.
  return others && Object.fromEntries(others);
}

type Options = Omit<Parameters<Hub["read"]>[0], "uri" | "session">;

/** @param server Of the tool that is called: it reports on its own tasks only. */
function callOptions(
  incoming: IncomingRequest,
  extra: JsonObject | undefined,
  server: () => string | undefined = () => undefined,
): Options {
  const { meta, sink, signal, client, clientInfo, onAsk, onNotice, logLevel, input, roundToken, era } = incoming;
  const token = progressTokenOf(meta);
  return {
    requestId: incoming.id,
    protocolVersion: incoming.protocolVersion,
    signal,
    client,
    clientInfo,
    onAsk,
    onNotice: (name, params) => {
      if (!isTaskReport(name)) return onNotice(name, params);
      const { tasks, session } = incoming;
      const source = server() ?? "";
      for (const reported of tasks.followersOf(session, source, params)) reported();
      const report = tasks.reportFor(session, source, name, params);
      // In the modern era only the stream that asked for reports has them.
      if (report !== undefined && era === "legacy") onNotice(LEGACY_REPORT, report);
    },
    tasks: tasksOfClient(era, client),
    logLevel,
    input,
    extra,
    meta: forwardedMeta(meta),
    onProgress:
      token === undefined && roundToken === undefined ? undefined : progressTo(sink, roundToken ?? (() => token)),
  };
}

function progressTo(sink: MessageSink, tokenNow: () => ProgressToken | undefined): NonNullable<Options["onProgress"]> {
  return (progress) => {
    const progressToken = tokenNow();
    if (progressToken === undefined) return;
    sink.send(encodeNotification("notifications/progress", { progressToken, ...progress }));
  };
}

/** @param cacheFields Fields that the modern era requires in this result, for servers that did not send them. */
export function encodeOutcome(incoming: IncomingRequest, outcome: Outcome, cacheFields: JsonObject = {}): Encoded {
  const { id, era, method, params } = incoming;
  const instead = outcome.ok ? undefined : incoming.failureOverride?.();
  if (instead !== undefined) return encodeError(id, instead);
  if (outcome.ok || outcome.result !== undefined) {
    const result = withoutEmptyMark(outcome.result ?? {});
    return encodeResultText(id, ...(era === "modern" ? modernJson(result, cacheFields) : legacyJson(result)));
  }
  const { error } = outcome;
  const asked = era === "modern" ? urlsToVisit(incoming, error) : undefined;
  if (asked !== undefined) return encodeResult(id, { resultType: "input_required", inputRequests: asked });
  const isMissing = error.code === "not_found" && error.details?.["rpc"] === undefined;
  const uri = method.startsWith("resources/") ? params["uri"] : undefined;
  if (isMissing && typeof uri === "string") return encodeError(id, resourceNotFound(era, uri, error));
  const rpc = toRpcError(error);
  // Only there does the code mean a missing resource; elsewhere it is the server's own.
  return encodeError(id, method.startsWith("resources/") ? errorInEra(era, rpc) : rpc);
}

/**
 * A legacy server refuses a call until its user has visited addresses; the modern era has that as questions, after which the
 * client sends its request again. Whoever declined one gets the refusal.
 */
function urlsToVisit({ client, input, method }: IncomingRequest, { details }: ErrorObject): JsonObject | undefined {
  const rpc = details?.["rpc"];
  const { elicitation } = client.capabilities;
  const canVisit = isJsonObject(elicitation) && isJsonObject(elicitation["url"]);
  if (!isJsonObject(rpc) || rpc["code"] !== URL_ELICITATION_REQUIRED || !canVisit || method !== "tools/call")
    return undefined;
  const data = isJsonObject(rpc["data"]) ? rpc["data"] : {};
  const elicitations = Array.isArray(data["elicitations"]) ? data["elicitations"].filter(isJsonObject) : [];
  const names = elicitations.map((_, index) => `url-${index + 1}`);
  const declined = names.some((name) => {
    const answer = input?.responses?.[name];
    return isJsonObject(answer) && answer["action"] !== "accept";
  });
  if (elicitations.length === 0 || declined) return undefined;
  return Object.fromEntries(
    elicitations.map((params, index) => [names[index], { method: "elicitation/create", params }]),
  );
}

const COMPLETE = '{"resultType":"complete",';

function modernJson(result: JsonObject, cacheFields: JsonObject): Encoded {
  const json = encodedAhead(result);
  if (result["resultType"] !== undefined) return [json ?? JSON.stringify(result)];
  if (json !== undefined && Object.keys(cacheFields).length === 0) return [COMPLETE, json.slice(1)];
  return [JSON.stringify({ resultType: "complete", ...cacheFields, ...result })];
}

/** A legacy client treats every result as complete. */
function legacyJson(result: JsonObject): Encoded {
  const json = encodedAhead(result);
  if (result["resultType"] !== "complete") return [json ?? JSON.stringify(result)];
  if (json?.startsWith(COMPLETE) === true) return ["{", json.slice(COMPLETE.length)];
  const { resultType: _always, ...rest } = result;
  return [JSON.stringify(rest)];
}

/** One request in progress, of either era. */
export interface IncomingRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: JsonObject;
  /** Its `_meta`. */
  readonly meta: JsonObject;
  readonly era: Era;
  readonly protocolVersion: string | undefined;
  readonly session: Session;
  readonly client: ClientSide;
  /** The program that asks, if it is not that of the session. */
  readonly clientInfo?: ClientInfo | undefined;
  readonly onAsk?: AskCallback | undefined;
  readonly sink: MessageSink;
  readonly signal: CancelSignal;
  readonly tasks: KnownTasks;
  /** Waits a moment for servers that start. False if some are not listed yet. */
  readonly listed: () => Promise<boolean>;
  readonly onNotice: (method: string, params: JsonObject) => void;
  readonly logLevel?: string | undefined;
  readonly input?: InputRound | undefined;
  /** For a call of several rounds: the progress token of the request that waits for it now. */
  readonly roundToken?: (() => ProgressToken | undefined) | undefined;
  /** Replaces the source's error, if the call failed for a reason that only the door knows. */
  readonly failureOverride?: (() => RpcError | undefined) | undefined;
}

const legacyLists = new WeakMap<readonly Capability[], readonly Capability[]>();

/**
 * Official clients for versions before 2026-07-28 refuse the whole list for an output schema that is not that of an object, and
 * for `true` as the schema of a parameter, which Rust's servers write.
 */
function asLegacyList(capabilities: readonly Capability[]): readonly Capability[] {
  let list = legacyLists.get(capabilities);
  if (list === undefined) {
    const adapted = capabilities.map(asLegacy);
    list = adapted.every((each, index) => each === capabilities[index]) ? capabilities : adapted;
    legacyLists.set(capabilities, list);
  }
  return list;
}

function asLegacy(capability: Capability): Capability {
  if (capability.kind !== "tool") return capability;
  const { definition } = capability;
  const { outputSchema, ...rest } = definition;
  const inputSchema = withoutBooleans(rest.inputSchema);
  const output = outputSchema?.["type"] === "object" ? withoutBooleans(outputSchema) : undefined;
  if (inputSchema === rest.inputSchema && output === outputSchema) return capability;
  return { ...capability, definition: { ...rest, inputSchema, ...(output && { outputSchema: output }) } };
}

function withoutBooleans(schema: JsonObject): JsonObject {
  const entries = isJsonObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  if (!entries.some(([, property]) => typeof property === "boolean")) return schema;
  const properties = entries.map(([name, property]) => [name, asObjectSchema(property)]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

function asObjectSchema(schema: unknown): unknown {
  if (typeof schema !== "boolean") return schema;
  return schema ? {} : { not: {} };
}

/** A short list costs memory too. */
const LIST_OVERHEAD_BYTES = 1024;

/** The JSON array of these definitions under their public names. */
export function listBytes(capabilities: readonly Capability[]): Buffer {
  const known = cachedLists.get(capabilities);
  if (known?.bytes !== undefined) {
    recentLists.delete(known.ref);
    recentLists.set(known.ref, known.cost);
    return known.bytes;
  }
  const bytes = Buffer.from(`[${capabilities.map(entryText).join(",")}]`);
  cacheList(capabilities, bytes);
  return bytes;
}

/**
 * Lists as bytes. A list is encoded once for each version and view, and all clients with the same view get the same bytes. Texts of
 * single entries would be as much again. Clients choose the views, so the cache is bounded: the last used stay.
 */
function cacheList(capabilities: readonly Capability[], bytes: Buffer): void {
  const kept = new CachedList(bytes);
  cachedLists.set(capabilities, kept);
  recentLists.set(kept.ref, kept.cost);
  cachedBytes += kept.cost;
  for (const [ref, cost] of recentLists) {
    if (cachedBytes <= MAX_CACHED_LIST_BYTES || ref === kept.ref) return;
    recentLists.delete(ref);
    cachedBytes -= cost;
    const oldest = ref.deref();
    if (oldest !== undefined) oldest.bytes = undefined;
  }
}

/** The definition exactly as the source sent it, except for the field that must be unique here. */
function entryText({ kind, name, definition }: Capability): string {
  return JSON.stringify({ ...definition, [UNIQUE_FIELD[kind]]: name });
}

/** The MCP skills extension: what a client lists, gets and walks through. Files are read like any resource. */
export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";
export const SKILLS_CAPABILITY: JsonObject = { directoryRead: true };

async function listSkills(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  refuseCursor(params, method);
  await incoming.listed();
  return encodeSkillResult(incoming, { skills: await hub.skills.entries(session) });
}

async function getSkill(hub: Hub, incoming: IncomingRequest): Promise<Encoded> {
  const { params, method, session } = incoming;
  const uri = stringParam(params, "uri", method);
  const skill = await hub.skills.entry(session, uri);
  if (skill === undefined) throw new ToolcribError("not_found", `There is no skill ${uri}.`);
  return encodeSkillResult(incoming, { skill });
}

function readDirectory(hub: Hub, incoming: IncomingRequest): Encoded {
  const { params, method, session } = incoming;
  refuseCursor(params, method);
  return encodeSkillResult(incoming, { resources: hub.skills.directory(session, stringParam(params, "uri", method)) });
}

/** Skills change without notice: a folder can be edited at any time. */
function encodeSkillResult({ id, era }: IncomingRequest, result: JsonObject): Encoded {
  const modern = era === "modern" ? { resultType: "complete", ttlMs: 0, cacheScope: "private" } : {};
  return encodeResult(id, { ...modern, ...result });
}
