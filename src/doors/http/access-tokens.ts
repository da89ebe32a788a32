/** Checks access tokens of an authorization server (RFC 9068 JWTs), as a resource server does. */
import { hash } from "node:crypto";
import type { createLocalJWKSet, JSONWebKeySet, JWTPayload } from "jose";
import type { Clock } from "../../base/clock.ts";
import { isLoopback } from "../../base/network-address.ts";
import { type Caller, type Scope, SCOPES } from "../../model/caller.ts";
import type { ResourceServerSettings } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { withImplied } from "./bearer-tokens.ts";

/** Asymmetric only: with a shared secret whoever can check a token could make one. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** Other types (ID tokens of some, logout tokens, DPoP proofs) are signed with the same keys. */
const TYPES = new Set([undefined, "jwt", "at+jwt", "application/at+jwt"]);
const CLOCK_TOLERANCE_SECONDS = 10;
/** A token that was checked is trusted for this long without checking its signature again. */
const TOKEN_CACHE_MS = 60_000;
const MAX_CACHED_TOKENS = 10_000;

interface CachedToken {
  readonly caller: Caller;
  readonly until: number;
}

interface AccessTokensOptions {
  readonly settings: ResourceServerSettings;
  /** Whether a token for this audience is meant for us. */
  readonly isOurs: (audience: string) => boolean;
  readonly clock: Clock;
}

export class AccessTokens {
  readonly #options: AccessTokensOptions;
  readonly #keys: KeySet;
  readonly #remembered = new Map<string, CachedToken>();

  /** Throws `invalid_config` for an address that cannot be used. */
  constructor(options: AccessTokensOptions) {
    const { issuer, jwksUri } = options.settings;
    assertSecureUrl("issuer", issuer);
    if (jwksUri !== undefined) assertSecureUrl("jwksUri", jwksUri);
    this.#options = options;
    this.#keys = new KeySet({ issuer, jwksUri, clock: options.clock });
  }

  /**
   * Whose token it is, at once if it was checked just now. Fails with `unauthorized` for a token that is not valid, `denied`
   * for one that names no role where it must, `server_unavailable` where nobody can tell.
   */
  check(token: string): Caller | Promise<Caller> {
    const digest = hash("sha256", token, "base64url");
    const known = this.#remembered.get(digest);
    if (known !== undefined && this.#options.clock.now() < known.until) return known.caller;
    return this.#checkAnew(token, digest);
  }

  async #checkAnew(token: string, digest: string): Promise<Caller> {
    const payload = await this.#verify(token);
    const caller = claimsCaller(payload, this.#options.settings);
    const now = this.#options.clock.now();
    this.#remember(digest, { caller, until: Math.min(now + TOKEN_CACHE_MS, (payload.exp ?? 0) * 1000) });
    return caller;
  }

  async #verify(token: string): Promise<JWTPayload> {
    try {
      return await this.#verifyWith(token, await this.#keys.current());
    } catch (error) {
      if (joseCode(error) !== "ERR_JWKS_NO_MATCHING_KEY") throw toTokenError(error);
    }
    const renewed = await this.#keys.renewed();
    if (renewed === undefined) throw tokenRefused("it is signed with an unknown key");
    try {
      return await this.#verifyWith(token, renewed);
    } catch (error) {
      throw toTokenError(error);
    }
  }

  async #verifyWith(token: string, keys: Keys): Promise<JWTPayload> {
    // Loaded here, so that it costs nothing where it is not used.
    const { jwtVerify } = await import("jose");
    const { settings, isOurs, clock } = this.#options;
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      issuer: settings.issuer,
      requiredClaims: ["exp", "sub", "aud"],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(clock.now()),
    });
    if (!TYPES.has(protectedHeader.typ?.toLowerCase())) throw tokenRefused("it is no access token");
    const audiences = typeof payload.aud === "string" ? [payload.aud] : (payload.aud ?? []);
    if (!audiences.some(isOurs)) throw tokenRefused("it is meant for another audience");
    return payload;
  }

  #remember(digest: string, remembered: CachedToken): void {
    if (this.#remembered.size >= MAX_CACHED_TOKENS && !this.#remembered.has(digest)) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    this.#remembered.set(digest, remembered);
  }
}

function assertSecureUrl(key: string, address: string): void {
  const url = URL.parse(address);
  if (url !== null && isSecureUrl(url)) return;
  throw new ToolcribError("invalid_config", `http.auth.oauth.${key} is no https address.`, {
    hint: "Plain http is taken on loopback only.",
  });
}

