/**
 * The checks of every request, in this order: Host and Origin, path, identity, rate, scope. Only then does a route see it. They
 * stay synchronous where possible: every tool call passes here.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { Caller, Scope } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import { METADATA_PATH, scopeNames } from "./access-tokens.ts";
import { admitOrRefuse, answerOptions, baseOf, redirectBaseOf } from "./hosts.ts";
import { type HttpAccess, tooManyRequests } from "./http-access.ts";
import type { UpgradedConnection } from "./http-connections.ts";
import {
  Exchange,
  type ExchangeParts,
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  parseTarget,
  type RequestTarget,
  type RouteTable,
  withoutBase,
} from "./http-exchange.ts";
import { type ErrorResponseOptions, sendError } from "./http-responses.ts";
import { offeredProtocol, pageKeys, PageLogins, type PageSession } from "./page-logins.ts";
import { addressKey, clientAddress, RateLimit } from "./rate-limit.ts";

/** The caller of a public route, which is not identified. */
const ANONYMOUS: Caller = { key: "anonymous", owner: false, scopes: new Set() };

/** The caller of a request, and the page login it came with. */
interface Admission {
  readonly caller: Caller;
  readonly session?: PageSession | undefined;
}

interface AdmittedResponse extends Admission {
  readonly response: HttpResponse;
}

type Identified = Caller | undefined | Promise<Caller | undefined>;

interface RoutedRequest {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly httpAccess: HttpAccess;
  readonly target: RequestTarget;
  readonly route: HttpRoute;
  readonly takeover?: UpgradedConnection | undefined;
  session?: PageSession | undefined;
}

interface RequestPipelineOptions {
  readonly httpAccess: HttpAccess;
  readonly routes: RouteTable;
  readonly clock: Clock;
  /** Takes secrets out of a message. */
  readonly mask: (text: string) => string;
  readonly warn: (message: string) => void;
  /** Who is logged in on the web page. */
  readonly logins: PageLogins;
  /** Part of the name of the page's cookie. */
  readonly cookieScope: () => number | string;
  /** Lets another node answer. */
  readonly forwardTo?: ExchangeParts["forwardTo"];
}

export class RequestPipeline {
  readonly #options: RequestPipelineOptions;
  readonly #rate: RateLimit;
  /** The callers of open responses, by connection: an entry for each response would cost more than all other checks. */
  readonly #callers = new WeakMap<Socket, AdmittedResponse>();
  /** Of responses that were open when another request came on their connection. */
  readonly #earlierCallers = new WeakMap<HttpResponse, AdmittedResponse>();
  #httpAccess: HttpAccess;

  constructor(options: RequestPipelineOptions) {
    this.#options = options;
    this.#httpAccess = options.httpAccess;
    this.#rate = new RateLimit(options.clock, options.httpAccess.requestsPerMinute);
  }

  get httpAccess(): HttpAccess {
    return this.#httpAccess;
  }

  /** For requests from now on. */
  set httpAccess(httpAccess: HttpAccess) {
    this.#httpAccess = httpAccess;
    this.#rate.perMinute = httpAccess.requestsPerMinute;
  }

  /** Never throws. */
  take(request: HttpRequest, response: HttpResponse, takeover?: UpgradedConnection): void {
    try {
      const httpAccess = this.#httpAccess;
      if (!admitOrRefuse(request, response, httpAccess.hosts)) return;
      if (request.method === "OPTIONS") {
        answerOptions(request, response);
        return;
      }
      const { basePath } = httpAccess.http;
      const url = withoutBase(request.url ?? "", basePath);
      if (url === undefined) {
        response.writeHead(308, { location: `${basePath}/${(request.url ?? "").slice(basePath?.length)}` }).end();
        return;
      }
      // From here on, as if the proxy had taken it off.
      request.url = url;
      const target = parseTarget(url);
      const route = this.#options.routes.find(target.path);
      if (route === undefined) throw new ToolcribError("not_found", `There is nothing at ${target.path}.`);
      this.#identify({ request, response, httpAccess, target, route, takeover });
    } catch (error) {
      this.#respondError(request, response, error);
    }
  }

