/** The MCP door: the state that all its clients share, whatever their transport and era. */
import { type CancelSignal, InFlight } from "../../base/async.ts";
import type { RoutableIds } from "../../hub/cluster/routable-ids.ts";
import type { Hub } from "../../hub/hub.ts";
import type { View } from "../../hub/view/view.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { RpcRequest, ToolDefinition } from "../../model/protocol.ts";
import type { SessionOptions } from "../../sessions/session.ts";
import { joinEditorSession, noEditorSession } from "../http/api/caller-sessions.ts";
import type { Caller } from "../../model/caller.ts";
import type { ClientSide } from "../../model/source.ts";
import { DEFAULT_LEVEL, type DoorContext, isAtLeastLevel, type LogLevel, lowestLevel } from "./door-context.ts";
import { CanonicalScopes, clientOf, type KnownNames, type RequestOrigin } from "./view-scope.ts";
import type { Encoded, MessageSink } from "./rpc-messages.ts";
import { LegacySession } from "./legacy-session.ts";
import { ModernRequests } from "./modern-requests.ts";
import { PrincipalSessions } from "./principal-sessions.ts";
import { publicName } from "./client-names.ts";
import { ChangeListeners } from "./change-listeners.ts";

export interface McpDoorOptions {
  readonly hub: Hub;
  /** Whether calls that need approval wait for it. Without it such a call is only denied. */
  readonly holdsCalls?: boolean;
  /** In a cluster: ids that name the node that has the session. */
  readonly ids?: RoutableIds | undefined;
  readonly clock?: Clock;
}

/** From the first request on, and while no server is listed. Later no answer waits: one that is stuck would delay each of them. */
const START_MS = 3000;
/** How long the log level of a request without a session applies. */
const REQUESTED_LEVEL_MS = 10 * 60_000;

export class McpDoor implements DoorContext {
  readonly hub: Hub;
  readonly calls = new InFlight();
  readonly listeners: ChangeListeners;
  readonly #options: McpDoorOptions;
  readonly #principals: PrincipalSessions;
  readonly #scopes: CanonicalScopes;
  readonly #modern: ModernRequests;
  readonly #legacy = new Set<LegacySession>();
  readonly #clock: Clock;
  #level: LogLevel = DEFAULT_LEVEL;
  /** The level that requests without a session asked for recently. */
  #wanted: { readonly level: LogLevel; readonly forget: () => void } | undefined;
  /** All servers are listed, or those that are not took too long. */
  #isListed = false;
  #startEnds: number | undefined;
  /** Until when the lists of a client wait for servers that start. */
  readonly #listsEnd = new WeakMap<object, number>();

