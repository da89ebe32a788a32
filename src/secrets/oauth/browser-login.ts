/** The authorization code flow with PKCE: a person logs in with a browser, and the tokens are kept. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { OAuthSettings } from "../../model/server-spec.ts";
import type { Redactor } from "../redactor.ts";
import {
  type Challenge,
  discoverAuthorizationServer,
  isSameIssuer,
  readChallenge,
  unexpectedIssuerError,
} from "./authorization-server.ts";
import { addressOf, type Grant, type GrantClient, type GrantKey, type GrantStore, tokensFrom } from "./grants.ts";
import { loadOAuthSdk, type OAuthSdk, printable, toOAuthError } from "./login-errors.ts";
import { LoginAddressPolicy, oauthFetch, type OAuthFetch } from "./oauth-fetch.ts";
import { clientFor, clientInformation, scopesToAsk } from "./token-requests.ts";

const MAX_LOGIN_MS = 5 * 60_000;

export interface LoginRequest {
  readonly key: GrantKey;
  /** With references resolved. */
  readonly settings: OAuthSettings;
  readonly store: GrantStore;
  readonly clock: Clock;
  readonly redactor: Redactor;
  /** The settings of other servers whose clients have the same redirect address: `sharedRedirects`. */
  readonly sharedWith: readonly OAuthSettings[];
  /** That cannot be guessed and was not used before; a random one if absent. */
  readonly state?: string | undefined;
  /** Gets the person to this address, which is https or on this machine. */
  readonly onAuthorize: (url: URL) => void;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** Resolves when the tokens are stored. */
export async function login(request: LoginRequest): Promise<Grant> {
  const { settings, signal, timeoutMs = MAX_LOGIN_MS } = request;
  let redirect: LoopbackRedirect | undefined;
  try {
    const begun = await beginLogin(request, async ({ known, ownPath }) => {
      redirect = await openRedirect(settings.redirectPort, ownPath, known);
      return redirect.uri;
    });
    const waiting = redirect?.wait({ state: begun.state, timeoutMs, signal });
    request.onAuthorize(begun.url);
    return await begun.finish((await waiting) ?? new URLSearchParams());
  } finally {
    await redirect?.close();
  }
}

/** A login whose person is at the authorization server, or on the way there. */
export interface BegunLogin {
  /** Where the person logs in; https or on this machine. */
  readonly url: URL;
  /** Comes back with the answer, which is not for this login otherwise. */
  readonly state: string;
  readonly redirectUri: string;
  /** With the parameters that came back; their state was compared. Resolves when the tokens are stored. Works once. */
  finish(params: URLSearchParams): Promise<Grant>;
}

interface RedirectRequest {
  /** The client of the last login at the same issuer. */
  readonly known: GrantClient | undefined;
  /** The end of the address: an answer of another authorization server comes to another address. */
  readonly ownPath: string;
}

/** Whether the redirect address of its client has nothing that tells it from those of other servers. */
export function hasSharedRedirect({ clientId, clientMetadataUrl, ownRedirect }: OAuthSettings): boolean {
  return (clientId !== undefined || clientMetadataUrl !== undefined) && ownRedirect !== true;
}

