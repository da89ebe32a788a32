/** The one HTTP listener that all HTTP doors share. */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, Server } from "node:http";
import { Server as NetServer } from "node:net";
import { join } from "node:path";
import { endsWithin } from "../../base/async.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { writeHubFile } from "../../hub/activity/hub-file.ts";
import type { HubRecord } from "../../hub/activity/hub-records.ts";
import type { Caller } from "../../model/caller.ts";
import type { HttpConfig } from "../../model/config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { RequestForwarder, serveForwarded } from "./forward-request.ts";
import { baseOf, hostInUrl, isWildcard } from "./hosts.ts";
import { createHttpAccess, type HttpAccess, type HttpAccessOptions, unknownToken } from "./http-access.ts";
import { PendingResponses, refuseBadRequests, Upgrades } from "./http-connections.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpRoute,
  parseTarget,
  RouteTable,
  withoutBase,
} from "./http-exchange.ts";
import { type LoginEvent, loginLink, loginRoutes } from "./login-routes.ts";
import { type LoginStore, PageLogins } from "./page-logins.ts";
import { PlainRequests } from "./plain-requests.ts";
import { RequestPipeline } from "./request-pipeline.ts";
import { type DependencyHealth, readinessOf, statusRoutes } from "./status-routes.ts";

// Not imported as a module: that loads Node's whole fetch as well, 12 MB of it.
const { createServer } = process.getBuiltinModule("node:http");

export interface ListenerOptions {
  readonly http: HttpConfig;
  /** `limits.callsPerMinute` of the hub. */
  readonly callsPerMinute: number | undefined;
  readonly routes: readonly HttpRoute[];
  /** Resolves the references of a text. */
  readonly resolve: (text: string) => Promise<string>;
  /** Learns every token, and masks them in messages. */
  readonly redactor: { addCredential(value: string): void; mask(text: string): string };
  readonly warn: (message: string) => void;
  /** Whether the hub is ready; always if absent. */
  readonly ready?: () => boolean;
  /** The health of its dependencies. */
  readonly troubles?: () => DependencyHealth;
  /** The cluster that it is a node of. */
  readonly node?: ListenerNode | undefined;
  /** Where logins of the page outlive the hub; in memory only if absent. */
  readonly logins?: LoginStore | undefined;
  /** Makes the keys of callers, so that they are the same after a restart; random if absent. */
  readonly keySecret?: Uint8Array | undefined;
  /** The text of `GET /`. */
  readonly index?: () => string;
  readonly clock?: Clock;
  /** Toolcrib's home, where a file says how to reach this hub; no file if absent. */
  readonly home?: string;
  /** Part of the file in the home by which commands find the hub. */
  readonly record?: Pick<HubRecord, "config" | "background" | "editor" | "clientEnv">;
  /** A token that has a name in the config was presented. */
  readonly onTokenUse?: (name: string) => void;
  /** A login link was issued, or a user logged in or out. */
  readonly onLogin?: (event: LoginEvent, caller: Caller) => void;
}

interface ListenerNode {
  readonly cluster: Cluster;
  /** The same on all nodes: what the keys of callers are made with. */
  readonly secret: Uint8Array;
}

/** Longer than proxies keep theirs, so that the hub never closes a connection with a request on its way. */
const KEEP_ALIVE_MS = 75_000;
/** The operating system notices a peer that vanished, also on an idle stream. */
const PROBE_AFTER_MS = 30_000;

/** How long a connection may take to bring its first request once nothing is accepted any more. */
const FIRST_REQUEST_MS = 1000;
/** How long a busy event loop is waited for before the listener closes. */
const QUIET_MS = 200;
/** How long clients may take to read what is already written to them. */
const FLUSH_MS = 2000;

/** Rejects with ToolcribError: `invalid_config` for an address that would be open to all, `conflict` for one in use. */
export async function openListener(options: ListenerOptions): Promise<HttpListener> {
  const listener = new HttpListener(options);
  await listener.open();
  return listener;
}

/** How often the credentials of open streams are checked. */
const CREDENTIALS_MS = 15_000;

