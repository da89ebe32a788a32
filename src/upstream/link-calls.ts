/** Runs one Use on one Link: params, headers, timeouts, and the rounds in which a modern server asks back. */
import { randomUUID } from "node:crypto";
import { abortSignalOf, type CancelSignal } from "../base/async.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, HEADER_MISMATCH, LOG_LEVEL_KEY, type ToolDefinition } from "../model/protocol.ts";
import { serverDisplayName, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide, InputRound, TaskRequest, Use, UseContext } from "../model/source.ts";
import { foldKey } from "../policy/argument-values.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { paramHeaders } from "./http/mcp-headers.ts";
import type { Link } from "./link.ts";
import type { LiveLists } from "./live-lists.ts";
import type { RequestOptions } from "./peer.ts";
import { rpcOf } from "./rpc-error.ts";
import { answerServer, modernCapabilities, withOfferedAnswers, withOfferedRoots } from "./server-requests.ts";
import { callWithTasks, requestAboutTask, type TaskMemory, tasksOf, withoutTasks, withTasks } from "./task-forms.ts";

/** Progress restarts a call's timeout, up to this many times the timeout in all. */
const MAX_PROGRESS_FACTOR = 10;

/** How long a call may take at most, however much progress it makes. */
export function maxCallMs({ toolTimeout }: ServerSpec): number {
  return toolTimeout * MAX_PROGRESS_FACTOR;
}

interface CallSettings {
  readonly spec: ServerSpec;
  readonly deps: Pick<ConnectionDeps, "workspaceRoots" | "env" | "clock">;
  readonly lists: Pick<LiveLists, "findTool" | "readNow">;
  readonly tasks: TaskMemory;
}

export function runOnLink(link: Link, use: Use, context: UseContext, setting: CallSettings): Promise<JsonObject> {
  const server = use.kind === "tool" ? tasksOf(link.agreement) : undefined;
  if (use.kind !== "tool" || server === undefined) return sendUse(link, use, context, setting, undefined);
  const { signal, extra, client, tasks: caller } = context;
  const answering = withOfferedRoots(client, setting.spec, setting.deps);
  const wish = extra?.["task"];
  const run = {
    ...{ server, caller, client, signal, memory: setting.tasks, clock: setting.deps.clock },
    wish: isJsonObject(wish) ? wish : undefined,
    support: taskSupportOf(setting.lists.findTool(use.name)),
    maxMs: maxCallMs(setting.spec),
    call: async (task: JsonObject | undefined) => setting.tasks.note(await sendUse(link, use, context, setting, task)),
    request: async (task: TaskRequest, over: Partial<UseContext> = {}) => {
      const answer = await sendUse(link, { ...use, task }, { ...context, ...over, input: undefined }, setting, {});
      return setting.tasks.note(answer, task);
    },
    answer: (method: string, params: JsonObject) =>
      answerServer(
        serverDisplayName(setting.spec),
        answering,
        method,
        withElicitationId(method, params),
        abortSignalOf(signal),
      ),
  };
  return use.task === undefined ? callWithTasks(run) : requestAboutTask(run, use.task);
}

