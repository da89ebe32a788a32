/** Sessions that bring servers along, over REST and the WebSocket. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InputOf, OutputOf } from "../../../../src/contract/operations.ts";
import { misbehaving } from "../../../support/servers.ts";
import type { Answer } from "../support.ts";
import { type ApiScene, apiScene, type Who } from "./api-setup.ts";

let scene: ApiScene;

beforeAll(async () => {
  scene = await apiScene({ servers: {}, config: { roles: { reviewer: {}, writer: {} } } });
});

afterAll(() => scene.close());

function open(who: Who, body: InputOf<"openSession">): Promise<Answer> {
  return scene.request(who, "POST", "/sessions", { body });
}

async function opened(who: Who, body: InputOf<"openSession">): Promise<OutputOf<"openSession">> {
  const answer = await open(who, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.json<OutputOf<"openSession">>();
}

async function tools(who: Who, session: string): Promise<string[]> {
  const answer = await scene.request(who, "GET", `/mcp/tools?fields=summary&session=${session}`);
  return answer.json<OutputOf<"listTools">>().tools.map(({ name }) => name);
}

const code = (answer: Answer): string => answer.json().error.code;

describe("[joy-10e] behind a path of a reverse proxy", () => {
  it.each([
    ["that it takes off", { publicUrl: "https://example.com/apps/crib/" }, "/apps/crib", ""],
    ["that it leaves", { publicUrl: "https://example.com/crib", basePath: "/crib" }, "/crib", "/crib"],
  ])("%s, Location leads back to the session", async (_, http, outside, inside) => {
    const there = await apiScene({ servers: {}, config: { http } });
    try {
      const location = async (headers: Record<string, string>): Promise<string> =>
        String((await there.request("admin", "POST", "/sessions", { body: {}, headers })).headers["location"]);
      expect(await location({ host: "example.com" })).toMatch(new RegExp(`^${outside}/api/v1/sessions/[\\w-]+$`));
      expect(await location({})).toMatch(new RegExp(`^${inside}/api/v1/sessions/[\\w-]+$`));
    } finally {
      await there.close();
    }
  });
});

describe("[agent-01a] a session that brings servers, over REST", () => {
  it("has its own tools, which only its caller can name, until it is closed", async () => {
    const answer = await open("admin", { servers: { mine: misbehaving("ok") } });
    const { id, sessionId, servers, notices } = answer.json<OutputOf<"openSession">>();
    expect([answer.status, answer.headers["location"], sessionId]).toEqual([201, `/api/v1/sessions/${id}`, id]);
    expect(servers).toMatchObject([{ name: "mine", state: "ready" }]);
    expect(notices).toEqual([]);
    const names = await tools("admin", id);
    const echo = names.find((name) => name.endsWith("echo")) ?? "";
    const call = { body: { arguments: { text: "hi" }, session: id } };
    const path = `/mcp/tools/${echo}/call`;
    expect((await scene.request("admin", "POST", path, call)).json()).toMatchObject({ content: [{ text: "hi" }] });
    const byServer = { body: { serverId: servers[0]?.id, args: { text: "again" }, session: id } };
    expect((await scene.request("admin", "POST", "/mcp/tools/echo/call", byServer)).text).toContain("again");
    expect(await scene.request("admin", "GET", "/mcp/tools")).toMatchObject({
      text: expect.not.stringContaining(echo),
    });
    expect((await scene.request("admin", "GET", `/mcp/servers?session=${id}`)).json()).toMatchObject({
      servers: [{ name: "mine" }],
    });
    const elsewhere = await scene.request("call", "POST", path, call);
    expect([elsewhere.status, code(elsewhere)]).toEqual([404, "not_found"]);
    expect((await scene.request("admin", "GET", `/sessions/${id}`)).json()).toMatchObject({
      session: { id, tools: names, servers: [{ name: "mine", state: "ready" }], notices: [] },
    });

    expect((await scene.request("admin", "DELETE", `/sessions/${id}`)).status).toBe(200);
    expect(code(await scene.request("admin", "POST", path, call))).toBe("not_found");
    const { entries } = (await scene.request("admin", "GET", "/audit?type=event")).json<{ entries: unknown[] }>();
    expect(entries).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          event: "session.begun",
          name: id,
          details: expect.objectContaining({ servers: ["mine"] }),
        }),
        expect.objectContaining({ event: "session.ended", name: id }),
      ]),
    );
  });

  it("[agent-01f] runs a command only with admin, and says so", async () => {
    const servers = { mine: misbehaving("ok") };
    const refused = { servers: [], notices: [{ level: "warning", server: "mine" }] };
    expect(await opened("call", { servers })).toMatchObject(refused);
    const talk = await scene.connect("call");
    const list = [{ name: "mine", ...misbehaving("ok") }];
    expect(await talk.ask({ id: 1, type: "sessions.open", servers: list })).toMatchObject({ ok: true, ...refused });
    expect(scene.hub.internals.sessions().flatMap(({ own }) => own.servers())).toEqual([]);
  });

  it("[agent-03b] opens also where a server fails, and says why", async () => {
    const { id, servers, notices } = await opened("call", { servers: { gone: { url: "http://127.0.0.1:1/mcp" } } });
    expect(servers).toMatchObject([{ name: "gone", toolCount: 0, lastError: expect.any(String) }]);
    expect(notices).toEqual(expect.arrayContaining([expect.objectContaining({ level: "warning", server: "gone" })]));
    // One's own needs no scope beyond that.
    expect((await scene.request("call", "GET", `/sessions/${id}`)).json()).toMatchObject({
      session: { servers: [{ name: "gone" }], notices },
    });
    expect(code(await scene.request("reviewer", "GET", `/sessions/${id}`))).toBe("denied");
    expect(code(await scene.request("reviewer", "DELETE", `/sessions/${id}`))).toBe("denied");
    expect((await scene.request("call", "DELETE", `/sessions/${id}`)).status).toBe(200);
    expect(code(await scene.request("call", "DELETE", `/sessions/${id}`))).toBe("denied");
  });

  it("has a role and a folder only of who may choose them", async () => {
    expect(code(await open("reviewer", { role: "writer" }))).toBe("denied");
    expect(code(await open("call", { role: "writer" }))).toBe("denied");
    expect(code(await open("call", { workspaceDir: "/" }))).toBe("denied");
    const ids = [
      (await opened("reviewer", { role: "reviewer" })).id,
      (await opened("reviewer", {})).id,
      (await opened("admin", { role: "writer", workspaceDir: scene.dir })).id,
    ];
    const made = ids.map((id) => scene.hub.internals.sessions().find((session) => session.id === id));
    expect(made.map((session) => [session?.role, session?.workspaceDir])).toEqual([
      ["reviewer", undefined],
      ["reviewer", undefined],
      ["writer", scene.dir],
    ]);
  });
});

describe("[agent-01a] a session that a WebSocket opened", () => {
  it("is told of, used by name, and ends with the socket", async () => {
    const talk = await scene.connect("admin");
    const reply = await talk.ask({ id: 1, type: "sessions.open", servers: { mine: misbehaving("ok") }, waitMs: 0 });
    const { sessionId } = reply;
    const ready = await talk.until(
      ({ type, server }) => type === "session.server" && (server as { state: string }).state === "ready",
    );
    expect(ready).toMatchObject({ session: sessionId, server: { name: "mine" } });
    const session = scene.hub.internals.sessions().find(({ id }) => id === sessionId);
    expect(session).toMatchObject({ door: "websocket" });
    const list = await talk.ask({ id: 2, type: "mcp.listTools", session: sessionId });
    expect(JSON.stringify(list)).toContain("echo");
    // Over REST the same caller can name it as well.
    expect((await tools("admin", String(sessionId))).length).toBeGreaterThan(0);
    talk.socket.terminate();
    await expect.poll(() => session?.closed).toBe(true);
    expect(session?.own.servers().filter(({ status }) => status === "connected")).toEqual([]);
  });

  it("is closed where nobody waits for it any more", async () => {
    const talk = await scene.connect("admin");
    const before = new Set(scene.hub.internals.sessions());
    const reply = talk.ask({
      id: 1,
      type: "sessions.open",
      servers: { slow: misbehaving("never-answers") },
      waitMs: 60_000,
    });
    await expect.poll(() => scene.hub.internals.sessions().filter((session) => !before.has(session)).length).toBe(1);
    talk.say({ type: "cancel", command: 1 });
    expect(await reply).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(scene.hub.internals.sessions().filter((session) => !before.has(session))).toEqual([]);
  });
});
