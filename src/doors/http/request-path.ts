/**
 * The way of every request, in this order: Host and Origin, the path, who it is, how often, what they may. Only then does a
 * route see it. Stays synchronous where it can: this is the way of each tool call.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller, Scope } from "../../model/caller.ts";
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { admitted } from "./admission.ts";
import { type ErrorAnswer, sendError } from "./answers.ts";
import { type Challenge, challengeHeader } from "./challenge.ts";
import { answerOptions } from "./cors.ts";
import type { Entrance } from "./entrance.ts";
import { Exchange, type ExchangeParts, type HttpRoute, type RouteTable } from "./exchange.ts";
import { offeredProtocol, pageKeys } from "./login/page-cookie.ts";
import { PageLogins, type PageSession } from "./login/page-logins.ts";
import { METADATA_PATH, scopeNames } from "./oauth/resource.ts";
import { addressKey, RateLimit } from "./rate-limit.ts";
import { parseTarget, type Target } from "./target.ts";
import type { Takeover } from "./upgrades.ts";

/** Behind a public route, where nobody has asked who it is. */
const ANYBODY: Caller = { key: "anybody", owner: false, scopes: new Set() };

/** Who came in, and the login of the page by which they did. */
interface Admission {
  readonly caller: Caller;
  readonly session?: PageSession | undefined;
}

type Found = Caller | undefined | Promise<Caller | undefined>;

interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly entrance: Entrance;
  readonly target: Target;
  readonly route: HttpRoute;
  readonly takeover?: Takeover | undefined;
  session?: PageSession | undefined;
}

interface RequestPathOptions {
  readonly entrance: Entrance;
  readonly routes: RouteTable;
  readonly clock: Clock;
  /** Takes secrets out of a message. */
  readonly mask: (text: string) => string;
  readonly warn: (message: string) => void;
  /** Who is logged in on the web page. */
  readonly logins: PageLogins;
  /** What the name of the page's cookie is made of. */
  readonly cookiePlace: () => number | string;
  /** Lets another node answer. */
  readonly handOn?: ExchangeParts["handOn"];
}

export class RequestPath {
  readonly #options: RequestPathOptions;
  readonly #rate: RateLimit;
  /** Who the answers under way are for. */
  readonly #callers = new WeakMap<ServerResponse, Admission>();
  #entrance: Entrance;

  constructor(options: RequestPathOptions) {
    this.#options = options;
    this.#entrance = options.entrance;
    this.#rate = new RateLimit(options.clock, options.entrance.requestsPerMinute);
  }

  get entrance(): Entrance {
    return this.#entrance;
  }

  /** For requests from now on. */
  set entrance(entrance: Entrance) {
    this.#entrance = entrance;
    this.#rate.perMinute = entrance.requestsPerMinute;
  }

  /** Never throws. */
  take(request: IncomingMessage, response: ServerResponse, takeover?: Takeover): void {
    try {
      const entrance = this.#entrance;
      if (!admitted(request, response, entrance.hosts)) return;
      if (request.method === "OPTIONS") {
        answerOptions(request, response);
        return;
      }
      const target = parseTarget(request.url ?? "");
      const route = this.#options.routes.find(target.path);
      if (route === undefined) throw new ToolcribError("not_found", `There is nothing at ${target.path}.`);
      this.#identify({ request, response, entrance, target, route, takeover });
    } catch (error) {
      this.#fail(request, response, error);
    }
  }

