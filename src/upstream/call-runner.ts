/** Runs uses on the link that a Connection has, once more where that is safe, and knows which are under way. */
import type { Clock } from "../base/clock.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  HEADER_MISMATCH,
  LOG_LEVEL_KEY,
  type Result,
  type ToolDefinition,
} from "../model/protocol.ts";
import { serverDisplayName, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide, InputRound, Use, UseContext } from "../model/source.ts";
import { isLoginNeeded } from "../secrets/oauth/login-errors.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { isSessionLost, isUnreachable, maskError, recoveryFor, removedError } from "./connection-failures.ts";
import { paramHeaders } from "./http/mcp-headers.ts";
import type { ResourceSubscriptions } from "./link-maintenance.ts";
import type { Link } from "./link.ts";
import type { LiveLists } from "./live-lists.ts";
import type { RequestOptions } from "./peer.ts";
import { rpcOf } from "./rpc-error.ts";
import { answerServer, modernCapabilities, withOfferedAnswers, withOfferedRoots } from "./server-requests.ts";

/** The Connection, as far as its calls need it. */
export interface LinkKeeper {
  /** The link in use. */
  readonly link: () => Link | undefined;
  readonly spec: () => ServerSpec;
  readonly deps: CallSettings["deps"];
  readonly lists: LiveLists;
  readonly subscriptions: ResourceSubscriptions;
  /** Waits for a link that is being made; rejects if there is none to wait for. */
  usableLink(signal: AbortSignal): Promise<Link>;
  /** Replaces this link, unless that has been done. */
  reconnect(link: Link, sessionLost?: boolean): Promise<void>;
  /** Nothing works on this link without a new login. */
  lostLogin(error: ToolcribError): void;
  /** Has a modern server tell of exactly these resources. */
  follow(uris: readonly string[]): Promise<void>;
  readonly mask: (text: string) => string;
}

export class CallRunner {
  readonly #keeper: LinkKeeper;
  readonly #setting: CallSettings;
  #running = 0;
  #retired = false;
  #idleWaiters: (() => void)[] = [];

  constructor(keeper: LinkKeeper) {
    this.#keeper = keeper;
    this.#setting = {
      get spec() {
        return keeper.spec();
      },
      deps: keeper.deps,
      findTool: (name) => keeper.lists.findTool(name),
      readTools: () => keeper.lists.readNow("tools"),
    };
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    const keeper = this.#keeper;
    if (this.#retired) throw removedError(keeper.spec().id);
    this.#running++;
    try {
      const link = keeper.link() ?? (await keeper.usableLink(context.signal));
      try {
        return await this.#runOn(link, use, context);
      } catch (error) {
        return await this.#runAgain(link, use, context, error);
      }
    } catch (error) {
      throw maskError(error, keeper.spec().id, keeper.mask);
    } finally {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
  }

  /** From now on nothing new is run. Resolves when nothing runs any more, or after this time. */
  retire(clock: Clock, limitMs: number): Promise<void> {
    this.#retired = true;
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = clock.after(limitMs, resolve);
      this.#idleWaiters.push(() => {
        stop();
        resolve();
      });
    });
  }

  #runOn(link: Link, use: Use, context: UseContext): Promise<JsonObject> {
    if (use.kind !== "subscribe" && use.kind !== "unsubscribe") return runOnLink(link, use, context, this.#setting);
    return this.#keeper.subscriptions.change(use, context.session.id, async (uris) => {
      if (link.agreement.era === "legacy") return runOnLink(link, use, context, this.#setting);
      await this.#keeper.follow(uris);
      return {};
    });
  }

  async #runAgain(link: Link, use: Use, context: UseContext, error: unknown): Promise<JsonObject> {
    if (isLoginNeeded(error) && this.#keeper.link() === link) this.#keeper.lostLogin(asToolcribError(error));
    const again = await this.#linkForRetry(link, use, error);
    if (again === undefined) throw error;
    return this.#runOn(again, use, context).catch((second: unknown) => {
      if (isUnreachable(second) && !again.peer.busy) void this.#keeper.reconnect(again);
      throw second;
    });
  }

  /** The link to run a failed use on once more, if that is safe and makes sense. */
  async #linkForRetry(link: Link, use: Use, error: unknown): Promise<Link | undefined> {
    const { lists } = this.#keeper;
    const tool = use.kind === "tool" ? lists.findTool(use.name) : undefined;
    const remedy = recoveryFor(error, {
      use,
      tool,
      transport: link.wire.transport,
      restart: this.#keeper.spec().restart,
    });
    const reconnected = remedy.reconnect ? this.#keeper.reconnect(link, isSessionLost(error)) : undefined;
    if (!remedy.retry) return undefined;
    await reconnected;
    return remedy.reconnect || this.#keeper.link() === link ? this.#keeper.link() : undefined;
  }
}

/** Runs one Use on one Link: params, headers, timeouts, and the rounds in which a modern server asks back. */

/** Progress restarts a call's timeout, up to so many times the timeout in all. */
const MAX_PROGRESS_FACTOR = 10;

/** How long a call may take at most, however much progress it makes. */
export function maxCallMs({ toolTimeout }: ServerSpec): number {
  return toolTimeout * MAX_PROGRESS_FACTOR;
}

