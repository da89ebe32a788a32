/** Who is logged in on the web page: links that work once, and the browser sessions that they open. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { HttpRequest } from "./http-exchange.ts";
import type { Clock } from "../../base/clock.ts";
import type { Cluster, SharedMap } from "../../cluster/cluster.ts";
import type { Caller } from "../../model/caller.ts";
import type { HttpConfig } from "../../model/config.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Settings } from "../../store/store.ts";
import { ALL_SCOPES } from "./bearer-tokens.ts";
import { decodeCaller } from "./forward-request.ts";

const CODE_MS = 15 * 60_000;
const IDLE_MS = 12 * 3_600_000;
/** How often other nodes are notified that a login is in use. */
const SHARE_MS = 10 * 60_000;
const MAX_SESSION_MS = 7 * 24 * 3_600_000;
const MAX_CODES = 32;
/** Per identity, so that one user cannot log others out. */
const MAX_SESSIONS_PER_IDENTITY = 16;
/** Identities of an OAuth server may be many. */
const MAX_PAGE_SESSIONS = 4096;
const LINK_KEY_PREFIX = "page:";
const DIGEST_BYTES = 32;

/** A browser sends cookies to every port of a host; a key that the page stores is sent by that page alone. */
interface PageKeys {
  readonly cookie: string;
  readonly pageKey: string;
}

export interface PageSession {
  readonly caller: Caller;
  /** Of its cookie. */
  readonly digest: string;
}

interface OpenPageSession extends PageSession {
  readonly identity: string;
  readonly pageDigest: Buffer;
  readonly endsAt: number;
  idleUntil: number;
  sharedAt: number;
  /** Whether other nodes know it. */
  isShared: boolean;
}

interface OpenCode {
  readonly until: number;
  /** Whether other nodes may know it. */
  readonly shared: Promise<boolean>;
}

/** Where logins outlive the hub, as one value; only digests are kept. */
export type LoginStore = Pick<Settings, "get" | "exchange">;

const STORED_KEY = "page.logins";
/** The newest are kept. */
const MAX_STORED = 500;
const STORE_ATTEMPTS = 5;

export class PageLogins {
  readonly #clock: Clock;
  #store: LoginStore | undefined;
  /** Which of the hubs on the store has them. */
  #place = "";
  #storing: Promise<void> = Promise.resolve();
  /** By digest, like the sessions: memory has no usable codes. */
  readonly #codes = new Map<string, OpenCode>();
  readonly #sessions = new Map<string, OpenPageSession>();
  readonly #ended = new Map<string, true>();
  #opened = 0;
  #shared: SharedLogins | undefined;
  #stopSharing = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on the nodes of a cluster have their logins in common. */
  async share(cluster: Parameters<typeof SharedLogins.open>[0]): Promise<void> {
    this.#shared = await SharedLogins.open(cluster, { codeMs: CODE_MS, idleMs: IDLE_MS });
    const shared = this.#shared;
    const stop = shared.onEnd((digest) => this.#sessions.delete(digest));
    this.#stopSharing = () => {
      stop();
      shared.close();
    };
  }

  /**
   * From now on logins outlive the hub, and those of an earlier one are open again.
   * @param place Several hubs may use one store, also of other machines: each has its own logins.
   */
  async keep(store: LoginStore, place: string): Promise<void> {
    this.#place = place;
    const now = this.#clock.now();
    for (const { place: of, digest, login, idleUntil } of storedLogins(await store.get(STORED_KEY))) {
      const restored = of === this.#place && idleUntil > now ? this.#adopt(digest, login) : undefined;
      if (restored !== undefined) restored.idleUntil = Math.min(idleUntil, restored.idleUntil);
    }
    this.#store = store;
  }

  /** Resolves when what is open now is stored; a store that fails costs the logins at a restart, and no request. */
  #save(): Promise<void> {
    const store = this.#store;
    if (store === undefined) return Promise.resolve();
    return (this.#storing = this.#storing.then(() => this.#write(store)).catch(() => {}));
  }

