/** Logins at remote servers that begin on the page: who may begin and end them, and what attackers try. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/base/clock.ts";
import { AuthorizationServer } from "../../../doubles/authorization-server.ts";
import { ProtectedServer } from "../../../doubles/protected-server.ts";
import { ServedHub } from "../../../load/served-hub.ts";
import { ask } from "../support.ts";

const ALICE = "alice-0123456789abcdef";
const MALLORY = "mallory-0123456789abcdef";
const OPS = "ops-0123456789abcdef";

let authorization: AuthorizationServer;
let evil: AuthorizationServer;
let server: ProtectedServer;
let evilServer: ProtectedServer;
let hub: ServedHub;

beforeAll(async () => {
  [authorization, evil] = await Promise.all([
    AuthorizationServer.start(systemClock),
    AuthorizationServer.start(systemClock),
  ]);
  [server, evilServer] = await Promise.all([ProtectedServer.start(authorization), ProtectedServer.start(evil)]);
  hub = await ServedHub.start({
    mcpServers: {
      shared: { url: server.url },
      personal: { url: server.url, isolation: "user", auth: { type: "oauth" } },
      evil: { url: evilServer.url, isolation: "user", auth: { type: "oauth" } },
      // Two that an operator has registered by hand, at different authorization servers.
      bank: { url: server.url, isolation: "user", auth: { type: "oauth", clientId: "bank-client" } },
      game: { url: evilServer.url, isolation: "user", auth: { type: "oauth", clientId: "game-client" } },
      own: { url: server.url, isolation: "user", auth: { type: "oauth", clientId: "own-client", ownRedirect: true } },
    },
    http: {
      auth: {
        tokens: [
          { token: ALICE, user: "alice" },
          { token: MALLORY, user: "mallory" },
          { token: OPS, scopes: ["admin"] },
        ],
      },
    },
  });
});
afterAll(async () => {
  await hub?.remove();
  await Promise.all([authorization.close(), evil.close(), server.close(), evilServer.close()]);
});
beforeEach(() => rmSync(join(hub.home, "auth"), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function api(token: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(`${hub.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
}

async function begin(token: string, id: string): Promise<URL> {
  const { status, body } = await api(token, "POST", `/mcp/logins/${id}`);
  expect(body).toMatchObject({ url: expect.any(String) as string });
  expect(status).toBe(200);
  return new URL(String(body["url"]));
}

/** Where the browser comes back to after its user has agreed. */
async function agree(url: URL): Promise<URL> {
  const response = await fetch(url, { redirect: "manual" });
  return new URL(response.headers.get("location") ?? "");
}

const finish = (token: string, back: URL): Promise<Answer> =>
  api(token, "POST", "/mcp/logins/finish", { path: back.pathname, query: back.search });
const codeOf = ({ body }: Answer): unknown => (body["error"] as { code?: unknown } | undefined)?.code;
const grants = (): string[] => {
  try {
    return readdirSync(join(hub.home, "auth")).filter((name) => name.endsWith(".json"));
  } catch {
    return [];
  }
};

describe("[joy-02a] a login from the page", () => {
  it("has PKCE, a state and the hub's own address, and connects the server", async () => {
    expect((await api(OPS, "GET", "/mcp/logins")).body).toMatchObject({
      logins: expect.arrayContaining([
        expect.objectContaining({ serverId: "shared", state: "login_needed", user: null, own: true }),
      ]) as unknown,
    });
    const url = await begin(OPS, "shared");
    expect(url.origin).toBe(authorization.url);
    expect(url.searchParams.get("code_challenge_method")).toBe("S256");
    expect(url.searchParams.get("state")).toHaveLength(43);
    expect(url.searchParams.get("redirect_uri")).toMatch(new RegExp(`^${hub.url}/oauth/callback/[\\w-]{16}$`));
    const back = await agree(url);
    expect(await finish(OPS, back)).toMatchObject({ status: 200, body: { serverId: "shared", connected: true } });
    const { body } = await api(OPS, "GET", "/mcp/servers/shared");
    expect(body).toMatchObject({ server: { state: "ready", auth: { state: "ok" } } });
    expect((await api(OPS, "DELETE", "/mcp/logins/shared")).body).toEqual({ serverId: "shared", removed: true });
    expect(grants()).toEqual([]);
    expect(authorization.revoked.length).toBeGreaterThan(0);
  });

  it("of a server with isolation by user is each user's own", async () => {
    authorization.user = "alice-at-remote";
    const before = await api(ALICE, "POST", "/mcp/tools/personal__whoami/call", {});
    expect(before.body).toMatchObject({
      error: { code: "unauthorized", details: { loginNeeded: true, loginUrl: `${hub.url}/logins?server=personal` } },
    });
    expect(await finish(ALICE, await agree(await begin(ALICE, "personal")))).toMatchObject({ status: 200 });
    const called = await api(ALICE, "POST", "/mcp/tools/personal__whoami/call", {});
    expect(JSON.stringify(called.body)).toContain("alice-at-remote");
    const others = await api(MALLORY, "POST", "/mcp/tools/personal__whoami/call", {});
    expect(codeOf(others)).toBe("unauthorized");
    expect((await api(MALLORY, "GET", "/mcp/logins")).body).toMatchObject({
      logins: expect.arrayContaining([
        expect.objectContaining({ serverId: "personal", state: "login_needed", user: "mallory", own: true }),
        expect.objectContaining({ serverId: "shared", own: false }),
      ]) as unknown,
    });
  });

  it("that all share is the operator's", async () => {
    expect(codeOf(await api(ALICE, "POST", "/mcp/logins/shared"))).toBe("denied");
    expect(codeOf(await api(ALICE, "DELETE", "/mcp/logins/shared"))).toBe("denied");
  });
});