/** @param redirectTo The address to which the browser comes back. */
export async function beginLogin(
  request: Omit<LoginRequest, "onAuthorize" | "timeoutMs">,
  redirectTo: (request: RedirectRequest) => string | Promise<string>,
): Promise<BegunLogin> {
  const { key, settings, sharedWith, store, signal, redactor, clock } = request;
  const sdk = await loadOAuthSdk();
  const reach = new LoginAddressPolicy(new URL(key.url), { named: settings });
  const fetchFn = oauthFetch(reach, signal);
  const challenge = await askForChallenge(key.url, fetchFn);
  const at = await discoverAuthorizationServer({ sdk, url: key.url, fetchFn, challenge, issuer: settings.issuer });
  const before = await store.read(key);
  const known = before !== undefined && isSameIssuer(before.issuer, at.issuer) ? before : undefined;
  // A client registered by hand belongs to one authorization server; its secret must not be sent to another one.
  if (before !== undefined && known === undefined && settings.clientId !== undefined && settings.issuer === undefined) {
    throw unexpectedIssuerError(at.issuer, before.issuer, "the last login was at");
  }
  const announcesIssuer = at.metadata?.authorization_response_iss_parameter_supported === true;
  const isShared = hasSharedRedirect(settings);
  // A code of one of the others would be sent to this one, which could use it (RFC 9700, 4.4: mix-up).
  if (isShared && !announcesIssuer && sharedWith.some(({ issuer = "" }) => !isSameIssuer(issuer, at.issuer))) {
    throw sharedRedirectError(key.server, at.issuer);
  }
  const isManual = settings.clientId !== undefined || settings.clientMetadataUrl !== undefined;
  const own = isManual ? encodeURIComponent(key.server) : hash("sha256", at.issuer, "base64url").slice(0, 16);
  const redirectUri = await redirectTo({ known: known?.client, ownPath: isShared ? "" : `/${own}` });
  const scope = scopesToAsk({ configured: settings.scopes, challenged: challenge?.scope, missed: known?.missed, at });
  const client = await clientFor({ sdk, at, settings, fetchFn, scope, redirectUri, known: known?.client });
  const metadata = at.metadata === undefined ? {} : { metadata: at.metadata };
  const clientInfo = clientInformation(client, settings.clientSecret);
  const { state = randomBytes(32).toString("base64url") } = request;
  let started: Awaited<ReturnType<OAuthSdk["startAuthorization"]>>;
  try {
    started = await sdk.startAuthorization(at.issuer, {
      ...metadata,
      clientInformation: clientInfo,
      redirectUrl: redirectUri,
      ...(scope === undefined ? {} : { scope }),
      state,
      resource: at.resource,
    });
    // It goes to the program that opens addresses, which would open a file or start a program just as well.
    await reach.admit(started.authorizationUrl);
  } catch (error) {
    throw toOAuthError(sdk, error, at.issuer);
  }
  const { authorizationUrl: url, codeVerifier } = started;
  const exchange = async (params: URLSearchParams): ReturnType<OAuthSdk["exchangeAuthorization"]> => {
    const iss = params.get("iss") ?? undefined;
    sdk.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: at.metadata?.issuer ?? at.issuer,
      issParameterSupported: announcesIssuer,
    });
    const code = params.get("code");
    if (code === null) throw loginRefused(params.get("error"));
    redactor.addCredential(code);
    return sdk.exchangeAuthorization(at.issuer, {
      ...metadata,
      clientInformation: clientInfo,
      authorizationCode: code,
      ...(iss === undefined ? {} : { iss }),
      codeVerifier,
      redirectUri,
      resource: at.resource,
      fetchFn,
    });
  };
  return {
    url,
    state,
    redirectUri,
    async finish(params) {
      const answer = await exchange(params).catch((error: unknown) => {
        throw toOAuthError(sdk, error, at.issuer);
      });
      for (const secret of [answer.access_token, answer.refresh_token]) if (secret) redactor.addCredential(secret);
      const grant: Grant = {
        version: 1,
        type: "oauth",
        server: key.server,
        url: addressOf(key.url),
        user: key.user,
        issuer: at.issuer,
        resource: at.resource,
        client,
        tokens: tokensFrom(answer, clock, scope),
        asked: scope,
      };
      await store.locked(key, () => store.write(grant));
      return grant;
    },
  };
}

/** The same port as last time if it is free, so that the registration of last time remains valid. */
async function openRedirect(
  port: number | undefined,
  ownPath: string,
  known: GrantClient | undefined,
): Promise<LoopbackRedirect> {
  const path = CALLBACK_PATH + ownPath;
  const last = known?.redirectUri === undefined ? undefined : LOOPBACK.exec(known.redirectUri)?.[1];
  if (port !== undefined || last === undefined) return LoopbackRedirect.open(port, path);
  return LoopbackRedirect.open(Number(last), path).catch(() => LoopbackRedirect.open(undefined, path));
}

function sharedRedirectError(server: string, issuer: string): ToolcribError {
  const message = `${new URL(issuer).host} does not say in its answers that they are its own (\`iss\`), and another server's client has the same redirect address.`;
  return new ToolcribError("invalid_config", message, {
    hint: `Set \`auth.ownRedirect\` of "${server}" to true, and add /${encodeURIComponent(server)} to the redirect address that is registered for its client.`,
  });
}