export class HttpListener {
  readonly #options: ListenerOptions;
  readonly #adminToken = randomBytes(32).toString("base64url");
  readonly #pending = new PendingResponses();
  readonly #accessOptions: HttpAccessOptions;
  readonly #routes: RouteTable;
  readonly #logins: PageLogins;
  #server: Server | undefined;
  #upgrades: Upgrades | undefined;
  #plain: PlainRequests | undefined;
  #pipeline: RequestPipeline | undefined;
  #callsPerMinute: number | undefined;
  #port = 0;
  #stopping = false;
  readonly #forwarder: RequestForwarder | undefined;
  #stopServingForwarded: () => void = () => {};
  #changes = 0;
  #stopWatch: () => void = () => {};
  #removeFile = async (): Promise<void> => {};
  /** Resolves when nothing listens and no connection is left. */
  #ended: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#callsPerMinute = options.callsPerMinute;
    this.#logins = new PageLogins(options.clock ?? systemClock);
    const { node } = options;
    this.#forwarder = node && new RequestForwarder(node.cluster);
    const guarded = new RouteTable(options.routes);
    this.#routes = new RouteTable([
      ...statusRoutes({
        readiness: () =>
          readinessOf(
            { isStopping: this.#stopping, isReady: options.ready?.() ?? true },
            options.troubles?.() ?? { problems: [] },
          ),
        index: options.index,
        httpAccess: () => this.#httpAccess(),
        isGuarded: (path) => (guarded.find(path)?.access ?? "public") !== "public",
      }),
      ...loginRoutes({
        logins: this.#logins,
        http: () => this.#httpAccess().http,
        cookieScope: () => node?.cluster.name ?? this.#port,
        identify: (token) => this.#identifyToken(token),
        baseOf: ({ request }) => baseOf(this.#httpAccess().http, request),
        onLogin: options.onLogin,
      }),
      ...options.routes,
    ]);
    this.#accessOptions = {
      adminToken: this.#adminToken,
      keySecret: node?.secret ?? options.keySecret,
      clock: options.clock ?? systemClock,
      resolve: options.resolve,
      conceal: (value) => options.redactor.addCredential(value),
      warn: (message) => options.warn(options.redactor.mask(message)),
      onTokenUse: options.onTokenUse,
      guardedPaths: guarded.guarded(),
      port: () => this.#port,
    };
  }

  get port(): number {
    return this.#port;
  }

  /** Where this machine reaches it, without a slash at the end. */
  get url(): string {
    const { host } = this.#options.http;
    if (!isWildcard(host)) return `http://${hostInUrl(host)}:${this.#port}`;
    return `http://${host.includes(":") ? "[::1]" : "127.0.0.1"}:${this.#port}`;
  }

  /** An address that logs a browser in as the hub's owner, once. */
  loginLink(): string {
    return loginLink(this.#options.http.publicUrl?.replace(/\/$/, "") ?? this.url, this.#logins);
  }

  /** Called once, by `openListener`. */
  async open(): Promise<void> {
    const { http } = this.#options;
    const { clock, warn } = this.#accessOptions;
    const httpAccess = await createHttpAccess(http, this.#callsPerMinute, this.#accessOptions);
    const mask = (text: string): string => this.#options.redactor.mask(text);
    const { node } = this.#options;
    const forwarder = this.#forwarder;
    const path = new RequestPipeline({
      httpAccess,
      routes: this.#routes,
      clock,
      mask,
      warn,
      logins: this.#logins,
      cookieScope: () => node?.cluster.name ?? this.#port,
      forwardTo: forwarder && ((exchange, to, lastWords) => forwarder.forward(exchange, to, lastWords)),
    });
    this.#pipeline = path;
    if (node !== undefined) await this.#join(node, mask);
    const server = this.#makeServer(path, http);
    this.#server = server;
    this.#port = await listen(server, http);
    if (this.#options.logins !== undefined && node === undefined) await this.#keepLogins(this.#options.logins);
    this.#ended = new Promise((resolve) => server.once("close", resolve));
    server.on("error", (error) => warn(`The HTTP listener: ${error.message}`));
    await this.#writeFile(http);
    this.#watchCredentials();
  }

  /** Reports not ready, and asks clients to open other connections. Still serves everything. */
  beginStopping(): void {
    this.#stopping = true;
    for (const response of this.#pending.underWay()) response.shouldKeepAlive = false;
  }

  /** Waits this long for responses of other nodes, then ends forwarded streams. */
  async endForwarded(graceMs: number): Promise<void> {
    await this.#forwarder?.close(graceMs, this.#accessOptions.clock);
  }

  /**
   * Accepts no new connections. Requests on open connections are still served. Resolves when each connection that was accepted
   * before has brought its first request, or had a second to: a proxy that connects for every request has sent one by then, and may
   * not send it to another node.
   */
  stopAccepting(): Promise<void> {
    this.beginStopping();
    this.#stopped ??= this.#stopAccepting();
    return this.#stopped;
  }

  async #stopAccepting(): Promise<void> {
    const server = this.#server;
    if (server?.listening !== true) return;
    await untilQuiet();
    stopListening(server);
    await endsWithin(this.#pending.whenAllHaveAsked(), { ms: FIRST_REQUEST_MS });
  }

  /** Tokens, names, origins and limits apply from the next request on. Warns about changes that need a restart. */
  async reconfigure(http: HttpConfig, callsPerMinute = this.#callsPerMinute): Promise<void> {
    const { http: first } = this.#options;
    // The address stays, and so do its auth requirements.
    const { host, port } = first;
    const change = ++this.#changes;
    const httpAccess = await createHttpAccess({ ...http, host, port }, callsPerMinute, this.#accessOptions);
    // Resolving tokens takes time; an older config must not replace a newer one.
    if (change !== this.#changes || this.#closed !== undefined) return;
    this.#callsPerMinute = callsPerMinute;
    if (this.#pipeline !== undefined) this.#pipeline.httpAccess = httpAccess;
    this.#closeUnauthorized();
    if (this.#server !== undefined) bound(this.#server, http.limits);
    const fixed = [
      http.host === host ? [] : ["http.host"],
      http.port === port ? [] : ["http.port"],
      http.limits.headerBytes === first.limits.headerBytes ? [] : ["http.limits.headerBytes"],
    ].flat();
    if (fixed.length > 0) this.#accessOptions.warn(`A change of ${fixed.join(", ")} takes effect after a restart.`);
  }

  /** Ends what is left. Safe to call twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#stopping = true;
    this.#stopWatch();
    this.#stopServingForwarded();
    this.#logins.stopSharing();
    if (this.#server !== undefined) stopListening(this.#server);
    await endsWithin(this.#pending.whenFlushed(), { ms: FLUSH_MS });
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#upgrades?.destroyAll();
    this.#plain?.destroyAll();
    await this.#ended;
    await this.#removeFile();
  }

  async #keepLogins(store: LoginStore): Promise<void> {
    try {
      await this.#logins.keep(store, `${await idOfHome(this.#options.home)} ${this.#port}`);
    } catch (error) {
      this.#accessOptions.warn(`Logins of the page cannot be stored: ${asToolcribError(error).message}`);
    }
  }

  async #join({ cluster }: ListenerNode, mask: (text: string) => string): Promise<void> {
    await this.#logins.share(cluster);
    this.#stopServingForwarded = serveForwarded({
      cluster,
      routes: this.#routes,
      bodyBytes: () => this.#httpAccess().http.limits.bodyBytes,
      warn: (message) => this.#accessOptions.warn(mask(message)),
    });
  }

  /** Streams may outlive credentials: callers who would not be admitted any more are cut off. */
  #closeUnauthorized(): void {
    for (const response of this.#pending.underWay())
      if (this.#pipeline?.isUnauthorized(response) === true) response.destroy();
  }

  #watchCredentials(): void {
    this.#stopWatch = this.#accessOptions.clock.after(CREDENTIALS_MS, () => {
      this.#closeUnauthorized();
      this.#watchCredentials();
    });
  }

  /** Only a known token: a caller who is admitted without one needs no login. */
  async #identifyToken(token: string): Promise<Caller> {
    const caller = await this.#httpAccess().authenticator.identify(`Bearer ${token}`);
    if (caller !== undefined && caller.key !== "local") return caller;
    throw unknownToken();
  }

  /** An invalid address is refused like that of any other request. */
  #acceptsUpgrade({ url = "", headers }: IncomingMessage): boolean {
    const route = this.#routeOf(url);
    return route?.upgrade !== undefined && headers.upgrade?.toLowerCase() === (route.protocol ?? "websocket");
  }

  #routeOf(url: string): HttpRoute | undefined {
    try {
      return this.#routes.find(parseTarget(withoutBase(url, this.#httpAccess().http.basePath) ?? "/").path);
    } catch {
      return undefined;
    }
  }

  #httpAccess(): HttpAccess {
    if (this.#pipeline === undefined) throw new ToolcribError("server_unavailable", "The listener is not open.");
    return this.#pipeline.httpAccess;
  }

  #makeServer(path: RequestPipeline, { limits }: HttpConfig): Server {
    const answers = this.#pending;
    const upgrades = new Upgrades({
      answers,
      acceptsUpgrade: (request) => this.#acceptsUpgrade(request),
      take: (request, response, takeover) => path.take(request, response, takeover),
    });
    this.#upgrades = upgrades;
    const server = createServer(
      {
        maxHeaderSize: limits.headerBytes,
        connectionsCheckingInterval: Math.min(5_000, Math.max(100, limits.requestTimeoutMs / 4)),
        keepAlive: true,
        keepAliveInitialDelay: PROBE_AFTER_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        shouldUpgradeCallback: upgrades.shouldUpgrade,
      },
      (request, response) => take(request, response),
    );
    const take = (request: HttpRequest, response: HttpResponse): void => {
      answers.begin(request.socket, response);
      // Says `Connection: close`: the next request is for a connection to another node.
      if (this.#stopping) response.shouldKeepAlive = false;
      path.take(request, response);
    };
    const { headerBytes } = limits;
    const accepts = (target: string): boolean => this.#routeOf(target)?.isFrequent === true;
    this.#plain = new PlainRequests({ server, headerBytes, accepts, take });
    upgrades.listen(server);
    server.on("connection", (socket) => answers.connected(socket));
    // Above the count Node drops headers in silence; their size is bounded anyway.
    server.maxHeadersCount = 0;
    bound(server, limits);
    refuseBadRequests(server, answers);
    return server;
  }

  async #writeFile({ publicUrl }: HttpConfig): Promise<void> {
    const { home } = this.#options;
    if (home === undefined) return;
    try {
      this.#removeFile = await writeHubFile(home, {
        url: this.url,
        publicUrl,
        pid: process.pid,
        token: this.#adminToken,
        version: VERSION,
        ...this.#options.record,
      });
    } catch (error) {
      const reason = asToolcribError(error).message;
      this.#accessOptions.warn(
        `\`toolcrib approve\` will not find this hub: its file in ${home} cannot be written (${reason}).`,
      );
    }
  }
}