  constructor(options: McpDoorOptions) {
    const clock = (this.#clock = options.clock ?? systemClock);
    this.hub = options.hub;
    this.#options = options;
    this.listeners = new ChangeListeners(options.hub);
    this.#scopes = new CanonicalScopes(() => this.hub.config);
    this.#principals = new PrincipalSessions(
      clock,
      (origin, sharedKey) => this.hub.openSession({ ...this.sessionOptions(origin), sharedKey }),
      this.#scopes,
    );
    this.hub.internals.setIdleClient((server, user, session) => this.#idleClient(server, user, session));
    const { ids } = options;
    this.#modern = new ModernRequests(this, this.#principals, clock, ids && (() => ids.issue("round")));
  }

  /** The names that the path of a client can have. */
  get scopeNames(): KnownNames {
    return this.#scopes.names;
  }

  /** Calls in progress. */
  get busy(): number {
    return this.calls.count;
  }

  whenIdle(): Promise<void> {
    return this.calls.whenIdle();
  }

  /** A legacy client's session; `sink` takes what belongs to no request. */
  openSession(origin: RequestOrigin, sink: MessageSink): LegacySession {
    const session = new LegacySession(this, origin, sink, () => this.#legacy.delete(session));
    this.#legacy.add(session);
    return session;
  }

  /** Answers one request of the modern era. Null if the client cancelled it. */
  modern(request: RpcRequest, origin: RequestOrigin, sink: MessageSink, signal: CancelSignal): Promise<Encoded | null> {
    return this.#modern.answer(request, origin, sink, signal);
  }

  /** A caller of the modern era that has left: its session need not wait for it. */
  left(caller: Caller): void {
    this.#principals.endAllOf(caller);
  }

  /** @param said The `clientInfo` of the request. */
  toolDefinition(origin: RequestOrigin, name: string, said?: unknown): ToolDefinition | undefined {
    // Who cannot join is told so by the answer to the request.
    if (origin.scope.session !== undefined && this.#joining(origin) === undefined) return undefined;
    const session = this.#principals.of(origin);
    const view = this.hub.view(session);
    const viewer = { session, clientInfo: clientOf(origin, said) };
    return toolsByName(view).get(publicName(this.hub, viewer, name, () => view.tools));
  }

  /** Throws `not_found` for an editor's session that is not open, or not for this caller. */
  sessionOptions(origin: RequestOrigin): SessionOptions {
    const { caller, scope, clientEnv, conversation } = origin;
    const role = caller.role ?? scope.role;
    const { view, servers, tags } = scope;
    const joining = this.#joining(origin);
    if (scope.session !== undefined && joining === undefined) throw noEditorSession(scope.session);
    const narrowed = servers === undefined && tags === undefined ? undefined : { servers, tags };
    const { holdsCalls, ids } = this.#options;
    return {
      door: "mcp",
      owner: caller.owner,
      // A caller without a token may be a program that was tricked into calling: it cannot change rules.
      decidesForAll: caller.scopes.has("admin"),
      user: caller.user,
      role,
      view,
      rules: joining === undefined ? narrowed : { ...narrowed, ...joining.rules },
      within: joining?.within,
      holdsCalls,
      caller: caller.key,
      clientEnv,
      conversation,
      ...(ids === undefined ? {} : { resultName: () => ids.issue("result") }),
    };
  }

  #joining({ caller, scope }: RequestOrigin): ReturnType<typeof joinEditorSession> {
    return scope.session === undefined ? undefined : joinEditorSession(this.hub.internals, caller, scope.session);
  }

  /** Servers send what the most verbose client asked for. */
  levelsChanged(): void {
    const wanted = [...this.#legacy].flatMap(({ level }) => level ?? []);
    const level = lowestLevel([DEFAULT_LEVEL, this.#wanted?.level ?? DEFAULT_LEVEL, ...wanted]) ?? DEFAULT_LEVEL;
    if (level === this.#level) return;
    this.#level = level;
    this.hub.internals.setLogLevel(level);
  }

  /** Only legacy servers are notified, and their level applies to all clients. */
  wantsLevel(level: LogLevel): void {
    if (isAtLeastLevel(level, this.#wanted?.level ?? DEFAULT_LEVEL)) return;
    this.#wanted?.forget();
    const forget = this.#clock.after(REQUESTED_LEVEL_MS, () => {
      this.#wanted = undefined;
      this.levelsChanged();
    });
    this.#wanted = { level, forget };
    this.levelsChanged();
  }

  /** Notifies servers that use roots. */
  clientsChanged(): void {
    this.hub.internals.rootsChanged();
  }

  /**
   * The client that answers a server's request outside of any call. With several clients it is not clear which one is meant; a
   * single one must be the hub's own user, or the user of the connection, and see the server. An isolated connection belongs to
   * its session's client.
   */
  #idleClient(server: string, user: string | undefined, session: string | undefined): ClientSide | undefined {
    if (session !== undefined) {
      return [...this.#legacy].find((each) => each.isReady && each.isOf(session))?.ownClient();
    }
    if (this.#principals.size > 0) return undefined;
    const sessions = [...this.#legacy].filter(({ isReady }) => isReady);
    const [only] = sessions;
    return sessions.length === 1 && only?.canReceiveFrom(server, user) === true ? only.ownClient() : undefined;
  }

  async listed(client: object): Promise<boolean> {
    if (this.#isListed) return true;
    const now = this.#clock.now();
    const { listWaitMs } = this.hub.config.config.limits;
    const ends = this.#listsEnd.get(client) ?? now + listWaitMs;
    this.#listsEnd.set(client, ends);
    const ms = Math.max(ends - now, 0);
    this.#startEnds ??= now + Math.max(START_MS, listWaitMs);
    const emptyMs = Math.max(this.#startEnds - now, 0);
    return (this.#isListed = await this.hub.internals.listed({ ms, emptyMs }));
  }

  /** Ends every session and stream; running calls are cancelled. */
  close(): void {
    this.#wanted?.forget();
    for (const session of [...this.#legacy]) session.close();
    this.hub.internals.setIdleClient(() => undefined);
    this.#modern.close();
    this.#principals.close();
    this.listeners.close();
  }
}

const byName = new WeakMap<View, ReadonlyMap<string, ToolDefinition>>();

function toolsByName(view: View): ReadonlyMap<string, ToolDefinition> {
  let tools = byName.get(view);
  if (tools === undefined) {
    tools = new Map(view.tools.map(({ name, definition }) => [name, definition]));
    byName.set(view, tools);
  }
  return tools;
}
