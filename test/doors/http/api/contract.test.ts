/** Drives every route of the OpenAPI document on a real hub, and holds each answer against the document. */
import { systemClock } from "../../../../src/base/clock.ts";
import { AuthorizationServer } from "../../../doubles/authorization-server.ts";
import { ProtectedServer } from "../../../doubles/protected-server.ts";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type OpenApiDocument, openApiDocument } from "../../../../src/doors/http/api/openapi-document.ts";
import { isJsonObject, type JsonObject } from "../../../../src/model/json.ts";
import { everything, filesystem, memory } from "../../../support/servers.ts";
import { writeSkill } from "../../../support/skill-folder.ts";
import type { Answer } from "../support.ts";
import { type ApiScene, apiScene, type RequestOptions, TOKENS, type Who } from "./api-setup.ts";
import { DocumentSchemas } from "./json-schema.ts";

interface Step extends RequestOptions {
  readonly who?: Who | null;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly status?: number;
}

let scene: ApiScene;
let document: OpenApiDocument;
let schemas: DocumentSchemas;
const driven = new Set<string>();

beforeAll(async () => {
  scene = await apiScene((dir) => ({
    servers: { everything: everything(), files: filesystem(dir), broken: { command: "toolcrib-no-such-program" } },
    config: {
      tools: { ask: ["everything__get-sum"] },
      roles: { reviewer: { servers: ["files"], tools: { deny: ["*__write_*"] } } },
    },
  }));
  const fetched: OpenApiDocument = (await scene.request(null, "GET", "/openapi.json")).json();
  document = fetched;
  schemas = new DocumentSchemas(document);
}, 60_000);

afterAll(() => scene.close());