/** @param task Asks a legacy server for a task with these wishes, and tells a modern one that it may begin one. */
function sendUse(
  link: Link,
  use: Use,
  context: UseContext,
  setting: CallSettings,
  task: JsonObject | undefined,
): Promise<JsonObject> {
  const { spec } = setting;
  const { callId, signal, onNotice, input, onSent } = context;
  const client = withOfferedRoots(context.client, spec, setting.deps);
  const { method, params: known } = requestFor(use);
  // Known parameters are never overwritten by unknown ones.
  const params: JsonObject = context.extra === undefined ? known : { ...withoutTwins(context.extra), ...known };
  delete params["task"];
  const isLegacy = link.agreement.era === "legacy";
  if (isLegacy && task !== undefined && method === "tools/call") params["task"] = task;
  if (context.meta !== undefined) params["_meta"] = context.meta;
  const options: RequestOptions = {
    callId,
    client,
    signal,
    // A task's result is waited for as long as a call may take.
    timeoutMs: use.kind === "tool" && use.task?.method === "tasks/result" ? maxCallMs(spec) : spec.toolTimeout,
    maxTotalMs: maxCallMs(spec),
    onProgress: context.onProgress ?? (use.kind === "tool" ? ignoreProgress : undefined),
    onNotice,
    onSent:
      onSent &&
      ((id) => onSent({ id, protocolVersion: link.agreement.version, transport: link.wire.transport, url: spec.url })),
  };
  if (isLegacy) return link.peer.request(method, params, options);
  const modernOptions = { ...options, envelope: callerEnvelope(client, context.logLevel, task !== undefined) };
  const send = (extra: JsonObject): Promise<JsonObject> => {
    const headers = mirrorsParamsInHeaders(link) ? headersOf(use, setting) : undefined;
    return link.peer
      .request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) })
      .catch((error: unknown) => sendAgainWithFreshHeaders(error, extra));
  };
  if (input !== undefined) return send(suppliedInput(input, context.client, setting));
  return completeInputRounds({
    send,
    answer: (asked, askedParams, askedSignal) =>
      answerServer(serverDisplayName(spec), client, asked, askedParams, askedSignal),
    signal,
  });

  /** The server's idea of which parameters are headers may be newer than ours. */
  async function sendAgainWithFreshHeaders(error: unknown, extra: JsonObject): Promise<JsonObject> {
    if (use.kind !== "tool" || rpcOf(error)?.code !== HEADER_MISMATCH) throw error;
    await setting.lists.readNow("tools");
    const headers = headersOf(use, setting);
    return link.peer.request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) });
  }
}

/** A modern server learns with each request what the client behind it can do. */
function callerEnvelope(client: ClientSide, logLevel: string | undefined, hasTasks: boolean): JsonObject {
  const capabilities = modernCapabilities(client.capabilities);
  return {
    [CLIENT_CAPABILITIES_KEY]: hasTasks ? withTasks(capabilities) : withoutTasks(capabilities),
    // A key without a value would take away the connection's own level.
    ...(logLevel === undefined ? {} : { [LOG_LEVEL_KEY]: logLevel }),
  };
}

function suppliedInput(
  { responses, state }: InputRound,
  client: ClientSide,
  { spec, deps }: Pick<CallSettings, "spec" | "deps">,
): JsonObject {
  return {
    ...(responses === undefined ? {} : { inputResponses: withOfferedAnswers(responses, client, spec, deps) }),
    ...(state === undefined ? {} : { requestState: state }),
  };
}

function taskSupportOf(tool: ToolDefinition | undefined): unknown {
  const execution = tool?.["execution"];
  return isJsonObject(execution) ? execution["taskSupport"] : undefined;
}

/** Progress of a tool is always requested: it restarts the timeout even if no caller listens to it. */
function ignoreProgress(): void {}

/** Parameters that are decided on before a request is sent. */
const DECIDED = new Map(
  ["name", "arguments", "uri", "ref", "argument", "context", "taskId", "inputResponses", "task", "_meta"].map(
    (name) => [foldKey(name), name],
  ),
);

/** Without what some servers take for one of these: those that read names in any case put `Arguments` and `arguments` together. */
function withoutTwins(extra: JsonObject): JsonObject {
  const isTwin = (key: string): boolean => (DECIDED.get(foldKey(key)) ?? key) !== key;
  return Object.fromEntries(Object.entries(extra).filter(([key]) => !isTwin(key)));
}

function mirrorsParamsInHeaders(link: Link): boolean {
  return link.agreement.era === "modern" && link.wire.transport === "http";
}

