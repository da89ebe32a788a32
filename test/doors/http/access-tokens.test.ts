import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import type { HttpListener } from "../../../src/doors/http/listener.ts";
import type { Caller } from "../../../src/model/caller.ts";
import { type Answer as DoubleAnswer, type Asked, HttpDouble } from "../../doubles/http-double.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type AskOptions, type Answer, config, place, type Place } from "./support.ts";
import { eventually } from "../../support/eventually.ts";

interface Seen {
  readonly caller: Omit<Caller, "scopes"> & { readonly scopes: string[] };
}

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
/** With `undefined` for a claim that shall be missing. */
type Claims = Readonly<Record<string, unknown>>;

interface Signing {
  readonly kid?: string;
  readonly alg?: string;
  readonly typ?: string;
  readonly key?: Pair["privateKey"] | Uint8Array;
}

/** An authorization server as far as a resource server sees it. */
class Issuer {
  readonly clock = new FakeClock();
  readonly double: HttpDouble;
  readonly keys = new Map<string, Pair>();
  /** As it is served; `publish` brings it up to date. */
  served: object = {};
  issuerPath = "";
  metadata: "oauth" | "oidc" | "oidc-path" | "none" = "oauth";
  metadataIssuer: string | undefined;

  private constructor() {
    this.double = new HttpDouble((asked) => this.#answer(asked));
  }

  static async start(): Promise<Issuer> {
    const issuer = new Issuer();
    // jose reads the time itself.
    vi.useFakeTimers({ toFake: ["Date"], now: issuer.clock.now() });
    onTestFinished(() => void vi.useRealTimers());
    await issuer.double.start();
    await issuer.rotate("k1");
    return issuer;
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    vi.setSystemTime(this.clock.now());
  }

  get issuer(): string {
    return this.double.url + this.issuerPath;
  }

  async rotate(kid: string, alg = "ES256"): Promise<void> {
    this.keys.clear();
    this.keys.set(kid, await generateKeyPair(alg));
  }

  async sign(claims: Claims, { kid = "k1", alg = "ES256", typ = "at+jwt", key }: Signing = {}): Promise<string> {
    const signer = key ?? this.keys.get(kid)?.privateKey;
    if (signer === undefined) throw new Error("no such key");
    const now = Math.floor(this.clock.now() / 1000);
    const all = { iss: this.issuer, sub: "alice", iat: now, exp: now + 300, scope: "read call", ...claims };
    return new SignJWT(all).setProtectedHeader({ alg, kid, typ }).sign(signer);
  }

  get keyReads(): number {
    return this.double.asked.filter(({ path }) => path === "/keys").length;
  }

  async publish(): Promise<void> {
    const keys = [...this.keys].map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid }));
    this.served = { keys: await Promise.all(keys) };
  }

  #answer({ path }: Asked): DoubleAnswer {
    const places = {
      oauth: `/.well-known/oauth-authorization-server${this.issuerPath}`,
      oidc: `/.well-known/openid-configuration${this.issuerPath}`,
      "oidc-path": `${this.issuerPath}/.well-known/openid-configuration`,
      none: "nowhere",
    };
    if (path === places[this.metadata]) {
      return { status: 200, body: { issuer: this.metadataIssuer ?? this.issuer, jwks_uri: `${this.double.url}/keys` } };
    }
    if (path === "/keys") return { status: 200, body: this.served };
    return { status: 404 };
  }
}

interface Scene extends Place {
  readonly issuer: Issuer;
  readonly resource: string;
  mcp(token: string | undefined, options?: AskOptions): Promise<Answer>;
}

async function scene(
  oauth: Record<string, unknown> = {},
  { http = {}, prepare = () => {} }: { http?: Record<string, unknown>; prepare?: (issuer: Issuer) => void } = {},
): Promise<Scene> {
  const issuer = await Issuer.start();
  prepare(issuer);
  await issuer.publish();
  const auth = { oauth: { issuer: issuer.issuer, ...oauth } };
  const there = await place({ auth, ...http }, { clock: issuer.clock });
  return {
    ...there,
    issuer,
    resource: `${there.url}/mcp`,
    mcp: (token, options = {}) => there.ask("/mcp", { ...options, ...(token === undefined ? {} : { token }) }),
  };
}

