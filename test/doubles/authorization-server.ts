/**
 * An OAuth authorization server for tests, strict where real ones are: PKCE, registered redirect addresses, resource
 * indicators, refresh tokens that work once. A refresh token used twice ends the login, as it does out there.
 */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../src/base/clock.ts";
import { type Listening, listen, readBody, sendJson } from "./http.ts";

export interface AccessToken {
  readonly user: string;
  readonly scope: string;
  readonly resource: string;
  readonly expiresAt: number;
  readonly family: string;
}

interface Client {
  readonly secret?: string;
  readonly redirectUris: readonly string[];
}

interface Code {
  readonly client: string;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly user: string;
  readonly scope: string;
  readonly resource: string;
}

interface Refresh {
  readonly client: string;
  readonly user: string;
  readonly scope: string;
  readonly resource: string;
  readonly family: string;
  used: boolean;
}

export class AuthorizationServer {
  readonly url: string;
  readonly accessTokens = new Map<string, AccessToken>();
  readonly refreshTokens = new Map<string, Refresh>();
  readonly clients = new Map<string, Client>();
  /** Every secret that it ever gave, for searching outputs. */
  readonly secrets: string[] = [];
  readonly registrations: Record<string, unknown>[] = [];
  /** Form bodies that came to the token endpoint. */
  readonly tokenRequests: Record<string, string>[] = [];
  readonly revoked: string[] = [];
  /** How often a refresh token was used a second time. */
  reuses = 0;

  // What tests turn.
  user = "alice";
  accessSeconds: number | undefined = 3600;
  givesRefresh = true;
  issuer: string;
  iss: string | undefined;
  /** Whether its metadata promises `iss` in its answers. */
  promisesIss = true;
  changesState = false;
  denies = false;
  registers = true;
  revokes = true;
  down = false;
  documents = false;
  tokenDelayMs = 0;

  readonly #clock: Clock;
  readonly #codes = new Map<string, Code>();
  readonly #listening: Listening;

  private constructor(listening: Listening, clock: Clock) {
    this.#listening = listening;
    this.#clock = clock;
    this.url = listening.url;
    this.issuer = listening.url;
    this.iss = listening.url;
  }