function claimsCaller(payload: JWTPayload, { issuer, scopes, userClaim, roleClaim }: ResourceServerSettings): Caller {
  const user = payload[userClaim];
  if (typeof user !== "string" || user === "") throw tokenRefused(`it has no claim ${userClaim}, which names the user`);
  const granted = grantedScopes(payload);
  const ours: Scope[] = [];
  for (const scope of SCOPES) {
    const rule = scopes[scope];
    if (rule === true || (rule !== undefined && granted.has(rule))) ours.push(scope);
  }
  const all = withImplied(ours);
  return {
    key: `oauth:${issuer}:${payload.sub}`,
    user,
    ...(roleClaim === undefined ? {} : { role: roleOf(payload, roleClaim) }),
    owner: all.has("admin"),
    scopes: all,
    expiresAt: (payload.exp ?? 0) * 1000,
  };
}

/** `scope` is a text with blanks (RFC 9068); some servers send `scp`, as a text or a list. */
function grantedScopes(payload: JWTPayload): ReadonlySet<string> {
  const claims = [payload["scope"], payload["scp"]].flat();
  return new Set(claims.flatMap((claim) => (typeof claim === "string" ? claim.split(" ") : [])));
}

/** Without a role everything would be visible, so a missing one is a no. */
function roleOf(payload: JWTPayload, claim: string): string {
  const [role, another] = [payload[claim]].flat();
  if (typeof role === "string" && role !== "" && another === undefined) return role;
  throw new ToolcribError("denied", `The access token names no single role in its claim ${claim}.`, {
    hint: "http.auth.oauth.roleClaim says which claim holds the role.",
  });
}

/** What `jose` threw, in words that help a client and say nothing about the key. */
function toTokenError(error: unknown): ToolcribError {
  if (error instanceof ToolcribError) return error;
  return tokenRefused(JOSE_REASONS[joseCode(error)] ?? "it is malformed");
}

function joseCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const JOSE_REASONS: Readonly<Record<string, string>> = {
  ERR_JWT_EXPIRED: "it has expired",
  ERR_JWT_CLAIM_VALIDATION_FAILED: "a claim is missing or does not fit",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "its signature is wrong",
  ERR_JOSE_ALG_NOT_ALLOWED: "it is signed with an algorithm that is not allowed",
  ERR_JWKS_NO_MATCHING_KEY: "it is signed with an unknown key",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "it does not say which key signed it",
};

function tokenRefused(why: string): ToolcribError {
  return new ToolcribError("unauthorized", `The access token is not accepted: ${why}.`);
}

/** The keys of an authorization server: read when first needed, kept, and read again when they age or one is missing. */

type Keys = ReturnType<typeof createLocalJWKSet>;

/** After this time keys are read again. */
const FRESH_MS = 10 * 60_000;
/** While they cannot be read, known ones are still used for this long. */
const KEPT_MS = 60 * 60_000;
/** Tokens with made-up key ids must not make us ask the authorization server each time. */
const COOL_DOWN_MS = 30_000;
const FAILURE_COOL_DOWN_MS = 5_000;

interface KeySetOptions {
  readonly issuer: string;
  /** Found in the issuer's metadata if absent. */
  readonly jwksUri: string | undefined;
  readonly clock: Clock;
}

