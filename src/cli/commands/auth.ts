/** `toolcrib auth`: logs in to and out of remote servers. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import { findHub } from "../../hub/activity/hub-records.ts";
import { type LoginTarget, loginTarget, sharedRedirects } from "../../hub/servers/server-logins.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { AuthInfo, ServerInfo } from "../../model/server-state.ts";
import { login } from "../../secrets/oauth/browser-login.ts";
import type { Grant } from "../../secrets/oauth/grants.ts";
import { authInfo, OAuth } from "../../secrets/oauth/oauth.ts";
import { logout } from "../../secrets/oauth/token-requests.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { loadCommandConfig, unknownServer } from "../command-config.ts";
import { exitCodeOf, type Invocation, unknownAction } from "../command.ts";
import { RemoteHub } from "../remote-hub.ts";
import { withHub } from "../running-hub.ts";
import { type Column, counted } from "../table.ts";

export function run(invocation: Invocation): Promise<number> {
  const [action = "", server] = invocation.args;
  if (action === "status") return showStatus(invocation, server);
  if (action !== "login" && action !== "logout") throw unknownAction("auth", action, "Use login, logout or status.");
  if (server === undefined)
    throw new ToolcribError("invalid_arguments", `Name the server: toolcrib auth ${action} <server>`);
  return action === "login" ? logIn(invocation, server) : logOut(invocation, server);
}

async function logIn(invocation: Invocation, id: string): Promise<number> {
  const { out, flags, env } = invocation;
  const user = flags.text("user");
  const config = await loadCommandConfig(invocation);
  const logins = new Logins(config, env);
  const { key, settings } = await logins.target(id, user);
  if (settings.type === "client-credentials") {
    const message = `"${id}" uses client credentials: Toolcrib logs in by itself when it connects.`;
    throw new ToolcribError("invalid_arguments", message);
  }
  const { store } = logins.oauth;
  const onAuthorize = (url: URL): void => {
    const say = (text: string): void => (out.json ? out.note(text) : out.line(text));
    say(`To log in to ${id}, open this URL in a browser on this machine:\n\n  ${url.href}\n`);
    if (flags.has("browser")) openBrowser(url, env);
  };
  const sharedWith = sharedRedirects(config.servers, id);
  const { redactor } = logins;
  const grant = await login({ key, settings, sharedWith, store, clock: systemClock, redactor, onAuthorize });
  const connected = user === undefined ? await connectAtHub(invocation, id) : undefined;
  if (connected !== undefined) {
    reportLogin(invocation, grant, connected);
    return connected.status === "connected" ? 0 : exitCodeOf("server_unavailable");
  }
  return withHub(
    invocation,
    async ({ hub }) => {
      const info = await hub.servers.connect(id, { user });
      reportLogin(invocation, grant, info);
      return info.status === "connected" ? 0 : exitCodeOf("server_unavailable");
    },
    { config },
  );
}

/** Makes the hub of this config use the login now, if one runs. A hub that does not do it is none for this command. */
async function connectAtHub({ flags, env, cwd }: Invocation, id: string): Promise<ServerInfo | undefined> {
  const home = toolcribHome(env);
  const running = findHub(home, configFiles({ config: flags.text("config"), env, cwd, home }));
  if (running === undefined) return undefined;
  const path = `/api/v1/mcp/servers/${encodeURIComponent(id)}/connect`;
  const answer = await new RemoteHub(running.url, running.token).request("POST", path, {}).catch(() => undefined);
  return OPERATIONS.connectServer.output.safeParse(answer).data?.server;
}

function reportLogin({ out }: Invocation, grant: Grant, info: ServerInfo): void {
  const { toolCount, lastError, status } = info;
  const isUp = status === "connected";
  if (out.json) return out.value({ ...rowOf(grant, true), toolCount, error: isUp ? null : lastError });
  out.line(`Logged in to ${grant.server}${grant.user === undefined ? "" : ` as ${grant.user}`} (${grant.issuer}).`);
  if (isUp) out.line(`The connection works: ${counted(toolCount, "tool")}.`);
  else out.warn(`The login was saved, but the server cannot be used: ${lastError ?? info.state}`);
}

async function logOut(invocation: Invocation, id: string): Promise<number> {
  const { out, flags, env } = invocation;
  const user = flags.text("user");
  const logins = new Logins(await loadCommandConfig(invocation), env);
  const { key, settings } = await logins.target(id, user);
  const result = await logout(key, logins.oauth.store, settings.type === "oauth" ? settings : undefined);
  if (out.json) out.value({ server: id, user, ...result });
  else if (!result.removed) out.line(`There is no login for ${id}.`);
  else out.line(`Logged out of ${id}; ${REVOKED[result.revoked]}`);
  return 0;
}