describe("[gate-08c] protected resource metadata", () => {
  it("is at the root and at the path of each door, and names exactly that resource", async () => {
    const { ask, url, issuer } = await scene({ scopes: { call: "tools.call", admin: "ops" } });
    for (const path of ["", "/mcp", "/mcp/reviewer"]) {
      const answer = await ask(`/.well-known/oauth-protected-resource${path}`);
      expect(answer.status).toBe(200);
      expect(answer.headers["content-type"]).toBe("application/json");
      expect(answer.json<object>()).toEqual({
        resource: url + path,
        authorization_servers: [issuer.issuer],
        scopes_supported: ["read", "tools.call"],
        bearer_methods_supported: ["header"],
        resource_name: "Toolcrib",
      });
    }
    expect((await ask("/.well-known/oauth-protected-resource/healthz")).status).toBe(404);
    expect((await ask("/.well-known/oauth-protected-resource/mcp", { method: "POST" })).status).toBe(405);
  });

  it("uses the name by which the client knows the hub, or publicUrl", async () => {
    const there = await scene();
    const host = `localhost:${there.listener.port}`;
    const metadata = await there.ask("/.well-known/oauth-protected-resource/mcp", { headers: { host } });
    expect(metadata.json<object>()).toMatchObject({ resource: `http://${host}/mcp` });
    const proxied = await scene({}, { http: { publicUrl: "https://tools.example.com/crib/" } });
    const challenge = (await proxied.mcp(undefined)).headers["www-authenticate"];
    expect(challenge).toContain(
      'resource_metadata="https://tools.example.com/crib/.well-known/oauth-protected-resource/mcp"',
    );
    expect((await proxied.ask("/.well-known/oauth-protected-resource/mcp")).json<object>()).toMatchObject({
      resource: "https://tools.example.com/crib/mcp",
    });
  });

  it("is not there without OAuth", async () => {
    const { ask } = await place();
    expect((await ask("/.well-known/oauth-protected-resource")).status).toBe(404);
  });
});

