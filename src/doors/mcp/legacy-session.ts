/** One client of the legacy era: initialised once, then requests in both directions until it ends. */
import { CancelController } from "../../base/async.ts";
import { ChurnMap } from "../../base/maps.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type RequestId,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
} from "../../model/protocol.ts";
import type { ClientSide, ServerRequestContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { errorFromRpc } from "../../upstream/rpc-error.ts";
import { approvalCallback } from "./approval-form.ts";
import { type ChangeListener, type ListKind, sourcesOf } from "./change-listeners.ts";
import { DEFAULT_LEVEL, type DoorContext, isAtLeastLevel, type LogLevel, parseLogLevel } from "./door-context.ts";
import {
  instructionsFor,
  negotiateVersion,
  forwardedCapabilities,
  SERVER_INFO,
  serverCapabilities,
} from "./mcp-handshake.ts";
import {
  type Encoded,
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  encodeToolcribError,
  invalidParams,
  type MessageSink,
  metaOf,
  stringParam,
  TrackedSink,
} from "./rpc-messages.ts";
import { encodeOutcome, type IncomingRequest, sharedMethod } from "./shared-requests.ts";
import { clientOf, type RequestOrigin } from "./view-scope.ts";

export class LegacySession {
  readonly #door: DoorContext;
  readonly #origin: RequestOrigin;
  readonly #sink: MessageSink;
  readonly #onClose: () => void;
  readonly #running = new ChurnMap<RequestId, CancelController>();
  readonly #asked = new ClientRequests();
  readonly #followed = new Set<string>();
  #capabilities: JsonObject = {};
  /** The requests that the client can answer. */
  #answers = { roots: false, sampling: false, elicitation: false };
  /** Set from the first `initialize` on; resolves when it is answered. */
  #initializing: Promise<unknown> | undefined;
  #session: Session | undefined;
  #ownClient: ClientSide | undefined;
  #stopListening: () => void = () => {};
  /** The client has sent `notifications/initialized`. */
  #isReady = false;
  #closed = false;
  /** The least level of log messages that the client asked for, if it did. */
  level: LogLevel | undefined;
  /** The operator has ended it: the client has to start again. */
  isOver = false;
  /** The negotiated version; undefined before `initialize` was answered. */
  version: string | undefined;

  constructor(door: DoorContext, origin: RequestOrigin, sink: MessageSink, onClose: () => void) {
    this.#door = door;
    this.#origin = origin;
    this.#sink = sink;
    this.#onClose = onClose;
  }

  /** Answers one request; null if it was cancelled. `sink` gets the messages before the answer. */
  async request(message: RpcRequest, sink: MessageSink): Promise<Encoded | null> {
    const { id, method, params = {} } = message;
    if (method === "ping") return encodeResult(id, {});
    if (this.#closed) return encodeError(id, { code: INVALID_REQUEST, message: "The session has ended." });
    if (method === "initialize") return this.#initialize(id, params);
    // Clients may send on before the handshake is answered.
    if (!this.#isReady) await this.#initializing;
    const session = this.#session;
    if (session === undefined) {
      return encodeError(id, { code: INVALID_REQUEST, message: `Send initialize before ${method}.` });
    }
    if (this.#running.has(id)) {
      return encodeError(id, { code: INVALID_REQUEST, message: `A request with the id ${id} is already in progress.` });
    }
    // Returned as it is, the promise of each call would go through the queue twice more.
    return await this.#run(session, id, method, params, sink);
  }

  notify({ method, params = {} }: RpcNotification): void {
    switch (method) {
      case "notifications/initialized":
        void this.#initializing?.then(() => this.#initialized());
        return;
      case "notifications/cancelled": {
        const id = params["requestId"];
        if (typeof id === "string" || typeof id === "number") this.abandon(id);
        return;
      }
      case "notifications/roots/list_changed":
        this.#door.hub.internals.rootsChanged();
        return;
      default:
        // Others are ignored: they do not say which server's request they belong to.
        return;
    }
  }

  /** The client's answer to a request of ours. */
  answer(message: RpcResponse): void {
    this.#asked.answer(message);
  }

  /** The client can no longer get the answer: the request is cancelled upstream. */
  abandon(id: RequestId): void {
    this.#running.get(id)?.abort();
  }

  get isReady(): boolean {
    return this.#isReady && !this.#closed;
  }

  /** Whether it is the client's side of this session of the hub. */
  isOf(sessionId: string): boolean {
    return this.#session?.id === sessionId;
  }

  /** Whether the client may get requests of this server outside of any call. */
  canReceiveFrom(server: string, user: string | undefined): boolean {
    const session = this.#session;
    if (session === undefined || (user === undefined ? !session.owner : session.user !== user)) return false;
    return sourcesOf(this.#door.hub.view(session)).has(server);
  }

  /** The client for requests of servers outside of any call. */
  ownClient(): ClientSide {
    return (this.#ownClient ??= this.#client(this.#sink));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopListening();
    for (const running of this.#running.values()) running.abort();
    this.#asked.close();
    this.#session?.close();
    this.#onClose();
    if (this.#isReady && this.#answers.roots) this.#door.clientsChanged();
    if (this.level !== undefined) this.#door.levelsChanged();
  }

  #initialize(id: RequestId, params: JsonObject): Promise<Encoded> | Encoded {
    if (this.#initializing !== undefined) {
      return encodeError(id, { code: INVALID_REQUEST, message: "The session is already initialized." });
    }
    const answered = this.#begin(id, params);
    this.#initializing = answered;
    return answered;
  }

  /** Never rejects. */
  async #begin(id: RequestId, params: JsonObject): Promise<Encoded> {
    try {
      const { hub } = this.#door;
      // The instructions of servers belong into the answer.
      await this.#door.listed(this);
      if (this.#closed) return encodeError(id, { code: INVALID_REQUEST, message: "The session has ended." });
      const capabilities = (this.#capabilities = forwardedCapabilities(params["capabilities"]));
      this.#answers = {
        roots: isJsonObject(capabilities["roots"]),
        sampling: isJsonObject(capabilities["sampling"]),
        elicitation: isJsonObject(capabilities["elicitation"]),
      };
      const session = (this.#session = hub.openSession({
        ...this.#door.sessionOptions(this.#origin),
        clientInfo: clientOf(this.#origin, params["clientInfo"]),
      }));
      void this.#origin.locate?.().then((found) => {
        if (session.clientInfo !== undefined) session.clientInfo = { ...session.clientInfo, ...found };
      });
      session.closing.addEventListener("abort", () => (this.isOver = true), { once: true });
      this.version = negotiateVersion(params["protocolVersion"]);
      const instructions = await instructionsFor(hub, session);
      return encodeResult(id, {
        protocolVersion: this.version,
        capabilities: serverCapabilities(hub, session, "legacy"),
        serverInfo: SERVER_INFO,
        instructions,
      });
    } catch (error) {
      return encodeToolcribError(id, asToolcribError(error).toObject());
    }
  }

  /** From here on the client may get notifications. */
  #initialized(): void {
    const session = this.#session;
    if (session === undefined || this.#closed) return;
    this.#stopListening();
    this.#stopListening = this.#door.listeners.add(this.#listener(session));
    this.#isReady = true;
    if (this.#answers.roots) this.#door.clientsChanged();
  }

  async #run(
    session: Session,
    id: RequestId,
    method: string,
    params: JsonObject,
    given: MessageSink,
  ): Promise<Encoded | null> {
    const sink = new TrackedSink(given);
    const signal = new CancelController();
    this.#running.set(id, signal);
    this.#door.calls.start();
    const client = this.#client(sink);
    const incoming: IncomingRequest = {
      id,
      method,
      params,
      meta: metaOf(params),
      era: "legacy",
      protocolVersion: this.version,
      session,
      client,
      onAsk: this.#answers.elicitation ? approvalCallback(client, session) : undefined,
      sink,
      signal,
      listed: () => this.#door.listed(this),
      tasks: this.#door.listeners.tasks,
      onNotice: (name, noticed) => this.#tell(sink, name, noticed),
    };
    try {
      const encoded = await (sharedMethod(method)?.(this.#door.hub, incoming) ?? this.#own(incoming));
      const settling = sink.settle();
      if (settling !== undefined) await settling;
      return signal.aborted ? null : encoded;
    } catch (error) {
      return signal.aborted ? null : encodeToolcribError(id, asToolcribError(error).toObject());
    } finally {
      this.#running.delete(id);
      this.#door.calls.end();
    }
  }

  /** The methods that only this era has. */
  #own(incoming: IncomingRequest): Promise<Encoded> | Encoded {
    const { id, method, params } = incoming;
    switch (method) {
      case "logging/setLevel": {
        const level = parseLogLevel(params["level"]);
        if (level === undefined) throw invalidParams(`${method} needs one of MCP's log levels.`);
        this.level = level;
        this.#door.levelsChanged();
        return encodeResult(id, {});
      }
      case "resources/subscribe":
      case "resources/unsubscribe":
        return this.#follow(incoming, method === "resources/subscribe");
      default:
        return encodeError(id, { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` });
    }
  }

  async #follow(incoming: IncomingRequest, begins: boolean): Promise<Encoded> {
    const { session, params, method, signal, client } = incoming;
    const uri = stringParam(params, "uri", method);
    const { hub } = this.#door;
    const request = { uri, signal, client };
    // An update may come before the answer does.
    if (begins) this.#followed.add(uri);
    const outcome = await (begins
      ? hub.internals.subscribe(session, request)
      : hub.internals.unsubscribe(session, request));
    if (begins !== outcome.ok) this.#followed.delete(uri);
    return encodeOutcome(incoming, outcome);
  }

  /** All calls of a session have the same client; its requests go with the current call. */
  #client(sink: MessageSink): ClientSide {
    const { roots, sampling, elicitation } = this.#answers;
    const asker =
      (method: string) =>
      (params: JsonObject, { signal }: ServerRequestContext): Promise<JsonObject> =>
        this.#asked.ask(sink, method, params, signal);
    return {
      key: this,
      capabilities: this.#capabilities,
      rootsOnRequest: this.#session?.owner !== true,
      listRoots: roots ? ({ signal }) => this.#asked.ask(sink, "roots/list", undefined, signal) : undefined,
      sample: sampling ? asker("sampling/createMessage") : undefined,
      elicit: elicitation ? asker("elicitation/create") : undefined,
    };
  }

  #listener(session: Session): ChangeListener {
    const sink = this.#sink;
    return {
      session,
      listsChanged: (kinds: ReadonlySet<ListKind>) => {
        for (const kind of kinds) sink.send(encodeNotification(`notifications/${kind}/list_changed`));
      },
      followed: this.#followed,
      resourceUpdated: (params) => sink.send(encodeNotification("notifications/resources/updated", params)),
      log: (message) => this.#tell(sink, "notifications/message", message),
      notice: (method, params) => this.#tell(sink, method, params),
    };
  }

  #tell(sink: MessageSink, method: string, params: JsonObject): void {
    // A level that other clients asked for does not apply to this one.
    const tooQuiet = !isAtLeastLevel(params["level"], this.level ?? DEFAULT_LEVEL);
    if (method === "notifications/message" && tooQuiet) return;
    sink.send(encodeNotification(method, params));
  }
}

interface PendingRequest {
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (error: ToolcribError) => void;
}

/** Pending requests to a legacy client. */
class ClientRequests {
  readonly #waiting = new Map<RequestId, PendingRequest>();
  #nextId = 1;

  /** Resolves with the client's result as it came; its error answer keeps code, message and data. */
  ask(sink: MessageSink, method: string, params: JsonObject | undefined, signal: AbortSignal): Promise<JsonObject> {
    if (signal.aborted) return Promise.reject(noLongerNeeded(method));
    const id = this.#nextId++;
    return new Promise<JsonObject>((resolve, reject) => {
      const giveUp = (): void => {
        if (!this.#waiting.delete(id)) return;
        sink.send(encodeNotification("notifications/cancelled", { requestId: id, reason: "No longer needed." }));
        reject(noLongerNeeded(method));
      };
      const done = (): void => signal.removeEventListener("abort", giveUp);
      this.#waiting.set(id, {
        resolve: (result) => (done(), resolve(result)),
        reject: (error) => (done(), reject(error)),
      });
      signal.addEventListener("abort", giveUp, { once: true });
      sink.send(encodeRequest(id, method, params));
    });
  }

  /** An answer that is not awaited is ignored: the request may have been cancelled. */
  answer(response: RpcResponse): void {
    const { id } = response;
    const waiting = id === null ? undefined : this.#waiting.get(id);
    if (id === null || waiting === undefined) return;
    this.#waiting.delete(id);
    if ("error" in response) waiting.reject(errorFromRpc(response.error));
    else if (isJsonObject(response.result)) waiting.resolve(response.result);
    else waiting.reject(new ToolcribError("tool_error", "The client's answer is not an object."));
  }

  close(): void {
    const gone = new ToolcribError("cancelled", "The client's session ended.");
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
  }
}

function noLongerNeeded(method: string): ToolcribError {
  return new ToolcribError("cancelled", `${method} is no longer needed.`);
}
