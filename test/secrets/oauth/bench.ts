/** A protected MCP server, its authorization server, and a place to keep what they give; all gone after the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { OAuthSettings } from "../../../src/model/server-spec.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import type { Grant, GrantKey } from "../../../src/secrets/oauth/grants.ts";
import { login, type LoginRequest } from "../../../src/secrets/oauth/browser-login.ts";
import { OAuth } from "../../../src/secrets/oauth/oauth.ts";
import { AuthorizationServer, browse } from "../../doubles/authorization-server.ts";
import { ProtectedServer } from "../../doubles/protected-server.ts";
import { ShiftedClock } from "../../doubles/shifted-clock.ts";

export interface OAuthBench {
  readonly clock: ShiftedClock;
  readonly authorization: AuthorizationServer;
  readonly server: ProtectedServer;
  readonly dir: string;
  readonly redactor: Redactor;
  readonly oauth: OAuth;
  readonly key: GrantKey;
  /** A second hub on the same home. */
  anotherOAuth(): OAuth;
  /** Logs in with a browser that agrees to everything. */
  login(more?: Partial<LoginRequest> & { settings?: OAuthSettings }): Promise<Grant>;
}

export async function oauthBench(): Promise<OAuthBench> {
  const clock = new ShiftedClock();
  const authorization = await AuthorizationServer.start(clock);
  const server = await ProtectedServer.start(authorization);
  const dir = join(mkdtempSync(join(tmpdir(), "toolcrib-oauth-")), "auth");
  onTestFinished(async () => {
    await Promise.all([authorization.close(), server.close()]);
    rmSync(join(dir, ".."), { recursive: true, force: true });
  });
  const redactor = new Redactor();
  const make = (): OAuth => new OAuth({ dir, clock, redactor });
  const oauth = make();
  const key = { server: "srv", url: server.url };
  return {
    clock,
    authorization,
    server,
    dir,
    redactor,
    oauth,
    key,
    anotherOAuth: make,
    login: (more = {}) =>
      login({
        key,
        settings: { type: "oauth" },
        sharedWith: [],
        store: oauth.store,
        clock,
        redactor,
        onAuthorize: (url) => void browse(url),
        ...more,
      }),
  };
}