function headersOf(use: Use, setting: CallSettings): Record<string, string> | undefined {
  const tool = use.kind === "tool" ? setting.lists.findTool(use.name) : undefined;
  return use.kind === "tool" && use.task === undefined && tool !== undefined
    ? paramHeaders(tool, use.arguments)
    : undefined;
}

/** The MCP request for a Use. */
function requestFor(use: Use): { readonly method: string; readonly params: JsonObject } {
  switch (use.kind) {
    case "tool":
      if (use.task !== undefined) return { method: use.task.method, params: { ...use.task.params } };
      return { method: "tools/call", params: { name: use.name, arguments: use.arguments } };
    case "resource":
      return { method: "resources/read", params: { uri: use.uri } };
    case "prompt": {
      const { name, arguments: args } = use;
      return { method: "prompts/get", params: args === undefined ? { name } : { name, arguments: args } };
    }
    case "completion": {
      const { ref, argument, context } = use;
      return { method: "completion/complete", params: { ref, argument, context } };
    }
    case "subscribe":
      return { method: "resources/subscribe", params: { uri: use.uri } };
    case "unsubscribe":
      return { method: "resources/unsubscribe", params: { uri: use.uri } };
  }
}

const MAX_ROUNDS = 10;

interface InputRounds {
  /** Sends the request with these additional params. */
  readonly send: (extra: JsonObject) => Promise<JsonObject>;
  readonly answer: (method: string, params: JsonObject, signal: AbortSignal) => Promise<JsonObject>;
  readonly signal: CancelSignal;
}

/** The modern era's way for a server to ask back: the result says what is missing, and the request is sent again. */
async function completeInputRounds(rounds: InputRounds): Promise<JsonObject> {
  let result = await rounds.send({});
  for (let round = 0; result["resultType"] === "input_required"; round++) {
    if (round === MAX_ROUNDS) {
      throw new ToolcribError("tool_error", `The server asked for more input ${MAX_ROUNDS} times without finishing.`);
    }
    const { inputRequests, requestState } = result;
    const extra: JsonObject = {};
    if (isJsonObject(inputRequests)) extra["inputResponses"] = await answerAll(inputRequests, rounds);
    // Sent back untouched, and only if there was one: it belongs to the server.
    if (requestState !== undefined) extra["requestState"] = requestState;
    result = await rounds.send(extra);
  }
  return result;
}

async function answerAll(requests: JsonObject, rounds: InputRounds): Promise<JsonObject> {
  const siblings = new AbortController();
  const signal = AbortSignal.any([abortSignalOf(rounds.signal), siblings.signal]);
  try {
    const answers = await Promise.all(
      Object.entries(requests).map(async ([key, request]) => [key, await answerOne(request, rounds, signal)] as const),
    );
    return Object.fromEntries(answers);
  } finally {
    // After a failure the other questions are moot; after success none is open.
    siblings.abort();
  }
}

async function answerOne(request: unknown, rounds: InputRounds, signal: AbortSignal): Promise<JsonObject> {
  const method = isJsonObject(request) && typeof request["method"] === "string" ? request["method"] : "(no method)";
  const params = isJsonObject(request) && isJsonObject(request["params"]) ? request["params"] : {};
  try {
    return await rounds.answer(method, withElicitationId(method, params), signal);
  } catch (thrown) {
    if (rounds.signal.aborted) throw cancelledByCaller();
    const error = asToolcribError(thrown);
    throw new ToolcribError("denied", `The server asked for ${method}, which was not answered: ${error.message}`, {
      hint: error.hint ?? "The callback that answers it failed.",
      cause: thrown,
    });
  }
}

/** Clients of the legacy era need an id of an address that they are to visit. */
function withElicitationId(method: string, params: JsonObject): JsonObject {
  if (method !== "elicitation/create" || params["mode"] !== "url" || params["elicitationId"] !== undefined)
    return params;
  return { ...params, elicitationId: randomUUID() };
}

export function cancelledByCaller(): ToolcribError {
  return new ToolcribError("cancelled", "The call was cancelled by the caller.");
}