  static async start(clock: Clock): Promise<AuthorizationServer> {
    const listening = await listen((request, response) => void server.#answer(request, response));
    const server = new AuthorizationServer(listening, clock);
    return server;
  }

  close(): Promise<void> {
    return this.#listening.close();
  }

  addClient(id: string, secret?: string, redirectUris: readonly string[] = []): void {
    this.clients.set(id, { secret, redirectUris });
  }

  /** Undefined for a token that is unknown, over or revoked. */
  check(token: string): AccessToken | undefined {
    const found = this.accessTokens.get(token);
    return found !== undefined && found.expiresAt > this.#clock.now() ? found : undefined;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    if (this.down) return sendJson(response, 503, {});
    switch (`${request.method} ${url.pathname}`) {
      case "GET /.well-known/oauth-authorization-server":
        return sendJson(response, 200, this.#metadata());
      case "GET /authorize":
        return this.#authorize(url.searchParams, response);
      case "POST /register":
        return this.#register(JSON.parse(await readBody(request)) as Record<string, unknown>, response);
      case "POST /token": {
        const form = Object.fromEntries(new URLSearchParams(await readBody(request)));
        this.tokenRequests.push(form);
        if (this.tokenDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.tokenDelayMs));
        return this.#token(form, request, response);
      }
      case "POST /revoke":
        return this.#revoke(new URLSearchParams(await readBody(request)).get("token") ?? "", response);
      default:
        return sendJson(response, 404, {});
    }
  }

  #metadata(): Record<string, unknown> {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      ...(this.registers ? { registration_endpoint: `${this.url}/register` } : {}),
      ...(this.revokes ? { revocation_endpoint: `${this.url}/revoke` } : {}),
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
      scopes_supported: ["tools", "offline_access"],
      authorization_response_iss_parameter_supported: this.promisesIss,
      client_id_metadata_document_supported: this.documents,
    };
  }

  #register(metadata: Record<string, unknown>, response: ServerResponse): void {
    this.registrations.push(metadata);
    const id = `client-${this.registrations.length}`;
    // The shape is this double's own client's.
    this.addClient(id, undefined, metadata["redirect_uris"] as string[]);
    sendJson(response, 201, { ...metadata, client_id: id });
  }

  #authorize(params: URLSearchParams, response: ServerResponse): void {
    const id = params.get("client_id") ?? "";
    const redirectUri = params.get("redirect_uri") ?? "";
    const client = this.clients.get(id);
    const known = client?.redirectUris.includes(redirectUri) === true || (this.documents && id.startsWith("https://"));
    const pkce = params.get("code_challenge_method") === "S256" && params.get("code_challenge") !== null;
    if (!known || !pkce || params.get("response_type") !== "code")
      return sendJson(response, 400, { error: "invalid_request" });
    const back = new URL(redirectUri);
    back.searchParams.set("state", this.changesState ? "forged" : (params.get("state") ?? ""));
    if (this.iss !== undefined) back.searchParams.set("iss", this.iss);
    if (this.denies) back.searchParams.set("error", "access_denied");
    else {
      const code = this.#secret("code");
      this.#codes.set(code, {
        client: id,
        redirectUri,
        challenge: params.get("code_challenge") ?? "",
        user: this.user,
        scope: params.get("scope") ?? "",
        resource: params.get("resource") ?? "",
      });
      back.searchParams.set("code", code);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  #token(form: Record<string, string>, request: IncomingMessage, response: ServerResponse): void {
    const client = this.#clientOf(form, request);
    if (client === undefined) return sendJson(response, 401, { error: "invalid_client" });
    const refuse = (error: string): void => sendJson(response, 400, { error, error_description: "no" });
    if (form["grant_type"] === "client_credentials") {
      if (this.clients.get(client)?.secret === undefined) return refuse("unauthorized_client");
      return this.#give(response, {
        client,
        user: client,
        scope: form["scope"] ?? "",
        resource: form["resource"] ?? "",
        refresh: false,
      });
    }
    if (form["grant_type"] === "refresh_token") {
      const refresh = this.refreshTokens.get(form["refresh_token"] ?? "");
      if (refresh === undefined || refresh.client !== client) return refuse("invalid_grant");
      if (refresh.used) {
        this.reuses++;
        this.#endFamily(refresh.family);
        return refuse("invalid_grant");
      }
      refresh.used = true;
      return this.#give(response, { ...refresh, refresh: this.givesRefresh });
    }
    const code = this.#codes.get(form["code"] ?? "");
    this.#codes.delete(form["code"] ?? "");
    const verifier = createHash("sha256")
      .update(form["code_verifier"] ?? "")
      .digest("base64url");
    const fits = code?.client === client && code.redirectUri === form["redirect_uri"] && code.challenge === verifier;
    if (code === undefined || !fits || code.resource !== form["resource"]) return refuse("invalid_grant");
    return this.#give(response, { ...code, refresh: this.givesRefresh });
  }

  #clientOf(form: Record<string, string>, request: IncomingMessage): string | undefined {
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const [id = "", secret] =
      basic === undefined ? [form["client_id"]] : Buffer.from(basic, "base64").toString("utf8").split(":");
    if (this.documents && id.startsWith("https://")) return id;
    const client = this.clients.get(id);
    return client !== undefined && client.secret === secret ? id : undefined;
  }

  #give(
    response: ServerResponse,
    {
      client,
      user,
      scope,
      resource,
      refresh,
      family = randomBytes(4).toString("hex"),
    }: Omit<Refresh, "used" | "family"> & {
      refresh: boolean;
      family?: string;
    },
  ): void {
    const access = this.#secret("access");
    const seconds = this.accessSeconds ?? 1e9;
    this.accessTokens.set(access, { user, scope, resource, expiresAt: this.#clock.now() + seconds * 1000, family });
    const next = this.#secret("refresh");
    if (refresh) this.refreshTokens.set(next, { client, user, scope, resource, family, used: false });
    sendJson(response, 200, {
      access_token: access,
      token_type: "Bearer",
      expires_in: this.accessSeconds,
      ...(refresh ? { refresh_token: next } : {}),
      ...(scope === "" ? {} : { scope }),
    });
  }

  #revoke(token: string, response: ServerResponse): void {
    this.revoked.push(token);
    const family = this.refreshTokens.get(token)?.family ?? this.accessTokens.get(token)?.family;
    if (family !== undefined) this.#endFamily(family);
    response.writeHead(200).end();
  }

  #endFamily(family: string): void {
    for (const [token, { family: its }] of this.accessTokens) if (its === family) this.accessTokens.delete(token);
    for (const refresh of this.refreshTokens.values()) if (refresh.family === family) refresh.used = true;
  }

  #secret(kind: string): string {
    const secret = `${kind}-${randomBytes(18).toString("base64url")}`;
    this.secrets.push(secret);
    return secret;
  }
}

/** Does what a person's browser does: follows the redirects, and ends at the page of the loopback server. */
export async function browse(url: string | URL): Promise<{ status: number; text: string; location: string }> {
  let at = new URL(url);
  for (let hops = 0; hops < 5; hops++) {
    const response = await fetch(at, { redirect: "manual" });
    const location = response.headers.get("location");
    if (location === null) return { status: response.status, text: await response.text(), location: at.href };
    at = new URL(location, at);
  }
  throw new Error("too many redirects");
}
