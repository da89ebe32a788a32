import { type IncomingMessage, request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadTokens } from "../../../src/doors/http/bearer-tokens.ts";
import { openListener } from "../../../src/doors/http/listener.ts";
import type { Caller } from "../../../src/model/caller.ts";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { config, type Place, place, resolver, temporaryHome } from "./support.ts";
import { eventually } from "../../support/eventually.ts";

interface Seen {
  readonly caller: Omit<Caller, "scopes"> & { readonly scopes: string[] };
}

const OPS = "ops-token-0123456789";
const READER = "reader-token-0123456789";
const BOSS = "boss-token-0123456789";

const tokens = [
  { token: "secret://env/OPS", user: "ops", role: "reviewer" },
  { token: "secret://env/READER", scopes: ["read"] },
  { token: "secret://env/BOSS", scopes: ["admin"] },
];
const secrets = { OPS, READER, BOSS };

/** The token that the hub left for its own user. */
function hubToken({ home }: Place): string {
  const record = JSON.parse(readFileSync(join(home, "hubs", `${process.pid}.json`), "utf8")) as { token: string };
  return record.token;
}

describe("[gate-08a] no open bind without auth", () => {
  it.each(["0.0.0.0", "::", "192.0.2.1", "example.com"])("%s is refused before anything listens", async (host) => {
    const home = temporaryHome();
    const opened = openListener({
      http: config({ host }),
      callsPerMinute: 1,
      routes: [],
      resolve: resolver({}),
      redactor: new Redactor(),
      warn: () => {},
      home,
    });
    await expect(opened).rejects.toMatchObject({ code: "invalid_config", hint: expect.stringContaining("http.auth") });
  });

  it("an empty auth is none, and refused on loopback too: somebody meant to close it", async () => {
    await expect(place({ auth: {} })).rejects.toMatchObject({ code: "invalid_config" });
    await expect(place({ host: "0.0.0.0", auth: {} })).rejects.toMatchObject({ code: "invalid_config" });
  });

  it("with auth it listens, and nobody gets in without a token", async () => {
    const there = await place({ host: "0.0.0.0", auth: { tokens } }, { secrets });
    expect(there.url).toBe(`http://127.0.0.1:${there.listener.port}`);
    expect((await there.ask("/mcp")).status).toBe(401);
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(200);
  });

  it("live changes cannot take the auth away from an open bind", async () => {
    const there = await place({ host: "0.0.0.0", auth: { tokens } }, { secrets });
    await expect(there.listener.reconfigure(config({ host: "127.0.0.1" }))).rejects.toBeInstanceOf(ToolcribError);
    expect((await there.ask("/mcp")).status).toBe(401);
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(200);
  });
});

describe("[gate-08b] without auth, on loopback", () => {
  it("everybody is the user who runs the hub, but admin needs the hub's token", async () => {
    const there = await place();
    expect((await there.ask("/mcp")).json<Seen>().caller).toEqual({
      key: "local",
      owner: true,
      scopes: ["read", "call"],
    });
    const refused = await there.ask("/admin");
    expect(refused.status).toBe(401);
    expect(refused.headers["www-authenticate"]).toBe('Bearer realm="toolcrib"');
    const wrong = await there.ask("/admin", { token: "guess" });
    expect(wrong.status).toBe(401);
    expect(wrong.headers["www-authenticate"]).toContain('error="invalid_token"');
    expect((await there.ask("/admin", { token: hubToken(there) })).text).toBe("in");
    expect((await there.ask("/mcp", { token: hubToken(there) })).json<Seen>().caller).toMatchObject({
      key: "hub",
      owner: true,
    });
  });

  it("two hubs do not take each other's token", async () => {
    const [one, other] = [await place(), await place()];
    expect(hubToken(one)).toHaveLength(43);
    expect((await other.ask("/admin", { token: hubToken(one) })).status).toBe(401);
  });
});