  #identify(visit: Visit): void {
    const { request, response, route } = visit;
    if (route.access === "public") {
      if (!this.#tooMany(visit, addressOf(request))) this.#hand(visit, ANYBODY);
      return;
    }
    let found: Found;
    try {
      found = this.#credentials(visit);
    } catch (error) {
      this.#stranger(visit, error);
      return;
    }
    if (!(found instanceof Promise)) {
      this.#proceed(visit, found);
      return;
    }
    found
      .then(
        (caller) => this.#proceed(visit, caller),
        (error: unknown) => this.#stranger(visit, error),
      )
      .catch((error: unknown) => this.#fail(request, response, error));
  }

  /** The Authorization header, else that of a browser's WebSocket, else the cookie of the page. */
  #credentials(visit: Visit): Found {
    const { request, entrance, takeover } = visit;
    const { authenticator, http } = entrance;
    const { authorization } = request.headers;
    if (authorization !== undefined) return authenticator.identify(authorization);
    const token = takeover && offeredProtocol(request.headers["sec-websocket-protocol"], "bearer.");
    if (token !== undefined) return authenticator.identify(`Bearer ${token}`);
    const { logins, cookiePlace } = this.#options;
    const keys = request.headers.cookie === undefined ? undefined : pageKeys(request, http, cookiePlace());
    const session = keys && logins.find(keys);
    return session instanceof Promise
      ? session.then((late) => this.#ofPage(visit, late))
      : this.#ofPage(visit, session);
  }

  #ofPage(visit: Visit, session: PageSession | undefined): Found {
    if (session === undefined || !this.#admits({ caller: session.caller, session })) {
      return visit.entrance.authenticator.identify(undefined);
    }
    visit.session = session;
    return session.caller;
  }

  #admits({ caller, session }: Admission): boolean {
    const { logins, clock } = this.#options;
    if (session !== undefined && !logins.has(session)) return false;
    return PageLogins.isOfLink(caller) || this.#entrance.authenticator.stillAdmits(caller, clock.now());
  }

  #proceed(visit: Visit, caller: Caller | undefined): void {
    const { access } = visit.route;
    if (caller === undefined) {
      this.#stranger(visit, new ToolcribError("unauthorized", "This needs a token.", { hint: TOKEN_HINT }));
      return;
    }
    if (this.#tooMany(visit, `caller ${caller.key}`)) return;
    const isAdmitted = access === "any" ? caller.scopes.size > 0 : access === "public" || caller.scopes.has(access);
    if (isAdmitted) this.#hand(visit, caller);
    else this.#refuse(visit, caller, access === "any" || access === "public" ? "read" : access);
  }

  /** Who showed no token, because none is needed otherwise, has no scope to widen: a token is what is missing. */
  #refuse(visit: Visit, caller: Caller, scope: Scope): void {
    if (caller.key !== "local") refuseScope(visit, scope);
    else
      this.#stranger(visit, new ToolcribError("unauthorized", "This needs the hub's own token.", { hint: HUB_HINT }));
  }

  /** Attempts count per address; callers with a valid token are not held up by others who have none. */
  #stranger(visit: Visit, thrown: unknown): void {
    const { request, response, route } = visit;
    if (!(thrown instanceof ToolcribError) || thrown.code !== "unauthorized") {
      this.#fail(request, response, thrown);
      return;
    }
    if (this.#tooMany(visit, addressOf(request))) return;
    const shown = request.headers.authorization !== undefined;
    const wanted: Scope[] = route.access === "admin" ? ["admin"] : ["read", "call"];
    sendError(response, thrown, {
      headers: {
        "www-authenticate": challengeHeader({
          ...(shown ? { error: "invalid_token" as const, description: thrown.message } : {}),
          ...oauthChallenge(visit, wanted),
        }),
      },
    });
  }

  /** Whether an answer that is under way goes to somebody who would not be let in any more. */
  isForStranger(response: ServerResponse): boolean {
    const admission = this.#callers.get(response);
    return admission !== undefined && !this.#admits(admission);
  }

  #tooMany({ response }: Visit, key: string): boolean {
    const waitMs = this.#rate.take(key);
    if (waitMs === 0) return false;
    const seconds = Math.max(1, Math.ceil(waitMs / 1000));
    const error = new ToolcribError("rate_limited", `Too many requests. Try again in ${seconds} s.`, {
      hint: "http.limits.requestsPerMinute sets the limit.",
      details: { retryAfterMs: seconds * 1000 },
    });
    sendError(response, error, { headers: { "retry-after": seconds } });
    return true;
  }

  #hand(visit: Visit, caller: Caller): void {
    const { request, response, route, target, entrance } = visit;
    // The client may have left while its token was looked at, and no route would learn of it any more.
    if (response.closed || response.destroyed) return;
    if (visit.takeover !== undefined) {
      this.#handOver(visit, visit.takeover, caller);
      return;
    }
    const exchange = new Exchange({
      request,
      response,
      target,
      caller,
      bodyBytes: entrance.http.limits.bodyBytes,
      refuseScope: (scope) => this.#refuse(visit, caller, scope),
      handOn: this.#options.handOn,
    });
    if (route.access !== "public") this.#callers.set(response, { caller, session: visit.session });
    const handled = route.handle(exchange);
    if (handled instanceof Promise) handled.catch((error: unknown) => this.#fail(request, response, error));
  }

  #handOver(visit: Visit, { socket, head }: Takeover, caller: Caller): void {
    const { request, response, route, target, entrance, session } = visit;
    if (route.upgrade === undefined) {
      throw new ToolcribError("invalid_arguments", `No other protocol is spoken at ${target.path}.`);
    }
    // From here on the answer is the route's own.
    response.detachSocket(request.socket);
    route.upgrade({
      request,
      socket,
      head,
      query: new URLSearchParams(target.search),
      caller,
      base: baseOf(entrance, request),
      stillAdmitted: () => this.#admits({ caller, session }),
    });
  }

  #fail(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
    if (response.headersSent) {
      // Half an answer must not look like a whole one.
      response.destroy();
      return;
    }
    if (thrown instanceof ToolcribError) {
      // A client that is gone reads no answer; one that is there gets to know.
      sendError(response, this.#masked(thrown), answerFor(thrown));
      return;
    }
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    this.#options.warn(`A request could not be answered (${request.method}): ${this.#options.mask(reason)}`);
    sendError(response, new ToolcribError("internal", "A fault in Toolcrib. The hub's log says more."));
  }

  #masked(error: ToolcribError): ToolcribError {
    const { code, message, hint, details } = error;
    return new ToolcribError(code, this.#options.mask(message), {
      hint: hint === undefined ? undefined : this.#options.mask(hint),
      details,
    });
  }
}