describe("[joy-02b] attackers", () => {
  it("cannot have someone else log in for them: who comes back is who began", async () => {
    authorization.user = "alice-at-remote";
    // Mallory begins, and Alice opens the link that Mallory sent her.
    const back = await agree(await begin(MALLORY, "personal"));
    const refused = await finish(ALICE, back);
    expect(refused).toMatchObject({ status: 403, body: { error: { code: "denied" } } });
    // The state is used up, also for Mallory who may have seen the address.
    expect(codeOf(await finish(MALLORY, back))).toBe("not_found");
    expect(grants()).toEqual([]);
    expect(authorization.tokenRequests.filter(({ code }) => code === back.searchParams.get("code"))).toEqual([]);
  });

  it("cannot log a victim in to their account: a state is nobody's but its beginner's, and works once", async () => {
    const own = await agree(await begin(MALLORY, "personal"));
    const victims = await agree(await begin(ALICE, "personal"));
    // The attacker's code with a made-up state, with none, and with the victim's state but the attacker's code.
    for (const state of ["made-up", ""]) {
      const forged = new URL(own);
      forged.searchParams.set("state", state);
      expect(codeOf(await finish(ALICE, forged))).toBe("not_found");
    }
    const swapped = new URL(victims);
    swapped.searchParams.set("code", own.searchParams.get("code") ?? "");
    expect(codeOf(await finish(ALICE, swapped))).toBe("unauthorized");
    expect(codeOf(await finish(ALICE, victims))).toBe("not_found");
    expect(grants()).toEqual([]);
  });

  it("cannot use a state twice, nor two times at once", async () => {
    const back = await agree(await begin(ALICE, "personal"));
    const answers = await Promise.all([finish(ALICE, back), finish(ALICE, back)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404]);
  });

  it("cannot mix authorization servers up, even where answers do not say who they are from", async () => {
    authorization.iss = undefined;
    authorization.promisesIss = false;
    try {
      // Alice knows the honest server: the hub has a client there.
      expect(await finish(ALICE, await agree(await begin(ALICE, "personal")))).toMatchObject({ status: 200 });
      // She begins at the evil one, which sends her on to the honest one with the hub's own client there.
      const toEvil = await begin(ALICE, "evil");
      const honest = await begin(ALICE, "personal");
      const mixed = new URL(honest);
      for (const name of ["state", "code_challenge", "code_challenge_method"])
        mixed.searchParams.set(name, toEvil.searchParams.get(name) ?? "");
      const back = await agree(mixed);
      expect(back.searchParams.get("code")).not.toBeNull();
      expect(await finish(ALICE, back)).toMatchObject({ status: 403, body: { error: { code: "denied" } } });
      expect(evil.tokenRequests).toEqual([]);
    } finally {
      authorization.iss = authorization.url;
      authorization.promisesIss = true;
    }
  });

  it("[sound-02a] cannot mix up clients that were registered by hand: without `iss` they share no address", async () => {
    for (const each of [authorization, evil]) {
      each.iss = undefined;
      each.promisesIss = false;
    }
    try {
      authorization.addClient("bank-client", undefined, [`${hub.url}/oauth/callback`]);
      const refused = await api(ALICE, "POST", "/mcp/logins/game");
      expect(refused).toMatchObject({ body: { error: { code: "invalid_config" } } });
      expect(JSON.stringify(refused.body)).toContain("auth.ownRedirect");
      // One with its own address works, and a code of another client at its own address does not pass for this one's.
      authorization.addClient("own-client", undefined, [`${hub.url}/oauth/callback/own`]);
      const back = await agree(await begin(ALICE, "own"));
      expect(back.pathname).toBe("/oauth/callback/own");
      expect(await finish(ALICE, back)).toMatchObject({ status: 200 });
    } finally {
      for (const each of [authorization, evil]) {
        each.iss = each.url;
        each.promisesIss = true;
      }
    }
    // The evil one announces `iss` to be let in, and sends the browser on: the honest one's answer says whose it is, or lacks it.
    authorization.iss = undefined;
    try {
      const sent = evil.tokenRequests.length;
      const toEvil = await begin(ALICE, "game");
      const mixed = new URL(`${authorization.url}/authorize${toEvil.search}`);
      mixed.searchParams.set("client_id", "bank-client");
      const back = await agree(mixed);
      expect(back.searchParams.get("code")).not.toBeNull();
      expect((await finish(ALICE, back)).status).not.toBe(200);
      expect(evil.tokenRequests).toHaveLength(sent);
    } finally {
      authorization.iss = authorization.url;
    }
  });

  it("[sound-01a] cannot have a code brought to another program: the Host header names no address of its own", async () => {
    const { port } = new URL(hub.url);
    const beginAt = (host: string): ReturnType<typeof ask> =>
      ask(`${hub.url}/api/v1/mcp/logins/personal`, { method: "POST", token: MALLORY, headers: { host } });
    for (const host of ["localhost:9", "127.0.0.1", `[::1]:${Number(port) + 1}`]) {
      const refused = await beginAt(host);
      expect(refused.json().error).toMatchObject({ code: "invalid_config" });
      expect(refused.json().error.hint).toContain("http.publicUrl");
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      const { url } = (await beginAt(host)).json<{ url: string }>();
      expect(new URL(url).searchParams.get("redirect_uri")).toContain(`http://${host}/oauth/callback/`);
    }
  });

  it("cannot lead a browser elsewhere: an address for a login is https or as local as its server", async () => {
    const { body } = await api(ALICE, "POST", "/mcp/logins/personal");
    expect(new URL(String(body["url"])).host).toBe(new URL(authorization.url).host);
    const redirect = new URL(String(body["url"])).searchParams.get("redirect_uri") ?? "";
    expect(new URL(redirect).origin).toBe(hub.url);
    // A foreign Host does not become the address that the browser comes back to.
    const foreign = await fetch(`${hub.url}/api/v1/mcp/logins/personal`, {
      method: "POST",
      headers: { authorization: `Bearer ${ALICE}`, "x-forwarded-host": "evil.example" },
    });
    expect(await foreign.text()).not.toContain("evil.example");
  });

  it("find no code, state or token in the log, the audit log or an answer", async () => {
    const back = await agree(await begin(OPS, "shared"));
    const page = await fetch(back, { headers: { accept: "text/html" } });
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("cache-control") ?? "").not.toContain("public");
    const answer = await finish(OPS, back);
    const audit = await api(OPS, "GET", "/audit?limit=1000");
    const home = readdirSync(hub.home, { recursive: true, encoding: "utf8" })
      .filter((name) => !name.startsWith("auth") && /\.(jsonl|log|json)$/.test(name))
      .map((name) => readFileSync(join(hub.home, name), "utf8"))
      .join("\n");
    const said = JSON.stringify([answer.body, audit.body]) + home + hub.stderr;
    for (const secret of [...authorization.secrets, back.searchParams.get("state") ?? ""])
      expect(said).not.toContain(secret);
    expect(JSON.stringify(audit.body)).toContain("server.logged_in");
  });
});

