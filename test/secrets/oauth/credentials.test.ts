import { execFile } from "node:child_process";
import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { AuthSettings, OAuth, ServerCredentials } from "../../../src/secrets/oauth/oauth.ts";
import { logout } from "../../../src/secrets/oauth/token-requests.ts";
import { AuthorizationServer } from "../../doubles/authorization-server.ts";
import { oauthBench, type OAuthBench } from "./bench.ts";

const HOUR = 3600_000;

async function credentialsOf(
  bench: OAuthBench,
  settings: AuthSettings = { type: "oauth" },
  oauth: OAuth = bench.oauth,
) {
  const credentials = await oauth.credentialsFor(bench.key, settings);
  if (credentials === undefined) throw new Error("no credentials");
  return credentials;
}

function tokenOf(headers: Record<string, string>): string {
  return headers["authorization"]?.replace("Bearer ", "") ?? "";
}

function refuse(credentials: ServerCredentials, sent: Record<string, string>, attempt = 1): Promise<boolean> {
  return credentials.rejected({ status: 401, challenge: undefined, sent, attempt });
}

describe("[guard-11c] renewing", () => {
  it("leaves a token alone until a minute before its end", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const first = await credentials.headers();
    bench.clock.shift(HOUR - 120_000);
    expect(await credentials.headers()).toEqual(first);
    bench.clock.shift(70_000);
    const second = await credentials.headers();
    expect(second).not.toEqual(first);
    expect(bench.authorization.check(tokenOf(second))?.user).toBe("alice");
    expect(bench.authorization.tokenRequests.at(-1)).toMatchObject({
      grant_type: "refresh_token",
      resource: bench.server.url,
    });
  });

  it("refreshes once for 50 calls at the same time, from one hub and from two", async () => {
    const bench = await oauthBench();
    await bench.login();
    bench.clock.shift(2 * HOUR);
    bench.authorization.tokenDelayMs = 50;
    const hubs = [await credentialsOf(bench), await credentialsOf(bench, { type: "oauth" }, bench.anotherOAuth())];
    const got = await Promise.all(Array.from({ length: 25 }, () => hubs.map((hub) => hub.headers())).flat());
    expect(got).toHaveLength(50);
    expect(new Set(got.map(tokenOf)).size).toBe(1);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(bench.authorization.reuses).toBe(0);
  });

  it("refreshes once for 50 calls whose token the server refused", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    bench.authorization.accessTokens.clear();
    expect(await Promise.all(Array.from({ length: 50 }, () => refuse(credentials, sent)))).not.toContain(false);
    // One that comes late, with the old token, does not burn the new one.
    const fresh = await credentials.headers();
    expect(await refuse(credentials, sent)).toBe(true);
    expect(await credentials.headers()).toEqual(fresh);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(bench.authorization.reuses).toBe(0);
  });

  it("refreshes once for two processes", async () => {
    const bench = await oauthBench();
    // Over at once, so that both find it so.
    bench.authorization.accessSeconds = 1;
    await bench.login();
    bench.authorization.accessSeconds = 3600;
    bench.authorization.tokenDelayMs = 300;
    const script = join(import.meta.dirname, "../../fixtures/token-user.ts");
    const run = () => promisify(execFile)(process.execPath, [script, bench.dir, bench.server.url, "25"]);
    const outputs = await Promise.all([run(), run()]);
    const tokens = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
    expect(tokens).toHaveLength(2);
    expect(new Set(tokens).size).toBe(1);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(bench.authorization.reuses).toBe(0);
  });

  it("uses what another process has renewed", async () => {
    const bench = await oauthBench();
    await bench.login();
    const [one, other] = [
      await credentialsOf(bench),
      await credentialsOf(bench, { type: "oauth" }, bench.anotherOAuth()),
    ];
    const sent = await one.headers();
    await refuse(other, await other.headers());
    expect(await refuse(one, sent)).toBe(true);
    expect(await one.headers()).toEqual(await other.headers());
    expect(bench.authorization.reuses).toBe(0);
  });

  it("does not renew again and again for a server that refuses fresh tokens", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    await refuse(credentials, sent);
    await expect(refuse(credentials, await credentials.headers(), 2)).rejects.toThrow(/refuses a token that is fresh/);
  });

  it("goes on with a token that has a minute left while the authorization server is down", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    bench.authorization.down = true;
    bench.clock.shift(HOUR - 30_000);
    expect(await credentials.headers()).toEqual(sent);
    bench.clock.shift(HOUR);
    await expect(credentials.headers()).rejects.toMatchObject({ code: "server_unavailable" });
    expect(credentials.info?.state).toBe("ok");
    bench.authorization.down = false;
    expect(await credentials.headers()).not.toEqual(sent);
  });

  it("asks only the issuer that the token is from", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    const other = await AuthorizationServer.start(bench.clock);
    try {
      bench.server.names = other.url;
      bench.clock.shift(2 * HOUR);
      expect(await credentials.headers()).not.toEqual(sent);
      expect(other.tokenRequests).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe("[guard-11e] when somebody has to log in", () => {
  it("says so, with the command", async () => {
    const bench = await oauthBench();
    const credentials = await credentialsOf(bench);
    await expect(credentials.headers()).rejects.toMatchObject({
      code: "unauthorized",
      message: "login needed: toolcrib auth login srv",
      hint: expect.stringContaining("toolcrib auth login srv"),
    });
    expect(credentials.info).toEqual({ type: "oauth", state: "login_needed" });
    expect(await credentials.loggedInSince()).toBe(false);
    await bench.login();
    expect(await credentials.loggedInSince()).toBe(true);
    expect(bench.authorization.check(tokenOf(await credentials.headers()))).toBeDefined();
    expect(credentials.info).toMatchObject({ state: "ok", expiresAt: expect.any(String) });
  });

  it("finds out when the login was ended elsewhere, and asks only once", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    for (const token of bench.authorization.refreshTokens.keys()) bench.authorization.refreshTokens.delete(token);
    await expect(refuse(credentials, sent)).rejects.toThrow(/login needed: toolcrib auth login srv/);
    await expect(credentials.headers()).rejects.toThrow(/login needed/);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(credentials.info?.state).toBe("login_needed");
    // The registration is kept for the next login.
    await bench.login();
    expect(bench.authorization.registrations).toHaveLength(1);
  });

  it("registers anew when the client is gone", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    bench.authorization.clients.clear();
    bench.clock.shift(2 * HOUR);
    await expect(credentials.headers()).rejects.toThrow(/login needed/);
    await bench.login();
    expect(bench.authorization.registrations).toHaveLength(2);
    expect(bench.authorization.check(tokenOf(await credentials.headers()))).toBeDefined();
  });

  it("warns before a login without a refresh token ends", async () => {
    const bench = await oauthBench();
    bench.authorization.givesRefresh = false;
    bench.authorization.accessSeconds = 48 * 3600;
    await bench.login();
    const credentials = await credentialsOf(bench);
    await credentials.headers();
    expect(credentials.info?.state).toBe("ok");
    bench.clock.shift(25 * HOUR);
    expect(credentials.info?.state).toBe("expires_soon");
    bench.clock.shift(24 * HOUR);
    expect(credentials.info?.state).toBe("login_needed");
    await expect(credentials.headers()).rejects.toThrow(/login needed: .* \(the login is over\)/);
  });

  it("asks for the permissions that were missing at the next login", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench);
    const sent = await credentials.headers();
    const challenge = 'Bearer error="insufficient_scope", scope="write"';
    const refused = credentials.rejected({ status: 403, challenge, sent, attempt: 1 });
    await expect(refused).rejects.toThrow(/lacks permissions \(write\)/);
    expect((await bench.login()).tokens?.scope?.split(" ")).toEqual(expect.arrayContaining(["tools", "write"]));
    // The hub that was refused finds the new login by itself.
    expect(await credentials.rejected({ status: 403, challenge, sent, attempt: 1 })).toBe(true);
    expect(bench.authorization.check(tokenOf(await credentials.headers()))?.scope).toContain("write");
  });
});

