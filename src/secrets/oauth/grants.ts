/** Grant: what is kept of a login at one server, for one user, at one authorization server. */
import { createHash } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { withLock } from "../../files/lock-file.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { ToolcribError } from "../../model/errors.ts";

const ClientSchema = z.object({
  id: z.string(),
  /** Only of a client that registered itself: a configured secret stays where it is configured. */
  secret: z.string().optional(),
  authMethod: z.string().optional(),
  origin: z.enum(["registered", "configured", "document"]),
  redirectUri: z.string().optional(),
});

const TokensSchema = z.object({
  access: z.string(),
  refresh: z.string().optional(),
  scope: z.string().optional(),
  /** Epoch milliseconds; absent if the authorization server did not say. */
  expiresAt: z.number().optional(),
});

const GrantSchema = z.object({
  version: z.literal(1),
  type: z.enum(["oauth", "client-credentials"]),
  server: z.string(),
  /** The server's address without its query, which may contain secrets. */
  url: z.string(),
  user: z.string().optional(),
  /** Tokens and client are this issuer's and are never sent to another one. */
  issuer: z.string(),
  /** The RFC 8707 resource that the tokens are for. */
  resource: z.string(),
  client: ClientSchema,
  /** Absent when they were refused: the client is kept for the next login. */
  tokens: TokensSchema.optional(),
  /** Scopes that were requested, to recognise a changed config. */
  asked: z.string().optional(),
  /** Scopes that the server missed; asked for at the next login. */
  missed: z.string().optional(),
});

export type Grant = z.output<typeof GrantSchema>;
export type GrantClient = Grant["client"];
export type Tokens = z.output<typeof TokensSchema>;

/** A token is renewed this long before its end, so that none ends on its way to the server. */
const RENEW_BEFORE_MS = 60_000;

export function isFresh(tokens: Tokens, now: number): boolean {
  return tokens.expiresAt === undefined || tokens.expiresAt - RENEW_BEFORE_MS > now;
}

export function isExpired(tokens: Tokens, now: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt <= now;
}

/** The part of an answer of the token endpoint that counts. */
interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string | undefined;
  readonly scope?: string | undefined;
  readonly expires_in?: number | undefined;
}

export function tokensFrom(answer: TokenAnswer, clock: Clock, asked?: string): Tokens {
  if (answer.token_type.toLowerCase() !== "bearer") {
    const text = `the authorization server returned a token of type ${JSON.stringify(answer.token_type.slice(0, 40))}`;
    throw new ToolcribError("unauthorized", `${text}; only bearer tokens are understood`);
  }
  // Without `scope` in the answer, what was asked for was granted (RFC 6749, 5.1).
  const scope = answer.scope ?? asked;
  return {
    access: answer.access_token,
    refresh: answer.refresh_token,
    scope,
    ...(answer.expires_in === undefined ? {} : { expiresAt: clock.now() + answer.expires_in * 1000 }),
  };
}

/** Where grants are kept: one file each, for the owner's eyes only, changed under a lock between processes. */

/** Whose grant it is. The same server at another address is another one, and so is another user. */
export interface GrantKey {
  readonly server: string;
  readonly url: string;
  readonly user?: string | undefined;
}

/** A refresh asks two endpoints for up to twenty seconds each; others must wait longer for it. */
const LOCK_WAIT_MS = 60_000;

export class GrantStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  fileOf({ server, url, user }: GrantKey): string {
    const hash = createHash("sha256")
      .update(JSON.stringify([server, addressOf(url), user ?? null]))
      .digest("hex");
    return join(this.#dir, `${hash.slice(0, 32)}.json`);
  }

  /** Undefined also for a file that is unreadable or another key's: then a new login is needed. */
  async read(key: GrantKey): Promise<Grant | undefined> {
    const grant = await readGrant(this.fileOf(key));
    const isOwn = grant?.server === key.server && grant.url === addressOf(key.url) && grant.user === key.user;
    return isOwn ? grant : undefined;
  }

  async list(): Promise<Grant[]> {
    const names = await readdir(this.#dir).catch(() => []);
    const grants = await Promise.all(
      names.filter((name) => /^[0-9a-f]{32}\.json$/.test(name)).map((name) => readGrant(join(this.#dir, name))),
    );
    return grants
      .filter((grant) => grant !== undefined)
      .toSorted((a, b) => a.server.localeCompare(b.server) || (a.user ?? "").localeCompare(b.user ?? ""));
  }

  /** No other process, and no other hub of this one, is in a task on the same grant. */
  async locked<T>(key: GrantKey, task: () => Promise<T>): Promise<T> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await chmod(this.#dir, 0o700);
    return withLock(this.fileOf(key), task, { waitMs: LOCK_WAIT_MS });
  }

  /** Inside `locked` only. */
  async write(grant: Grant): Promise<void> {
    await writeAtomic(this.fileOf(grant), `${JSON.stringify(grant, null, 2)}\n`, { mode: 0o600 });
  }

  /** Inside `locked` only. */
  async remove(key: GrantKey): Promise<void> {
    await rm(this.fileOf(key), { force: true });
  }
}

/** Without user, password, query and fragment. */
export function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

async function readGrant(file: string): Promise<Grant | undefined> {
  try {
    // An older program, a backup or a careless hand may have opened it up; writing keeps the mode that is there.
    if (((await stat(file)).mode & 0o077) !== 0) await chmod(file, 0o600);
    return GrantSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch {
    return undefined;
  }
}