describe("a client that leaves while the keys are fetched", () => {
  it("[gate-08f] [gate-11c] reaches no route, and others who wait do", async () => {
    const issuer = await Issuer.start();
    await issuer.publish();
    const waiting: ServerResponse[] = [];
    const keys = createServer((_request, response) => void waiting.push(response));
    await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void keys.close());
    // A listener on a port has an address with one.
    const jwksUri = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/keys`;
    const seen: unknown[] = [];
    const route: HttpRoute = {
      path: "/mcp",
      access: "read",
      handle: ({ request, response }) => {
        seen.push(request.headers["x-who"]);
        response.end();
      },
    };
    const auth = { oauth: { issuer: "https://login.example.com", jwksUri } };
    const there = await place({ auth }, { clock: issuer.clock, routes: [route] });
    const token = await issuer.sign({ iss: "https://login.example.com", aud: there.url });
    const leaves = await there.open();
    leaves.send(
      "GET /mcp HTTP/1.1",
      `Host: 127.0.0.1:${there.listener.port}`,
      `Authorization: Bearer ${token}`,
      "X-Who: leaves",
      "\r\n",
    );
    await eventually(() => waiting.length !== 0);
    leaves.socket.destroy();
    await leaves.ended();
    const stays = there.ask("/mcp", { token, headers: { "x-who": "stays" } });
    // Whoever is answered now came after the other was gone.
    for (let round = 0; round < 3; round++) expect((await there.ask("/healthz")).status).toBe(200);
    for (const response of waiting) response.end(JSON.stringify(issuer.served));
    expect((await stays).status).toBe(200);
    expect(seen).toEqual(["stays"]);
  });
});

describe("[gate-08c] a valid access token", () => {
  it("lets in, with user and scopes", async () => {
    const { mcp, issuer, resource } = await scene();
    const answer = await mcp(await issuer.sign({ aud: resource }));
    expect(answer.status).toBe(200);
    expect(answer.json<Seen>().caller).toEqual({
      key: `oauth:${issuer.issuer}:alice`,
      user: "alice",
      owner: false,
      scopes: ["read", "call"],
      expiresAt: expect.any(Number),
    });
  });

  it.each(["RS256", "PS256", "ES384", "EdDSA"])("signed with %s", async (alg) => {
    const there = await scene();
    await there.issuer.rotate("k1", alg);
    await there.issuer.publish();
    expect((await there.mcp(await there.issuer.sign({ aud: there.resource }, { alg }))).status).toBe(200);
  });

  it.each<[string, (base: string) => string | string[]]>([
    ["the hub", (base) => base],
    ["the hub with a slash", (base) => `${base}/`],
    ["a role's path", (base) => `${base}/mcp/reviewer`],
    ["upper case", (base) => base.replace("http", "HTTP")],
    ["another name of this machine", (base) => base.replace("127.0.0.1", "localhost")],
    ["one of several", (base) => ["https://other.example", `${base}/mcp`]],
  ])("audience: %s", async (_title, audience) => {
    const { mcp, issuer, url } = await scene();
    expect((await mcp(await issuer.sign({ aud: audience(url) }))).status).toBe(200);
  });

  it.each(["oauth", "oidc", "oidc-path"] as const)(
    "with keys found by %s metadata, for an issuer with a path",
    async (metadata) => {
      const { mcp, issuer, resource } = await scene(
        {},
        { prepare: (made) => Object.assign(made, { metadata, issuerPath: "/tenant" }) },
      );
      expect((await mcp(await issuer.sign({ aud: resource }))).status).toBe(200);
    },
  );

  it("with jwksUri no metadata is read", async () => {
    const issuer = await Issuer.start();
    await issuer.publish();
    const jwksUri = `${issuer.double.url}/keys`;
    const auth = { oauth: { issuer: "https://login.example.com", jwksUri } };
    const there = await place({ auth }, { clock: issuer.clock });
    const token = await issuer.sign({ iss: "https://login.example.com", aud: there.url });
    expect((await there.ask("/mcp", { token })).status).toBe(200);
    expect(issuer.double.asked.map(({ path }) => path)).toEqual(["/keys"]);
  });

  it("takes user, role and scopes from where the config says", async () => {
    const { mcp, issuer, resource } = await scene({
      userClaim: "email",
      roleClaim: "groups",
      scopes: { read: true, call: "tools.call", admin: "ops" },
    });
    const who = async (claims: Claims): Promise<Seen["caller"]> =>
      (
        await mcp(await issuer.sign({ aud: resource, email: "a@example.com", groups: ["reviewer"], ...claims }))
      ).json<Seen>().caller;
    expect(await who({ scope: "other" })).toMatchObject({ user: "a@example.com", role: "reviewer", scopes: ["read"] });
    expect((await who({ scope: "x tools.call", groups: "coder" })).scopes).toEqual(["read", "call"]);
    expect(await who({ scope: undefined, scp: ["ops"] })).toMatchObject({
      owner: true,
      scopes: ["read", "call", "approve", "admin"],
    });
    for (const claims of [{ groups: undefined }, { groups: [] }, { groups: ["a", "b"] }, { groups: 5 }]) {
      const answer = await mcp(await issuer.sign({ aud: resource, email: "a@example.com", ...claims }));
      expect(answer.status).toBe(403);
    }
    expect((await mcp(await issuer.sign({ aud: resource, groups: "coder" }))).status).toBe(401);
  });

  it("admin is never given by a scope that merely has the name", async () => {
    const { ask, issuer, url } = await scene();
    expect((await ask("/admin", { token: await issuer.sign({ aud: url, scope: "read call admin" }) })).status).toBe(
      403,
    );
  });

  it("bearer tokens of the config work beside it", async () => {
    const issuer = await Issuer.start();
    await issuer.publish();
    const auth = { oauth: { issuer: issuer.issuer }, tokens: [{ token: "a.static.token-with-dots" }] };
    const there = await place({ auth }, { clock: issuer.clock });
    expect((await there.ask("/mcp", { token: "a.static.token-with-dots" })).status).toBe(200);
    expect((await there.ask("/mcp", { token: await issuer.sign({ aud: there.url }) })).status).toBe(200);
    expect(issuer.keyReads).toBe(1);
  });
});

describe("[gate-08c] a token that is not valid is 401 with a challenge", () => {
  const refused: [title: string, make: (there: Scene) => Promise<string>, why: RegExp][] = [
    ["no token at all but dots", async () => "a.b.c", /malformed/],
    ["no JWT", async () => "opaque", /not known/],
    ["another audience", ({ issuer }) => issuer.sign({ aud: "https://other.example/mcp" }), /another audience/],
    ["a path that only begins alike", ({ issuer, url }) => issuer.sign({ aud: `${url}/mcpx` }), /another audience/],
    ["another port", ({ issuer, url }) => issuer.sign({ aud: url.replace(/:\d+$/, ":1") }), /another audience/],
    ["no audience", ({ issuer }) => issuer.sign({}), /claim/],
    ["another issuer", ({ issuer, url }) => issuer.sign({ aud: url, iss: "https://evil.example" }), /claim/],
    ["the issuer with a slash", ({ issuer, url }) => issuer.sign({ aud: url, iss: `${issuer.issuer}/` }), /claim/],
    ["expired", ({ issuer, url }) => issuer.sign({ aud: url, exp: issuer.clock.now() / 1000 - 60 }), /expired/],
    ["without an end", ({ issuer, url }) => issuer.sign({ aud: url, exp: undefined }), /claim/],
    ["not valid yet", ({ issuer, url }) => issuer.sign({ aud: url, nbf: issuer.clock.now() / 1000 + 60 }), /claim/],
    ["nobody's", ({ issuer, url }) => issuer.sign({ aud: url, sub: undefined }), /claim/],
    ["an ID token", ({ issuer, url }) => issuer.sign({ aud: url }, { typ: "logout+jwt" }), /not an access token/],
    [
      "signed with another key of the same id",
      async ({ issuer, url }) => issuer.sign({ aud: url }, { key: (await generateKeyPair("ES256")).privateKey }),
      /signature/,
    ],
    [
      "signed with a shared secret",
      ({ issuer, url }) => issuer.sign({ aud: url }, { alg: "HS256", key: new TextEncoder().encode("s".repeat(32)) }),
      /algorithm/,
    ],
    [
      "not signed",
      async ({ issuer, url }) => {
        const claims = { iss: issuer.issuer, sub: "alice", aud: url, exp: issuer.clock.now() / 1000 + 60 };
        const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
        return `${part({ alg: "none" })}.${part(claims)}.`;
      },
      /algorithm|malformed/,
    ],
    [
      "changed after signing",
      async ({ issuer, url }) => {
        const [head, , signature] = (await issuer.sign({ aud: url })).split(".");
        const claims = { iss: issuer.issuer, sub: "bob", aud: url, exp: issuer.clock.now() / 1000 + 60 };
        return `${head}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
      },
      /signature/,
    ],
  ];

  it.each(refused)("%s", async (_title, make, why) => {
    const there = await scene();
    const answer = await there.mcp(await make(there));
    expect(answer.status).toBe(401);
    expect(answer.json().error.message).toMatch(why);
    const challenge = answer.headers["www-authenticate"];
    expect(challenge).toMatch(/^Bearer realm="toolcrib", error="invalid_token", error_description="[^"]+", /);
    expect(challenge).toContain('scope="read call"');
    expect(challenge).toContain(`resource_metadata="${there.url}/.well-known/oauth-protected-resource/mcp"`);
  });

  it("without any, the challenge names no error", async () => {
    const there = await scene();
    const answer = await there.mcp(undefined);
    expect(answer.headers["www-authenticate"]).toBe(
      `Bearer realm="toolcrib", scope="read call", resource_metadata="${there.url}/.well-known/oauth-protected-resource/mcp"`,
    );
  });

  it("a missing scope is 403 insufficient_scope with the scope of the token's own server", async () => {
    const there = await scene({ scopes: { call: "tools.call" } });
    const answer = await there.ask("/mcp?needs=call", {
      token: await there.issuer.sign({ aud: there.url, scope: "read" }),
    });
    expect(answer.status).toBe(403);
    expect(answer.headers["www-authenticate"]).toMatch(
      /error="insufficient_scope".*scope="tools\.call", resource_metadata="/,
    );
    const none = await there.mcp(await there.issuer.sign({ aud: there.url, scope: "openid" }));
    expect(none.status).toBe(403);
    expect(none.headers["www-authenticate"]).toContain('scope="read"');
  });

  it("one that was valid is refused as soon as it has expired", async () => {
    const { mcp, issuer, resource } = await scene();
    const token = await issuer.sign({ aud: resource, exp: issuer.clock.now() / 1000 + 30 });
    expect((await mcp(token)).status).toBe(200);
    await issuer.advance(45_000);
    expect((await mcp(token)).status).toBe(401);
  });
});