describe("[guard-11d] whose token it is", () => {
  it("is kept apart by server, address and user", async () => {
    const { oauth, key, login } = await oauthBench();
    await login();
    expect(await oauth.store.read({ ...key, server: "other" })).toBeUndefined();
    expect(await oauth.store.read({ ...key, url: `${key.url}/x` })).toBeUndefined();
    expect(await oauth.store.read({ ...key, user: "bob" })).toBeUndefined();
    // A query may hold a key that changes; it does not change whose login it is.
    expect(await oauth.store.read({ ...key, url: `${key.url}?key=1` })).toBeDefined();
  });

  it("is not used by another client after the config has changed", async () => {
    const bench = await oauthBench();
    await bench.login();
    const credentials = await credentialsOf(bench, { type: "oauth", clientId: "another" });
    await expect(credentials.headers()).rejects.toThrow(/login needed/);
    expect(bench.authorization.tokenRequests).toHaveLength(1);
  });

  it("stays for the owner's eyes only when somebody opened the file up", async () => {
    const bench = await oauthBench();
    await bench.login();
    const file = bench.oauth.store.fileOf(bench.key);
    chmodSync(file, 0o644);
    bench.clock.shift(2 * HOUR);
    await (await credentialsOf(bench)).headers();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("is masked from the moment it is used", async () => {
    const bench = await oauthBench();
    await bench.login();
    bench.clock.shift(2 * HOUR);
    const credentials = await credentialsOf(bench);
    await credentials.headers();
    const text = bench.authorization.secrets.filter((secret) => /^(access|refresh)/.test(secret)).join(" ");
    for (const secret of bench.authorization.secrets) expect(bench.redactor.mask(text)).not.toContain(secret);
  });
});

describe("[guard-11b] client credentials", () => {
  const settings = { type: "client-credentials", clientId: "robot", clientSecret: "robot-secret" } as const;

  it("get a token without a person, once for all, and another one when it ends", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "robot-secret");
    const credentials = await credentialsOf(bench, settings);
    const got = await Promise.all(Array.from({ length: 20 }, () => credentials.headers()));
    expect(new Set(got.map(tokenOf)).size).toBe(1);
    expect(bench.authorization.check(tokenOf(got[0] ?? {}))).toMatchObject({
      user: "robot",
      resource: bench.server.url,
    });
    // Another process uses the same one.
    const other = await credentialsOf(bench, settings, bench.anotherOAuth());
    expect(await other.headers()).toEqual(got[0]);
    expect(bench.authorization.tokenRequests).toHaveLength(1);
    bench.clock.shift(2 * HOUR);
    expect(await credentials.headers()).not.toEqual(got[0]);
    expect(credentials.info).toMatchObject({ type: "client-credentials", state: "ok" });
  });

  it("ask for the configured scopes, at the configured address", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "robot-secret");
    const tokenUrl = `${bench.authorization.url}/token`;
    const credentials = await credentialsOf(bench, { ...settings, scopes: ["a", "b"], tokenUrl });
    await credentials.headers();
    expect(bench.authorization.tokenRequests[0]).toMatchObject({ grant_type: "client_credentials", scope: "a b" });
  });

  it("get more permissions when the server wants them", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "robot-secret");
    const credentials = await credentialsOf(bench, settings);
    const sent = await credentials.headers();
    const challenge = 'Bearer error="insufficient_scope", scope="write"';
    expect(await credentials.rejected({ status: 403, challenge, sent, attempt: 1 })).toBe(true);
    expect(bench.authorization.check(tokenOf(await credentials.headers()))?.scope).toBe("tools write");
  });

  it("that are wrong are told of without being shown", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "another-secret");
    const error: unknown = await (await credentialsOf(bench, settings)).headers().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "unauthorized", message: expect.stringContaining("invalid_client") });
    expect(JSON.stringify(error)).not.toContain("robot-secret");
    expect(String(error)).not.toContain("robot-secret");
  });

  it("are shown to no other authorization server later", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "robot-secret");
    const credentials = await credentialsOf(bench, settings);
    await credentials.headers();
    const other = await AuthorizationServer.start(bench.clock);
    try {
      bench.server.names = other.url;
      bench.clock.shift(2 * HOUR);
      await expect(credentials.headers()).rejects.toThrow(/the secret was given to/);
      expect(other.tokenRequests).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe("[guard-11e] logging out", () => {
  it("revokes the tokens and forgets them", async () => {
    const bench = await oauthBench();
    const { tokens } = await bench.login();
    expect(await logout(bench.key, bench.oauth.store)).toEqual({ removed: true, revoked: "yes" });
    expect(bench.authorization.revoked).toEqual([tokens?.refresh, tokens?.access]);
    expect(await bench.oauth.store.list()).toEqual([]);
    expect(await logout(bench.key, bench.oauth.store)).toEqual({ removed: false, revoked: "nothing" });
  });

  it("forgets them also where they cannot be revoked", async () => {
    const bench = await oauthBench();
    await bench.login();
    bench.authorization.revokes = false;
    expect(await logout(bench.key, bench.oauth.store)).toEqual({ removed: true, revoked: "unsupported" });
    await bench.login();
    bench.authorization.down = true;
    expect(await logout(bench.key, bench.oauth.store)).toEqual({ removed: true, revoked: "failed" });
    expect(await bench.oauth.store.list()).toEqual([]);
  });
});
