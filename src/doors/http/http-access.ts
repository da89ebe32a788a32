/** Access control of the listener, made from the config: hosts, tokens and limits. A changed config makes a new one. */
import type { BlockList } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { Caller, Scope } from "../../model/caller.ts";
import type { HttpConfig } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { DEFAULT_CALLS_PER_MINUTE } from "../../policy/call-limits.ts";
import { AccessTokens, isAudience } from "./access-tokens.ts";
import { type BearerTokens, loadTokens, LOCAL_SCOPES } from "./bearer-tokens.ts";
import { addressList } from "./rate-limit.ts";
import { hostInUrl, type HostRules, hostRules, isLoopbackHost, isWildcard } from "./hosts.ts";

export interface HttpAccess {
  readonly http: HttpConfig;
  readonly hosts: HostRules;
  readonly authenticator: Authenticator;
  readonly requestsPerMinute: number;
  /** Those whose `X-Forwarded-For` is believed. */
  readonly proxies: BlockList;
}

export interface HttpAccessOptions {
  readonly adminToken: string;
  readonly keySecret?: Uint8Array | undefined;
  readonly clock: Clock;
  readonly resolve: (text: string) => Promise<string>;
  readonly conceal: (value: string) => void;
  readonly warn: (message: string) => void;
  /** A token that has a name was presented. */
  readonly onTokenUse?: ((name: string) => void) | undefined;
  /** Paths that want credentials. */
  readonly guardedPaths: readonly string[];
  /** Known only once the listener is up. */
  readonly port: () => number;
}

const REQUESTS_PER_CALL = 60;

/** Of one caller. Without `auth` everyone here is the owner, whose calls are not limited either unless the config says so. */
export function requestsPerMinute({ limits, auth }: HttpConfig, callsPerMinute: number | undefined): number {
  if (limits.requestsPerMinute !== undefined) return limits.requestsPerMinute;
  if (callsPerMinute === undefined && auth === undefined) return Infinity;
  return (callsPerMinute ?? DEFAULT_CALLS_PER_MINUTE) * REQUESTS_PER_CALL;
}

/** The refusal of a caller who has used up its requests, with the limit that the config sets. */
export function tooManyRequests(what: string, waitMs: number, http: HttpConfig, perMinute: number): ToolcribError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const { requestsPerMinute: own } = http.limits;
  const limit = own === undefined ? "limits.callsPerMinute" : "http.limits.requestsPerMinute";
  const from =
    own === undefined
      ? `from limits.callsPerMinute, which is ${perMinute / REQUESTS_PER_CALL}`
      : "http.limits.requestsPerMinute";
  return new ToolcribError("rate_limited", `Too many ${what}: at most ${perMinute} a minute (${from}).`, {
    hint:
      own === undefined
        ? `Try again in ${seconds} s. http.limits.requestsPerMinute sets a limit of its own.`
        : `Try again in ${seconds} s.`,
    details: { retryAfterMs: seconds * 1000, limit },
  });
}

/** Rejects with `invalid_config` if everyone could enter, or no one. */
export async function createHttpAccess(
  http: HttpConfig,
  callsPerMinute: number | undefined,
  parts: HttpAccessOptions,
): Promise<HttpAccess> {
  assertProtected(http);
  const { adminToken, keySecret, resolve, conceal, warn, onTokenUse: onUse } = parts;
  const given = { adminToken, keySecret, resolve, conceal, warn, onUse };
  const tokens = await loadTokens({ tokens: http.auth?.tokens ?? [], ...given });
  return {
    http,
    hosts: hostRules(http),
    authenticator: new Authenticator({
      tokens,
      accessTokens: createAccessTokens(http, parts),
      open: http.auth === undefined,
    }),
    requestsPerMinute: requestsPerMinute(http, callsPerMinute),
    proxies: addressList(http.trustedProxies),
  };
}

