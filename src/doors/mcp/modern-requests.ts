/** Requests of the modern era: each is independent and declares its client's capabilities. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ClientInfo } from "../../model/client-info.ts";
import type { CancelSignal } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { identityOf } from "../../model/caller.ts";
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  LOG_LEVEL_KEY,
  METHOD_NOT_FOUND,
  MODERN_REPORT,
  MODERN_VERSION,
  type RequestId,
  type RpcRequest,
  SERVER_INFO_KEY,
  SUBSCRIPTION_KEY,
} from "../../model/protocol.ts";
import type { ClientSide } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { TASKS_NEEDED } from "../../upstream/task-forms.ts";
import { approvalCallback } from "./approval-form.ts";
import type { ListKind } from "./change-listeners.ts";
import { type DoorContext, isAtLeastLevel, type LogLevel, parseLogLevel } from "./door-context.ts";
import {
  forwardedCapabilities,
  instructionsFor,
  SERVER_INFO,
  serverCapabilities,
  SUPPORTED_VERSIONS,
} from "./mcp-handshake.ts";
import { type InputRequired, ParkedCalls, ParkableCall } from "./parked-calls.ts";
import type { PrincipalSessions } from "./principal-sessions.ts";
import {
  type Encoded,
  encodeError,
  encodeNotification,
  encodeResult,
  errorInEra,
  invalidParams,
  type MessageSink,
  metaOf,
  objectParam,
  progressTokenOf,
  toRpcError,
  TrackedSink,
  withRequestId,
} from "./rpc-messages.ts";
import { type IncomingRequest, sharedMethod } from "./shared-requests.ts";
import { hasTasksExtension, ownTask, toolOfTask } from "./tasks.ts";
import { clientOf, type RequestOrigin } from "./view-scope.ts";

/** The requests that a server may answer with questions. */
const INTERRUPTIBLE_METHODS: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"]);

export class ModernRequests {
  readonly #door: DoorContext;
  readonly #principals: PrincipalSessions;
  readonly #rounds: ParkedCalls;
  readonly #closing = new AbortController();

  constructor(door: DoorContext, principals: PrincipalSessions, clock: Clock, newRoundId?: () => string) {
    this.#door = door;
    this.#principals = principals;
    this.#rounds = new ParkedCalls(clock, newRoundId);
  }

  async answer(
    request: RpcRequest,
    origin: RequestOrigin,
    sink: MessageSink,
    signal: CancelSignal,
  ): Promise<Encoded | null> {
    const { id, method, params = {} } = request;
    const { session, release } = this.#principals.hold(origin);
    const isStream = method === "subscriptions/listen";
    if (!isStream) this.#door.calls.start();
    try {
      const answer = await this.#dispatch(request, params, origin, session, sink, signal);
      return signal.aborted ? null : answer;
    } catch (error) {
      if (signal.aborted) return null;
      return encodeError(id, errorInEra("modern", toRpcError(asToolcribError(error).toObject())));
    } finally {
      if (!isStream) this.#door.calls.end();
      release();
    }
  }

  close(): void {
    this.#closing.abort();
    this.#rounds.close();
  }

