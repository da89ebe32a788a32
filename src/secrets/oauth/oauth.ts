/** OAuth: the credentials of every server of a hub that is used with a login. */
import { SingleFlight } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ClientCredentialsSettings, OAuthSettings } from "../../model/server-spec.ts";
import type { AuthInfo } from "../../model/server-state.ts";
import type { Redactor } from "../redactor.ts";
import { type Challenge, readChallenge } from "./authorization-server.ts";
import { type Grant, type GrantKey, GrantStore, isExpired, isFresh, type Tokens } from "./grants.ts";
import { isLoginNeeded, loginCommand, loginNeededError } from "./login-errors.ts";
import { refreshTokens, requestClientToken, requestedBy, uniteScopes } from "./token-requests.ts";

export type AuthSettings = OAuthSettings | ClientCredentialsSettings;

interface OAuthOptions {
  /** Where grants are kept, such as `$TOOLCRIB_HOME/auth`. */
  readonly dir: string;
  readonly clock: Clock;
  readonly redactor: Redactor;
}

/** The login settings of a server without `auth`. */
export const DEFAULT_OAUTH_SETTINGS: OAuthSettings = { type: "oauth" };

export class OAuth {
  readonly store: GrantStore;
  readonly #options: OAuthOptions;
  readonly #awaited = new Map<string, GrantKey>();
  readonly #credentials = new Map<string, { readonly settings: string; readonly credentials: ServerCredentials }>();

  constructor(options: OAuthOptions) {
    this.#options = options;
    this.store = new GrantStore(options.dir);
  }

