/**
 * Logins at remote servers that begin in one request and end in another: the browser leaves for the authorization server and comes back
 * to the hub. Each belongs to the caller who began it, and ends once.
 */
import { hash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { OAuthSettings, ServerSpec } from "../../model/server-spec.ts";
import type { AuthInfo } from "../../model/server-state.ts";
import { beginLogin, type BegunLogin, hasSharedRedirect } from "../../secrets/oauth/browser-login.ts";
import type { GrantKey } from "../../secrets/oauth/grants.ts";
import { authInfo, type AuthSettings, DEFAULT_OAUTH_SETTINGS, type OAuth } from "../../secrets/oauth/oauth.ts";
import { logout } from "../../secrets/oauth/token-requests.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { resolveSpec } from "../../secrets/resolve-spec.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Session } from "../../sessions/session.ts";
import { checkRemoteAddress } from "../../upstream/http/address-policy.ts";

/** The path on the hub to which the browser comes back. */
const OAUTH_CALLBACK_PATH = "/oauth/callback";
/** The path of the page that has the logins of who looks at it. */
const LOGINS_PATH = "/logins";
const MAX_LOGIN_MS = 10 * 60_000;
const MAX_PENDING = 1000;
const MAX_PENDING_PER_CALLER = 8;
const MAX_ASKED = 1000;

export interface LoginTarget {
  readonly key: GrantKey;
  readonly settings: AuthSettings;
}

/** The login that a server is used with, for a user if each has their own. Rejects where there is none to make. */
export async function loginTarget(spec: ServerSpec, secrets: Secrets, user: string | undefined): Promise<LoginTarget> {
  const { id } = spec;
  if (user !== undefined && spec.isolation !== "user") {
    throw new ToolcribError("invalid_arguments", `All users share one connection to "${id}".`, {
      hint: 'Omit --user, or set its `isolation` to "user".',
    });
  }
  if (spec.url === undefined) {
    throw new ToolcribError("invalid_arguments", `"${id}" is a program on this machine and needs no login.`);
  }
  if (spec.auth?.type === "bearer" || spec.auth?.type === "api-key") {
    const message = `"${id}" uses the ${spec.auth.type} in its config and needs no login.`;
    throw new ToolcribError("invalid_arguments", message, {
      hint: 'To log in instead, set its `auth` to {"type": "oauth"}.',
    });
  }
  const { url, auth } = await resolveSpec(spec, secrets, { user });
  if (url === undefined) throw new ToolcribError("internal", "a remote server without a URL");
  checkRemoteAddress(url);
  const settings = auth?.type === "oauth" || auth?.type === "client-credentials" ? auth : DEFAULT_OAUTH_SETTINGS;
  return { key: { server: id, url, user }, settings };
}

/** The settings of other servers whose clients have the redirect address that a manually registered client of this one has. */
export function sharedRedirects(servers: readonly ServerSpec[], id: string): OAuthSettings[] {
  return servers.flatMap((spec) =>
    spec.id !== id && spec.auth?.type === "oauth" && hasSharedRedirect(spec.auth) ? [spec.auth] : [],
  );
}

interface ServerLoginsOptions {
  readonly config: () => LoadedConfig;
  readonly secrets: Secrets;
  readonly oauth: OAuth;
  readonly redactor: Redactor;
  readonly clock: Clock;
}

interface Beginning {
  readonly server: string;
  readonly user: string | undefined;
  /** The identity of the caller: who comes back must have the same. */
  readonly by: string;
  /** Address of the hub as the caller's browser reaches it, without a slash at the end. */
  readonly base: string;
}

interface Ending {
  readonly by: string;
  /** The path that the browser came back to. */
  readonly path: string;
  readonly params: URLSearchParams;
}

interface PendingLogin extends Pick<Beginning, "server" | "user" | "by"> {
  readonly login: BegunLogin;
  readonly until: number;
}

interface AskedClient extends Pick<Beginning, "server" | "user"> {
  readonly session: WeakRef<Session>;
}

export class ServerLogins {
  /** Where the page is, once it is served. */
  pageUrl: string | undefined;
  /** In a cluster, a state that tells every node where its login began. */
  newState: (() => string) | undefined;
  readonly #options: ServerLoginsOptions;
  /** By digest of their state, the oldest first. */
  readonly #pending = new Map<string, PendingLogin>();
  /** Clients that were asked to have their user log in, by the id of the question, the oldest first. */
  readonly #asked = new Map<string, AskedClient>();

  constructor(options: ServerLoginsOptions) {
    this.#options = options;
  }

