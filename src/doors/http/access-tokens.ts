/** Checks access tokens of an authorization server (RFC 9068 JWTs), as a resource server does. */
import { hash } from "node:crypto";
import type { createRemoteJWKSet, JWTPayload, JWTVerifyGetKey } from "jose";
import type { Clock } from "../../base/clock.ts";
import { LruMap } from "../../base/maps.ts";
import { isLoopback } from "../../base/network-address.ts";
import { type Caller, type Scope, SCOPES } from "../../model/caller.ts";
import type { ResourceServerSettings } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { withImplied } from "./bearer-tokens.ts";

/** Asymmetric only: with a shared secret, a program that checks tokens could also make them. */
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
  readonly #keys: IssuerKeys;
  readonly #checked = new LruMap<string, CachedToken>(MAX_CACHED_TOKENS);

  /** Throws `invalid_config` for an address that cannot be used. */
  constructor(options: AccessTokensOptions) {
    const { issuer, jwksUri } = options.settings;
    assertSecureUrl("issuer", issuer);
    if (jwksUri !== undefined) assertSecureUrl("jwksUri", jwksUri);
    this.#options = options;
    this.#keys = new IssuerKeys(issuer, jwksUri);
  }

  /**
   * Whose token it is, at once if it was checked just now. Fails with `unauthorized` for a token that is not valid, `denied`
   * for one that names no role where it must, `server_unavailable` if that cannot be determined.
   */
  check(token: string): Caller | Promise<Caller> {
    const digest = hash("sha256", token, "base64url");
    const known = this.#checked.get(digest);
    if (known !== undefined && this.#options.clock.now() < known.until) return known.caller;
    return this.#check(token, digest);
  }

  async #check(token: string, digest: string): Promise<Caller> {
    const payload = await this.#verify(token);
    const caller = claimsCaller(payload, this.#options.settings);
    const now = this.#options.clock.now();
    this.#checked.set(digest, { caller, until: Math.min(now + TOKEN_CACHE_MS, (payload.exp ?? 0) * 1000) });
    return caller;
  }

  async #verify(token: string): Promise<JWTPayload> {
    try {
      return await this.#verifyClaims(token);
    } catch (error) {
      throw toTokenError(error);
    }
  }

  async #verifyClaims(token: string): Promise<JWTPayload> {
    // Loaded here, so that it costs nothing where it is not used.
    const { jwtVerify } = await import("jose");
    const { settings, isOurs, clock } = this.#options;
    const { payload, protectedHeader } = await jwtVerify(token, this.#keys.find, {
      algorithms: ALGORITHMS,
      issuer: settings.issuer,
      requiredClaims: ["exp", "sub", "aud"],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(clock.now()),
    });
    if (!TYPES.has(protectedHeader.typ?.toLowerCase())) throw tokenRefused("it is not an access token");
    const audiences = typeof payload.aud === "string" ? [payload.aud] : (payload.aud ?? []);
    if (!audiences.some(isOurs)) throw tokenRefused("it is meant for another audience");
    return payload;
  }
}

function assertSecureUrl(key: string, address: string): void {
  const url = URL.parse(address);
  if (url !== null && isSecureUrl(url)) return;
  throw new ToolcribError("invalid_config", `http.auth.oauth.${key} is not an https address.`, {
    hint: "Plain http is accepted on loopback only.",
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

/** Without a role everything would be visible, so a token without one is refused. */
function roleOf(payload: JWTPayload, claim: string): string {
  const [role, another] = [payload[claim]].flat();
  if (typeof role === "string" && role !== "" && another === undefined) return role;
  throw new ToolcribError("denied", `The access token names no single role in its claim ${claim}.`, {
    hint: "http.auth.oauth.roleClaim says which claim has the role.",
  });
}

/** The error of jose as one that helps a client and says nothing about the key. */
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

/** After this time keys are read again. */
const FRESH_KEYS_MS = 10 * 60_000;
/** While they cannot be read, known ones are still used for this long. */
const STALE_KEYS_MS = 60 * 60_000;
/** Tokens with made-up key ids must not make us ask the authorization server each time. */
const COOL_DOWN_MS = 30_000;
const FAILURE_COOL_DOWN_MS = 5_000;

/** The keys of an authorization server. jose caches them and reads them again; finding them and outages are handled here. */
class IssuerKeys {
  readonly #issuer: string;
  readonly #jwksUri: string | undefined;
  #remote: ReturnType<typeof createRemoteJWKSet> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  /** @param jwksUri From the issuer's metadata if undefined. */
  constructor(issuer: string, jwksUri: string | undefined) {
    this.#issuer = issuer;
    this.#jwksUri = jwksUri;
  }

  /** For `jwtVerify`. Rejects with `server_unavailable` if the keys cannot be read, and with an error of jose's otherwise. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const { createLocalJWKSet, createRemoteJWKSet, customFetch } = await import("jose");
    this.#remote ??= createRemoteJWKSet(new URL(this.#jwksUri ?? this.#issuer), {
      cacheMaxAge: FRESH_KEYS_MS,
      cooldownDuration: COOL_DOWN_MS,
      [customFetch]: () => this.#read(),
    });
    const remote = this.#remote;
    try {
      return await remote(header, token);
    } catch (error) {
      const known = remote.jwks();
      const isOutage = error instanceof ToolcribError;
      if (!isOutage || known === undefined || Date.now() - this.#readAt >= STALE_KEYS_MS) throw error;
      // A key that is not known may be a new one: only the issuer could tell.
      return createLocalJWKSet(known)(header, token).catch(() => Promise.reject(error));
    }
  };

  async #read(): Promise<Response> {
    if (this.#failure !== undefined && Date.now() - this.#failure.at < FAILURE_COOL_DOWN_MS) throw this.#failure.error;
    try {
      // Looked up each time: an issuer may move its keys.
      const address = this.#jwksUri ?? (await findJwksUri(this.#issuer));
      const keys = (await fetchJson(address))?.["keys"];
      if (!Array.isArray(keys) || !keys.every(isJsonObject)) throw keysUnavailable(`${address} has no key set`);
      this.#readAt = Date.now();
      return Response.json({ keys });
    } catch (error) {
      this.#failure = { at: Date.now(), error };
      throw error;
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
    // A document of another issuer must not choose our keys.
    if (metadata["issuer"] !== issuer) throw keysUnavailable(`the metadata of ${issuer} names another issuer`);
    if (typeof metadata["jwks_uri"] === "string") return metadata["jwks_uri"];
  }
  throw keysUnavailable(`${issuer} has no metadata that names its keys`);
}

const FETCH_TIMEOUT_MS = 5_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;

/**
 * Reads a small JSON document, bounded in time and size and without following redirects. Undefined for a 404; rejects with
 * `server_unavailable` for everything else that is wrong.
 */
async function fetchJson(address: string): Promise<JsonObject | undefined> {
  const url = URL.parse(address);
  if (url === null || !isSecureUrl(url)) throw keysUnavailable(`${address} is not an https address`);
  try {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    });
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
    const value: unknown = JSON.parse(await boundedText(response));
    if (!isJsonObject(value)) throw new Error("not a JSON object");
    return value;
  } catch (error) {
    throw keysUnavailable(`${url.origin}${url.pathname} cannot be read (${reasonOf(error)})`, error);
  }
}

/** Keys that came over plain HTTP could be forged. */
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
  return error instanceof SyntaxError ? "not JSON" : error.message;
}

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
 * client that could choose it could make a token for another service fit.
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
