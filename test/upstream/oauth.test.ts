import { describe, expect, it, onTestFinished } from "vitest";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { Connection } from "../../src/upstream/connection.ts";
import { HttpClient } from "../../src/upstream/http/http-client.ts";
import { SseWire } from "../../src/upstream/http/sse-wire.ts";
import { listen } from "../doubles/http.ts";
import { oauthBench, type OAuthBench } from "../secrets/oauth/bench.ts";
import { contextOf, depsOf, specOf } from "../support/connection-bench.ts";

const whoami = { kind: "tool", name: "whoami", arguments: {} } as const;
const HOUR = 3600_000;

function connectionOf(bench: OAuthBench, entry: Partial<ServerEntryInput> = {}): Connection {
  const { clock, redactor, oauth, server } = bench;
  const spec = specOf({ url: server.url, restart: false, ...entry }, "srv");
  const connection = new Connection(spec, depsOf(clock, { oauth, redactor }));
  onTestFinished(() => connection.close());
  return connection;
}

const oauthEntry: Partial<ServerEntryInput> = { auth: { type: "oauth" } };

describe("a connection with OAuth", () => {
  it("[guard-11a] uses the login, and shows when the token ends", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    expect(connection.info()).toMatchObject({ state: "ready", toolCount: 1, auth: { type: "oauth", state: "ok" } });
    expect(connection.info().auth?.expiresAt).toBeDefined();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "alice {}" }] });
  });

  it("[guard-11a] uses a login also for a server that has no `auth`", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench);
    await connection.connect();
    expect(connection.info()).toMatchObject({ state: "ready", auth: { type: "oauth", state: "ok" } });
  });

  it("[guard-11a] uses the account of the last login from the next connect on", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    bench.authorization.user = "another";
    await bench.login();
    await connection.disconnect();
    await connection.connect();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "another {}" }] });
  });

  it("[guard-11e] fails also when the login ends between the handshake and the lists", async () => {
    const bench = await oauthBench();
    bench.authorization.givesRefresh = false;
    await bench.login();
    bench.server.onRequest = (method) => {
      if (method === "tools/list") bench.authorization.accessTokens.clear();
    };
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    expect(connection.info()).toMatchObject({ state: "failed", lastError: expect.stringContaining("login needed") });
  });

  it("[guard-11b] uses client credentials, whose secret may be a reference", async () => {
    const bench = await oauthBench();
    bench.authorization.addClient("robot", "robot-secret");
    const auth = { type: "client-credentials", clientId: "robot", clientSecret: "${ROBOT_SECRET}" } as const;
    const spec = specOf({ url: bench.server.url, restart: false, auth }, "srv");
    const { oauth, redactor, clock } = bench;
    const connection = new Connection(spec, depsOf(clock, { oauth, redactor, env: { ROBOT_SECRET: "robot-secret" } }));
    onTestFinished(() => connection.close());
    await connection.connect();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "robot {}" }] });
    expect(connection.info().auth).toMatchObject({ type: "client-credentials", state: "ok" });
  });

  it("[guard-11c] renews once for 50 calls at the same time whose token is over, and no call notices", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    bench.clock.shift(2 * HOUR);
    bench.authorization.tokenDelayMs = 30;
    const results = await Promise.all(Array.from({ length: 50 }, () => connection.run(whoami, contextOf())));
    expect(results).toHaveLength(50);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(bench.authorization.reuses).toBe(0);
  });

  it("[guard-11c] renews once for 50 calls at the same time whose token the server has dropped", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    bench.authorization.accessTokens.clear();
    bench.authorization.tokenDelayMs = 30;
    const results = await Promise.all(Array.from({ length: 50 }, () => connection.run(whoami, contextOf())));
    expect(results.every((result) => JSON.stringify(result).includes("alice"))).toBe(true);
    expect(bench.authorization.tokenRequests.filter((form) => form["grant_type"] === "refresh_token")).toHaveLength(1);
    expect(bench.authorization.reuses).toBe(0);
    expect(connection.state.kind).toBe("ready");
  });

  it("[guard-11e] fails with the way to log in, and comes up by itself at the first call after it", async () => {
    const bench = await oauthBench();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    expect(connection.info()).toMatchObject({
      state: "failed",
      lastError: "login needed: toolcrib auth login srv",
      hint: expect.stringContaining("toolcrib auth login srv"),
      auth: { type: "oauth", state: "login_needed" },
    });
    await expect(connection.run(whoami, contextOf())).rejects.toThrow(/login needed: toolcrib auth login srv/);
    await bench.login();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "alice {}" }] });
  });

  it("[guard-11e] fails when the login ends while it is up, instead of staying ready", async () => {
    const bench = await oauthBench();
    await bench.login();
    const connection = connectionOf(bench, oauthEntry);
    await connection.connect();
    bench.authorization.refreshTokens.clear();
    bench.clock.shift(2 * HOUR);
    await expect(connection.run(whoami, contextOf())).rejects.toMatchObject({ code: "unauthorized" });
    expect(connection.info()).toMatchObject({ state: "failed", auth: { state: "login_needed" } });
    expect(connection.info().lastError).toMatch(/^login needed: toolcrib auth login srv/);
    await bench.login();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "alice {}" }] });
  });

  it.each([
    ["in its answer", false],
    ["at the well-known address", true],
  ])("[guard-11e] says how to log in to a server without `auth` that offers OAuth %s", async (_where, terse) => {
    const bench = await oauthBench();
    bench.server.terse = terse;
    const connection = connectionOf(bench);
    await connection.connect();
    expect(connection.info()).toMatchObject({ state: "failed", lastError: "login needed: toolcrib auth login srv" });
    await bench.login();
    expect(await connection.run(whoami, contextOf())).toMatchObject({ content: [{ text: "alice {}" }] });
  });

  it("says nothing of a login where there is no OAuth, or where the config has a token", async () => {
    const bench = await oauthBench();
    const configured = connectionOf(bench, { headers: { Authorization: "Bearer wrong" } });
    await configured.connect();
    expect(configured.info().lastError).toMatch(/asks for credentials/);
    bench.server.mute = true;
    bench.authorization.down = true;
    const mute = connectionOf(bench);
    await mute.connect();
    expect(mute.info().lastError).toMatch(/asks for credentials/);
  });

  it("sends a token of the login to no other origin that the server redirects to", async () => {
    const bench = await oauthBench();
    const stolen: (string | undefined)[] = [];
    const thief = await listen((request, response) => {
      stolen.push(request.headers.authorization);
      response.writeHead(200).end();
    });
    const redirecting = await listen((_request, response) => {
      response.writeHead(307, { location: thief.url }).end();
    });
    onTestFinished(async () => void (await Promise.all([thief.close(), redirecting.close()])));
    await bench.login();
    const credentials = await bench.oauth.credentialsFor(bench.key, { type: "oauth" });
    const client = new HttpClient({ credentials });
    onTestFinished(() => client.destroy());
    const request = client.request({ method: "GET", url: new URL(redirecting.url), headers: {} });
    await expect(request).rejects.toThrow(/not followed/);
    expect(stolen).toEqual([]);
  });
});

