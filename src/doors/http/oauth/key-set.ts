/** The keys of an authorization server: read when first needed, kept, and read again when they age or one is missing. */
import type { createLocalJWKSet, JSONWebKeySet } from "jose";
import type { Clock } from "../../../model/clock.ts";
import { fetchJson, unavailable } from "./fetch-json.ts";

export type Keys = ReturnType<typeof createLocalJWKSet>;

/** After this time keys are read again. */
const FRESH_MS = 10 * 60_000;
/** While they cannot be read, known ones are still used for this long. */
const KEPT_MS = 60 * 60_000;
/** Tokens with made-up key ids must not make us ask the authorization server each time. */
const COOL_DOWN_MS = 30_000;
const COOL_DOWN_AFTER_FAILURE_MS = 5_000;

interface KeySetOptions {
  readonly issuer: string;
  /** Found in the issuer's metadata if absent. */
  readonly jwksUri: string | undefined;
  readonly clock: Clock;
}

export class KeySet {
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
    if (clock.now() - this.#failedAt < COOL_DOWN_AFTER_FAILURE_MS) return Promise.reject(this.#failure);
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
    const address = jwksUri ?? (await findKeys(issuer));
    const document = await fetchJson(address);
    if (document === undefined) throw unavailable(`there is nothing at ${address}`);
    const { createLocalJWKSet } = await import("jose");
    try {
      // Its own check: it throws for what is no key set.
      return createLocalJWKSet(document as unknown as JSONWebKeySet);
    } catch (error) {
      throw unavailable(`${address} holds no key set`, error);
    }
  }
}

/** RFC 8414, then OpenID Connect; for an issuer with a path each puts the path elsewhere. */
async function findKeys(issuer: string): Promise<string> {
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
    if (metadata["issuer"] !== issuer) throw unavailable(`the metadata of ${issuer} names another issuer`);
    if (typeof metadata["jwks_uri"] === "string") return metadata["jwks_uri"];
  }
  throw unavailable(`${issuer} has no metadata that names its keys`);
}
