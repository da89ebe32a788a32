/** Bearer tokens of the config, kept as digests, and the scopes that they imply. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Caller, identityOf, type Scope, SCOPES } from "../../model/caller.ts";
import type { TokenSettings } from "../../model/config.ts";
import { asToolcribError } from "../../model/errors.ts";

interface KnownToken {
  readonly digest: Buffer;
  /** Of one that has a name in the config. */
  readonly name?: string | undefined;
  readonly caller: Caller;
}

/** Caller keys are derived with it: a key in a log does not help to guess the token. */
const KEY_SECRET = randomBytes(32);
const MIN_TOKEN_LENGTH = 16;

export class BearerTokens {
  readonly #known: readonly KnownToken[];
  readonly #onUse: ((name: string) => void) | undefined;

  constructor(known: readonly KnownToken[], onUse?: (name: string) => void) {
    this.#known = known;
    this.#onUse = onUse;
  }

  /** Always compares with every token, so that the time does not reveal a near match. */
  find(presented: string): Caller | undefined {
    const digest = digestOf(presented);
    let found: KnownToken | undefined;
    for (const known of this.#known) {
      if (timingSafeEqual(known.digest, digest)) found ??= known;
    }
    if (found?.name !== undefined) this.#onUse?.(found.name);
    return found?.caller;
  }

  /** Whether a token still has exactly these rights. */
  has(caller: Caller): boolean {
    return this.#known.some((known) => identityOf(known.caller) === identityOf(caller));
  }
}

interface TokenSources {
  readonly tokens: readonly TokenSettings[];
  /** The hub's own, for the user who runs it. */
  readonly adminToken: string;
  /** Common to the nodes of a cluster, for which the same token is the same caller. */
  readonly keySecret?: Uint8Array | undefined;
  readonly resolve: (text: string) => Promise<string>;
  /** Gets every value, so that none is ever shown. */
  readonly conceal: (value: string) => void;
  readonly warn: (message: string) => void;
  /** Gets the name of a token whenever it is presented. */
  readonly onUse?: ((name: string) => void) | undefined;
}

/** A token that cannot be resolved is skipped with a warning. */
export async function loadTokens(sources: TokenSources): Promise<BearerTokens> {
  const { tokens, adminToken, keySecret = KEY_SECRET, conceal, warn, onUse } = sources;
  conceal(adminToken);
  const known: KnownToken[] = [
    { digest: digestOf(adminToken), caller: { key: "hub", owner: true, scopes: ALL_SCOPES } },
  ];
  const values: (Buffer | undefined)[] = await Promise.all(
    tokens.map(async ({ token, sha256 }, index) => {
      if (sha256 !== undefined) return Buffer.from(sha256, "hex");
      const value = token && (await resolveToken(token, `http.auth.tokens[${index}]`, sources));
      return value === undefined ? undefined : digestOf(value);
    }),
  );
  const seen = new Set<string>();
  for (const [index, settings] of tokens.entries()) {
    const digest = values[index];
    if (digest === undefined) continue;
    const text = digest.toString("hex");
    if (seen.has(text)) warn(`http.auth.tokens[${index}] is the same token as an earlier one, which is used instead.`);
    seen.add(text);
    known.push({ digest, name: settings.name, caller: tokenCaller(digest, settings, keySecret) });
  }
  return new BearerTokens(known, onUse);
}

async function resolveToken(text: string, where: string, sources: TokenSources): Promise<string | undefined> {
  const { resolve, conceal, warn } = sources;
  let value: string;
  try {
    value = await resolve(text);
  } catch (error) {
    // The message names the reference and never a value.
    warn(`${where} cannot be used: ${asToolcribError(error).message}`);
    return undefined;
  }
  if (!/^[\x21-\x7e]+$/.test(value)) {
    warn(`${where} cannot be used: it is empty, or has characters that a header cannot carry.`);
    return undefined;
  }
  conceal(value);
  if (value.length < MIN_TOKEN_LENGTH)
    warn(`${where} has fewer than ${MIN_TOKEN_LENGTH} characters and can be guessed.`);
  return value;
}

function tokenCaller(digest: Buffer, { user, role, scopes }: TokenSettings, secret: Uint8Array): Caller {
  const all = withImplied(scopes);
  return {
    key: `token:${createHmac("sha256", secret).update(digest).digest("hex").slice(0, 24)}`,
    user,
    role,
    owner: all.has("admin"),
    scopes: all,
  };
}

function digestOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** A scope includes those that it needs: a caller of tools has to find them, and an admin is the owner. */
const IMPLIED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ["read"],
  call: ["read", "call"],
  // Nothing else: an approver need not see the tools.
  approve: ["approve"],
  admin: SCOPES,
};

export const ALL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.admin);
export const LOCAL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.call);

export function withImplied(scopes: Iterable<Scope>): ReadonlySet<Scope> {
  const all = new Set<Scope>();
  for (const scope of scopes) for (const implied of IMPLIED[scope]) all.add(implied);
  return all;
}
