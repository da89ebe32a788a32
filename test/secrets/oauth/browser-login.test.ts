import { readdirSync, statSync } from "node:fs";
import { freePort } from "../../support/shared-hub.ts";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AuthorizationServer, browse } from "../../doubles/authorization-server.ts";
import { oauthBench } from "./bench.ts";

const SETTINGS = { type: "oauth" } as const;

describe("logging in", () => {
  it("[guard-11a] registers, sends PKCE and the resource, and keeps tokens for the owner's eyes only", async () => {
    const { authorization, server, login, oauth, key, dir } = await oauthBench();
    let shown: URL | undefined;
    let page = "";
    const grant = await login({
      onAuthorize: (url) => {
        shown = url;
        void browse(url).then(({ text }) => (page = text));
      },
    });
    expect(authorization.registrations).toHaveLength(1);
    expect(authorization.registrations[0]).toMatchObject({
      application_type: "native",
      token_endpoint_auth_method: "none",
    });
    expect(shown?.searchParams.get("code_challenge_method")).toBe("S256");
    expect(shown?.searchParams.get("resource")).toBe(server.url);
    expect(shown?.searchParams.get("scope")).toBe("tools offline_access");
    expect(shown?.searchParams.get("redirect_uri")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback\/[\w-]{16}$/);
    expect(authorization.tokenRequests[0]).toMatchObject({ grant_type: "authorization_code", resource: server.url });
    expect(authorization.check(grant.tokens?.access ?? "")?.user).toBe("alice");
    expect(grant).toMatchObject({ issuer: authorization.url, resource: server.url, client: { origin: "registered" } });
    expect(await oauth.store.read(key)).toEqual(grant);

    const files = readdirSync(dir);
    expect(files).toHaveLength(1);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, files[0] ?? "")).mode & 0o777).toBe(0o600);
    await expect.poll(() => page).toContain("You may close this page");
    for (const secret of authorization.secrets) expect(page).not.toContain(secret);
  });

  it("[guard-11a] finds the metadata at the well-known address too", async () => {
    const { server, login } = await oauthBench();
    server.terse = true;
    expect((await login()).tokens).toBeDefined();
  });

  it("[guard-11a] keeps its registration for the next login", async () => {
    const { authorization, login } = await oauthBench();
    const first = await login();
    const second = await login();
    expect(second.client).toEqual(first.client);
    expect(authorization.registrations).toHaveLength(1);
    expect(second.tokens?.access).not.toBe(first.tokens?.access);
  });

  it("[guard-11a] uses a client registered by hand, with its secret kept out of the file", async () => {
    const { authorization, login } = await oauthBench();
    const redirectPort = await freePort();
    authorization.registers = false;
    authorization.addClient("mine", "configured-secret", [`http://127.0.0.1:${redirectPort}/callback`]);
    const grant = await login({
      settings: { ...SETTINGS, clientId: "mine", clientSecret: "configured-secret", redirectPort },
    });
    expect(grant.client).toMatchObject({ id: "mine", origin: "configured" });
    expect(JSON.stringify(grant)).not.toContain("configured-secret");
  });

  it("[sound-02a] has another address for each authorization server, or none where two could be mixed up", async () => {
    const { authorization, login } = await oauthBench();
    authorization.addClient("mine", undefined, []);
    const shown: string[] = [];
    const onAuthorize = (url: URL): void => {
      shown.push(new URL(url.searchParams.get("redirect_uri") ?? "").pathname);
      throw new Error("seen");
    };
    const sharedWith = [{ ...SETTINGS, clientId: "other" }];
    const settings = { ...SETTINGS, clientId: "mine" };
    // Its answers say whose they are.
    await expect(login({ settings, sharedWith, onAuthorize })).rejects.toThrow("seen");
    authorization.promisesIss = false;
    await expect(login({ settings, sharedWith, onAuthorize })).rejects.toMatchObject({ code: "invalid_config" });
    await expect(login({ settings, sharedWith: [], onAuthorize })).rejects.toThrow("seen");
    const issuer = `${authorization.url}/`;
    await expect(
      login({ settings, sharedWith: [{ ...SETTINGS, clientId: "other", issuer }], onAuthorize }),
    ).rejects.toThrow("seen");
    await expect(login({ settings: { ...settings, ownRedirect: true }, sharedWith, onAuthorize })).rejects.toThrow(
      "seen",
    );
    expect(shown).toEqual(["/callback", "/callback", "/callback", "/callback/srv"]);
  });

  it("[guard-11a] uses a client metadata document where that is supported", async () => {
    const { authorization, login } = await oauthBench();
    authorization.documents = true;
    const clientMetadataUrl = "https://example.com/toolcrib/client.json";
    expect((await login({ settings: { ...SETTINGS, clientMetadataUrl } })).client).toMatchObject({
      id: clientMetadataUrl,
    });
    expect(authorization.registrations).toEqual([]);
  });

  it("[guard-11a] says what to do where clients cannot register themselves", async () => {
    const { authorization, login } = await oauthBench();
    authorization.registers = false;
    await expect(login()).rejects.toMatchObject({
      code: "unauthorized",
      hint: expect.stringContaining("auth.clientId"),
    });
  });

  it("says that the person did not agree", async () => {
    const { authorization, login } = await oauthBench();
    authorization.denies = true;
    await expect(login()).rejects.toThrow(/refused: access_denied/);
  });

  it("gives up after its time, and when cancelled", async () => {
    const { login } = await oauthBench();
    const refuse = (): void => {
      throw new Error("no browser");
    };
    // A wait that went on would end in a rejection that no one handles, which fails this run.
    await expect(login({ onAuthorize: refuse, timeoutMs: 1 })).rejects.toThrow("no browser");
    await expect(login({ onAuthorize: () => {}, timeoutMs: 20 })).rejects.toMatchObject({ code: "timeout" });
    const cancel = new AbortController();
    const running = login({ onAuthorize: () => cancel.abort(), signal: cancel.signal });
    await expect(running).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("[guard-11d] what comes back is checked", () => {
  it("turns a callback with another state away and goes on waiting", async () => {
    const { authorization, login } = await oauthBench();
    authorization.changesState = true;
    const pages: { status: number; text: string }[] = [];
    const grant = await login({
      onAuthorize: (url) => {
        void browse(url).then(async (page) => {
          pages.push(page);
          authorization.changesState = false;
          pages.push(await browse(url));
        });
      },
    });
    expect(pages[0]).toMatchObject({ status: 400, text: expect.stringContaining("does not belong to a login") });
    expect(grant.tokens).toBeDefined();
    // The code that came with the forged state was never redeemed.
    expect(authorization.tokenRequests).toHaveLength(1);
  });

  it("takes no code that another issuer claims, or that no issuer does", async () => {
    for (const iss of ["https://evil.example", undefined]) {
      const { authorization, login, oauth, key } = await oauthBench();
      authorization.iss = iss;
      await expect(login()).rejects.toThrow(/not from the authorization server that was asked/);
      expect(authorization.tokenRequests).toEqual([]);
      expect(await oauth.store.read(key)).toBeUndefined();
    }
  });

  it("believes no refusal that another issuer claims", async () => {
    const { authorization, login } = await oauthBench();
    authorization.iss = "https://evil.example";
    authorization.denies = true;
    await expect(login()).rejects.toThrow(/not from the authorization server that was asked/);
  });

  it("takes no metadata that are another issuer's", async () => {
    const { authorization, login } = await oauthBench();
    authorization.issuer = "https://evil.example";
    await expect(login()).rejects.toThrow(/not from the authorization server that was asked/);
    expect(authorization.registrations).toEqual([]);
  });

  it("takes no token for another address than the server's", async () => {
    const { server, login } = await oauthBench();
    server.resource = "https://bank.example/api";
    await expect(login()).rejects.toThrow(/tokens are for another address/);
  });

  it("takes no authorization server but the configured one", async () => {
    const { login } = await oauthBench();
    const settings = { ...SETTINGS, issuer: "https://login.example" };
    await expect(login({ settings })).rejects.toThrow(/`auth\.issuer` allows https:\/\/login\.example/);
  });

  it("registers anew at another authorization server, and shows it nothing of the first one", async () => {
    const { authorization, server, login, clock } = await oauthBench();
    const first = await login();
    const other = await AuthorizationServer.start(clock);
    try {
      server.names = other.url;
      const second = await login();
      expect(second.issuer).toBe(other.url);
      expect(other.registrations).toHaveLength(1);
      const told = JSON.stringify([other.registrations, other.tokenRequests]);
      for (const secret of authorization.secrets) expect(told).not.toContain(secret);
      expect(second.tokens?.access).not.toBe(first.tokens?.access);
    } finally {
      await other.close();
    }
  });

  it("does not show a configured client to an authorization server that it never saw", async () => {
    const { authorization, server, login, clock } = await oauthBench();
    const redirectPort = await freePort();
    authorization.addClient("mine", "configured-secret", [`http://127.0.0.1:${redirectPort}/callback`]);
    const settings = { ...SETTINGS, clientId: "mine", clientSecret: "configured-secret", redirectPort };
    await login({ settings });
    const other = await AuthorizationServer.start(clock);
    try {
      server.names = other.url;
      await expect(login({ settings })).rejects.toThrow(/the last login was at/);
      expect(other.tokenRequests).toEqual([]);
    } finally {
      await other.close();
    }
  });
});