const TOKEN_HINT = "Send it as `Authorization: Bearer …`.";
const HUB_HINT = "It is in $TOOLCRIB_HOME/hubs, for the user who runs the hub.";
const RETRY_SECONDS = 10;

function answerFor({ code }: ToolcribError): ErrorAnswer {
  return code === "server_unavailable" ? { headers: { "retry-after": RETRY_SECONDS } } : {};
}

function refuseScope(visit: Visit, scope: Scope): void {
  const error = new ToolcribError("denied", `This needs the scope "${scope}".`, {
    hint: "http.auth says which scopes a token has.",
  });
  const challenge = {
    error: "insufficient_scope",
    description: error.message,
    ...oauthChallenge(visit, [scope]),
  } as const;
  sendError(visit.response, error, { headers: { "www-authenticate": challengeHeader(challenge) } });
}

/** Which scopes to ask for, and where it is written whom to ask. */
function oauthChallenge({ request, entrance, target }: Visit, scopes: readonly Scope[]): Challenge {
  const settings = entrance.http.auth?.oauth;
  if (settings === undefined) return {};
  return {
    scopes: scopeNames(settings, scopes),
    metadata: encodeURI(baseOf(entrance, request) + METADATA_PATH + target.path),
  };
}

/** The hub's address as this client knows it. The Host header was checked before. */
export function baseOf({ http }: Entrance, request: IncomingMessage): string {
  return http.publicUrl?.replace(/\/$/, "") ?? `http://${request.headers.host}`;
}

function addressOf(request: IncomingMessage): string {
  return `address ${addressKey(request.socket.remoteAddress)}`;
}