class KeySet {
  readonly #options: KeySetOptions;
  #keys: Keys | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failure: unknown;
  #reading: Promise<Keys> | undefined;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** Rejects with `server_unavailable`. */
  async current(): Promise<Keys> {
    const age = this.#options.clock.now() - this.#readAt;
    if (this.#keys !== undefined && age < FRESH_MS) return this.#keys;
    try {
      return await this.#read();
    } catch (error) {
      if (this.#keys !== undefined && age < KEPT_MS) return this.#keys;
      throw error;
    }
  }

  /** For a token whose key is not among the current ones: the keys read anew; undefined if that was done just now. */
  async renewed(): Promise<Keys | undefined> {
    if (this.#options.clock.now() - this.#readAt < COOL_DOWN_MS) return undefined;
    return this.#read();
  }

  #read(): Promise<Keys> {
    const { clock } = this.#options;
    if (clock.now() - this.#failedAt < FAILURE_COOL_DOWN_MS) return Promise.reject(this.#failure);
    this.#reading ??= this.#fetch()
      .then((keys) => {
        this.#keys = keys;
        this.#readAt = clock.now();
        return keys;
      })
      .catch((error: unknown) => {
        this.#failure = error;
        this.#failedAt = clock.now();
        throw error;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #fetch(): Promise<Keys> {
    const { issuer, jwksUri } = this.#options;
    const address = jwksUri ?? (await findJwksUri(issuer));
    const document = await fetchJson(address);
    if (document === undefined) throw keysUnavailable(`there is nothing at ${address}`);
    const { createLocalJWKSet } = await import("jose");
    try {
      // Its own check: it throws for what is no key set.
      return createLocalJWKSet(document as unknown as JSONWebKeySet);
    } catch (error) {
      throw keysUnavailable(`${address} holds no key set`, error);
    }
  }
}

/** RFC 8414, then OpenID Connect; for an issuer with a path each puts the path elsewhere. */
async function findJwksUri(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  for (const place of new Set(places)) {
    const metadata = await fetchJson(place);
    if (metadata === undefined) continue;
    // A document that speaks for somebody else must not choose our keys.
    if (metadata["issuer"] !== issuer) throw keysUnavailable(`the metadata of ${issuer} names another issuer`);
    if (typeof metadata["jwks_uri"] === "string") return metadata["jwks_uri"];
  }
  throw keysUnavailable(`${issuer} has no metadata that names its keys`);
}

/** Reads a small JSON document of an authorization server: bounded in time and size, and without following redirects. */

const FETCH_TIMEOUT_MS = 5_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;

/** Undefined if there is no such document (404). Rejects with `server_unavailable` for everything else that is wrong. */
async function fetchJson(address: string): Promise<JsonObject | undefined> {
  const url = URL.parse(address);
  if (url === null || !isSecureUrl(url)) throw keysUnavailable(`${address} is no https address`);
  try {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    });
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
    const value: unknown = JSON.parse(await boundedText(response));
    if (!isJsonObject(value)) throw new Error("no JSON object");
    return value;
  } catch (error) {
    throw keysUnavailable(`${url.origin}${url.pathname} cannot be read (${reasonOf(error)})`, error);
  }
}

/** Keys that came over an open network could be anybody's. */
function isSecureUrl(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

function keysUnavailable(what: string, cause?: unknown): ToolcribError {
  return new ToolcribError("server_unavailable", `Access tokens cannot be checked now: ${what}.`, {
    hint: "Try again later. The token may well be valid.",
    cause,
  });
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_DOCUMENT_BYTES) throw new Error(`more than ${MAX_DOCUMENT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown reason";
  // fetch says "fetch failed" and keeps the reason in its cause.
  const { cause } = error;
  if (cause instanceof Error && "code" in cause) return String(cause.code);
  return error instanceof SyntaxError ? "no JSON" : error.message;
}

/** What the hub is called as an OAuth resource: the metadata that says so (RFC 9728), and which audiences mean it. */

export const METADATA_PATH = "/.well-known/oauth-protected-resource";

/** @param base Address of the hub as the client knows it, without a slash at its end. */
export function resourceMetadata(base: string, path: string, settings: ResourceServerSettings): object {
  return {
    resource: base + path,
    authorization_servers: [settings.issuer],
    scopes_supported: scopeNames(settings, ["read", "call"]),
    bearer_methods_supported: ["header"],
    resource_name: "Toolcrib",
  };
}

/** The scopes to ask the authorization server for. */
export function scopeNames(
  settings: ResourceServerSettings,
  scopes: readonly (keyof ResourceServerSettings["scopes"])[],
): string[] {
  return scopes.flatMap((scope) => {
    const name = settings.scopes[scope];
    return typeof name === "string" ? [name] : [];
  });
}

/**
 * Whether a token for this audience is meant for us. The addresses are fixed and never taken from the Host header: a
 * client that could choose it could make a token for somebody else fit.
 */
export function isAudience(audience: string, bases: readonly string[], paths: readonly string[]): boolean {
  const url = URL.parse(audience);
  if (url === null || url.search !== "" || url.hash !== "") return false;
  const path = url.pathname.replace(/\/$/, "");
  return bases.some((base) => {
    const own = new URL(base);
    const prefix = own.pathname.replace(/\/$/, "");
    if (own.origin !== url.origin || !path.startsWith(prefix)) return false;
    const rest = path.slice(prefix.length);
    return rest === "" || paths.some((each) => rest === each || rest.startsWith(`${each}/`));
  });
}