describe("the wires", () => {
  it("[guard-11c] send a refused request once more and no more often, on HTTP+SSE too", async () => {
    const got: string[] = [];
    const server = await listen((request, response) => {
      got.push(`${request.method} ${request.headers.authorization ?? "-"}`);
      if (request.headers.authorization !== "Bearer 2") {
        response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end();
        return;
      }
      if (request.method === "POST") return void response.writeHead(202).end();
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: endpoint\ndata: /post\n\n");
    });
    let token = 1;
    const told: unknown[] = [];
    const credentials = {
      headers: async () => ({ authorization: `Bearer ${token}` }),
      rejected: async (rejection: { attempt: number; challenge: string | undefined }) => {
        told.push([rejection.attempt, rejection.challenge]);
        token++;
        return true;
      },
    };
    const wire = new SseWire({ url: server.url, headers: { authorization: "Bearer static" }, credentials });
    onTestFinished(async () => {
      await wire.close();
      await server.close();
    });
    await wire.open(new AbortController().signal);
    await wire.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    expect(got).toEqual(["GET Bearer 1", "GET Bearer 2", "POST Bearer 2"]);
    expect(told).toEqual([[1, 'Bearer error="invalid_token"']]);
    token = 7;
    await expect(wire.send({ jsonrpc: "2.0", method: "notifications/x" })).rejects.toMatchObject({
      code: "unauthorized",
    });
    expect(got.slice(3)).toEqual(["POST Bearer 7", "POST Bearer 8"]);
    expect(told.slice(1).map((each) => Array.isArray(each) && each[0])).toEqual([1, 2]);
  });

  it("do not wait for a renewal that the caller gave up on", async () => {
    const client = new HttpClient({
      credentials: { headers: () => new Promise(() => {}), rejected: async () => false },
    });
    onTestFinished(() => client.destroy());
    const gaveUp = new AbortController();
    const request = client.request({
      method: "GET",
      url: new URL("http://127.0.0.1:9"),
      headers: {},
      signal: gaveUp.signal,
    });
    gaveUp.abort();
    await expect(request).rejects.toMatchObject({ code: "cancelled" });
  });
});