/**
 * The method of the HTTP server would also cut connections on which a request is about to arrive, or whose response is complete
 * but not sent yet.
 */
function stopListening(server: Server): void {
  if (server.listening) NetServer.prototype.close.call(server);
}

/**
 * Resolves right after the event loop found nothing to do. Connections that the operating system has made and the hub has not
 * accepted are cut when the listener closes; now there are none.
 */
async function untilQuiet(): Promise<void> {
  let seen = -1;
  for (const deadline = performance.now() + QUIET_MS; performance.now() < deadline;) {
    const { events } = performance.nodeTiming.uvMetricsInfo;
    if (events === seen) return;
    seen = events;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function bound(server: Server, { requestTimeoutMs, connections }: HttpConfig["limits"]): void {
  server.maxConnections = connections;
  server.requestTimeout = requestTimeoutMs;
  server.headersTimeout = requestTimeoutMs;
  server.timeout = requestTimeoutMs;
}

async function listen(server: Server, { host, port }: HttpConfig): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host: host.replace(/^\[|\]$/g, ""), port }, resolve);
  });
  server.removeAllListeners("error");
  const address = server.address();
  // A listener on a host and port has an address with a port.
  return typeof address === "object" && address !== null ? address.port : port;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): ToolcribError {
  const where = `${hostInUrl(host)}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new ToolcribError("conflict", `${where} is in use.`, {
        hint: "toolcrib hub lists the hubs that run. --port or http.port sets another port; 0 picks a free one.",
        cause: error,
      });
    case "EACCES":
      return new ToolcribError("invalid_config", `This user is not allowed to listen at ${where}.`, {
        hint: "Ports below 1024 need more rights. http.port sets another port.",
        cause: error,
      });
    default:
      return new ToolcribError("invalid_config", `Cannot listen at ${where} (${error.code ?? error.message}).`, {
        hint: "http.host must be an address of this machine.",
        cause: error,
      });
  }
}

/** Tells homes apart that use one store: a database may serve several machines with the same paths and ports. */
async function idOfHome(home: string | undefined): Promise<string> {
  if (home === undefined) return randomUUID();
  const file = join(home, "home-id");
  await mkdir(home, { recursive: true, mode: 0o700 });
  // One that is there already stays, whoever wrote it first.
  await writeFile(file, randomUUID(), { flag: "wx", mode: 0o600 }).catch(() => {});
  return (await readFile(file, "utf8")).trim();
}