describe("[joy-02c] a client whose call needs a login", () => {
  const connect = async (capabilities: object): Promise<Client> => {
    const client = new Client({ name: "agent", version: "1" }, { capabilities });
    // Who never logged in.
    const headers = { authorization: `Bearer ${MALLORY}` };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`), { requestInit: { headers } }));
    return client;
  };

  it("gets a question with the address where it can show one", async () => {
    const client = await connect({ elicitation: { form: {}, url: {} } });
    const failed = await client.callTool({ name: "personal__whoami", arguments: {} }).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: -32042,
      data: { elicitations: [{ mode: "url", url: `${hub.url}/logins?server=personal` }] },
    });
    await client.close();
  });

  it("gets the address in the error where it cannot", async () => {
    const client = await connect({});
    const failed = await client.callTool({ name: "personal__whoami", arguments: {} }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ message: expect.stringContaining(`${hub.url}/logins?server=personal`) as string });
    expect(failed).not.toMatchObject({ code: -32042 });
    await client.close();
  });

  it("[sound-08a] is told when the login was made that it was asked for, and others are not", async () => {
    const told: Record<string, unknown[]> = { asked: [], other: [] };
    const [client, other] = await Promise.all(
      Object.values(told).map(async (seen) => {
        const each = await connect({ elicitation: { form: {}, url: {} } });
        each.setNotificationHandler("notifications/elicitation/complete", ({ params }) => void seen.push(params));
        return each;
      }),
    );
    const failed = await client?.callTool({ name: "personal__whoami", arguments: {} }).catch((error: unknown) => error);
    const { elicitationId } = (failed as { data: { elicitations: { elicitationId: string }[] } }).data
      .elicitations[0] ?? { elicitationId: "" };
    // The login of someone else is not the one.
    expect(await finish(ALICE, await agree(await begin(ALICE, "personal")))).toMatchObject({ status: 200 });
    expect(await finish(MALLORY, await agree(await begin(MALLORY, "personal")))).toMatchObject({ status: 200 });
    await expect.poll(() => told["asked"]).toEqual([{ elicitationId }]);
    expect(told["other"]).toEqual([]);
    expect(JSON.stringify(await client?.callTool({ name: "personal__whoami", arguments: {} }))).toContain("at-remote");
    for (const each of [client, other]) await each?.close();
  });
});
