/** Requests of the modern era: each stands alone and says itself what its client can do. */
import { identityOf } from "../../model/caller.ts";
import type { Clock } from "../../model/clock.ts";
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, SERVER_INFO_KEY } from "../../model/protocol.ts";
import { METHOD_NOT_FOUND, type RpcRequest } from "../../model/rpc.ts";
import type { ClientSide } from "../../model/session.ts";
import type { Session } from "../../sessions/session.ts";
import { askThrough } from "./ask-client.ts";
import type { DoorParts } from "./door-parts.ts";
import type { Origin } from "./origin.ts";
import { encodeError, encodeNotification, encodeResult, inEra, readdressed, rpcErrorOf } from "./encode.ts";
import type { Encoded, Outlet } from "./encoded.ts";
import { type Interruption, InputRounds, RoundCall } from "./input-rounds.ts";
import { listen } from "./listen.ts";
import { asLogLevel, isAtLeastLevel } from "./log-levels.ts";
import { metaOf, objectParam } from "./params.ts";
import type { PrincipalSessions } from "./principal-sessions.ts";
import type { Incoming } from "./incoming.ts";
import { sharedMethod } from "./requests.ts";
import { WatchedOutlet } from "./watched-outlet.ts";
import {
  instructionsFor,
  passedOnCapabilities,
  SERVER_INFO,
  serverCapabilities,
  SUPPORTED_VERSIONS,
} from "./welcome.ts";

/** The requests that a server may answer with questions. */
const CAN_ASK: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"]);

export class ModernRequests {
  readonly #door: DoorParts;
  readonly #principals: PrincipalSessions;
  readonly #rounds: InputRounds;
  readonly #closing = new AbortController();

  constructor(door: DoorParts, principals: PrincipalSessions, clock: Clock, newRoundId?: () => string) {
    this.#door = door;
    this.#principals = principals;
    this.#rounds = new InputRounds(clock, newRoundId);
  }

  async answer(request: RpcRequest, origin: Origin, outlet: Outlet, signal: AbortSignal): Promise<Encoded | null> {
    const { id, method } = request;
    const params = isJsonObject(request.params) ? request.params : {};
    const { session, release } = this.#principals.hold(origin);
    const isStream = method === "subscriptions/listen";
    if (!isStream) this.#door.calls.begin();
    try {
      const answer = await this.#dispatch(request, params, origin, session, outlet, signal);
      return signal.aborted ? null : answer;
    } catch (error) {
      if (signal.aborted) return null;
      return encodeError(id, inEra("modern", rpcErrorOf(asToolcribError(error).toObject())));
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
    origin: Origin,
    session: Session,
    outlet: Outlet,
    signal: AbortSignal,
  ): Promise<Encoded> {
    if (method === "server/discover") return this.#discover(id, session);
    if (method === "subscriptions/listen") {
      return listen(this.#door, {
        id,
        params,
        origin,
        principal: session,
        outlet,
        signal,
        closing: this.#closing.signal,
      });
    }
    const run = sharedMethod(method);
    if (run === undefined) return encodeError(id, { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` });
    const watched = new WatchedOutlet(outlet);
    const call = { id, method, params, session, outlet: watched, signal };
    const level = asLogLevel(metaOf(params)[LOG_LEVEL_KEY]);
    if (level !== undefined) this.#door.wantsLevel(level);
    const answer = await (CAN_ASK.has(method)
      ? this.#inRounds(run, call, origin)
      : run(this.#door.hub, incoming(call, mute(session, params))));
    await watched.settle();
    return answer;
  }

  async #inRounds(
    run: NonNullable<ReturnType<typeof sharedMethod>>,
    call: ModernCall,
    { caller }: Origin,
  ): Promise<Encoded> {
    const { id, method, params, outlet, signal } = call;
    const { requestState: state } = params;
    const responses = objectParam(params, "inputResponses", method);
    const key = { caller: identityOf(caller), method, params };
    if (InputRounds.owns(state)) {
      const ended = await this.#rounds.take(state, key, responses ?? {}, outlet).run(signal);
      // The answer was made for the request that began the call.
      return "requestState" in ended ? interrupted(id, ended) : readdressed(id, ended);
    }
    const capabilities = passedOnCapabilities(metaOf(params)[CLIENT_CAPABILITIES_KEY]);
    const rounds = new RoundCall(this.#rounds, key, call.session, capabilities, outlet);
    const input = {
      responses,
      state,
    };
    const first = {
      ...incoming({ ...call, outlet: rounds.outlet, signal: rounds.signal }, rounds.client),
      input,
      insteadOfFailure: () => rounds.missingCapability(),
    };
    const ended = await rounds.run(signal, async () => run(this.#door.hub, first));
    return "requestState" in ended ? interrupted(id, ended) : ended;
  }

  async #discover(id: RpcRequest["id"], session: Session): Promise<Encoded> {
    const { hub } = this.#door;
    await this.#door.soonSettled();
    const instructions = await instructionsFor(hub, session);
    return encodeResult(id, {
      resultType: "complete",
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: serverCapabilities(hub, session),
      instructions,
      ttlMs: 0,
      cacheScope: "private",
      _meta: { [SERVER_INFO_KEY]: SERVER_INFO },
    });
  }
}

interface ModernCall {
  readonly id: RpcRequest["id"];
  readonly method: string;
  readonly params: JsonObject;
  readonly session: Session;
  readonly outlet: Outlet;
  readonly signal: AbortSignal;
}

/** For requests that no server may answer with questions; what the client could answer is told all the same. */
function mute(session: Session, params: JsonObject): ClientSide {
  const capabilities = passedOnCapabilities(metaOf(params)[CLIENT_CAPABILITIES_KEY]);
  return { key: session, waiting: true, capabilities, rootsOnRequest: !session.owner };
}

function incoming(call: ModernCall, client: ClientSide): Incoming {
  const { params, session, outlet } = call;
  const level = asLogLevel(metaOf(params)[LOG_LEVEL_KEY]);
  return {
    ...call,
    era: "modern",
    client,
    onAsk: askThrough(client, session),
    logLevel: level,
    onNotice: (method, noticed) => {
      // Log messages come only to who asked for them, and only as loud as asked for.
      const isLog = method === "notifications/message";
      if (isLog && (level === undefined || !isAtLeastLevel(noticed["level"], level))) return;
      outlet.send(encodeNotification(method, noticed));
    },
  };
}

function interrupted(id: RpcRequest["id"], { inputRequests, requestState }: Interruption): Encoded {
  return encodeResult(id, {
    resultType: "input_required",
    inputRequests,
    requestState,
    _meta: { [SERVER_INFO_KEY]: SERVER_INFO },
  });
}