const REVOKED = {
  yes: "the tokens were revoked.",
  unsupported: "the tokens were deleted. The authorization server cannot revoke them; they expire by themselves.",
  failed: "the tokens were deleted but not revoked: the authorization server did not respond correctly.",
  nothing: "there were no tokens.",
} as const;

interface LoginRow extends AuthInfo {
  readonly server: string;
  readonly user?: string;
  readonly issuer: string | null;
  readonly scope: string | null;
  /** Whether it is renewed without a person. */
  readonly renews: boolean;
  readonly configured: boolean;
}

async function showStatus(invocation: Invocation, id: string | undefined): Promise<number> {
  const nothing = "There are no logins. Log in to a server with toolcrib auth login <server>.";
  invocation.out.list(COLUMNS, await loginRows(invocation, id), nothing);
  return 0;
}

async function loginRows(invocation: Invocation, id: string | undefined): Promise<LoginRow[]> {
  const config = await loadCommandConfig(invocation);
  const logins = new Logins(config, invocation.env);
  const grants = (await logins.oauth.store.list()).filter((grant) => id === undefined || grant.server === id);
  const specs = config.servers.filter((spec) => id === undefined || spec.id === id);
  if (id !== undefined && specs.length === 0 && grants.length === 0) await logins.target(id, undefined);
  const missing = specs.flatMap(({ id: server, auth }): LoginRow[] => {
    const isUsed = auth?.type === "oauth" || auth?.type === "client-credentials";
    if (!isUsed || grants.some((grant) => grant.server === server)) return [];
    return [
      { server, ...authInfo(auth.type, undefined, 0), issuer: null, scope: null, renews: false, configured: true },
    ];
  });
  const known = new Set(config.servers.map((spec) => spec.id));
  return [...grants.map((grant) => rowOf(grant, known.has(grant.server))), ...missing];
}

function rowOf(grant: Grant, configured: boolean): LoginRow {
  const { server, user, type, issuer, tokens } = grant;
  return {
    server,
    user,
    ...authInfo(type, grant, systemClock.now()),
    issuer,
    scope: tokens?.scope ?? null,
    renews: type === "client-credentials" || tokens?.refresh !== undefined,
    configured,
  };
}

const COLUMNS: Column<LoginRow>[] = [
  { title: "SERVER", cell: ({ server, configured }) => (configured ? server : `${server} (not in the config)`) },
  { title: "USER", cell: ({ user }) => user ?? "-" },
  { title: "STATE", cell: ({ state }) => state },
  {
    title: "EXPIRES",
    cell: ({ expiresAt, renews }) =>
      `${expiresAt ?? "-"}${expiresAt !== undefined && renews ? " (renews automatically)" : ""}`,
  },
  { title: "ISSUER", cell: ({ issuer }) => issuer ?? "-", shrink: true },
  { title: "SCOPES", cell: ({ scope }) => scope ?? "-", shrink: true },
];

/** The logins of this home, without a hub. */
class Logins {
  readonly oauth: OAuth;
  readonly redactor = new Redactor();
  readonly #config: LoadedConfig;
  readonly #secrets: Secrets;

  constructor(config: LoadedConfig, env: NodeJS.ProcessEnv) {
    const home = toolcribHome(env);
    const { redactor } = this;
    this.#config = config;
    this.#secrets = new Secrets({ env, home, redactor, exec: config.config.secrets.exec });
    this.oauth = new OAuth({ dir: join(home, "auth"), clock: systemClock, redactor });
  }

  target(id: string, user: string | undefined): Promise<LoginTarget> {
    const spec = this.#config.servers.find((each) => each.id === id);
    if (spec === undefined) throw unknownServer(id, this.#config.servers);
    return loginTarget(spec, this.#secrets, user);
  }
}

/** Opens a URL that was checked to be https or on this machine. Failures are ignored: the URL is printed too. */
function openBrowser(url: URL, env: NodeJS.ProcessEnv): void {
  const [program, ...args] = browserCommand(url.href, process.platform);
  // Without a shell, which would interpret an ampersand in the URL.
  const child = spawn(program, args, { env, stdio: "ignore", detached: true, windowsHide: true });
  child.on("error", () => {});
  child.unref();
}

export function browserCommand(address: string, platform: NodeJS.Platform): [program: string, ...args: string[]] {
  if (platform === "darwin") return ["open", address];
  // Not `start`: it belongs to cmd.exe, whose quoting does not fit URLs.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler", address];
  return ["xdg-open", address];
}
