/** Who is logged in on the web page: links that work once, and the browser sessions that they open. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ALL_SCOPES } from "../scopes.ts";
import { type SharedLogin, SharedLogins } from "./shared-logins.ts";

const CODE_MS = 15 * 60_000;
const IDLE_MS = 12 * 3_600_000;
/** How often other nodes are told that a login is in use. */
const SHARE_MS = 10 * 60_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
const MOST_CODES = 32;
/** Of one identity, so that nobody can log others out. */
const MOST_SESSIONS = 16;
/** Identities of an OAuth server may be many. */
const MOST_OF_ALL = 4096;
const OF_LINK = "page:";
const DIGEST_BYTES = 32;

/** A browser gives its cookies to every port of a host; what a page keeps for itself it gives to that page alone. */
export interface PageKeys {
  readonly cookie: string;
  readonly pageKey: string;
}

export interface PageSession {
  readonly caller: Caller;
  /** Of its cookie. */
  readonly digest: string;
}

interface OpenSession extends PageSession {
  readonly identity: string;
  readonly pageDigest: Buffer;
  readonly endsAt: number;
  idleUntil: number;
  sharedAt: number;
  /** Whether other nodes were told of it. */
  isShared: boolean;
}

interface OpenCode {
  readonly until: number;
  /** Whether other nodes may know it. */
  readonly shared: Promise<boolean>;
}

export class PageLogins {
  readonly #clock: Clock;
  /** By digest, as the sessions are: what is in memory opens nothing. */
  readonly #codes = new Map<string, OpenCode>();
  readonly #sessions = new Map<string, OpenSession>();
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

  stopSharing(): void {
    this.#stopSharing();
  }

  /** A code that opens one session as the hub's owner, once, within a quarter of an hour. */
  issueCode(): string {
    const code = randomBytes(24).toString("base64url");
    const digest = digestOf(code).toString("hex");
    keepNewest(this.#codes, MOST_CODES - 1);
    const shared = this.#shared?.offerCode(digest) ?? Promise.resolve(false);
    this.#codes.set(digest, { until: this.#clock.now() + CODE_MS, shared });
    return code;
  }

  /** Whom a code lets in; undefined for one that was used, is too old or never was. */
  async redeem(code: string): Promise<Caller | undefined> {
    const digest = digestOf(code).toString("hex");
    const own = this.#codes.get(digest);
    this.#codes.delete(digest);
    if (own !== undefined && own.until <= this.#clock.now()) return undefined;
    const isKnownHereOnly = own !== undefined && !(await own.shared);
    if (!isKnownHereOnly && (await this.#shared?.takeCode(digest)) !== true) return undefined;
    // A number where it is known here alone; nodes do not count together.
    const name = this.#shared === undefined ? ++this.#opened : randomBytes(9).toString("base64url");
    return { key: `${OF_LINK}${name}`, owner: true, scopes: ALL_SCOPES };
  }

  /** A new session for somebody who showed a code or a token. */
  async open(caller: Caller): Promise<PageKeys> {
    const keys = { cookie: randomBytes(32).toString("base64url"), pageKey: randomBytes(32).toString("base64url") };
    const now = this.#clock.now();
    const identity = identityFor(caller);
    this.#makeRoom(identity, now);
    const digest = digestOf(keys.cookie).toString("hex");
    const pageDigest = digestOf(keys.pageKey);
    const endsAt = Math.min(now + LONGEST_MS, caller.expiresAt ?? Infinity);
    const idleUntil = now + IDLE_MS;
    const times = { endsAt, idleUntil, sharedAt: now };
    const session: OpenSession = { caller, digest, identity, pageDigest, ...times, isShared: false };
    this.#sessions.set(digest, session);
    await this.#tell(session);
    return keys;
  }

  /** The session that both keys belong to. It is in use from now on. One that another node opened may be on its way still. */
  find(keys: PageKeys): PageSession | undefined | Promise<PageSession | undefined> {
    const digest = digestOf(keys.cookie).toString("hex");
    const shared = this.#shared;
    const own = this.#sessions.get(digest);
    // One that was not used here for long may have been used at other nodes.
    const isOwn = own !== undefined && isOpen(own, this.#clock.now());
    const known = isOwn ? own : this.#adopt(digest, shared?.get(digest));
    if (known !== undefined || shared === undefined) return this.#use(known, keys);
    return shared.soon(digest).then((late) => this.#use(this.#adopt(digest, late), keys));
  }

  #use(session: OpenSession | undefined, { pageKey }: PageKeys): PageSession | undefined {
    const now = this.#clock.now();
    if (session === undefined || !isOpen(session, now)) return undefined;
    if (!timingSafeEqual(session.pageDigest, digestOf(pageKey))) return undefined;
    session.idleUntil = now + IDLE_MS;
    if (now - session.sharedAt >= SHARE_MS) {
      session.sharedAt = now;
      void this.#tell(session);
    }
    return session;
  }

  async #tell(session: OpenSession): Promise<void> {
    const { caller, digest, endsAt } = session;
    const login = { caller, pageDigest: session.pageDigest.toString("hex"), endsAt };
    if (session.isShared) await this.#shared?.renew(digest, login);
    else session.isShared = (await this.#shared?.put(digest, login)) === true;
  }

  #adopt(digest: string, login: SharedLogin | undefined): OpenSession | undefined {
    if (login === undefined || this.#ended.has(digest)) return undefined;
    const { caller, endsAt } = login;
    const now = this.#clock.now();
    const identity = identityFor(caller);
    this.#makeRoom(identity, now);
    const pageDigest = Buffer.from(login.pageDigest, "hex");
    if (pageDigest.length !== DIGEST_BYTES) return undefined;
    const times = { endsAt, idleUntil: now + IDLE_MS, sharedAt: now };
    const session: OpenSession = { caller, digest, identity, pageDigest, ...times, isShared: true };
    this.#sessions.set(digest, session);
    return session;
  }

  /** Whether it has not ended. To ask is no use of it. */
  has({ digest }: PageSession): boolean {
    const session = this.#sessions.get(digest);
    return session !== undefined && isOpen(session, this.#clock.now());
  }

  async end({ digest }: PageSession): Promise<void> {
    this.#sessions.delete(digest);
    if (this.#shared === undefined) return;
    // What other nodes know is known here for a moment longer.
    keepNewest(this.#ended, MOST_OF_ALL - 1);
    this.#ended.set(digest, true);
    await this.#shared.end(digest);
  }

  /** True for callers that a link made: they are known here and nowhere else. */
  static isOfLink(caller: Caller): boolean {
    return caller.key.startsWith(OF_LINK);
  }

  #makeRoom(identity: string, now: number): void {
    for (const [digest, session] of this.#sessions) if (!isOpen(session, now)) this.#sessions.delete(digest);
    const own = [...this.#sessions.values()].filter((session) => session.identity === identity);
    for (const { digest } of own.slice(0, Math.max(0, own.length + 1 - MOST_SESSIONS))) this.#sessions.delete(digest);
    keepNewest(this.#sessions, MOST_OF_ALL - 1);
  }
}

function identityFor(caller: Caller): string {
  return PageLogins.isOfLink(caller) ? OF_LINK : caller.key;
}

function isOpen({ endsAt, idleUntil }: OpenSession, now: number): boolean {
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
