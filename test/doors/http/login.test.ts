import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpRoute, HttpUpgrade } from "../../../src/doors/http/http-exchange.ts";
import { readHubRecords } from "../../../src/hub/activity/hub-records.ts";
import { PageLogins } from "../../../src/doors/http/page-logins.ts";
import { PageFiles, pageRoutes } from "../../../src/doors/http/web-page.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { admin, type AskOptions, config, echo, place, type Place, type Raw, temporaryHome } from "./support.ts";

const TOKEN = "reader-token-0123456789";
const OTHER = "other-token-0123456789";

function codeIn(link: string): string {
  return new URLSearchParams(new URL(link).hash.slice(1)).get("login") ?? "";
}

function byPage({ url }: Place, options: AskOptions = {}): AskOptions {
  return {
    ...options,
    headers: { origin: url, "sec-fetch-site": "same-origin", "x-toolcrib": "page", ...options.headers },
  };
}

/** What the page sends from now on. */
interface Login {
  readonly cookie: string;
  readonly "x-toolcrib": string;
}

async function logIn(there: Place, body: unknown = { code: codeIn(there.listener.loginLink()) }): Promise<Login> {
  const answer = await there.ask(
    "/api/v1/login",
    byPage(there, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  );
  const { ok, pageKey } = answer.json<{ ok: boolean; pageKey: string }>();
  expect(ok).toBe(true);
  expect(pageKey).toMatch(/^[\w-]{43}$/);
  return { cookie: String(answer.headers["set-cookie"]).split(";")[0] ?? "", "x-toolcrib": pageKey };
}

describe("[oper-07b] the page's login", () => {
  it("a link works once, and its cookie is the operator's", async () => {
    const there = await place({ auth: { tokens: [{ token: TOKEN }] } });
    const code = codeIn(there.listener.loginLink());
    const post = byPage(there, { method: "POST", body: JSON.stringify({ code }) });
    const answer = await there.ask("/api/v1/login", post);
    expect(String(answer.headers["set-cookie"])).toMatch(/HttpOnly; SameSite=Strict/);
    const again = await there.ask("/api/v1/login", post);
    expect([again.status, again.json().error.code]).toEqual([401, "unauthorized"]);
    expect(again.json().error.hint).toContain("toolcrib login");
    const headers = { ...(await logIn(there)) };
    const seen = (await there.ask("/mcp", byPage(there, { headers }))).json<{ caller: object }>();
    expect(seen.caller).toMatchObject({ owner: true, scopes: ["read", "call", "approve", "admin"] });
    expect((await there.ask("/admin", byPage(there, { headers }))).text).toBe("in");
  });

  it("a program on another port of the host gets the cookie from the browser, and can do nothing with it", async () => {
    const there = await place({ auth: { tokens: [{ token: TOKEN }] } });
    const [login, other] = [await logIn(there), await logIn(there)];
    const { cookie } = login;
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await there.ask("/admin", { headers: { cookie, origin: there.url, ...headers } })).status;
    expect(await status({ ...login })).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ "x-toolcrib": "page" })).toBe(401);
    expect(await status({ "x-toolcrib": other["x-toolcrib"] })).toBe(401);
    // Nor can it log anybody out.
    await there.ask("/api/v1/logout", byPage(there, { method: "POST", headers: { cookie } }));
    expect(await status({ "x-toolcrib": login["x-toolcrib"] })).toBe(200);
  });

  it("the cookie counts only for requests of the hub's own page", async () => {
    const foreign = "http://localhost:6274";
    const there = await place({ cors: [foreign] });
    const login = await logIn(there);
    const status = async (method: string, headers: Record<string, string>): Promise<number> =>
      (await there.ask("/admin", { method, headers: { ...login, ...headers } })).status;
    expect(await status("GET", { "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await status("GET", {})).toBe(200);
    expect(await status("POST", { origin: there.url })).toBe(200);
    expect(await status("POST", {})).toBe(401);
    expect(await status("POST", { origin: foreign })).toBe(401);
    expect(await status("GET", { origin: foreign })).toBe(401);
    expect(await status("GET", { "sec-fetch-site": "same-site" })).toBe(401);
    expect(await status("GET", { "sec-fetch-site": "cross-site" })).toBe(401);
  });

  it("a foreign page can log nobody in, and logging out ends the session", async () => {
    const there = await place();
    const code = codeIn(there.listener.loginLink());
    const foreign = await there.ask("/api/v1/login", { method: "POST", body: JSON.stringify({ code }) });
    expect([foreign.status, foreign.json().error.code]).toEqual([403, "denied"]);
    const headers = { ...(await logIn(there, { code })) };
    expect((await there.ask("/admin", byPage(there, { headers }))).status).toBe(200);
    await there.ask("/api/v1/logout", byPage(there, { method: "POST", headers }));
    expect((await there.ask("/admin", byPage(there, { headers }))).status).toBe(401);
    for (const body of ["", "[]", "{}", '{"code":7}']) {
      const bad = await there.ask("/api/v1/login", byPage(there, { method: "POST", body }));
      expect([400, 401]).toContain(bad.status);
    }
    expect((await there.ask("/api/v1/login")).status).toBe(405);
  });

  it("[joy-02d] a token of a user opens it with the rights of the token and no others", async () => {
    const there = await place({ auth: { tokens: [{ token: TOKEN, user: "ada", scopes: ["call"] }] } });
    const headers = { ...(await logIn(there, { token: TOKEN })) };
    expect((await there.ask("/mcp", { headers })).json()).toMatchObject({ caller: { user: "ada" } });
    expect((await there.ask("/admin", { headers })).status).toBeGreaterThanOrEqual(401);
  });

  it.each([
    ["without a user", { scopes: ["read", "call"] }],
    ["that only reads", { user: "ada", scopes: ["read"] }],
  ])("a token without the scope admin %s does not open it, and hears why", async (_which, settings) => {
    const told: unknown[] = [];
    const auth = { tokens: [{ token: TOKEN, ...settings }] };
    const there = await place({ auth }, { onLogin: (event) => told.push(event) });
    const body = JSON.stringify({ token: TOKEN });
    const answer = await there.ask("/api/v1/login", byPage(there, { method: "POST", body }));
    expect(answer.status).toBe(403);
    expect(answer.json().error).toMatchObject({
      code: "denied",
      message: "This token lacks the scope admin, which the page needs.",
    });
    expect([answer.headers["set-cookie"], told]).toEqual([undefined, []]);
  });

  it("a token opens the page with the rights that it has, as long as it has them", async () => {
    const mine = { token: TOKEN, user: "ada" };
    const there = await place({ auth: { tokens: [{ ...mine, scopes: ["admin"] }] } });
    const headers = { ...(await logIn(there, { token: TOKEN })) };
    const seen = (await there.ask("/mcp", { headers })).json<{ caller: object }>();
    expect(seen.caller).toMatchObject({ user: "ada" });
    expect((await there.ask("/admin", { headers })).status).toBe(200);
    await there.listener.reconfigure(config({ auth: { tokens: [{ ...mine, scopes: ["read"] }] } }));
    expect((await there.ask("/admin", { headers })).status).toBeGreaterThanOrEqual(401);
    const wrong = await there.ask("/api/v1/login", byPage(there, { method: "POST", body: '{"token":"nonsense"}' }));
    expect(wrong.status).toBe(401);
    await there.listener.reconfigure(config({ auth: { tokens: [{ token: "another-token-0123456789" }] } }));
    expect((await there.ask("/mcp", { headers })).status).toBe(401);
  });

  it("whoever logs in often logs out nobody but themselves", async () => {
    const tokens = [
      { token: TOKEN, user: "ada", scopes: ["admin"] },
      { token: OTHER, user: "bob", scopes: ["admin"] },
    ];
    const there = await place({ auth: { tokens } });
    const status = async (login: Login): Promise<number> => (await there.ask("/mcp", { headers: { ...login } })).status;
    const [ada, first] = [await logIn(there, { token: TOKEN }), await logIn(there, { token: OTHER })];
    const link = await logIn(there);
    let last = first;
    for (let count = 0; count < 16; count++) last = await logIn(there, { token: OTHER });
    expect(await Promise.all([ada, link, first, last].map(status))).toEqual([200, 200, 401, 200]);
  });

  it("links, logins and logouts are told, with who it was", async () => {
    const told: unknown[] = [];
    const there = await place(
      { auth: { tokens: [{ token: TOKEN, user: "ada", scopes: ["admin"] }] } },
      { onLogin: (event, { key, user }) => told.push([event, key.split(":")[0], user]) },
    );
    await there.ask("/api/v1/login-links", { method: "POST", token: TOKEN });
    const headers = { ...(await logIn(there, { token: TOKEN })) };
    await logIn(there);
    await there.ask("/api/v1/logout", byPage(there, { method: "POST", headers }));
    expect(told).toEqual([
      ["login.link", "token", "ada"],
      ["login", "token", "ada"],
      ["login", "page", undefined],
      ["logout", "token", "ada"],
    ]);
  });

  it("without auth a made-up token does not log in as the local user", async () => {
    const there = await place();
    const answer = await there.ask("/api/v1/login", byPage(there, { method: "POST", body: '{"token":"made-up"}' }));
    expect(answer.status).toBe(401);
  });

  it("new links need the scope admin", async () => {
    const there = await place();
    expect((await there.ask("/api/v1/login-links", { method: "POST" })).status).toBe(401);
    const [record] = readHubRecords(there.home);
    const answer = await there.ask("/api/v1/login-links", { method: "POST", token: record?.token ?? "" });
    await logIn(there, { code: codeIn(answer.json<{ url: string }>().url) });
  });

  it("links and sessions end with time, and there are never too many", async () => {
    const clock = new FakeClock();
    const logins = new PageLogins(clock);
    const late = logins.issueCode();
    await clock.advance(15 * 60_000);
    expect(await logins.redeem(late)).toBeUndefined();
    const keys = await logins.open((await logins.redeem(logins.issueCode())) ?? expect.fail("no caller"));
    await clock.advance(11 * 3_600_000);
    expect((await logins.find(keys))?.caller.owner).toBe(true);
    await clock.advance(11 * 3_600_000);
    const session = (await logins.find(keys)) ?? expect.fail("no session");
    await clock.advance(11 * 3_600_000);
    // To look is no use of it.
    expect(logins.has(session)).toBe(true);
    await clock.advance(2 * 3_600_000);
    expect(logins.has(session)).toBe(false);
    expect(logins.find(keys)).toBeUndefined();
    const first = logins.issueCode();
    for (let count = 0; count < 32; count++) logins.issueCode();
    expect(await logins.redeem(first)).toBeUndefined();
  });
});

describe("[oper-07b] a connection that is taken over", () => {
  const taken: HttpUpgrade[] = [];
  const route: HttpRoute = {
    path: "/ws",
    access: "read",
    handle: ({ response }) => void response.end(),
    upgrade: (upgrade) => {
      taken.push(upgrade);
      upgrade.socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n`);
    },
  };
  const words = ["GET /ws?after=3 HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"];

  it("is checked like any other request before", async () => {
    const there = await place({ auth: { tokens: [{ token: TOKEN }] } }, { routes: [route, echo, admin] });
    const { host } = new URL(there.url);
    const say = async (...headers: string[]): Promise<string> => {
      const raw = await there.open();
      raw.send(...words, ...headers, "", "");
      return raw.until(/HTTP\/1\.1 \d{3}/);
    };
    expect(await say("Host: evil.example")).toContain(" 403 ");
    expect(await say(`Host: ${host}`)).toContain(" 401 ");
    expect(await say(`Host: ${host}`, "Origin: https://evil.example", `Authorization: Bearer ${TOKEN}`)).toContain(
      " 403 ",
    );
    expect(await say(`Host: ${host}`, `Sec-WebSocket-Protocol: toolcrib.v1, bearer.${TOKEN}`)).toContain(" 101 ");
    const login = await logIn(there);
    const cookie = `Cookie: ${login.cookie}`;
    const page = `Sec-WebSocket-Protocol: toolcrib.v1, page.${login["x-toolcrib"]}`;
    expect(await say(`Host: ${host}`, cookie, page)).toContain(" 401 ");
    expect(await say(`Host: ${host}`, cookie, `Origin: ${there.url}`)).toContain(" 401 ");
    expect(await say(`Host: ${host}`, cookie, `Origin: ${there.url}`, page)).toContain(" 101 ");
    const last = taken.at(-1);
    expect([last?.query.get("after"), last?.caller.owner, last?.stillAdmitted()]).toEqual(["3", true, true]);
    await there.listener.close();
    expect(last?.socket.destroyed).toBe(true);
  });
});

describe("[joy-10b] logins and a restart", () => {
  async function hubs(auth: object = {}) {
    const store = (await openStore({ home: temporaryHome() })) ?? expect.fail("no store");
    onTestFinished(() => store.close());
    const keySecret = Buffer.alloc(32, 3);
    const ours = temporaryHome();
    return {
      store,
      start: (port = 0, home = ours) => place({ port, ...auth }, { logins: store.settings, keySecret, home }),
    };
  }
  const status = async (there: Place, login: Login): Promise<number> =>
    (await there.ask("/admin", { headers: { ...login } })).status;

  it("by a link and by a token are open at the next hub on the store and the port, with the same rights", async () => {
    const { start } = await hubs({ auth: { tokens: [{ token: TOKEN, user: "ada", scopes: ["admin"] }] } });
    const first = await start();
    const [link, token] = [await logIn(first), await logIn(first, { token: TOKEN })];
    await first.listener.close();
    const next = await start(first.listener.port);
    expect([await status(next, link), await status(next, token)]).toEqual([200, 200]);
    const seen = (await next.ask("/mcp", { headers: { ...token } })).json<{ caller: object }>();
    expect(seen.caller).toMatchObject({ user: "ada" });
    expect(await status(next, { ...link, "x-toolcrib": token["x-toolcrib"] })).toBe(401);
    await next.listener.close();
    expect(await status(await start(), link)).toBe(401);
  });

  it("are not those of another machine's hub on the same database and port", async () => {
    const { start } = await hubs({ auth: { tokens: [{ token: TOKEN, user: "ada", scopes: ["admin"] }] } });
    const first = await start();
    const login = await logIn(first);
    await first.listener.close();
    const other = await start(first.listener.port, temporaryHome());
    expect(await status(other, login)).toBe(401);
    await other.listener.close();
    expect(await status(await start(first.listener.port), login)).toBe(200);
  });

  it("that were ended, or whose token is gone, stay ended", async () => {
    const tokens = [{ token: TOKEN, user: "ada", scopes: ["admin"] }];
    const { start } = await hubs({ auth: { tokens } });
    const first = await start();
    const [ended, other, token] = [await logIn(first), await logIn(first), await logIn(first, { token: TOKEN })];
    await first.ask("/api/v1/logout", byPage(first, { method: "POST", headers: { ...ended } }));
    await first.listener.close();
    const next = await start(first.listener.port);
    expect([await status(next, ended), await status(next, other)]).toEqual([401, 200]);
    await next.listener.reconfigure(
      config({ port: first.listener.port, auth: { tokens: [{ token: OTHER, scopes: ["admin"] }] } }),
    );
    expect(await status(next, token)).toBe(401);
  });

  it("expire when they would have, and only digests of their keys are stored", async () => {
    const { store } = await hubs();
    const clock = new FakeClock();
    const opened = async (): Promise<PageLogins> => {
      const logins = new PageLogins(clock);
      await logins.keep(store.settings, "home 4700");
      return logins;
    };
    const first = await opened();
    const keys = await first.open((await first.redeem(first.issueCode())) ?? expect.fail("no caller"));
    const text = (await store.settings.get("page.logins")) ?? "";
    expect(text).toContain("pageDigest");
    expect(text).not.toContain(keys.cookie);
    expect(text).not.toContain(keys.pageKey);
    await clock.advance(11 * 3_600_000);
    expect((await (await opened()).find(keys))?.caller).toMatchObject({ owner: true, page: true });
    // It was used, so its idle time began again; but it ends after a week in any case.
    for (let hours = 11; hours < 7 * 24; hours += 11) {
      const logins = await opened();
      expect(await logins.find(keys)).toBeDefined();
      await clock.advance(11 * 3_600_000);
      await logins.open((await logins.redeem(logins.issueCode())) ?? expect.fail("no caller"));
    }
    expect(await (await opened()).find(keys)).toBeUndefined();
    await clock.advance(13 * 3_600_000);
    const late = await opened();
    await late.open((await late.redeem(late.issueCode())) ?? expect.fail("no caller"));
    expect(JSON.parse((await store.settings.get("page.logins")) ?? "")).toHaveLength(1);
  });

  it("are not lost to hubs that write at once, nor to a value that is damaged", async () => {
    const { store } = await hubs();
    const clock = new FakeClock();
    await store.settings.set("page.logins", "{not json");
    const all = await Promise.all(
      [1, 2, 3].map(async (port) => {
        const logins = new PageLogins(clock);
        await logins.keep(store.settings, `home ${port}`);
        return logins;
      }),
    );
    await Promise.all(
      all.map(async (logins) => logins.open((await logins.redeem(logins.issueCode())) ?? expect.fail("no caller"))),
    );
    expect(JSON.parse((await store.settings.get("page.logins")) ?? "")).toHaveLength(3);
  });
});

describe("[joy-10a] the cookie under a path", () => {
  it("is for that path at the public address, and for the whole host past the proxy", async () => {
    const there = await place({ publicUrl: "https://example.com/apps/crib" });
    const given = async (headers: Record<string, string>): Promise<string> => {
      const body = JSON.stringify({ code: codeIn(there.listener.loginLink()) });
      const answer = await there.ask("/api/v1/login", byPage(there, { method: "POST", body, headers }));
      return String(answer.headers["set-cookie"]);
    };
    expect(await given({ host: "example.com", origin: "https://example.com" })).toMatch(
      /^__Secure-toolcrib=[\w-]+; Path=\/apps\/crib\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/,
    );
    expect(await given({})).toMatch(/^__Secure-toolcrib=[\w-]+; Path=\/; /);
    const root = await place({ publicUrl: "https://example.com" });
    const body = JSON.stringify({ code: codeIn(root.listener.loginLink()) });
    const headers = { host: "example.com", origin: "https://example.com" };
    const answer = await root.ask("/api/v1/login", byPage(root, { method: "POST", body, headers }));
    expect(String(answer.headers["set-cookie"])).toMatch(/^__Host-toolcrib=[\w-]+; Path=\/; /);
  });

  it("`basePath` is taken off once, and only as a whole", async () => {
    const there = await place({ basePath: "/crib" });
    const paths = async (path: string): Promise<unknown> => {
      const answer = await there.ask(path);
      return answer.status === 200 ? answer.json<{ path: string }>().path : answer.status;
    };
    expect(await paths("/crib/mcp")).toBe("/mcp");
    expect(await paths("/crib/mcp/role?x=1")).toBe("/mcp/role");
    expect(await paths("/mcp")).toBe("/mcp");
    expect(await paths("/crib/crib/mcp")).toBe(404);
    expect(await paths("/cribmcp")).toBe(404);
    const redirect = await there.ask("/crib?a=1");
    expect([redirect.status, redirect.headers["location"]]).toEqual([308, "/crib/?a=1"]);
  });
});

describe("[oper-07b] what is open when a login ends", () => {
  it.each([
    ["a token", { token: TOKEN }],
    ["a link", undefined],
  ])("ends too, if it was by %s", async (_, body) => {
    const clock = new FakeClock();
    const taken: HttpUpgrade[] = [];
    const socket: HttpRoute = {
      path: "/ws",
      access: "read",
      handle: ({ response }) => void response.end(),
      upgrade: (upgrade) => {
        taken.push(upgrade);
        upgrade.socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      },
    };
    const stream: HttpRoute = {
      path: "/stream",
      access: "read",
      handle: ({ response }) => void response.write("begun"),
    };
    const auth = { tokens: [{ token: TOKEN, scopes: ["admin"] }] };
    const there = await place({ auth }, { routes: [socket, stream], clock });
    const [login, other] = [await logIn(there, body), await logIn(there, body)];
    const open = async (by: Login): Promise<Raw> => {
      const own = ["Host: localhost", `Cookie: ${by.cookie}`];
      const raw = (await there.open()).send("GET /stream HTTP/1.1", ...own, `X-Toolcrib: ${by["x-toolcrib"]}`, "", "");
      await raw.until(/begun/);
      const wish = ["Connection: Upgrade", "Upgrade: websocket", "Origin: http://localhost"];
      const key = `Sec-WebSocket-Protocol: toolcrib.v1, page.${by["x-toolcrib"]}`;
      await (await there.open()).send("GET /ws HTTP/1.1", ...own, ...wish, key, "", "").until(/ 101 /);
      return raw;
    };
    const [ended, staying] = [await open(login), await open(other)];
    await there.ask("/api/v1/logout", byPage(there, { method: "POST", headers: { ...login } }));
    expect(taken.map((each) => each.stillAdmitted())).toEqual([false, true]);
    await clock.advance(15_000);
    await ended.ended();
    expect(staying.socket.closed).toBe(false);
    await clock.advance(12 * 3_600_000);
    await staying.ended();
    expect(taken.map((each) => each.stillAdmitted())).toEqual([false, false]);
  });
});

describe("[oper-07c] [oper-08a] the page's files", () => {
  it("go out with a strict policy, compressed, and only those that were built", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-page-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    mkdirSync(join(dir, "assets"));
    writeFileSync(join(dir, "index.html"), "<!doctype html><title>Toolcrib</title>");
    writeFileSync(join(dir, "assets", "index-1.js"), "export const many = 1;\n".repeat(100));
    const there = await place({}, { routes: pageRoutes(new PageFiles(dir), () => "words\n") });
    const html = { headers: { accept: "text/html,*/*" } };
    const page = await there.ask("/servers/files", html);
    expect(page.text).toContain("<title>Toolcrib");
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toMatch(/default-src 'none'; script-src 'self'; style-src 'self'/);
    expect(policy).not.toMatch(/unsafe|https?:/);
    expect((await there.ask("/", html)).text).toContain("<title>");
    expect((await there.ask("/")).text).toBe("words\n");
    const script = await there.ask("/assets/index-1.js", { headers: { "accept-encoding": "gzip, br" } });
    expect(script.headers["content-encoding"]).toBe("gzip");
    expect(script.headers["cache-control"]).toContain("immutable");
    const whole = await there.ask("/assets/index-1.js");
    expect(Number(script.headers["content-length"])).toBeLessThan(whole.text.length);
    const same = await there.ask("/assets/index-1.js", {
      headers: { "if-none-match": String(script.headers["etag"]) },
    });
    expect(same.status).toBe(304);
    for (const path of ["/assets/../index.html", "/assets/..%2findex.html", "/assets/other.js", "/assets"]) {
      expect((await there.ask(path)).status).toBeGreaterThanOrEqual(400);
    }
    expect((await there.ask("/servers", { method: "POST" })).status).toBe(405);
  });
});