  /** The address to open in a browser. */
  async begin({ server, user, by, base }: Beginning): Promise<{ readonly url: string; readonly expiresAt: string }> {
    const { oauth, redactor, clock } = this.#options;
    const { key, settings } = await this.#target(server, user);
    if (settings.type === "client-credentials") {
      const message = `"${server}" uses client credentials: the hub logs in by itself when it connects.`;
      throw new ToolcribError("invalid_arguments", message);
    }
    const sharedWith = sharedRedirects(this.#options.config().servers, server);
    const login = await beginLogin(
      { key, settings, sharedWith, state: this.newState?.(), store: oauth.store, clock, redactor },
      ({ ownPath }) => `${base}${OAUTH_CALLBACK_PATH}${ownPath}`,
    );
    const until = clock.now() + MAX_LOGIN_MS;
    this.#makeRoom(by);
    this.#pending.set(digestOf(login.state), { server, user, by, login, until });
    return { url: login.url.href, expiresAt: new Date(until).toISOString() };
  }

  /** Whatever comes of it, the state is used up. */
  async finish({ by, path, params }: Ending): Promise<Pick<Beginning, "server" | "user">> {
    const { clock } = this.#options;
    const digest = digestOf(params.get("state") ?? "");
    const pending = this.#pending.get(digest);
    this.#pending.delete(digest);
    if (pending === undefined || pending.until <= clock.now()) {
      throw new ToolcribError("not_found", "This login was finished already, has expired, or did not begin here.", {
        hint: "Start it again.",
      });
    }
    // Otherwise one user could have another log in for them.
    if (pending.by !== by) {
      throw new ToolcribError("denied", "This login was begun by someone else, or before you logged in here.", {
        hint: "If you want to log in, start it yourself. Do not open links to logins that others send you.",
      });
    }
    if (new URL(pending.login.redirectUri).pathname !== path) {
      throw new ToolcribError("denied", "The answer is not from the authorization server that was asked.", {
        hint: "Do not go on: start the login again.",
      });
    }
    await pending.login.finish(params);
    this.#tellAsked(pending.server, pending.user);
    return pending;
  }

  /** The client of this session was asked to open the page for a login, and is told when it is made. */
  asked(elicitationId: string, session: Session, server: string): void {
    for (const id of this.#asked.keys()) {
      if (this.#asked.size < MAX_ASKED) break;
      this.#asked.delete(id);
    }
    this.#asked.set(elicitationId, { session: new WeakRef(session), server, user: this.#userOf(session, server) });
  }

  #tellAsked(server: string, user: string | undefined): void {
    for (const [elicitationId, asked] of this.#asked) {
      if (asked.server !== server || asked.user !== user) continue;
      this.#asked.delete(elicitationId);
      const session = asked.session.deref();
      if (session?.closed === false) session.ownEvents.emit("elicited", { elicitationId });
    }
  }

  #userOf(session: Session, server: string): string | undefined {
    const spec = this.#options.config().servers.find(({ id }) => id === server);
    return spec?.isolation === "user" ? session.user : undefined;
  }

  async end(server: string, user: string | undefined): ReturnType<typeof logout> {
    const { oauth } = this.#options;
    const { key, settings } = await this.#target(server, user);
    const result = await logout(key, oauth.store, settings.type === "oauth" ? settings : undefined);
    oauth.forget(server, user);
    return result;
  }

  /** The login of a user, or that of the hub; undefined for a server that needs none. */
  async info(spec: ServerSpec, user: string | undefined): Promise<AuthInfo | undefined> {
    const { oauth, clock, secrets } = this.#options;
    const { url, auth } = spec;
    if (url === undefined || (auth !== undefined && auth.type !== "oauth")) return undefined;
    const target = await loginTarget(spec, secrets, user).catch(() => undefined);
    const grant = target && (await oauth.store.read(target.key));
    if (auth?.type === "oauth" || grant !== undefined) return authInfo("oauth", grant, clock.now());
    // It is not configured, and known only once the server has refused a connection.
    const wasRefused = (oauth.info(spec.id, user) ?? oauth.info(spec.id)) !== undefined;
    return wasRefused ? authInfo("oauth", undefined, clock.now()) : undefined;
  }

  /** Where the person behind a session can log in at a server; undefined if that is not theirs to do, or there is no page. */
  link(session: Session, server: string): string | undefined {
    const spec = this.#options.config().servers.find(({ id }) => id === server);
    if (this.pageUrl === undefined || spec === undefined) return undefined;
    const isOwn = spec.isolation === "user" ? session.user !== undefined || session.owner : session.owner;
    // It holds no secret and no name: who opens it logs in as who they are.
    return isOwn ? `${this.pageUrl}${LOGINS_PATH}?server=${encodeURIComponent(server)}` : undefined;
  }

  #target(server: string, user: string | undefined): Promise<LoginTarget> {
    const { config, secrets } = this.#options;
    const spec = config().servers.find(({ id }) => id === server);
    if (spec === undefined) throw new ToolcribError("not_found", `There is no server "${server}".`);
    return loginTarget(spec, secrets, user);
  }

  #makeRoom(by: string): void {
    const now = this.#options.clock.now();
    for (const [digest, { until }] of this.#pending) if (until <= now) this.#pending.delete(digest);
    const own = [...this.#pending].filter(([, pending]) => pending.by === by);
    for (const [digest] of own.slice(0, Math.max(0, own.length + 1 - MAX_PENDING_PER_CALLER)))
      this.#pending.delete(digest);
    for (const digest of this.#pending.keys()) {
      if (this.#pending.size < MAX_PENDING) return;
      this.#pending.delete(digest);
    }
  }
}

function digestOf(state: string): string {
  return hash("sha256", state, "hex");
}