  async #write(store: LoginStore): Promise<void> {
    for (let attempt = 0; attempt < STORE_ATTEMPTS; attempt++) {
      const now = this.#clock.now();
      const before = await store.get(STORED_KEY);
      const own = [...this.#sessions.values()]
        // The rights of an access token are those of the config that it was checked by.
        .filter((session) => isSessionOpen(session, now) && session.caller.expiresAt === undefined)
        .map(({ digest, idleUntil, ...session }) => ({
          place: this.#place,
          digest,
          idleUntil,
          ...encodeLogin({ ...session, pageDigest: session.pageDigest.toString("hex") }),
        }));
      const others = storedLogins(before).filter(({ place, idleUntil }) => place !== this.#place && idleUntil > now);
      const all = [...others.map(({ login, ...entry }) => ({ ...entry, ...encodeLogin(login) })), ...own];
      if (await store.exchange(STORED_KEY, before, JSON.stringify(all.slice(-MAX_STORED)))) return;
    }
  }

  stopSharing(): void {
    this.#stopSharing();
  }

  /** A code that opens one session as the hub's owner, once, within a quarter of an hour. */
  issueCode(): string {
    const code = randomBytes(24).toString("base64url");
    const digest = digestOf(code).toString("hex");
    keepNewest(this.#codes, MAX_CODES - 1);
    const shared = this.#shared?.offerCode(digest) ?? Promise.resolve(false);
    this.#codes.set(digest, { until: this.#clock.now() + CODE_MS, shared });
    return code;
  }

  /** The caller of a code; undefined for one that was used, has expired or never existed. */
  async redeem(code: string): Promise<Caller | undefined> {
    const digest = digestOf(code).toString("hex");
    const own = this.#codes.get(digest);
    this.#codes.delete(digest);
    if (own !== undefined && own.until <= this.#clock.now()) return undefined;
    const isKnownHereOnly = own !== undefined && !(await own.shared);
    if (!isKnownHereOnly && (await this.#shared?.takeCode(digest)) !== true) return undefined;
    // A number where nothing is shared; nodes of a cluster, and a hub and the one after it, do not share a counter.
    const isNumbered = this.#shared === undefined && this.#store === undefined;
    const name = isNumbered ? ++this.#opened : randomBytes(9).toString("base64url");
    return { key: `${LINK_KEY_PREFIX}${name}`, owner: true, scopes: ALL_SCOPES };
  }

  /** A new session for a caller with a code or a token. */
  async open(caller: Caller): Promise<PageKeys> {
    const keys = { cookie: randomBytes(32).toString("base64url"), pageKey: randomBytes(32).toString("base64url") };
    const now = this.#clock.now();
    const identity = loginIdentity(caller);
    this.#makeRoom(identity, now);
    const digest = digestOf(keys.cookie).toString("hex");
    const pageDigest = digestOf(keys.pageKey);
    const endsAt = Math.min(now + MAX_SESSION_MS, caller.expiresAt ?? Infinity);
    const idleUntil = now + IDLE_MS;
    const times = { endsAt, idleUntil, sharedAt: now };
    const onPage = { ...caller, page: true } as const;
    const session: OpenPageSession = { caller: onPage, digest, identity, pageDigest, ...times, isShared: false };
    this.#sessions.set(digest, session);
    await Promise.all([this.#tell(session), this.#save()]);
    return keys;
  }

  /** The session that both keys belong to. It is in use from now on. One that another node opened may be on its way still. */
  find(keys: PageKeys): PageSession | undefined | Promise<PageSession | undefined> {
    const digest = digestOf(keys.cookie).toString("hex");
    const shared = this.#shared;
    const own = this.#sessions.get(digest);
    // One that was not used here for long may have been used at other nodes.
    const isOwn = own !== undefined && isSessionOpen(own, this.#clock.now());
    const known = isOwn ? own : this.#adopt(digest, shared?.get(digest));
    if (known !== undefined || shared === undefined) return this.#use(known, keys);
    return shared.soon(digest).then((late) => this.#use(this.#adopt(digest, late), keys));
  }

  #use(session: OpenPageSession | undefined, { pageKey }: PageKeys): PageSession | undefined {
    const now = this.#clock.now();
    if (session === undefined || !isSessionOpen(session, now)) return undefined;
    if (!timingSafeEqual(session.pageDigest, digestOf(pageKey))) return undefined;
    session.idleUntil = now + IDLE_MS;
    if (now - session.sharedAt >= SHARE_MS) {
      session.sharedAt = now;
      void this.#tell(session);
      void this.#save();
    }
    return session;
  }

  async #tell(session: OpenPageSession): Promise<void> {
    const { caller, digest, endsAt } = session;
    const login = { caller, pageDigest: session.pageDigest.toString("hex"), endsAt };
    if (session.isShared) await this.#shared?.renew(digest, login);
    else session.isShared = (await this.#shared?.put(digest, login)) === true;
  }

  #adopt(digest: string, login: SharedLogin | undefined): OpenPageSession | undefined {
    if (login === undefined || this.#ended.has(digest)) return undefined;
    const { endsAt } = login;
    const caller = { ...login.caller, page: true } as const;
    const now = this.#clock.now();
    const identity = loginIdentity(caller);
    this.#makeRoom(identity, now);
    const pageDigest = Buffer.from(login.pageDigest, "hex");
    if (pageDigest.length !== DIGEST_BYTES) return undefined;
    const times = { endsAt, idleUntil: now + IDLE_MS, sharedAt: now };
    const session: OpenPageSession = { caller, digest, identity, pageDigest, ...times, isShared: true };
    this.#sessions.set(digest, session);
    return session;
  }

  /** Whether it is open. Asking does not count as use. */
  has({ digest }: PageSession): boolean {
    const session = this.#sessions.get(digest);
    return session !== undefined && isSessionOpen(session, this.#clock.now());
  }

  async end({ digest }: PageSession): Promise<void> {
    this.#sessions.delete(digest);
    // Before the answer: a login that was ended must not come back with the next start.
    await this.#save();
    if (this.#shared === undefined) return;
    // Other nodes may report it for a moment longer.
    keepNewest(this.#ended, MAX_PAGE_SESSIONS - 1);
    this.#ended.set(digest, true);
    await this.#shared.end(digest);
  }

  /** True for callers of a login link: they are known only here. */
  static isLinkCaller(caller: Caller): boolean {
    return caller.key.startsWith(LINK_KEY_PREFIX);
  }

  #makeRoom(identity: string, now: number): void {
    for (const [digest, session] of this.#sessions) if (!isSessionOpen(session, now)) this.#sessions.delete(digest);
    const own = [...this.#sessions.values()].filter((session) => session.identity === identity);
    for (const { digest } of own.slice(0, Math.max(0, own.length + 1 - MAX_SESSIONS_PER_IDENTITY)))
      this.#sessions.delete(digest);
    keepNewest(this.#sessions, MAX_PAGE_SESSIONS - 1);
  }
}

function loginIdentity(caller: Caller): string {
  return PageLogins.isLinkCaller(caller) ? LINK_KEY_PREFIX : caller.key;
}

function isSessionOpen({ endsAt, idleUntil }: OpenPageSession, now: number): boolean {
  return now < endsAt && now < idleUntil;
}

function keepNewest(map: Map<string, unknown>, count: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= count) return;
    map.delete(oldest);
  }
}

function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

/** The page sends its key in it, with every request; no form and no foreign page can send such a header. */
const PAGE_HEADER = "x-toolcrib";
/** Browsers let a page set no header of a WebSocket; the key travels as a protocol that is offered. */
const PAGE_PROTOCOL = "page.";
const COOKIE_MAX_AGE_S = 7 * 24 * 3600;

/**
 * @param place The port, because cookies are shared between all ports of a host, and several hubs may run on one; the name of
 * the cluster for nodes of one, which are to have the cookie in common.
 */
function cookieName({ publicUrl }: Pick<HttpConfig, "publicUrl">, place: number | string): string {
  if (publicUrl?.startsWith("https:") !== true) return `toolcrib-${place}`;
  // A browser accepts the first for a whole host only.
  return publicPath(publicUrl) === "/" ? "__Host-toolcrib" : "__Secure-toolcrib";
}

/** With a slash at its end. */
function publicPath(publicUrl: string): string {
  const path = URL.parse(publicUrl)?.pathname.replace(/\/*$/, "/") ?? "/";
  return /[;,]/.test(path) ? "/" : path;
}

/**
 * The cookie of the web page, and when it counts: only for requests that our own page makes. Other programs under the same host
 * do not get it; a page that came past the proxy, on this machine, is at the root.
 */
export function setCookie(
  { headers: { origin } }: Pick<HttpRequest, "headers">,
  http: Pick<HttpConfig, "publicUrl">,
  place: number | string,
  key: string | null,
): string {
  const { publicUrl } = http;
  const name = cookieName(http, place);
  const isPublic = publicUrl !== undefined && origin === URL.parse(publicUrl)?.origin;
  const path = isPublic ? publicPath(publicUrl) : "/";
  const secure = name.startsWith("__") ? "; Secure" : "";
  const value = key === null ? "; Max-Age=0" : `; Max-Age=${COOKIE_MAX_AGE_S}`;
  return `${name}=${key ?? ""}; Path=${path}; HttpOnly; SameSite=Strict${value}${secure}`;
}

/** Both keys, if the request comes from our own page; undefined otherwise. */
export function pageKeys(
  request: HttpRequest,
  http: Pick<HttpConfig, "publicUrl">,
  place: number | string,
): PageKeys | undefined {
  const { headers } = request;
  const pageKey = headers[PAGE_HEADER] ?? offeredProtocol(headers["sec-websocket-protocol"], PAGE_PROTOCOL);
  if (headers.cookie === undefined || typeof pageKey !== "string" || !isOwnPage(request, http)) return undefined;
  const name = cookieName(http, place);
  for (const pair of headers.cookie.split(";")) {
    const at = pair.indexOf("=");
    if (at !== -1 && pair.slice(0, at).trim() === name) return { cookie: pair.slice(at + 1).trim(), pageKey };
  }
  return undefined;
}

/** The value after a prefix in the protocols that a WebSocket client offers. */
export function offeredProtocol(offered: string | undefined, prefix: string): string | undefined {
  return offered
    ?.split(",")
    .map((name) => name.trim())
    .find((name) => name.startsWith(prefix))
    ?.slice(prefix.length);
}

/**
 * Pages on other ports of this host are of the same site, so SameSite alone does not keep them out. A read needs that the
 * browser does not call it foreign; a write and a WebSocket need our own origin, and all but the WebSocket our header.
 */
export function isOwnPage(request: HttpRequest, http: Pick<HttpConfig, "publicUrl">): boolean {
  const { origin, host = "" } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (origin !== undefined && !isOwnOrigin(origin, host, http)) return false;
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  if (request.headers.upgrade?.toLowerCase() === "websocket") return origin !== undefined;
  if (request.headers[PAGE_HEADER] === undefined) return false;
  return request.method === "GET" || request.method === "HEAD" || origin !== undefined || site === "same-origin";
}

function isOwnOrigin(origin: string, host: string, { publicUrl }: Pick<HttpConfig, "publicUrl">): boolean {
  if (publicUrl !== undefined && origin === URL.parse(publicUrl)?.origin) return true;
  return /^https?:\/\//.test(origin) && origin.replace(/^https?:\/\//, "").toLowerCase() === host.toLowerCase();
}

interface SharedLogin {
  readonly caller: Caller;
  /** Hex. */
  readonly pageDigest: string;
  readonly endsAt: number;
}

interface SharedLoginTimes {
  readonly codeMs: number;
  readonly idleMs: number;
}

/** A login may reach the next node a little later than the browser does. */
const MAX_ARRIVAL_MS = 1000;
/** How often ending a login is retried while other nodes cannot be reached. */
const RETRY_END_MS = 1000;

type LoginCluster = Pick<Cluster, "map" | "isUp">;

/**
 * Page logins that all nodes of a cluster know: behind a load balancer each request may come to another node, and so may a login
 * link. Only digests are shared.
 */
class SharedLogins {
  readonly #codes: SharedMap;
  readonly #logins: SharedMap;
  readonly #cluster: LoginCluster;
  /** Ended here, but perhaps not at other nodes. */
  readonly #untold = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  private constructor(cluster: LoginCluster, codes: SharedMap, logins: SharedMap) {
    this.#cluster = cluster;
    this.#codes = codes;
    this.#logins = logins;
  }

  /** Entries that are not renewed in time disappear from the maps. */
  static async open(cluster: LoginCluster, { codeMs, idleMs }: SharedLoginTimes): Promise<SharedLogins> {
    return new SharedLogins(
      cluster,
      await cluster.map("login-codes", { ttlMs: codeMs }),
      await cluster.map("logins", { ttlMs: idleMs }),
    );
  }

  /** False if other nodes cannot know it. A failed write may have arrived: the code is then removed like any other. */
  async offerCode(digest: string): Promise<boolean> {
    if (!this.#cluster.isUp) return false;
    await hasSucceeded(this.#codes.put(digest, {}));
    return true;
  }

  /** True once, whichever node asks. Rejects if that cannot be determined. */
  takeCode(digest: string): Promise<boolean> {
    return this.#codes.take(digest);
  }

  /** Shares a new login. False if that failed. */
  put(digest: string, login: SharedLogin): Promise<boolean> {
    return hasSucceeded(this.#logins.put(digest, encodeLogin(login)));
  }

  /** It is still in use. An ended login stays ended. */
  async renew(digest: string, login: SharedLogin): Promise<void> {
    await hasSucceeded(this.#logins.renew(digest, encodeLogin(login)));
  }

  get(digest: string): SharedLogin | undefined {
    return decodeLogin(this.#logins.get(digest) ?? {});
  }

  /** A login that may still be on its way. */
  soon(digest: string): Promise<SharedLogin | undefined> {
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        stop();
        resolve(this.get(digest));
      };
      const timer = setTimeout(settle, MAX_ARRIVAL_MS);
      const stop = this.#logins.onChange((key) => (key === digest ? settle() : undefined));
    });
  }

  /** Ends it at all nodes; retried until they can be reached. */
  async end(digest: string): Promise<void> {
    this.#untold.add(digest);
    if (await hasSucceeded(this.#logins.take(digest))) this.#untold.delete(digest);
    else this.#endAgainLater();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#untold.clear();
  }

  #endAgainLater(): void {
    if (this.#untold.size === 0) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const digest of this.#untold) void this.end(digest);
    }, RETRY_END_MS).unref();
  }

  onEnd(listener: (digest: string) => void): () => void {
    return this.#logins.onChange((key) => (this.#logins.get(key) === undefined ? listener(key) : undefined));
  }
}

interface StoredLogin {
  readonly place: string;
  readonly digest: string;
  readonly idleUntil: number;
  readonly login: SharedLogin;
}

/** Without entries of another form. */
function storedLogins(text: string | undefined): StoredLogin[] {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return (Array.isArray(found) ? found : []).flatMap((entry: unknown): StoredLogin[] => {
    const { place, digest, idleUntil, ...rest } = isJsonObject(entry) ? entry : {};
    const login = decodeLogin(rest);
    if (login === undefined || typeof place !== "string" || typeof digest !== "string") return [];
    return typeof idleUntil === "number" ? [{ place, digest, idleUntil, login }] : [];
  });
}

function decodeLogin({ caller, pageDigest, endsAt }: JsonObject): SharedLogin | undefined {
  const known = decodeCaller(caller);
  if (known === undefined || typeof pageDigest !== "string" || typeof endsAt !== "number") return undefined;
  return { caller: known, pageDigest, endsAt };
}

function encodeLogin({ caller, pageDigest, endsAt }: SharedLogin): JsonObject {
  return { caller: { ...caller, scopes: [...caller.scopes] }, pageDigest, endsAt };
}

async function hasSucceeded(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch {
    return false;
  }
}