  /** For a server with `settings`, or one without to which a user has logged in; undefined for any other. */
  async credentialsFor(key: GrantKey, settings: AuthSettings | undefined): Promise<ServerCredentials | undefined> {
    if (!URL.canParse(key.url))
      throw new ToolcribError("invalid_config", "The url is not a valid http or https address.");
    if (settings === undefined && (await this.store.read(key)) === undefined) return undefined;
    const used = settings ?? DEFAULT_OAUTH_SETTINGS;
    const id = idOf(key.server, key.user);
    // The same ones as long as nothing changes, so that all links of a server renew together.
    const text = JSON.stringify([key.url, used]);
    const known = this.#credentials.get(id);
    if (known?.settings === text) {
      known.credentials.forget();
      return known.credentials;
    }
    const credentials = new ServerCredentials({ key, settings: used, store: this.store, ...this.#options });
    this.#awaited.delete(id);
    this.#credentials.set(id, { settings: text, credentials });
    return credentials;
  }

  /** The last known state of the login; undefined for a server that was not used with one. */
  info(server: string, user?: string): AuthInfo | undefined {
    const id = idOf(server, user);
    const known = this.#credentials.get(id)?.credentials.info;
    return known ?? (this.#awaited.has(id) ? authInfo("oauth", undefined, 0) : undefined);
  }

  /** Its login was changed here: the next request uses what is stored by then. */
  forget(server: string, user?: string): void {
    this.#credentials.get(idOf(server, user))?.credentials.forget();
  }

  /** A server without `auth` turned out to need a login; `loggedInSince` reports when there is one. */
  awaitLogin(key: GrantKey): void {
    this.#awaited.set(idOf(key.server, key.user), key);
  }

  /** Whether a server that failed for want of a login is worth another attempt. */
  async loggedInSince(server: string, user?: string): Promise<boolean> {
    const id = idOf(server, user);
    const known = this.#credentials.get(id);
    if (known !== undefined) return known.credentials.loggedInSince();
    const awaited = this.#awaited.get(id);
    return awaited !== undefined && (await this.store.read(awaited))?.tokens !== undefined;
  }
}

function idOf(server: string, user: string | undefined): string {
  return JSON.stringify([server, user ?? null]);
}

interface CredentialsOptions extends Omit<OAuthOptions, "dir"> {
  readonly key: GrantKey;
  /** With references resolved. */
  readonly settings: AuthSettings;
  readonly store: GrantStore;
}

/** An answer that refused the token. */
interface Rejection {
  readonly status: number;
  readonly challenge: string | undefined;
  /** The headers that `headers()` had given for the request. */
  readonly sent: Readonly<Record<string, string>>;
  /** 1 for the first refusal of a request, 2 after it was sent again. */
  readonly attempt: number;
}

/**
 * ServerCredentials: the access token for one server and user, renewed before it ends and when the server refuses it.
 * A refresh token works once: used twice at the same time, most authorization servers take it for stolen and end the
 * login. So there is one renewal at a time, in this process by a shared promise and between processes by the lock.
 */
export class ServerCredentials {
  readonly #options: CredentialsOptions;
  #grant: Grant | undefined;
  /** Whether the store was looked at, and whether to look again. */
  #looked = false;
  #stale = false;
  #loginNeeded = false;
  readonly #renewals = new SingleFlight<true, Tokens>();

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /** Undefined before anything was asked. */
  get info(): AuthInfo | undefined {
    if (!this.#looked) return undefined;
    const { settings, clock } = this.#options;
    return authInfo(settings.type, this.#loginNeeded ? undefined : this.#grant, clock.now());
  }

  /** Rejects with `unauthorized` and the way to log in, or with `server_unavailable` where trying again may help. */
  async headers(): Promise<Record<string, string>> {
    const held = this.#stale ? undefined : this.#usable(this.#grant);
    const { access } = held ?? (await this.#renew(undefined, null));
    return { authorization: `Bearer ${access}` };
  }

  /** True if the request may be sent once more, with the `headers()` of then. */
  async rejected({ status, challenge: header, sent, attempt }: Rejection): Promise<boolean> {
    const { key } = this.#options;
    const used = sent["authorization"]?.replace(/^Bearer /, "");
    const challenge = readChallenge(header);
    if (status === 403) {
      if (challenge?.error !== "insufficient_scope" || challenge.scope === undefined) return false;
      return this.#widen(challenge.scope, used, attempt);
    }
    if (attempt > 1) {
      throw new ToolcribError("unauthorized", `the server refuses a token that is fresh (HTTP ${status})`, {
        hint: `If this goes on, log in again: ${loginCommand(key.server, key.user)}`,
        details: { status, sent: false },
      });
    }
    const held = this.#usable(this.#grant);
    // Another call has renewed it in the meantime.
    if (held !== undefined && held.access !== used) return true;
    await this.#renew(used, challenge);
    return true;
  }

  /** The next request uses what is stored by then, which may be from another login. */
  forget(): void {
    this.#stale = true;
  }

  /** Whether a user has logged in since this was found to be needed. */
  async loggedInSince(): Promise<boolean> {
    if (!this.#loginNeeded) return false;
    const { store, key } = this.#options;
    const tokens = (await store.read(key))?.tokens;
    return tokens !== undefined && tokens.access !== this.#grant?.tokens?.access;
  }

  #usable(grant: Grant | undefined): Tokens | undefined {
    const tokens = grant?.tokens;
    if (grant === undefined || tokens === undefined || this.#loginNeeded || !this.#isOurs(grant)) return undefined;
    return isFresh(tokens, this.#options.clock.now()) ? tokens : undefined;
  }

  /** A changed config may mean another client, which must not use the tokens of this one. */
  #isOurs(grant: Grant): boolean {
    const { settings } = this.#options;
    if (grant.type !== settings.type) return false;
    if (settings.type === "client-credentials")
      return grant.client.id === settings.clientId && grant.asked === requestedBy(settings);
    return settings.clientId === undefined || grant.client.id === settings.clientId;
  }

  #renew(rejected: string | undefined, challenge: Challenge | null): Promise<Tokens> {
    return this.#renewals.run(true, () =>
      this.#renewLocked(rejected, challenge).catch((error: unknown) => {
        this.#loginNeeded ||= isLoginNeeded(error);
        throw error;
      }),
    );
  }

  async #renewLocked(rejected: string | undefined, challenge: Challenge | null): Promise<Tokens> {
    const { store, key, settings } = this.#options;
    return store.locked(key, async () => {
      const grant = await store.read(key);
      this.#looked = true;
      this.#stale = false;
      this.#loginNeeded = false;
      this.#grant = grant;
      const held = this.#usable(grant);
      // Renewed by another process, or by a login, since we looked.
      if (held !== undefined && held.access !== rejected) return this.#hold(held);
      if (settings.type === "client-credentials") return this.#obtain(settings, grant, challenge);
      return this.#refresh(settings, grant, rejected);
    });
  }

  async #refresh(settings: OAuthSettings, grant: Grant | undefined, rejected: string | undefined): Promise<Tokens> {
    const { store, key, clock } = this.#options;
    if (grant?.tokens === undefined || !this.#isOurs(grant)) throw loginNeededError(key);
    const { tokens } = grant;
    const stillGood = tokens.access !== rejected && !isExpired(tokens, clock.now());
    if (tokens.refresh === undefined) {
      if (stillGood) return this.#hold(tokens);
      throw loginNeededError(key, "the login is over");
    }
    let renewed;
    try {
      renewed = await refreshTokens(grant, tokens.refresh, settings, clock);
    } catch (error) {
      // The authorization server is down; the token has a minute left.
      if (stillGood) return this.#hold(tokens);
      throw error;
    }
    if (renewed.kind === "renewed") {
      await this.#keep({ ...grant, tokens: renewed.tokens });
      return this.#hold(renewed.tokens);
    }
    const { tokens: _refused, ...rest } = grant;
    if (renewed.what === "client") await store.remove(key);
    else await store.write(rest);
    throw loginNeededError(key, "the login was ended or has run out");
  }

  async #obtain(
    settings: ClientCredentialsSettings,
    grant: Grant | undefined,
    challenge: Challenge | null,
  ): Promise<Tokens> {
    const { key, clock } = this.#options;
    const before = grant?.type === "client-credentials" && grant.client.id === settings.clientId ? grant : undefined;
    const obtained = await requestClientToken({ key, settings, clock, challenge, before });
    await this.#keep(obtained);
    return this.#hold(obtained.tokens);
  }

  /** The server wants more than the token may: a program asks for it at once, a person at the next login. */
  async #widen(scope: string, used: string | undefined, attempt: number): Promise<boolean> {
    const { store, key, settings } = this.#options;
    if (attempt > 1) return false;
    const isNew = await store.locked(key, async () => {
      const grant = await store.read(key);
      if (grant === undefined) return false;
      this.#grant = grant;
      // A user has logged in again, perhaps for just this.
      if (this.#usable(grant) !== undefined && grant.tokens?.access !== used) return true;
      await store.write({ ...grant, missed: uniteScopes(grant.missed, grant.tokens?.scope, scope) });
      return false;
    });
    if (isNew) return true;
    if (settings.type === "oauth") {
      throw new ToolcribError("unauthorized", `the login lacks permissions (${scope.slice(0, 200)})`, {
        hint: `Log in again to grant them: ${loginCommand(key.server, key.user)}`,
        details: { status: 403, sent: false },
      });
    }
    await this.#renew(used, null);
    return true;
  }

  async #keep(grant: Grant): Promise<void> {
    this.#grant = grant;
    await this.#options.store.write(grant);
  }

  /** From here on the token is used, so from here on it is masked. */
  #hold(tokens: Tokens): Tokens {
    const { redactor } = this.#options;
    redactor.addCredential(tokens.access);
    if (tokens.refresh !== undefined) redactor.addCredential(tokens.refresh);
    return tokens;
  }
}

/** A login that cannot be renewed by itself is pointed out this long before its end. */
const EXPIRES_SOON_MS = 24 * 60 * 60_000;

export function authInfo(type: AuthInfo["type"], grant: Grant | undefined, now: number): AuthInfo {
  const tokens = grant?.tokens;
  // A program gets itself a new token whenever it needs one.
  if (tokens === undefined) return { type, state: type === "oauth" ? "login_needed" : "ok" };
  const { expiresAt } = tokens;
  if (expiresAt === undefined) return { type, state: "ok" };
  const renews = type === "client-credentials" || tokens.refresh !== undefined;
  const state = renews
    ? "ok"
    : isExpired(tokens, now)
      ? "login_needed"
      : expiresAt - now < EXPIRES_SOON_MS
        ? "expires_soon"
        : "ok";
  return { type, expiresAt: new Date(expiresAt).toISOString(), state };
}
