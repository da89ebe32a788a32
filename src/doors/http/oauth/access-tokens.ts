/** Checks access tokens of an authorization server (RFC 9068 JWTs), as a resource server does. */
import { hash } from "node:crypto";
import type { JWTPayload } from "jose";
import { type Caller, type Scope, SCOPES } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { ResourceServerSettings } from "../../../model/http-config.ts";
import { withImplied } from "../scopes.ts";
import { isSafe } from "./fetch-json.ts";
import { type Keys, KeySet } from "./key-set.ts";

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
const REMEMBER_MS = 60_000;
const MOST_REMEMBERED = 10_000;

interface Remembered {
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
  readonly #remembered = new Map<string, Remembered>();

  /** Throws `invalid_config` for an address that cannot be used. */
  constructor(options: AccessTokensOptions) {
    const { issuer, jwksUri } = options.settings;
    assertSafe("issuer", issuer);
    if (jwksUri !== undefined) assertSafe("jwksUri", jwksUri);
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
    const caller = callerOf(payload, this.#options.settings);
    const now = this.#options.clock.now();
    this.#remember(digest, { caller, until: Math.min(now + REMEMBER_MS, (payload.exp ?? 0) * 1000) });
    return caller;
  }

  async #verify(token: string): Promise<JWTPayload> {
    try {
      return await this.#verifyWith(token, await this.#keys.current());
    } catch (error) {
      if (codeOf(error) !== "ERR_JWKS_NO_MATCHING_KEY") throw invalid(error);
    }
    const renewed = await this.#keys.renewed();
    if (renewed === undefined) throw refused("it is signed with an unknown key");
    try {
      return await this.#verifyWith(token, renewed);
    } catch (error) {
      throw invalid(error);
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
    if (!TYPES.has(protectedHeader.typ?.toLowerCase())) throw refused("it is no access token");
    const audiences = typeof payload.aud === "string" ? [payload.aud] : (payload.aud ?? []);
    if (!audiences.some(isOurs)) throw refused("it is meant for another audience");
    return payload;
  }

  #remember(digest: string, remembered: Remembered): void {
    if (this.#remembered.size >= MOST_REMEMBERED && !this.#remembered.has(digest)) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    this.#remembered.set(digest, remembered);
  }
}

function assertSafe(key: string, address: string): void {
  const url = URL.parse(address);
  if (url !== null && isSafe(url)) return;
  throw new ToolcribError("invalid_config", `http.auth.oauth.${key} is no https address.`, {
    hint: "Plain http is taken on loopback only.",
  });
}

function callerOf(payload: JWTPayload, { issuer, scopes, userClaim, roleClaim }: ResourceServerSettings): Caller {
  const user = payload[userClaim];
  if (typeof user !== "string" || user === "") throw refused(`it has no claim ${userClaim}, which names the user`);
  const granted = grantedBy(payload);
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
function grantedBy(payload: JWTPayload): ReadonlySet<string> {
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
function invalid(error: unknown): ToolcribError {
  if (error instanceof ToolcribError) return error;
  return refused(REASONS[codeOf(error)] ?? "it is malformed");
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const REASONS: Readonly<Record<string, string>> = {
  ERR_JWT_EXPIRED: "it has expired",
  ERR_JWT_CLAIM_VALIDATION_FAILED: "a claim is missing or does not fit",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "its signature is wrong",
  ERR_JOSE_ALG_NOT_ALLOWED: "it is signed with an algorithm that is not allowed",
  ERR_JWKS_NO_MATCHING_KEY: "it is signed with an unknown key",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "it does not say which key signed it",
};

function refused(why: string): ToolcribError {
  return new ToolcribError("unauthorized", `The access token is not accepted: ${why}.`);
}
