/** All that the config says about who may enter, made ready. A changed config makes a new one. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { HttpConfig } from "../../model/http-config.ts";
import { Authenticator } from "./authenticator.ts";
import { loadTokens } from "./bearer-tokens.ts";
import { hostInUrl, type HostRules, hostRules, isLoopbackHost, isWildcard } from "./hosts.ts";
import { AccessTokens } from "./oauth/access-tokens.ts";
import { isAudience } from "./oauth/resource.ts";

export interface Entrance {
  readonly http: HttpConfig;
  readonly hosts: HostRules;
  readonly authenticator: Authenticator;
  readonly requestsPerMinute: number;
}

export interface EntranceParts {
  readonly adminToken: string;
  readonly keySecret?: Uint8Array | undefined;
  readonly clock: Clock;
  readonly resolve: (text: string) => Promise<string>;
  readonly conceal: (value: string) => void;
  readonly warn: (message: string) => void;
  /** Paths that want credentials. */
  readonly guardedPaths: readonly string[];
  /** Known only once the listener is up. */
  readonly port: () => number;
}

const REQUESTS_PER_CALL = 60;

/** Of one caller. */
export function requestsPerMinute({ limits }: HttpConfig, callsPerMinute: number): number {
  return limits.requestsPerMinute ?? callsPerMinute * REQUESTS_PER_CALL;
}

/** Rejects with `invalid_config` for what would stand open, or could let nobody in. */
export async function makeEntrance(http: HttpConfig, callsPerMinute: number, parts: EntranceParts): Promise<Entrance> {
  assertGuarded(http);
  const { adminToken, keySecret, resolve, conceal, warn } = parts;
  const tokens = await loadTokens({ tokens: http.auth?.tokens ?? [], adminToken, keySecret, resolve, conceal, warn });
  return {
    http,
    hosts: hostRules(http),
    authenticator: new Authenticator({
      tokens,
      accessTokens: makeAccessTokens(http, parts),
      open: http.auth === undefined,
    }),
    requestsPerMinute: requestsPerMinute(http, callsPerMinute),
  };
}

function assertGuarded({ host, auth }: HttpConfig): void {
  if (auth === undefined && !isLoopbackHost(host)) {
    throw new ToolcribError(
      "invalid_config",
      `http.host is ${host}, and everybody who reaches it could use every tool.`,
      {
        hint: "Set http.auth, or listen at 127.0.0.1.",
      },
    );
  }
  if (auth !== undefined && auth.tokens === undefined && auth.oauth === undefined) {
    throw new ToolcribError("invalid_config", "http.auth names neither tokens nor oauth.", {
      hint: "Add one of them, or take http.auth out to let in everybody on this machine.",
    });
  }
}

function makeAccessTokens(http: HttpConfig, { clock, guardedPaths, port }: EntranceParts): AccessTokens | undefined {
  const settings = http.auth?.oauth;
  if (settings === undefined) return undefined;
  const { audience } = settings;
  if (audience === undefined && http.publicUrl === undefined && isWildcard(http.host)) {
    throw new ToolcribError("invalid_config", "Nobody can tell which access tokens are meant for this hub.", {
      hint: "Set http.publicUrl or http.auth.oauth.audience.",
    });
  }
  const isOurs =
    audience === undefined
      ? (given: string) => isAudience(given, ownAddresses(http, port()), guardedPaths)
      : (given: string) => given === audience;
  return new AccessTokens({ settings, isOurs, clock });
}

/** Where the hub is, without a slash at the end. */
function ownAddresses({ publicUrl, host }: HttpConfig, port: number): string[] {
  if (publicUrl !== undefined) return [publicUrl.replace(/\/$/, "")];
  const names = isLoopbackHost(host)
    ? new Set(["localhost", "127.0.0.1", "[::1]", hostInUrl(host)])
    : [hostInUrl(host)];
  return [...names].map((name) => `http://${name}:${port}`);
}
