/** Routes that log a browser in to the web page, and out. */
import { API_PATH } from "../../contract/rest.ts";
import type { Caller } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { HttpConfig } from "../../model/config.ts";
import { isJsonObject } from "../../model/json.ts";
import { notFoundAt, refuseMethodUnless, sendJson } from "./http-responses.ts";
import type { HttpExchange, HttpRoute } from "./http-exchange.ts";
import { isOwnPage, pageKeys, type PageLogins, setCookie } from "./page-logins.ts";

const LOGIN_PATH = `${API_PATH}/login`;
const LOGOUT_PATH = `${API_PATH}/logout`;
export const LOGIN_LINKS_PATH = `${API_PATH}/login-links`;

export type LoginEvent = "login.link" | "login" | "logout";

interface LoginOptions {
  readonly logins: PageLogins;
  readonly http: () => HttpConfig;
  /** Part of the cookie's name. */
  readonly cookieScope: () => number | string;
  /** Who a token belongs to. Fails with `unauthorized`. */
  readonly identify: (token: string) => Caller | Promise<Caller>;
  /** Address of the hub as this client knows it. */
  readonly baseOf: (exchange: HttpExchange) => string;
  readonly onLogin?: ((event: LoginEvent, caller: Caller) => void) | undefined;
}

export function loginRoutes(parts: LoginOptions): HttpRoute[] {
  return [
    { path: LOGIN_PATH, access: "public", handle: (exchange) => login(exchange, parts) },
    { path: LOGOUT_PATH, access: "public", handle: (exchange) => logout(exchange, parts) },
    { path: LOGIN_LINKS_PATH, access: "admin", handle: (exchange) => issueLoginLink(exchange, parts) },
  ];
}

/** The code is after the `#`, which browsers never send: it is in no log and no Referer. */
export function loginLink(base: string, logins: PageLogins): string {
  return `${base}/#login=${logins.issueCode()}`;
}

async function login(exchange: HttpExchange, parts: LoginOptions): Promise<void> {
  if (!isPost(exchange, LOGIN_PATH)) return;
  const { logins, http, cookieScope, identify, onLogin } = parts;
  const body = parseLogin(await exchange.readBody());
  // Otherwise a foreign page could log a browser in as another user.
  if (!isOwnPage(exchange.request, http())) {
    throw new ToolcribError("denied", "Only the hub's own page can log in.", {
      hint: "Programs send their token as `Authorization: Bearer …` instead.",
    });
  }
  const { code, token } = body;
  const caller =
    typeof code === "string"
      ? await logins.redeem(code)
      : typeof token === "string"
        ? await identify(token)
        : undefined;
  if (caller === undefined) {
    throw new ToolcribError("unauthorized", "This link was already used, or has expired.", {
      hint: "`toolcrib login` prints a new one.",
    });
  }
  // A user without it has logins of their own at remote servers to look after.
  if (!caller.scopes.has("admin") && (caller.user === undefined || !caller.scopes.has("call"))) {
    throw new ToolcribError("denied", "This token lacks the scope admin, which the page needs.", {
      hint: "Use a token with the scope admin, or the link that `toolcrib login` prints.",
    });
  }
  const { cookie, pageKey } = await logins.open(caller);
  onLogin?.("login", caller);
  sendJson(
    exchange.response,
    200,
    { ok: true, pageKey },
    { "set-cookie": setCookie(exchange.request, http(), cookieScope(), cookie) },
  );
}

async function logout(exchange: HttpExchange, { logins, http, cookieScope, onLogin }: LoginOptions): Promise<void> {
  if (!isPost(exchange, LOGOUT_PATH)) return;
  const keys = pageKeys(exchange.request, http(), cookieScope());
  const session = keys && (await logins.find(keys));
  if (session !== undefined) {
    await logins.end(session);
    onLogin?.("logout", session.caller);
  }
  sendJson(
    exchange.response,
    200,
    { ok: true },
    { "set-cookie": setCookie(exchange.request, http(), cookieScope(), null) },
  );
}

function issueLoginLink(exchange: HttpExchange, { logins, baseOf, onLogin }: LoginOptions): void {
  if (!isPost(exchange, LOGIN_LINKS_PATH)) return;
  onLogin?.("login.link", exchange.caller);
  sendJson(exchange.response, 200, { url: loginLink(baseOf(exchange), logins) });
}

function isPost(exchange: HttpExchange, path: string): boolean {
  if (exchange.path !== path) throw notFoundAt(exchange.path);
  return !refuseMethodUnless(exchange, ["POST"]);
}

function parseLogin(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new ToolcribError("invalid_arguments", 'The body must be JSON with a "code" or a "token".');
}