describe("[gate-08c] the keys of the authorization server", () => {
  it("are read once for many requests, and at once when a new key signs", async () => {
    const { mcp, issuer, resource } = await scene();
    const tokens = await Promise.all(["a", "b", "c"].map((sub) => issuer.sign({ aud: resource, sub })));
    const answers = await Promise.all(tokens.map((token) => mcp(token)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(issuer.keyReads).toBe(1);
    await issuer.advance(60_000);
    await issuer.rotate("k2");
    await issuer.publish();
    expect((await mcp(await issuer.sign({ aud: resource }, { kid: "k2" }))).status).toBe(200);
    expect(issuer.keyReads).toBe(2);
    // The old key is gone, and what was signed with it.
    expect((await mcp(tokens[0])).status).toBe(401);
  });

  it("made-up key ids do not make us ask again and again", async () => {
    const { mcp, issuer, resource } = await scene();
    expect((await mcp(await issuer.sign({ aud: resource }))).status).toBe(200);
    const stranger = (await generateKeyPair("ES256")).privateKey;
    for (const kid of ["x", "y", "z"]) {
      expect((await mcp(await issuer.sign({ aud: resource }, { kid, key: stranger }))).status).toBe(401);
    }
    expect(issuer.keyReads).toBe(1);
  });

  it("that cannot be read are 503, not 401, and are asked for again later", async () => {
    const { mcp, issuer, resource } = await scene();
    issuer.double.ill = () => ({ status: 500 });
    const token = await issuer.sign({ aud: resource });
    const answer = await mcp(token);
    expect(answer.status).toBe(503);
    expect(answer.json().error.code).toBe("server_unavailable");
    expect(answer.headers["www-authenticate"]).toBeUndefined();
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    const asked = issuer.double.asked.length;
    await mcp(token);
    expect(issuer.double.asked.length).toBe(asked);
    issuer.double.ill = undefined;
    await issuer.advance(10_000);
    expect((await mcp(token)).status).toBe(200);
  });

  it("known ones outlive an outage, for a while", async () => {
    const { mcp, issuer, resource } = await scene();
    const fresh = async (): Promise<number> => (await mcp(await issuer.sign({ aud: resource }))).status;
    expect(await fresh()).toBe(200);
    issuer.double.ill = () => ({ status: 500 });
    await issuer.advance(30 * 60_000);
    expect(await fresh()).toBe(200);
    await issuer.advance(60 * 60_000);
    expect(await fresh()).toBe(503);
  });

  it.each<[string, (issuer: Issuer) => void]>([
    ["nobody is there", (issuer) => void issuer.double.stop()],
    ["metadata speak for another issuer", (issuer) => (issuer.metadataIssuer = "https://evil.example")],
    ["there are no metadata", (issuer) => (issuer.metadata = "none")],
    ["what is there is no key set", (issuer) => (issuer.served = { keys: "none" })],
    ["it answers with garbage", (issuer) => (issuer.double.ill = () => ({ status: 200, body: "canary: no JSON" }))],
    [
      "it redirects",
      (issuer) => (issuer.double.ill = () => ({ status: 302, headers: { location: "http://127.0.0.1:1/" } })),
    ],
  ])("503 where %s", async (_title, spoil) => {
    const { mcp, issuer, resource } = await scene();
    const token = await issuer.sign({ aud: resource });
    spoil(issuer);
    const answer = await mcp(token);
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain("canary");
  });
});

describe("[gate-08c] what would let in too many is refused at the start", () => {
  const open = (http: Record<string, unknown>): Promise<{ listener: HttpListener }> => place(http);

  it("an issuer or key address over plain http elsewhere", async () => {
    for (const oauth of [
      { issuer: "http://login.example.com" },
      { issuer: "login.example.com" },
      { issuer: "https://login.example.com", jwksUri: "http://login.example.com/keys" },
    ]) {
      await expect(open({ auth: { oauth } })).rejects.toMatchObject({ code: "invalid_config" });
    }
  });

  it("a wildcard bind that leaves open whose tokens are meant", async () => {
    const oauth = { issuer: "https://login.example.com" };
    await expect(open({ host: "0.0.0.0", auth: { oauth } })).rejects.toMatchObject({ code: "invalid_config" });
    await open({ host: "0.0.0.0", auth: { oauth: { ...oauth, audience: "toolcrib" } } });
    await open({ host: "0.0.0.0", auth: { oauth }, publicUrl: "https://tools.example.com" });
  });

  it("a token for the audience of the config fits, and one for the address then does not", async () => {
    const { mcp, issuer, resource } = await scene({ audience: "toolcrib" });
    expect((await mcp(await issuer.sign({ aud: "toolcrib" }))).status).toBe(200);
    expect((await mcp(await issuer.sign({ aud: resource }))).status).toBe(401);
  });

  it("the Host header cannot widen the audience", async () => {
    const { ask, issuer } = await scene({}, { http: { allowedHosts: ["other.example"] } });
    const token = await issuer.sign({ aud: "http://other.example/mcp" });
    expect((await ask("/mcp", { token, headers: { host: "other.example" } })).status).toBe(401);
  });

  it("live changes bring another issuer", async () => {
    const { mcp, issuer, resource, listener } = await scene();
    const token = await issuer.sign({ aud: resource });
    expect((await mcp(token)).status).toBe(200);
    await listener.reconfigure(
      config({ auth: { oauth: { issuer: "https://login.example.com", jwksUri: `${issuer.double.url}/keys` } } }),
    );
    expect((await mcp(token)).status).toBe(401);
  });
});