interface CallSettings {
  readonly spec: ServerSpec;
  readonly deps: Pick<ConnectionDeps, "workspaceRoots" | "env">;
  readonly findTool: (name: string) => ToolDefinition | undefined;
  readonly readTools: () => Promise<void>;
}

function runOnLink(link: Link, use: Use, given: UseContext, setting: CallSettings): Promise<JsonObject> {
  const context = { ...given, client: withOfferedRoots(given.client, setting.spec, setting.deps) };
  const { method, params: known } = requestFor(use);
  // What the hub knows of the request is never overwritten by what it does not know.
  const params: JsonObject = context.extra === undefined ? known : { ...context.extra, ...known };
  const { client, signal, input } = context;
  if (context.meta !== undefined) params["_meta"] = context.meta;
  const options = callOptions(use, context, setting.spec);
  if (link.agreement.era === "legacy") return link.peer.request(method, params, options);
  const modernOptions = { ...options, envelope: callerEnvelope(context) };
  const send = (extra: JsonObject): Promise<JsonObject> => {
    const headers = mirrorsParamsInHeaders(link) ? headersOf(use, setting) : undefined;
    return link.peer
      .request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) })
      .catch((error: unknown) => sendAgainWithFreshHeaders(error, extra));
  };
  if (input !== undefined) return send(suppliedInput(input, given.client, setting));
  return completeInputRounds({
    send,
    answer: (asked, askedParams, askedSignal) =>
      answerServer(serverDisplayName(setting.spec), client, asked, askedParams, askedSignal),
    signal,
  });

  /** The server's idea of which parameters are headers may be newer than ours. */
  async function sendAgainWithFreshHeaders(error: unknown, extra: JsonObject): Promise<JsonObject> {
    if (use.kind !== "tool" || rpcOf(error)?.code !== HEADER_MISMATCH) throw error;
    await setting.readTools();
    const headers = headersOf(use, setting);
    return link.peer.request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) });
  }
}

/** A modern server learns with each request what the client behind it can do. */
function callerEnvelope({ client, logLevel }: UseContext): JsonObject {
  return {
    [CLIENT_CAPABILITIES_KEY]: modernCapabilities(client.capabilities),
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

function callOptions(use: Use, context: UseContext, spec: ServerSpec): RequestOptions {
  const { callId, client, signal, onProgress, onNotice } = context;
  const progress = onProgress ?? (use.kind === "tool" ? ignoreProgress : undefined);
  return {
    callId,
    client,
    signal,
    timeoutMs: spec.toolTimeout,
    maxTotalMs: maxCallMs(spec),
    onProgress: progress,
    onNotice,
  };
}

/** Progress of a tool is always asked for: it restarts the timeout also where nobody watches it. */
function ignoreProgress(): void {}

function mirrorsParamsInHeaders(link: Link): boolean {
  return link.agreement.era === "modern" && link.wire.transport === "http";
}

function headersOf(use: Use, setting: CallSettings): Record<string, string> | undefined {
  const tool = use.kind === "tool" ? setting.findTool(use.name) : undefined;
  return use.kind === "tool" && tool !== undefined ? paramHeaders(tool, use.arguments) : undefined;
}

interface UseRequest {
  readonly method: string;
  readonly params: JsonObject;
}

/** A Use as the MCP request that stands for it. */
function requestFor(use: Use): UseRequest {
  switch (use.kind) {
    case "tool":
      return { method: "tools/call", params: { name: use.name, arguments: use.arguments } };
    case "resource":
      return { method: "resources/read", params: { uri: use.uri } };
    case "prompt":
      return { method: "prompts/get", params: { name: use.name, arguments: use.arguments } };
    case "completion": {
      const { ref, argument, context } = use;
      return {
        method: "completion/complete",
        params: { ref, argument, context },
      };
    }
    case "subscribe":
      return { method: "resources/subscribe", params: { uri: use.uri } };
    case "unsubscribe":
      return { method: "resources/unsubscribe", params: { uri: use.uri } };
  }
}

/** The modern era's way for a server to ask back: the result says what is missing, and the request is sent again. */

const MAX_ROUNDS = 10;

interface InputRounds {
  /** Sends the request with these additional params. */
  readonly send: (extra: JsonObject) => Promise<JsonObject>;
  readonly answer: (method: string, params: JsonObject, signal: AbortSignal) => Promise<JsonObject>;
  readonly signal: AbortSignal;
}

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
  const signal = AbortSignal.any([rounds.signal, siblings.signal]);
  try {
    const answers = await Promise.all(
      Object.entries(requests).map(async ([key, request]) => [key, await answerOne(request, rounds, signal)] as const),
    );
    return Object.fromEntries(answers);
  } finally {
    // After a failure the other questions are moot; after success this reaches nobody.
    siblings.abort();
  }
}

async function answerOne(request: unknown, rounds: InputRounds, signal: AbortSignal): Promise<JsonObject> {
  const method = isJsonObject(request) && typeof request["method"] === "string" ? request["method"] : "(no method)";
  const params = isJsonObject(request) && isJsonObject(request["params"]) ? request["params"] : {};
  try {
    return await rounds.answer(method, params, signal);
  } catch (thrown) {
    if (rounds.signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled by the caller.");
    const error = asToolcribError(thrown);
    throw new ToolcribError("denied", `The server asked for ${method}, which was not answered: ${error.message}`, {
      hint: error.hint ?? "The callback that answers it failed.",
      cause: thrown,
    });
  }
}