  async #dispatch(
    { id, method }: RpcRequest,
    params: JsonObject,
    origin: RequestOrigin,
    session: Session,
    sink: MessageSink,
    signal: CancelSignal,
  ): Promise<Encoded> {
    const meta = metaOf(params);
    const clientInfo = clientOf(origin, meta[CLIENT_INFO_KEY]);
    showClient(session, origin, clientInfo);
    if (method === "server/discover") return this.#discover(id, session);
    if (method === "subscriptions/listen") {
      return serveSubscription(this.#door, {
        id,
        params,
        origin,
        principal: session,
        sink,
        signal,
        closing: this.#closing.signal,
      });
    }
    const run = sharedMethod(method);
    if (run === undefined) return encodeError(id, { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` });
    const watched = new TrackedSink(sink);
    const level = parseLogLevel(meta[LOG_LEVEL_KEY]);
    if (level !== undefined) this.#door.wantsLevel(level);
    const capabilities = forwardedCapabilities(meta[CLIENT_CAPABILITIES_KEY]);
    const call = { id, method, params, meta, level, capabilities, clientInfo, session, sink: watched, signal };
    const answer = await (INTERRUPTIBLE_METHODS.has(method)
      ? this.#inRounds(run, call, origin)
      : run(this.#door.hub, toIncomingRequest(this.#door, call, silentClient(call))));
    await watched.settle();
    return answer;
  }

  async #inRounds(
    run: NonNullable<ReturnType<typeof sharedMethod>>,
    call: ModernCall,
    { caller }: RequestOrigin,
  ): Promise<Encoded> {
    const { id, method, params, capabilities, sink, signal } = call;
    const { requestState: state } = params;
    const responses = objectParam(params, "inputResponses", method);
    const key = { caller: identityOf(caller), method, params };
    const round = { sink, progressToken: progressTokenOf(call.meta) };
    if (ParkedCalls.owns(state)) {
      const ended = await this.#rounds.take(state, key, responses ?? {}, round).run(signal);
      // The answer was made for the request that began the call.
      return "requestState" in ended ? encodeInputRequired(id, ended) : withRequestId(id, ended);
    }
    const rounds = new ParkableCall(this.#rounds, key, call.session, capabilities, round);
    const input = {
      responses,
      state,
    };
    const first = {
      ...toIncomingRequest(this.#door, { ...call, sink: rounds.sink, signal: rounds.signal }, rounds.client),
      input,
      // Of a tool progress is asked for in any case; of the others only where the client does.
      roundToken: method === "tools/call" || round.progressToken !== undefined ? () => rounds.progressToken : undefined,
      failureOverride: () => rounds.missingCapability(),
    };
    const ended = await rounds.run(signal, async () => run(this.#door.hub, first));
    return "requestState" in ended ? encodeInputRequired(id, ended) : ended;
  }

  async #discover(id: RpcRequest["id"], session: Session): Promise<Encoded> {
    const { hub } = this.#door;
    await this.#door.listed(session);
    const instructions = await instructionsFor(hub, session);
    return encodeResult(id, {
      resultType: "complete",
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: serverCapabilities(hub, session, "modern"),
      instructions,
      ttlMs: 0,
      cacheScope: "private",
      _meta: { [SERVER_INFO_KEY]: SERVER_INFO },
    });
  }
}

/**
 * Requests of several clients of one caller share the session: it shows the one that used it last. The first one's process is
 * looked up, which is too much for every change.
 */
function showClient(session: Session, origin: RequestOrigin, client: ClientInfo | undefined): void {
  const shown = session.clientInfo;
  if (client === undefined || (shown?.name === client.name && shown.version === client.version)) return;
  session.clientInfo = client;
  if (shown !== undefined) return;
  void origin.locate?.().then((found) => {
    if (session.clientInfo === client) session.clientInfo = { ...client, ...found };
  });
}

interface ModernCall {
  readonly id: RpcRequest["id"];
  readonly method: string;
  readonly params: JsonObject;
  readonly meta: JsonObject;
  readonly level: LogLevel | undefined;
  /** Those of its client that are forwarded. */
  readonly capabilities: JsonObject;
  readonly clientInfo: ClientInfo | undefined;
  readonly session: Session;
  readonly sink: MessageSink;
  readonly signal: CancelSignal;
}

/** For requests that servers cannot answer with questions; the capabilities are declared all the same. */
function silentClient({ session, capabilities }: ModernCall): ClientSide {
  return { key: session, isWaiting: () => true, capabilities, rootsOnRequest: !session.owner };
}

function toIncomingRequest(door: DoorContext, call: ModernCall, client: ClientSide): IncomingRequest {
  const { id, method, params, meta, level, clientInfo, session, sink, signal } = call;
  return {
    ...{ id, method, params, meta, clientInfo, session, sink, signal },
    era: "modern",
    protocolVersion: MODERN_VERSION,
    client,
    onAsk: approvalCallback(client, session),
    logLevel: level,
    listed: () => door.listed(session),
    tasks: door.listeners.tasks,
    onNotice: (notification, noticed) => {
      // Log messages come only to who asked for them, and only as loud as asked for.
      const isLog = notification === "notifications/message";
      if (isLog && (level === undefined || !isAtLeastLevel(noticed["level"], level))) return;
      sink.send(encodeNotification(notification, noticed));
    },
  };
}

function encodeInputRequired(id: RpcRequest["id"], { inputRequests, requestState }: InputRequired): Encoded {
  return encodeResult(id, {
    resultType: "input_required",
    inputRequests,
    requestState,
    _meta: { [SERVER_INFO_KEY]: SERVER_INFO },
  });
}

interface SubscriptionRequest {
  readonly id: RequestId;
  readonly params: JsonObject;
  readonly origin: RequestOrigin;
  /** The hub session that the caller's requests share. */
  readonly principal: Session;
  readonly sink: MessageSink;
  /** The client ended it. */
  readonly signal: CancelSignal;
  /** The door ends. */
  readonly closing: CancelSignal;
}

const LIST_FILTERS = {
  tools: "toolsListChanged",
  resources: "resourcesListChanged",
  prompts: "promptsListChanged",
} as const satisfies Record<ListKind, string>;

/** Resolves with the answer that ends the stream. */
async function serveSubscription(door: DoorContext, listening: SubscriptionRequest): Promise<Encoded> {
  const { id, params, origin, sink, signal, closing } = listening;
  const wanted = params["notifications"];
  if (!isJsonObject(wanted)) throw invalidParams("subscriptions/listen needs `notifications`, an object.");
  const tell = (method: string, told: JsonObject = {}): void => {
    sink.send(encodeNotification(method, { ...told, _meta: { ...metaIn(told), [SUBSCRIPTION_KEY]: id } }));
  };

  const taskIds = namesIn(wanted, "taskIds");
  const uris = namesIn(wanted, "resourceSubscriptions");
  const capabilities = forwardedCapabilities(metaOf(params)[CLIENT_CAPABILITIES_KEY]);
  if (taskIds.length > 0 && !hasTasksExtension(capabilities)) return encodeError(id, TASKS_NEEDED);
  const kinds = (Object.keys(LIST_FILTERS) as ListKind[]).filter((kind) => wanted[LIST_FILTERS[kind]] === true);
  const followed = new Set<string>();
  // A session of its own, so that subscriptions end with the stream and only with it. What tasks bring is read by the same caller.
  const { links, sharedKey, clientInfo } = listening.principal;
  const session = door.hub.openSession({ ...door.sessionOptions(origin), links, sharedKey, clientInfo });
  // The acknowledgement has to be the first message, and comes when every server has answered.
  let early: (() => void)[] | undefined = [];
  const inTime = (telling: () => void): void => {
    if (early === undefined) telling();
    else early.push(telling);
  };
  const stop = door.listeners.add({
    session,
    listsChanged: (changed) => {
      for (const kind of kinds) if (changed.has(kind)) inTime(() => tell(`notifications/${kind}/list_changed`));
    },
    listAnnounced: (kind) => {
      if (kinds.includes(kind)) inTime(() => tell(`notifications/${kind}/list_changed`));
    },
    followed,
    resourceUpdated: (updated) => inTime(() => tell("notifications/resources/updated", updated)),
  });
  // This client cannot be asked, but is the same as that of the caller's other requests.
  const client = { key: listening.principal, isWaiting: () => true, capabilities };
  const tasks = new FollowedTasks(door, session, { signal, client, tasks: "modern" }, (task) =>
    inTime(() => tell(MODERN_REPORT, task)),
  );
  try {
    await Promise.all([
      ...uris.map(async (uri) => {
        const outcome = await door.hub.internals.subscribe(session, { uri, signal, client });
        if (outcome.ok) followed.add(uri);
      }),
      ...taskIds.map((taskId) => tasks.add(taskId)),
    ]);
    const honoured: JsonObject = Object.fromEntries(kinds.map((kind) => [LIST_FILTERS[kind], true]));
    if (followed.size > 0) honoured["resourceSubscriptions"] = [...followed];
    if (tasks.ids.length > 0) honoured["taskIds"] = tasks.ids;
    tell("notifications/subscriptions/acknowledged", { notifications: honoured });
    const waiting = early;
    early = undefined;
    for (const telling of waiting) telling();
    if (Object.keys(honoured).length > 0) await firstAbort([signal, closing, session.closing]);
  } finally {
    stop();
    tasks.stop();
    session.close();
  }
  return encodeResult(id, {
    resultType: "complete",
    _meta: { [SUBSCRIPTION_KEY]: id, [SERVER_INFO_KEY]: SERVER_INFO },
  });
}

/** Between two looks at a task. */
const LOOK_MS = 100;

type TaskOptions = Parameters<DoorContext["hub"]["internals"]["task"]>[3];

/** The tasks that one stream reports on. A server's report is the reason to look: what is told has come the way of every call. */
class FollowedTasks {
  readonly #door: DoorContext;
  readonly #session: Session;
  readonly #options: TaskOptions;
  readonly #tell: (task: JsonObject) => void;
  readonly #stops = new Map<string, () => void>();

  constructor(door: DoorContext, session: Session, options: TaskOptions, tell: (task: JsonObject) => void) {
    this.#door = door;
    this.#session = session;
    this.#options = options;
    this.#tell = tell;
  }

  /** Those that their servers report on. */
  get ids(): string[] {
    return [...this.#stops.keys()];
  }

  /** Never rejects: an id that is not this caller's is not among those that are honoured. */
  async add(taskId: string): Promise<void> {
    const { hub, listeners } = this.#door;
    try {
      const own = ownTask(hub, this.#session, taskId);
      const tool = toolOfTask(hub, this.#session, own);
      const params = { taskId: own.id };
      const run = (method: "follow" | "tasks/get") =>
        hub.internals.task(this.#session, tool.name, { method, params }, this.#options);
      // One look at a time, and one more for all reports that came meanwhile.
      let looking: Promise<void> | undefined;
      let isStale = false;
      const look = async (): Promise<void> => {
        do {
          isStale = false;
          const outcome = await run("tasks/get");
          if (!outcome.ok) return;
          this.#tell(listeners.tasks.inResult(hub, this.#session, tool, outcome.result));
          // A server may report whenever it is asked.
          await sleep(LOOK_MS, undefined, { ref: false });
        } while (isStale && !this.#session.closing.aborted);
      };
      const stop = listeners.tasks.follow(hub, this.#session, own, () => {
        isStale = true;
        looking ??= look()
          .catch(() => {})
          .finally(() => (looking = undefined));
      });
      const outcome = await run("follow");
      if (outcome.ok) this.#stops.set(taskId, stop);
      else stop();
    } catch {
      // Not a task of this caller.
    }
  }

  stop(): void {
    for (const stop of this.#stops.values()) stop();
  }
}

/** Of one stream: each is a request to a server, and a record. */
const MAX_FOLLOWED = 1000;

/** Each once. */
function namesIn(wanted: JsonObject, key: string): string[] {
  const value = wanted[key];
  const names = new Set<string>(Array.isArray(value) ? value.filter((each) => typeof each === "string") : []);
  if (names.size > MAX_FOLLOWED) throw invalidParams(`\`${key}\` may name ${MAX_FOLLOWED} at most.`);
  return [...names];
}

function metaIn(params: JsonObject): JsonObject {
  const meta = params["_meta"];
  return isJsonObject(meta) ? meta : {};
}

function firstAbort(signals: readonly CancelSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", end);
      resolve();
    };
    if (signals.some((signal) => signal.aborted)) resolve();
    else for (const signal of signals) signal.addEventListener("abort", end, { once: true });
  });
}
