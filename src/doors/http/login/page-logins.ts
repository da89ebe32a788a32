/** Who is logged in on the web page: links that work once, and the browser sessions that they open. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ALL_SCOPES } from "../scopes.ts";

const CODE_MS = 15 * 60_000;
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
const MOST_CODES = 32;
/** Of one identity, so that nobody can log others out. */
const MOST_SESSIONS = 16;
/** Identities of an OAuth server may be many. */
const MOST_OF_ALL = 4096;
const OF_LINK = "page:";

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
}

export class PageLogins {
  readonly #clock: Clock;
  /** By digest, as the sessions are: what is in memory opens nothing. */
  readonly #codes = new Map<string, number>();
  readonly #sessions = new Map<string, OpenSession>();
  #opened = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A code that opens one session as the hub's owner, once, within a quarter of an hour. */
  issueCode(): string {
    const code = randomBytes(24).toString("base64url");
    keepNewest(this.#codes, MOST_CODES - 1);
    this.#codes.set(digestOf(code).toString("hex"), this.#clock.now() + CODE_MS);
    return code;
  }

  /** Whom a code lets in; undefined for one that was used, is too old or never was. */
  redeem(code: string): Caller | undefined {
    const digest = digestOf(code).toString("hex");
    const until = this.#codes.get(digest);
    this.#codes.delete(digest);
    if (until === undefined || until <= this.#clock.now()) return undefined;
    this.#opened += 1;
    return { key: `${OF_LINK}${this.#opened}`, owner: true, scopes: ALL_SCOPES };
  }

  /** A new session for somebody who showed a code or a token. */
  open(caller: Caller): PageKeys {
    const keys = { cookie: randomBytes(32).toString("base64url"), pageKey: randomBytes(32).toString("base64url") };
    const now = this.#clock.now();
    const identity = PageLogins.isOfLink(caller) ? OF_LINK : caller.key;
    this.#makeRoom(identity, now);
    const digest = digestOf(keys.cookie).toString("hex");
    const pageDigest = digestOf(keys.pageKey);
    const endsAt = Math.min(now + LONGEST_MS, caller.expiresAt ?? Infinity);
    this.#sessions.set(digest, { caller, digest, identity, pageDigest, endsAt, idleUntil: now + IDLE_MS });
    return keys;
  }

  /** The session that both keys belong to. It is in use from now on. */
  find({ cookie, pageKey }: PageKeys): PageSession | undefined {
    const session = this.#sessions.get(digestOf(cookie).toString("hex"));
    const now = this.#clock.now();
    if (session === undefined || !isOpen(session, now)) return undefined;
    if (!timingSafeEqual(session.pageDigest, digestOf(pageKey))) return undefined;
    session.idleUntil = now + IDLE_MS;
    return session;
  }

  /** Whether it has not ended. To ask is no use of it. */
  has({ digest }: PageSession): boolean {
    const session = this.#sessions.get(digest);
    return session !== undefined && isOpen(session, this.#clock.now());
  }

  end({ digest }: PageSession): void {
    this.#sessions.delete(digest);
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