  #identify(routed: RoutedRequest): void {
    const { request, response, route } = routed;
    if (route.access === "public") {
      if (route.countsItself !== true && this.#refuseTooMany(routed, addressRateKey(routed))) return;
      this.#dispatch(routed, ANONYMOUS);
      return;
    }
    let found: Identified;
    try {
      found = this.#credentials(routed);
    } catch (error) {
      this.#refuseUnauthenticated(routed, error);
      return;
    }
    if (!(found instanceof Promise)) {
      this.#authorize(routed, found);
      return;
    }
    found
      .then(
        (caller) => this.#authorize(routed, caller),
        (error: unknown) => this.#refuseUnauthenticated(routed, error),
      )
      .catch((error: unknown) => this.#respondError(request, response, error));
  }

  /** The Authorization header, else that of a browser's WebSocket, else the cookie of the page. */
  #credentials(routed: RoutedRequest): Identified {
    const { request, httpAccess, takeover } = routed;
    const { authenticator, http } = httpAccess;
    const { authorization } = request.headers;
    if (authorization !== undefined) return authenticator.identify(authorization);
    const token = takeover && offeredProtocol(request.headers["sec-websocket-protocol"], "bearer.");
    if (token !== undefined) return authenticator.identify(`Bearer ${token}`);
    const { logins, cookieScope } = this.#options;
    const keys = request.headers.cookie === undefined ? undefined : pageKeys(request, http, cookieScope());
    const session = keys && logins.find(keys);
    return session instanceof Promise
      ? session.then((late) => this.#identifyPage(routed, late))
      : this.#identifyPage(routed, session);
  }

  #identifyPage(routed: RoutedRequest, session: PageSession | undefined): Identified {
    if (session === undefined || !this.#admits({ caller: session.caller, session })) {
      return routed.httpAccess.authenticator.identify(undefined);
    }
    routed.session = session;
    return session.caller;
  }