/** Sends one request of an operation, and checks status, headers and body against what the document says of it. */
async function drive(operationId: string, step: Step = {}): Promise<Answer> {
  const { path, method, operation } = find(operationId);
  const { who = "admin", params = {}, query = {}, status = 200, ...options } = step;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? name));
  const search = Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query).toString()}`;
  const answer = await scene.request(who, method.toUpperCase(), filled + search, options);
  expect(answer.status, answer.text.slice(0, 2000)).toBe(status);
  const response = responseOf(operation, answer.status);
  const [type] = (answer.headers["content-type"] ?? "").split(";");
  const content = response["content"];
  if (isJsonObject(content) && type !== undefined) {
    const media = content[type];
    expect(media, `${answer.status} as ${type}`).toBeDefined();
    if (type === "application/json" && isJsonObject(media)) {
      expect(schemas.problems(media["schema"], answer.json())).toEqual([]);
    }
  }
  if (status < 300) driven.add(operationId);
  return answer;
}

function find(operationId: string): { path: string; method: string; operation: JsonObject } {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation["operationId"] === operationId) return { path, method, operation };
    }
  }
  throw new Error(`The document has no ${operationId}.`);
}

/** What the document says of a status; an undeclared one is a fault. */
function responseOf(operation: JsonObject, status: number): JsonObject {
  const responses = operation["responses"];
  const response = isJsonObject(responses) ? responses[status] : undefined;
  if (!isJsonObject(response)) throw new Error(`${String(operation["operationId"])}: ${status} is not declared`);
  const name = typeof response["$ref"] === "string" ? response["$ref"].split("/").at(-1) : undefined;
  const shared = name === undefined ? response : document.components.responses[name];
  return isJsonObject(shared) ? shared : {};
}

const code = (answer: Answer): string => answer.json().error.code;

describe("[oper-04a] every route answers as the document says", () => {
  it("the hub and its settings", async () => {
    expect((await drive("me")).json()).toMatchObject({ user: "ops", owner: true, version: "1.2.3", url: scene.url });
    expect((await drive("me", { who: "reviewer" })).json()).toMatchObject({
      role: "reviewer",
      scopes: ["read", "call"],
    });
    expect((await drive("getServerProcess", { params: { serverId: "everything" } })).json()).toMatchObject({
      restarts: 0,
    });
    await drive("getServerLog", { params: { serverId: "everything" }, query: { limit: "5" } });
    await drive("getServerLog", { params: { serverId: "absent" }, status: 404 });
    expect((await drive("overview")).json()).toMatchObject({ servers: { ready: 2, failed: 1 }, store: "sqlite" });
    await drive("getConfig");
    await drive("clientSnippets", { who: "read" });
    await drive("connectClient", { params: { clientId: "cursor" } });
    await drive("disconnectClient", { params: { clientId: "cursor" } });
    await drive("explainPolicy", { query: { name: "files__write_file", role: "reviewer" } });
    await drive("explainCall", { body: { name: "files__write_file", arguments: { path: "a" } } });
    expect((await drive("openapi", { who: null })).json()).toEqual(
      JSON.parse(JSON.stringify(openApiDocument("1.2.3"))),
    );
  });

  it("[oper-04d] servers, from adding to removing", async () => {
    const file = join(scene.dir, "memory.json");
    const entry = { id: "notes", ...memory(file), autoConnect: false };
    const { id: _id, ...config } = entry;
    await drive("listServers", { who: "read" });
    await drive("getServer", { params: { serverId: "files" } });
    const parsed = await drive("parseServers", { body: { text: "npx -y @modelcontextprotocol/server-memory" } });
    expect(parsed.json()).toMatchObject({ servers: [{ config: { command: "npx" } }] });
    expect((await drive("testServer", { body: entry })).json()).toMatchObject({ ok: true, error: null });
    const added = await drive("addServer", { body: entry, status: 201 });
    expect(added.headers["location"]).toBe("/api/v1/mcp/servers/notes");
    const { server } = added.json<{ server: { etag: string } }>();
    expect(added.headers["etag"]).toBe(server.etag);
    expect(code(await drive("addServer", { body: { serverId: "notes", config }, status: 409 }))).toBe("conflict");

    const params = { serverId: "notes" };
    const ifMatch = { "if-match": server.etag };
    const changed = await drive("updateServer", { params, body: { name: "My notes" }, headers: ifMatch });
    expect(changed.json()).toMatchObject({ server: { name: "My notes", config: { command: process.execPath } } });
    expect(changed.headers["etag"]).not.toBe(server.etag);
    const late = await drive("updateServer", { params, body: { name: "Lost" }, headers: ifMatch, status: 412 });
    expect(code(late)).toBe("conflict");
    expect(code(await drive("removeServer", { params, headers: ifMatch, status: 412 }))).toBe("conflict");

    for (const _again of [1, 2]) {
      expect((await drive("connectServer", { params })).json()).toMatchObject({ server: { state: "ready" } });
    }
    for (const _again of [1, 2]) {
      const stopped = await drive("disconnectServer", { params });
      expect(stopped.json()).toMatchObject({ server: { status: "disconnected" } });
    }
    const off = await drive("updateServer", { params, body: { enabled: false } });
    expect(code(await drive("connectServer", { params, status: 409 }))).toBe("conflict");
    await drive("removeServer", { params, headers: { "if-match": String(off.headers["etag"]) } });
    expect(code(await drive("getServer", { params, status: 404 }))).toBe("not_found");
    for (const [operation, body] of [
      ["updateServer", { name: "x" }],
      ["removeServer", undefined],
    ] as const) {
      const refused = await drive(operation, { params: { serverId: "files" }, body, status: 409 });
      expect(refused.json()).toMatchObject({
        error: { code: "conflict", hint: expect.stringContaining("toolcrib.json") },
      });
    }
  });

  it("servers of the store that cannot be read are shown, and removed", async () => {
    await scene.hub.internals.store?.servers.insert({ id: "nonsense", entry: { command: 7 }, source: "api" });
    await scene.hub.reload();
    const failed = (await drive("listServers", { query: { state: "failed" } })).json();
    expect(failed).toMatchObject({ servers: expect.arrayContaining([expect.objectContaining({ id: "nonsense" })]) });
    const params = { serverId: "nonsense" };
    const { headers } = await drive("getServer", { params });
    await drive("updateServer", { params, body: { name: "x" }, status: 400 });
    await drive("removeServer", { params, headers: { "if-match": String(headers["etag"]) } });
    await drive("getServer", { params, status: 404 });
  });

  it("tools, resources and prompts", async () => {
    expect((await drive("listTools", { who: "read" })).json<{ total: number }>().total).toBeGreaterThan(20);
    await drive("listToolsOfServer", { who: "reviewer", params: { serverId: "files" } });
    const echo = { params: { toolName: "everything__echo" }, body: { arguments: { message: "hello" } } };
    const result = await drive("callTool", { who: "call", ...echo });
    expect(result.json()).toMatchObject({ content: [{ type: "text", text: expect.stringContaining("hello") }] });
    const own = { params: { toolName: "echo" }, body: { serverId: "everything", args: { message: "again" } } };
    expect((await drive("callTool", { who: "call", ...own })).text).toContain("again");
    const failed = { params: { toolName: "files__read_text_file" }, body: { arguments: { path: "/nowhere" } } };
    expect((await drive("callTool", { who: "call", ...failed })).json()).toMatchObject({ isError: true });
    const { resources } = (await drive("listResources")).json<{ resources: { uri: string; template: boolean }[] }>();
    const uri = resources.find(({ template }) => !template)?.uri;
    await drive("readResource", { who: "read", body: { uri } });
    await drive("listPrompts");
    const city = { params: { promptName: "everything__args-prompt" }, body: { args: { city: "Bern" } } };
    await drive("getPrompt", { who: "read", ...city });
    const department = { promptName: "everything__completable-prompt", argument: "department" };
    await drive("completeArgument", { who: "read", body: department });
    await drive("followResource", { who: "read", body: { uri } });
    await drive("unfollowResource", { who: "read", body: { uri } });
  });

  it("logins at servers", async () => {
    const authorization = await AuthorizationServer.start(systemClock);
    const remote = await ProtectedServer.start(authorization);
    try {
      await drive("addServer", { body: { id: "remote", url: remote.url, auth: { type: "oauth" } }, status: 201 });
      const params = { serverId: "remote" };
      expect((await drive("listLogins")).json()).toMatchObject({ logins: [{ serverId: "remote", own: true }] });
      const { url } = (await drive("beginLogin", { params })).json<{ url: string }>();
      const back = new URL((await fetch(url, { redirect: "manual" })).headers.get("location") ?? "");
      const body = { path: back.pathname, query: back.search };
      expect((await drive("finishLogin", { body })).json()).toMatchObject({ connected: true });
      await drive("endLogin", { params });
      await drive("removeServer", { params });
    } finally {
      await Promise.all([authorization.close(), remote.close()]);
    }
  });

  it("questions of servers", async () => {
    const params = { toolName: "everything__trigger-elicitation-request" };
    const called = drive("callTool", { who: "call", params, body: { questions: true } });
    const [question] = await vi.waitUntil(async () => {
      const { questions } = (await drive("listQuestions", { who: "call" })).json<{ questions: { id: string }[] }>();
      return questions.length > 0 && questions;
    });
    const decline = { params: { questionId: question?.id ?? "" }, body: { action: "decline" } };
    await drive("answerQuestion", { who: "call", ...decline });
    expect(code(await drive("answerQuestion", { who: "call", ...decline, status: 404 }))).toBe("not_found");
    expect((await called).text).toContain("declined");
  });

  it("skills", async () => {
    const folder = join(scene.dir, "skills");
    writeSkill(folder, "weather", { more: ['metadata: {"openclaw": {"requires": {"bins": ["no-such-program"]}}}'] });
    await drive("skillPlaces");
    expect((await drive("scanSkills", { body: { path: folder } })).json()).toMatchObject({ totalScanned: 1 });
    const imported = await drive("importSkills", { body: { path: folder } });
    const {
      imported: [skill],
    } = imported.json<{ imported: { skillId: string }[] }>();
    const params = { skillId: skill?.skillId ?? "" };
    expect((await drive("listSkills")).json()).toMatchObject({ total: 1, skills: [{ id: params.skillId }] });
    await drive("getSkill", { params });
    const read = await drive("getInstructions", { params });
    expect(read.json()).toMatchObject({ instructions: expect.stringContaining("Do it with care.") });
    await drive("removeSkill", { params });
    await drive("removeSkill", { params, status: 404 });
  });

  it("sessions, approvals, pins and the audit log", async () => {
    const sum = {
      who: "call",
      params: { toolName: "everything__get-sum" },
      body: { arguments: { a: 1, b: 2 } },
    } as const;
    const held = await drive("callTool", { ...sum, status: 403 });
    expect(held.json()).toMatchObject({ error: { details: { pendingApproval: true } } });
    const waiting = (await drive("listApprovals")).json<{ approvals: { id: string }[]; total: number }>();
    expect(waiting.total).toBe(1);
    const params = { approvalId: waiting.approvals[0]?.id ?? "" };
    expect(held.text).not.toContain(params.approvalId);
    await drive("getApproval", { params });
    const answered = await drive("answerApproval", { params, body: { answer: "once" } });
    expect(answered.json()).toEqual({ id: params.approvalId, answer: "once" });
    expect((await drive("callTool", sum)).text).toContain("3");
    await drive("answerApproval", { params, body: { answer: "once" }, status: 404 });

    const { sessions } = (await drive("listSessions", { query: { door: "rest" } })).json<{
      sessions: { id: string; user: string | null }[];
    }>();
    const sessionId = sessions.find(({ user }) => user === "rita")?.id ?? "";
    await drive("getSession", { params: { sessionId } });
    await drive("closeSession", { params: { sessionId } });
    const opened = await drive("openSession", {
      who: "call",
      body: { servers: { no: { url: "nonsense" } } },
      status: 201,
    });
    expect(opened.json()).toMatchObject({ notices: [{ server: "no" }] });
    const { id } = opened.json<{ id: string }>();
    await drive("listTools", { who: "call", query: { session: id } });
    await drive("listTools", { who: "reviewer", query: { session: id }, status: 404 });
    await drive("closeSession", { who: "call", params: { sessionId: id } });
    await drive("closeSession", { params: { sessionId }, status: 404 });
    await drive("closeSession", { params: { sessionId: scene.hub.session.id }, status: 409 });

    const origin = { server: "web", name: "web__get", read: ["https://example.com/a"], callId: "c", at: 1000 };
    scene.hub.session.markTainted(origin);
    await scene.hub.internals.taints.keep("notes", [origin]);
    const tainted = (await drive("listTaint")).json<{ sessions: { id: string }[] }>();
    expect(tainted).toMatchObject({ memories: [{ server: "notes", origins: [{ server: "web" }] }] });
    expect(tainted.sessions.map((each) => each.id)).toContain(scene.hub.session.id);
    await drive("clearTaint", { body: { memory: "notes" } });
    await drive("clearTaint", { body: { memory: "notes" }, status: 404 });
    await drive("clearTaint", { body: { sessionId: scene.hub.session.id } });
    expect(scene.hub.session.taint).toBeNull();
    await drive("clearTaint", { body: {}, status: 400 });

    expect((await drive("listPassages", { params: { callId: "c" } })).json()).toEqual({ passages: [] });

    await drive("listPins");
    const { pins } = (await drive("listPins", { query: { serverId: "files" } })).json<{ pins: { tool: string }[] }>();
    expect(pins.length).toBeGreaterThan(5);
    await drive("changePins", { body: { action: "reset", serverId: "files", tool: pins[0]?.tool } });
    await drive("changePins", { body: { action: "approve", serverId: "files" } });

    const override = { name: "shout", parameters: { message: { fixed: "HI" } } };
    const preview = await drive("overrideTool", { body: { name: "everything__echo", override } });
    expect(preview.json()).toMatchObject({
      ...{ saved: false, server: "everything", tool: "echo", override },
      original: { name: "everything__echo", definition: { inputSchema: { required: ["message"] } } },
      effective: { name: "everything__shout", definition: { inputSchema: { properties: {} } } },
    });
    await drive("overrideTool", { body: { name: "everything__echo", override }, who: "call", status: 403 });
    await drive("overrideTool", { body: { name: "everything__nothing" }, status: 404 });
    await drive("overrideTool", { body: { name: "everything__echo", override: { hide: true } }, status: 400 });
    const wrong = { parameters: { text: { fixed: "HI" } } };
    const misfit = await drive("overrideTool", { body: { name: "everything__echo", override: wrong } });
    expect(misfit.json()).toMatchObject({ misfit: 'it has no parameter "text"' });
    await drive("overrideTool", { body: { name: "everything__echo", override: wrong, save: true }, status: 400 });

    expect((await drive("getStats", { query: { range: "1h", server: "everything" } })).json()).toMatchObject({
      range: "1h",
      stepSeconds: 60,
    });
    await drive("getStats", { query: { server: "a", role: "b" }, status: 400 });
    await drive("getStats", { who: "call", status: 403 });
    expect((await drive("getTokenCosts")).json()).toMatchObject({ charactersPerToken: 4, search: { tools: 3 } });

    const changes = [{ kind: "rule", verdict: "deny", patterns: ["everything__echo"] }];
    const planned = (await drive("changeConfig", { body: { changes } })).json<{ etag: string; saved: boolean }>();
    expect(planned).toMatchObject({ saved: false, diffs: [{ where: scene.file }] });
    await drive("changeConfig", { body: { changes }, who: "call", status: 403 });
    await drive("changeConfig", { body: { changes, save: true }, status: 400 });
    await drive("changeConfig", { body: { changes, save: true, etag: "old" }, status: 409 });
    await drive("changeConfig", { body: { changes: [{ kind: "revokeToken", name: "none" }] }, status: 404 });
    await drive("listRoles");
    await drive("listTokens");
    await drive("listTokens", { who: "call", status: 403 });
    await drive("listTools", { query: { access: "true" }, who: "call", status: 403 });
    await drive("listTools", { query: { access: "true" } });

    const found = await drive("listAudit", { query: { name: "everything__get-sum", limit: "2" } });
    expect(found.json<{ entries: unknown[] }>().entries).toHaveLength(2);
    expect((await drive("verifyAudit")).json()).toMatchObject({ ok: true });
    await drive("setRecording", { body: { server: "files", minutes: 1 } });
    await drive("setRecording", { body: { server: "files", minutes: 0 } });
    expect((await drive("getRecording")).json()).toMatchObject({ recordings: [] });
    const lines = (await drive("exportAudit", { query: { type: "call" } })).text.trim().split("\n");
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ type: "call" });
  });

  it("the event stream", async () => {
    const stopping = new AbortController();
    const answer = await fetch(`${scene.url}/api/v1/events`, {
      headers: { authorization: `Bearer ${TOKENS.read}` },
      signal: stopping.signal,
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    stopping.abort();
    driven.add("events");
  });

  it("and no route is left out", () => {
    const all = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => String(operationId)),
    );
    expect(all.filter((id) => !driven.has(id))).toEqual([]);
  });
});

describe("[oper-04e] errors are of the one table", () => {
  it("[oper-07a] 401 without a token, 403 without the scope, for every operation", async () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { operationId, "x-scope": scope }] of Object.entries(methods)) {
        if (typeof scope !== "string") continue;
        const id = String(operationId);
        const params = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, "x"]));
        const stranger = await drive(id, { who: null, params, status: 401 });
        expect(stranger.headers["www-authenticate"], id).toContain("Bearer");
        if (scope === "read") continue;
        const weak = await drive(id, { who: scope === "admin" ? "call" : "read", params, status: 403 });
        expect(weak.json()).toMatchObject({
          error: { code: "denied", message: `This needs the scope "${scope}".` },
        });
        expect(weak.headers["www-authenticate"], `${method} ${id}`).toContain("insufficient_scope");
      }
    }
  });

  it("400 says which field is wrong", async () => {
    const answer = await drive("listTools", { query: { limit: "0", fields: "most", color: "red" }, status: 400 });
    expect(answer.json()).toMatchObject({
      error: {
        code: "invalid_arguments",
        message: expect.stringMatching(/limit: .*fields: must be one of "all", "summary".*"color" is not known/),
        details: { issues: expect.arrayContaining([expect.objectContaining({ path: "limit" })]) },
      },
    });
    const missing = await drive("answerApproval", { params: { approvalId: "x" }, status: 400 });
    expect(missing.json().error.message).toBe(
      'answer: must be one of "once", "session", "always", "always-values", "always-call", "no".',
    );
    expect((await drive("scanSkills", { body: {}, status: 400 })).json().error.message).toBe("path: is missing.");
    expect((await drive("openSession", { body: { servers: "x" }, status: 400 })).json().error.message).toBe(
      "servers: must be an object or an array.",
    );
    await drive("listTools", { query: { cursor: "what" }, status: 400 });
  });

  it.each(["{", "null", "[]", '"once"', "{'a':1}"])("a body of %j is 400", async (text) => {
    expect(code(await drive("parseServers", { text, status: 400 }))).toBe("invalid_arguments");
  });

  it("404 for what is not there, 405 with Allow, 415 for another type, 412 never without If-Match", async () => {
    const nothing = await scene.request("admin", "GET", "/mcp/nothing");
    expect([nothing.status, code(nothing)]).toEqual([404, "not_found"]);
    for (const path of ["/mcp/servers/files/connect/x", "", "/audit/export/x"]) {
      expect((await scene.request("admin", "POST", path)).status, path).toBe(404);
    }
    const other = await scene.request("admin", "PUT", "/mcp/servers/files");
    expect([other.status, other.headers["allow"]]).toEqual([405, "GET, HEAD, PATCH, DELETE"]);
    expect(schemas.problems({ $ref: "#/components/schemas/Error" }, other.json())).toEqual([]);
    const typed = await drive("parseServers", {
      text: "text=x",
      headers: { "content-type": "text/plain" },
      status: 415,
    });
    expect(code(typed)).toBe("invalid_arguments");
    await drive("updateServer", { params: { serverId: "x" }, body: {}, status: 404 });
    const flat = await drive("callTool", { params: { toolName: "x" }, body: { message: "hi" }, status: 400 });
    expect(flat.json()).toMatchObject({
      error: { message: "message: is not known.", hint: expect.stringContaining('{"arguments": {"message": …}}') },
    });
    const root = (await scene.request("admin", "GET", "")).json<{ error: { hint: string } }>();
    expect(root.error.hint).toContain("/api/v1/openapi.json");
    const stranger = await fetch(`${scene.url}/api/v1/me`, { headers: { authorization: "Bearer nobody" } });
    expect(await stranger.json()).toMatchObject({ error: { hint: expect.stringContaining("http.auth") } });
  });

  it("a call that takes too long is 504, and one to a server that is down 503", async () => {
    const slow = { params: { toolName: "everything__trigger-long-running-operation" } };
    const body = { arguments: { duration: 20, steps: 2 }, timeoutMs: 100 };
    const late = await drive("callTool", { ...slow, body, status: 504 });
    const { callId } = late.json<{ error: { details: { callId: string } } }>().error.details;
    expect(code(late)).toBe("timeout");
    const { entries } = (await drive("listAudit", { query: { callId, type: "call" } })).json<{ entries: unknown[] }>();
    expect(entries).toMatchObject([{ callId, outcome: "timeout" }]);
    const down = { params: { toolName: "echo" }, body: { serverId: "broken" } };
    const refused = await drive("callTool", { ...down, status: 503 });
    expect(refused.json()).toMatchObject({ error: { code: "server_unavailable", details: { server: "broken" } } });
  });
});