describe("[gate-08b] bearer tokens", () => {
  it("each has its user, role and scopes; a scope gives those below it", async () => {
    const { ask } = await place({ auth: { tokens } }, { secrets });
    const callers = await Promise.all(
      [OPS, READER, BOSS].map(async (token) => (await ask("/mcp", { token })).json<Seen>().caller),
    );
    expect(callers).toEqual([
      { key: expect.stringMatching(/^token:/), user: "ops", role: "reviewer", owner: false, scopes: ["read", "call"] },
      { key: expect.stringMatching(/^token:/), owner: false, scopes: ["read"] },
      { key: expect.stringMatching(/^token:/), owner: true, scopes: ["read", "call", "approve", "admin"] },
    ]);
    expect(new Set(callers.map(({ key }) => key)).size).toBe(3);
  });

  it("a missing or wrong one is 401 as RFC 6750 says, and nothing of it is shown", async () => {
    const { ask } = await place({ auth: { tokens } }, { secrets });
    const none = await ask("/mcp");
    expect(none.status).toBe(401);
    expect(none.headers["www-authenticate"]).toBe('Bearer realm="toolcrib"');
    expect(none.json().error.code).toBe("unauthorized");
    for (const authorization of [
      `Bearer ${OPS}x`,
      `Bearer ${OPS.slice(0, -1)}`,
      "Bearer wrong",
      `Bearer ${OPS} ${OPS}`,
      `Basic ${OPS}`,
      OPS,
      "Bearer",
    ]) {
      const answer = await ask("/mcp", { headers: { authorization } });
      expect(answer.status, authorization).toBe(401);
      expect(answer.text + JSON.stringify(answer.headers)).not.toContain(OPS.slice(0, -1));
    }
    expect((await ask("/mcp", { token: "wrong" })).headers["www-authenticate"]).toBe(
      'Bearer realm="toolcrib", error="invalid_token", error_description="The token is not known to this hub."',
    );
    expect((await ask("/mcp", { headers: { authorization: `bearer  ${OPS}` } })).status).toBe(200);
  });

  it("is not looked for in the query", async () => {
    const { ask } = await place({ auth: { tokens } }, { secrets });
    for (const name of ["access_token", "token", "authorization"]) {
      expect((await ask(`/mcp?${name}=${OPS}`)).status).toBe(401);
    }
  });

  it("a missing scope is 403 with the scope that is needed, from the listener and from a route", async () => {
    const { ask } = await place({ auth: { tokens } }, { secrets });
    const route = await ask("/mcp?needs=call", { token: READER });
    expect(route.status).toBe(403);
    expect(route.headers["www-authenticate"]).toContain('error="insufficient_scope"');
    expect(route.json().error).toMatchObject({ code: "denied", message: 'This needs the scope "call".' });
    const listener = await ask("/admin", { token: OPS });
    expect(listener.status).toBe(403);
    expect(listener.headers["www-authenticate"]).toContain('error="insufficient_scope"');
    expect((await ask("/admin", { token: BOSS })).status).toBe(200);
  });

  it("an unresolved reference stops that token only, and is named", async () => {
    const there = await place({ auth: { tokens: [{ token: "secret://env/MISSING" }, ...tokens] } }, { secrets });
    expect(there.warnings).toEqual([expect.stringContaining("secret://env/MISSING")]);
    expect(there.warnings[0]).toContain("http.auth.tokens[0]");
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(200);
    for (const token of ["secret://env/MISSING", "undefined", "MISSING"]) {
      expect((await there.ask("/mcp", { token })).status).toBe(401);
    }
  });

  it("an empty, unusable or short one is warned about", async () => {
    const there = await place(
      {
        auth: {
          tokens: ["EMPTY", "LINES", "SHORT", "OPS", "AGAIN"].map((name) => ({ token: `secret://env/${name}` })),
        },
      },
      { secrets: { EMPTY: "", LINES: "two words", SHORT: "short", OPS, AGAIN: OPS } },
    );
    expect(there.warnings.map((warning) => /\[\d\]/.exec(warning)?.[0])).toEqual(["[0]", "[1]", "[2]", "[4]"]);
    expect(there.warnings.join()).not.toMatch(/short,|two words/);
    expect((await there.ask("/mcp", { headers: { authorization: "Bearer " } })).status).toBe(401);
    expect((await there.ask("/mcp", { token: "short" })).status).toBe(200);
  });

  it("every value goes to the redactor", async () => {
    const there = await place({ auth: { tokens } }, { secrets });
    expect(there.redactor.mask(`a ${OPS} b ${hubToken(there)}`)).toBe("a [redacted] b [redacted]");
  });

  it("live changes hold from the next request on; the key of a token stays", async () => {
    const there = await place({ auth: { tokens } }, { secrets });
    const before = (await there.ask("/mcp", { token: READER })).json<Seen>().caller.key;
    await there.listener.reconfigure(config({ auth: { tokens: tokens.slice(1) } }));
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(401);
    expect((await there.ask("/mcp", { token: READER })).json<Seen>().caller.key).toBe(before);
    await there.listener.reconfigure(config({ port: 1234, host: "::1", auth: { tokens } }));
    expect(there.warnings.at(-1)).toBe("A change of http.host, http.port takes effect after a restart.");
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(200);
  });

  const stream: HttpRoute = {
    path: "/stream",
    access: "read",
    handle: ({ response }) => void response.writeHead(200, { "content-type": "text/event-stream" }).write(": hi\n\n"),
  };

  it("[gate-08b] open streams of a token that is gone, or has other rights, are cut; the others stay", async () => {
    const there = await place({ auth: { tokens } }, { secrets, routes: [stream] });
    const open = async (token: string): Promise<{ ended: boolean }> => {
      const state = { ended: false };
      const headers = { authorization: `Bearer ${token}` };
      const request = httpRequest(`${there.url}/stream`, { headers });
      const answer = await new Promise<IncomingMessage>((done) => request.once("response", done).end());
      answer.on("error", () => {}).once("close", () => (state.ended = true));
      answer.resume();
      return state;
    };
    const [ops, reader, own] = [await open(OPS), await open(READER), await open(hubToken(there))];
    await there.listener.reconfigure(config({ auth: { tokens: tokens.slice(1) } }));
    await eventually(() => ops.ended);
    expect([reader.ended, own.ended]).toEqual([false, false]);
    const demoted = tokens.slice(1).map((settings) => ({ ...settings, user: "somebody-else" }));
    await there.listener.reconfigure(config({ auth: { tokens: demoted } }));
    await eventually(() => reader.ended);
    expect(own.ended).toBe(false);
  });

  it.each([
    ["the same token", OPS],
    ["a token that stays", READER],
  ])("[gate-08b] a stream is cut although its client has sent more requests meanwhile: with %s", async (_, next) => {
    let waiting = 0;
    const later: HttpRoute = { path: "/later", access: "read", handle: () => void (waiting += 1) };
    const there = await place({ auth: { tokens } }, { secrets, routes: [stream, later] });
    const head = (path: string, token: string): string[] => [
      ...[`GET ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, "", ""],
    ];
    const [cut, kept] = [await there.open(), await there.open()];
    for (const [raw, token] of [[cut, OPS] as const, [kept, READER] as const]) {
      await raw.send(...head("/stream", token)).until(/: hi/);
    }
    for (const raw of [cut, kept])
      raw.send(...head("/later", raw === cut ? next : READER)).send(...head("/later", READER));
    await eventually(() => waiting === 4);
    await there.listener.reconfigure(config({ auth: { tokens: tokens.slice(1) } }));
    await cut.ended();
    expect(kept.socket.closed).toBe(false);
  });

  it("of two live changes the later counts, however long the first takes", async () => {
    const slow = Promise.withResolvers<string>();
    const resolve = (text: string): Promise<string> => (text === "slow" ? slow.promise : Promise.resolve(text));
    const there = await place({}, { resolve });
    const first = there.listener.reconfigure(config({ auth: { tokens: [{ token: "slow" }] } }));
    await there.listener.reconfigure(config({ auth: { tokens: [{ token: READER }] } }));
    slow.resolve(OPS);
    await first;
    expect((await there.ask("/mcp", { token: OPS })).status).toBe(401);
    expect((await there.ask("/mcp", { token: READER })).status).toBe(200);
  });

  it("compares with every token, so that the place in the list does not show", async () => {
    const found = await loadTokens({
      tokens: [READER, OPS, BOSS].map((token) => ({ token, scopes: ["read"] })),
      adminToken: "admin",
      resolve: resolver({}),
      conceal: () => {},
      warn: () => {},
    });
    for (const token of [READER, OPS, BOSS, "admin"]) expect(found.find(token)).toBeDefined();
    expect(found.find("")).toBeUndefined();
    expect(found.find(`${OPS}\0`)).toBeUndefined();
  });

  it("[scale-07b] a token is the same caller for all nodes of a cluster, and for nobody else", async () => {
    const keyOf = async (keySecret?: Uint8Array): Promise<string | undefined> => {
      const rest = { adminToken: "admin", resolve: resolver({}), conceal: () => {}, warn: () => {} };
      return (await loadTokens({ tokens: [{ token: READER, scopes: ["read"] }], keySecret, ...rest })).find(READER)
        ?.key;
    };
    const shared = new Uint8Array(32).fill(1);
    expect(await keyOf(shared)).toBe(await keyOf(new Uint8Array(32).fill(1)));
    expect(await keyOf(shared)).not.toBe(await keyOf(new Uint8Array(32).fill(2)));
    expect(await keyOf(shared)).not.toBe(await keyOf());
  });
});
