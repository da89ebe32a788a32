/** OAuth: the credentials of every server of a hub that is used with a login. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ClientCredentialsSettings, OAuthSettings } from "../../model/server-spec.ts";
import type { AuthInfo } from "../../model/server-state.ts";
import type { Redactor } from "../redactor.ts";
import { ServerCredentials } from "./credentials.ts";
import { type GrantKey, GrantStore } from "./grant-store.ts";

export type AuthSettings = OAuthSettings | ClientCredentialsSettings;

interface OAuthOptions {
  /** Where grants are kept, such as `$TOOLCRIB_HOME/auth`. */
  readonly dir: string;
  readonly clock: Clock;
  readonly redactor: Redactor;
}

/** What a server without `auth` is logged in with. */
export const DEFAULT_SETTINGS: OAuthSettings = { type: "oauth" };

export class OAuth {
  readonly store: GrantStore;
  readonly #options: OAuthOptions;
  readonly #awaited = new Map<string, GrantKey>();
  readonly #credentials = new Map<string, { readonly settings: string; readonly credentials: ServerCredentials }>();

  constructor(options: OAuthOptions) {
    this.#options = options;
    this.store = new GrantStore(options.dir);
  }

  /** For a server with `settings`, or one without on which somebody has logged in; undefined for any other. */
  async credentialsFor(key: GrantKey, settings: AuthSettings | undefined): Promise<ServerCredentials | undefined> {
    if (!URL.canParse(key.url))
      throw new ToolcribError("invalid_config", "The url is not a valid http or https address.");
    if (settings === undefined && (await this.store.read(key)) === undefined) return undefined;
    const used = settings ?? DEFAULT_SETTINGS;
    const id = idOf(key.server, key.user);
    // The same ones as long as nothing changes, so that all links of a server renew together.
    const text = JSON.stringify([key.url, used]);
    const known = this.#credentials.get(id);
    if (known?.settings === text) {
      known.credentials.forget();
      return known.credentials;
    }
    const credentials = new ServerCredentials({ key, settings: used, store: this.store, ...this.#options });
    this.#credentials.set(id, { settings: text, credentials });
    return credentials;
  }

  /** How the login stands, as far as it was looked at; undefined for a server that was not used with one. */
  info(server: string, user?: string): AuthInfo | undefined {
    return this.#credentials.get(idOf(server, user))?.credentials.info;
  }

  /** A server without `auth` turned out to want a login; `loggedInSince` tells when there is one. */
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