  #admits({ caller, session }: Admission): boolean {
    const { logins, clock } = this.#options;
    if (session !== undefined && !logins.has(session)) return false;
    return PageLogins.isLinkCaller(caller) || this.#httpAccess.authenticator.stillAdmits(caller, clock.now());
  }

  #authorize(routed: RoutedRequest, caller: Caller | undefined): void {
    const { access } = routed.route;
    if (caller === undefined) {
      this.#refuseUnauthenticated(
        routed,
        new ToolcribError("unauthorized", "This needs a token.", { hint: TOKEN_HINT }),
      );
      return;
    }
    if (this.#refuseTooMany(routed, `caller ${caller.key}`)) return;
    const isAdmitted = access === "any" ? caller.scopes.size > 0 : access === "public" || caller.scopes.has(access);
    if (isAdmitted) this.#dispatch(routed, caller);
    else this.#refuse(routed, caller, access === "any" || access === "public" ? "read" : access);
  }

  /** A local caller without a token lacks a token, not a scope. */
  #refuse(routed: RoutedRequest, caller: Caller, scope: Scope): void {
    if (caller.key !== "local") refuseScope(routed, scope);
    else
      this.#refuseUnauthenticated(
        routed,
        new ToolcribError("unauthorized", "This needs the hub's own token.", { hint: HUB_HINT }),
      );
  }

  /** Counts attempts per address; callers with a valid token are not limited by them. */
  #refuseUnauthenticated(routed: RoutedRequest, thrown: unknown): void {
    const { request, response, route } = routed;
    if (!(thrown instanceof ToolcribError) || thrown.code !== "unauthorized") {
      this.#respondError(request, response, thrown);
      return;
    }
    if (this.#refuseTooMany(routed, addressRateKey(routed))) return;
    const shown = request.headers.authorization !== undefined;
    const wanted: Scope[] = route.access === "admin" ? ["admin"] : ["read", "call"];
    sendError(response, thrown, {
      headers: {
        "www-authenticate": challengeHeader({
          ...(shown ? { error: "invalid_token" as const, description: thrown.message } : {}),
          ...oauthChallenge(routed, wanted),
        }),
      },
    });
  }

  /** Whether an open response goes to a caller who would not be admitted any more. */
  isUnauthorized(response: HttpResponse): boolean {
    const last = this.#callers.get(response.req.socket);
    const admission = last?.response === response ? last : this.#earlierCallers.get(response);
    return admission !== undefined && !this.#admits(admission);
  }

  #refuseTooMany({ response }: RoutedRequest, key: string): boolean {
    const waitMs = this.#rate.take(key);
    if (waitMs === 0) return false;
    const { http, requestsPerMinute } = this.#httpAccess;
    const error = tooManyRequests("requests", waitMs, http, requestsPerMinute);
    sendError(response, error, { headers: { "retry-after": Math.max(1, Math.ceil(waitMs / 1000)) } });
    return true;
  }

  #dispatch(routed: RoutedRequest, caller: Caller): void {
    const { request, response, route, target, httpAccess } = routed;
    // The client may have left while its token was checked, and no route would notice.
    if (response.closed || response.destroyed) return;
    if (routed.takeover !== undefined) {
      this.#upgrade(routed, routed.takeover, caller);
      return;
    }
    const exchange = new Exchange({
      request,
      response,
      target,
      caller,
      bodyBytes: Math.min(route.bodyBytes ?? Infinity, httpAccess.http.limits.bodyBytes),
      refuseScope: (scope) => this.#refuse(routed, caller, scope),
      refuseTooMany: (bucket = addressRateKey(routed)) => this.#refuseTooMany(routed, bucket),
      forwardTo: this.#options.forwardTo,
    });
    if (route.access !== "public") this.#keepCaller({ response, caller, session: routed.session });
    const handled = route.handle(exchange);
    if (handled instanceof Promise) handled.catch((error: unknown) => this.#respondError(request, response, error));
  }

  #keepCaller(admitted: AdmittedResponse): void {
    const { socket } = admitted.response.req;
    const earlier = this.#callers.get(socket);
    // A client may send its next request while a stream is open.
    if (earlier?.response.closed === false) this.#earlierCallers.set(earlier.response, earlier);
    this.#callers.set(socket, admitted);
  }

  #upgrade(routed: RoutedRequest, { request, socket, head, detach }: UpgradedConnection, caller: Caller): void {
    const { route, target, httpAccess, session } = routed;
    if (route.upgrade === undefined) {
      throw new ToolcribError("invalid_arguments", `No upgrade is possible at ${target.path}.`);
    }
    detach();
    route.upgrade({
      request,
      socket,
      head,
      query: new URLSearchParams(target.search),
      caller,
      base: baseOf(httpAccess.http, request),
      redirectBase: redirectBaseOf(httpAccess.http, request),
      stillAdmitted: () => this.#admits({ caller, session }),
    });
  }

  #respondError(request: HttpRequest, response: HttpResponse, thrown: unknown): void {
    if (response.headersSent) {
      // A partial response must not look complete.
      response.destroy();
      return;
    }
    if (thrown instanceof ToolcribError) {
      // A client that has left does not read it.
      sendError(response, this.#masked(thrown), errorOptions(thrown));
      return;
    }
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    this.#options.warn(`A request could not be answered (${request.method}): ${this.#options.mask(reason)}`);
    sendError(response, new ToolcribError("internal", "An internal error. The hub's log has the details."));
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

/** A call that may have run is not to be repeated. */
function errorOptions({ code, details }: ToolcribError): ErrorResponseOptions {
  const invitesRetry = code === "server_unavailable" && details?.["outcome"] !== "unknown";
  return invitesRetry ? { headers: { "retry-after": RETRY_SECONDS } } : {};
}

function refuseScope(routed: RoutedRequest, scope: Scope): void {
  const error = new ToolcribError("denied", `This needs the scope "${scope}".`, {
    hint: "http.auth says which scopes a token has.",
  });
  const challenge = {
    error: "insufficient_scope",
    description: error.message,
    ...oauthChallenge(routed, [scope]),
  } as const;
  sendError(routed.response, error, { headers: { "www-authenticate": challengeHeader(challenge) } });
}

/** The scopes to request, and where the metadata is. */
function oauthChallenge({ request, httpAccess, target }: RoutedRequest, scopes: readonly Scope[]): Challenge {
  const settings = httpAccess.http.auth?.oauth;
  if (settings === undefined) return {};
  return {
    scopes: scopeNames(settings, scopes),
    metadata: encodeURI(baseOf(httpAccess.http, request) + METADATA_PATH + target.path),
  };
}

function addressRateKey({ request, httpAccess }: RoutedRequest): string {
  return `address ${addressKey(clientAddress(request, httpAccess.proxies))}`;
}

/** `WWW-Authenticate` as RFC 6750 and RFC 9728 want it. */
interface Challenge {
  /** Absent if the request held no credentials at all: then RFC 6750 wants none named. */
  readonly error?: "invalid_token" | "insufficient_scope";
  readonly description?: string;
  /** The scopes that an access token needs. */
  readonly scopes?: readonly string[];
  /** Where the protected resource metadata is, if access tokens are taken. */
  readonly metadata?: string | undefined;
}

function challengeHeader({ error, description, scopes = [], metadata }: Challenge): string {
  const parameters: [name: string, value: string][] = [["realm", "toolcrib"]];
  if (error !== undefined) parameters.push(["error", error]);
  if (description !== undefined) parameters.push(["error_description", description]);
  if (scopes.length > 0) parameters.push(["scope", scopes.join(" ")]);
  if (metadata !== undefined) parameters.push(["resource_metadata", metadata]);
  return `Bearer ${parameters.map(([name, value]) => `${name}="${quotable(value)}"`).join(", ")}`;
}

/** RFC 6750 allows neither quote nor backslash in its values, and headers are ASCII. */
function quotable(text: string): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "'");
}
