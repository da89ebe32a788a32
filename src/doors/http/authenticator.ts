/** Finds out who sent a request. Credentials are looked for in the Authorization header and nowhere else. */
import type { Caller } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { BearerTokens } from "./bearer-tokens.ts";
import type { AccessTokens } from "./oauth/access-tokens.ts";
import { LOCAL_SCOPES } from "./scopes.ts";

/** Everybody on the machine, where no auth is configured. */
const LOCAL: Caller = { key: "local", owner: true, scopes: LOCAL_SCOPES };

interface AuthenticatorOptions {
  readonly tokens: BearerTokens;
  readonly accessTokens: AccessTokens | undefined;
  /** Whether whoever shows no token is the user who runs the hub. */
  readonly open: boolean;
}

export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Undefined if there are no credentials. Fails with `unauthorized` and as `AccessTokens.check` does. */
  identify(header: string | undefined): Caller | undefined | Promise<Caller> {
    const { tokens, accessTokens, open } = this.#options;
    const token = header === undefined ? undefined : bearerOf(header);
    if (token === undefined) return open ? LOCAL : undefined;
    const known = tokens.find(token);
    if (known !== undefined) return known;
    if (open) return LOCAL;
    if (accessTokens !== undefined && isJwt(token)) return accessTokens.check(token);
    throw unknownToken();
  }

  /** Whether somebody who came in earlier would come in now, as the same. */
  stillAdmits(caller: Caller, now: number): boolean {
    const { tokens, accessTokens, open } = this.#options;
    if (caller.expiresAt !== undefined) return accessTokens !== undefined && now < caller.expiresAt;
    return caller.key === LOCAL.key ? open : tokens.has(caller);
  }
}

export function unknownToken(): ToolcribError {
  return new ToolcribError("unauthorized", "The token is not known here.", {
    hint: "Send one that stands under http.auth of the hub's config. `toolcrib login` lets its own user in without one.",
  });
}

/** Undefined for another scheme. */
function bearerOf(header: string): string | undefined {
  return /^bearer +([\x21-\x7e]+)$/i.exec(header)?.[1];
}

function isJwt(token: string): boolean {
  return token.split(".").length === 3;
}
