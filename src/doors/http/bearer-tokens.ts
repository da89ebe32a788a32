/** Bearer tokens of the config, kept as digests, and the scopes that they imply. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Caller, identityOf, type Scope, SCOPES } from "../../model/caller.ts";
import type { TokenSettings } from "../../model/config.ts";
import { asToolcribError } from "../../model/errors.ts";

interface KnownToken {
  readonly digest: Buffer;
  readonly caller: Caller;
}

/** Caller keys are derived with it: a key in a log does not help to guess the token. */
const KEY_SECRET = randomBytes(32);
const MIN_TOKEN_LENGTH = 16;

export class BearerTokens {
  readonly #known: readonly KnownToken[];

  constructor(known: readonly KnownToken[]) {
    this.#known = known;
  }

  /** Always compares with every token, so that the time does not reveal a near match. */
  find(presented: string): Caller | undefined {
    const digest = digestOf(presented);
    let found: Caller | undefined;
    for (const known of this.#known) {
      if (timingSafeEqual(known.digest, digest)) found ??= known.caller;
    }
    return found;
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
}

/** A token that cannot be resolved is skipped with a warning. */
export async function loadTokens(sources: TokenSources): Promise<BearerTokens> {
  const { tokens, adminToken, keySecret = KEY_SECRET, conceal, warn } = sources;
  conceal(adminToken);
  const known: KnownToken[] = [
    { digest: digestOf(adminToken), caller: { key: "hub", owner: true, scopes: ALL_SCOPES } },
  ];
  const values = await Promise.all(
    tokens.map(({ token }, index) => resolveToken(token, `http.auth.tokens[${index}]`, sources)),
  );
  const seen = new Set<string>();
  for (const [index, settings] of tokens.entries()) {
    const value = values[index];
    if (value === undefined) continue;
    if (seen.has(value)) warn(`http.auth.tokens[${index}] is the same token as an earlier one, which is used instead.`);
    seen.add(value);
    known.push({ digest: digestOf(value), caller: tokenCaller(value, settings, keySecret) });
  }
  return new BearerTokens(known);
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

function tokenCaller(value: string, { user, role, scopes }: TokenSettings, secret: Uint8Array): Caller {
  const all = withImplied(scopes);
  return {
    key: `token:${createHmac("sha256", secret).update(value).digest("hex").slice(0, 24)}`,
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