/** A request that changes nothing, to learn which login is needed. Servers without the header are found otherwise. */
async function askForChallenge(url: string, fetchFn: OAuthFetch): Promise<Challenge | null> {
  const response = await fetchFn(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "ping" }),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  return response?.status === 401 ? readChallenge(response.headers.get("www-authenticate") ?? undefined) : null;
}

function loginRefused(error: string | null): ToolcribError {
  const said = error === null ? "" : `: ${printable(error)}`;
  return new ToolcribError("unauthorized", `The login was refused${said}.`, {
    hint: error === "access_denied" ? "Start it again and agree to it in the browser." : undefined,
  });
}

// Not imported as a module: that loads Node's whole fetch as well, 12 MB of it.
const { createServer } = process.getBuiltinModule("node:http");

const CALLBACK_PATH = "/callback";
/** Not that of a hub's page, whose port is the hub's. */
const LOOPBACK = /^http:\/\/127\.0\.0\.1:(\d+)\/callback(?:\/|$)/;

interface WaitOptions {
  /** The state that was sent; anything that comes with another one is turned away and forgotten. */
  readonly state: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The little web server on this machine to which the browser comes back after a login. */
class LoopbackRedirect {
  readonly uri: string;
  readonly #server: Server;
  #onCallback: (params: URLSearchParams) => boolean = () => false;
  /** No one may be waiting any more: the person could not be sent to the login. */
  #stopWaiting = (): void => {};

  private constructor(server: Server, port: number, path: string) {
    this.#server = server;
    this.uri = `http://127.0.0.1:${port}${path}`;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response));
  }

  /** On `port`, which must be free; on any free one if undefined. */
  static async open(port: number | undefined, path: string): Promise<LoopbackRedirect> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => {
        const text = `port ${port ?? 0} of 127.0.0.1 cannot be used for the login`;
        const hint = "Another program may use it. Set `auth.redirectPort` to a free one, or leave it out.";
        reject(new ToolcribError("conflict", text, { hint, cause: error }));
      });
      server.listen(port ?? 0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string")
      throw new ToolcribError("internal", "a TCP server has no port");
    return new LoopbackRedirect(server, address.port, path);
  }

  /** Resolves with the parameters of the first callback that carries the right state. */
  wait({ state, timeoutMs, signal }: WaitOptions): Promise<URLSearchParams> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#onCallback = () => false;
        settle();
      };
      this.#stopWaiting = () => end(() => {});
      const onAbort = (): void => end(() => reject(new ToolcribError("cancelled", "The login was cancelled.")));
      const timer = setTimeout(() => {
        const minutes = Math.round(timeoutMs / 60_000);
        end(() => reject(new ToolcribError("timeout", `The login was not completed within ${minutes} minutes.`)));
      }, timeoutMs);
      this.#onCallback = (params) => {
        if (!isSame(params.get("state") ?? "", state)) return false;
        end(() => resolve(params));
        return true;
      };
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  async close(): Promise<void> {
    this.#stopWaiting();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      // The page that says so may still be on its way; a browser that keeps the connection must not keep us.
      setTimeout(() => this.#server.closeAllConnections(), 500).unref();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.uri);
    // Another name for this machine in Host is a web page that talks to us through its own domain.
    const own = new URL(this.uri);
    if (request.method !== "GET" || url.pathname !== own.pathname || request.headers.host !== own.host) {
      return sendPage(response, 404, "Nothing here", "This address only takes the end of a login.");
    }
    if (!this.#onCallback(url.searchParams)) {
      return sendPage(response, 400, "Not this login", "This does not belong to a login in progress. Start it again.");
    }
    if (url.searchParams.has("error")) {
      return sendPage(response, 200, "Not logged in", "The login was refused. You may close this page.");
    }
    return sendPage(
      response,
      200,
      "Almost done",
      "Toolcrib finishes the login; the terminal says how it went. You may close this page.",
    );
  }
}

function sendPage(response: ServerResponse, status: number, title: string, text: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "referrer-policy": "no-referrer",
    connection: "close",
  });
  // Nothing of the request is repeated in it.
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} – Toolcrib</title>` +
      `<body style="font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem">` +
      `<h1 style="font-size:1.4rem">${title}</h1><p>${text}</p></body></html>\n`,
  );
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