function assertProtected({ host, auth }: HttpConfig): void {
  if (auth === undefined && !isLoopbackHost(host)) {
    throw new ToolcribError(
      "invalid_config",
      `http.host is ${host}, where anyone who reaches it could use every tool.`,
      {
        hint: "Set http.auth, or listen at 127.0.0.1.",
      },
    );
  }
  if (auth !== undefined && auth.tokens === undefined && auth.oauth === undefined) {
    throw new ToolcribError("invalid_config", "http.auth names neither tokens nor oauth.", {
      hint: "Add one of them, or remove http.auth to let in everyone on this machine.",
    });
  }
}

function createAccessTokens(
  http: HttpConfig,
  { clock, guardedPaths, port }: HttpAccessOptions,
): AccessTokens | undefined {
  const settings = http.auth?.oauth;
  if (settings === undefined) return undefined;
  const { audience } = settings;
  if (audience === undefined && http.publicUrl === undefined && isWildcard(http.host)) {
    throw new ToolcribError("invalid_config", "It is not clear which access tokens are meant for this hub.", {
      hint: "Set http.publicUrl or http.auth.oauth.audience.",
    });
  }
  const isOurs =
    audience === undefined
      ? (given: string) => isAudience(given, ownAddresses(http, port()), guardedPaths)
      : (given: string) => given === audience;
  return new AccessTokens({ settings, isOurs, clock });
}

/** Where the hub is, without a slash at the end. */
function ownAddresses({ publicUrl, host }: HttpConfig, port: number): string[] {
  if (publicUrl !== undefined) return [publicUrl.replace(/\/$/, "")];
  const names = isLoopbackHost(host)
    ? new Set(["localhost", "127.0.0.1", "[::1]", hostInUrl(host)])
    : [hostInUrl(host)];
  return [...names].map((name) => `http://${name}:${port}`);
}

/** Every caller on this machine, if no auth is configured. */
const LOCAL_CALLER: Caller = { key: "local", owner: true, scopes: LOCAL_SCOPES };

interface AuthenticatorOptions {
  readonly tokens: BearerTokens;
  readonly accessTokens: AccessTokens | undefined;
  /** Whether a caller without a token is treated as the user who runs the hub. */
  readonly open: boolean;
}

/** Finds out who sent a request. Credentials are looked for in the Authorization header and nowhere else. */
class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Undefined if there are no credentials. Fails with `unauthorized` and as `AccessTokens.check` does. */
  identify(header: string | undefined): Caller | undefined | Promise<Caller> {
    const { tokens, accessTokens, open } = this.#options;
    const token = header === undefined ? undefined : parseBearer(header);
    if (token === undefined) return open ? LOCAL_CALLER : undefined;
    const known = tokens.find(token);
    if (known !== undefined) return known;
    if (open) return LOCAL_CALLER;
    if (accessTokens !== undefined && isJwt(token)) return accessTokens.check(token);
    throw unknownToken();
  }

  /** Whether an earlier caller would still be admitted, with the same rights. */
  stillAdmits(caller: Caller, now: number): boolean {
    const { tokens, accessTokens, open } = this.#options;
    if (caller.expiresAt !== undefined) return accessTokens !== undefined && now < caller.expiresAt;
    return caller.key === LOCAL_CALLER.key ? open : tokens.has(caller);
  }
}

export function unknownToken(): ToolcribError {
  return new ToolcribError("unauthorized", "The token is not known to this hub.", {
    hint: "Send a token that is listed under http.auth in the hub's config. The hub's own user can log in with `toolcrib login` instead.",
  });
}

/** Undefined for another scheme. */
function parseBearer(header: string): string | undefined {
  return /^bearer +([\x21-\x7e]+)$/i.exec(header)?.[1];
}

function isJwt(token: string): boolean {
  return token.split(".").length === 3;
}

export function missingScope(scope: Scope): ToolcribError {
  return new ToolcribError("denied", `This needs the scope "${scope}".`, {
    hint: "http.auth says which scopes a token has.",
  });
}
