import { describe, expect, expectTypeOf, it } from "vitest";
import { type Fetch, type ItemOf, type Socket, ToolcribApiError, ToolcribClient } from "../../src/api-client/index.ts";
import type { ToolInfo } from "../../src/contract/catalog-schemas.ts";
import { OPERATIONS, type InputOf, type OperationName, type OutputOf } from "../../src/contract/operations.ts";
import { matchRoute, readInput } from "../../src/doors/http/api/rest-routes.ts";
import type { HttpRoute } from "../../src/doors/http/http-exchange.ts";
import { ToolcribError } from "../../src/model/errors.ts";
import { place } from "../doors/http/support.ts";

const TOKEN = "user-token-0123456789";

interface Received {
  readonly name: OperationName;
  readonly input: object;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The hub's own way from a request to an operation's input, with answers that a test plays. */
async function hub(play: (received: Received) => unknown = () => ({})): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const api: HttpRoute = {
    path: "/api/v1",
    access: "read",
    handle: async (exchange) => {
      const match = matchRoute(exchange.request.method ?? "", exchange.path.slice("/api/v1".length));
      if (match === undefined || "allowed" in match) throw new ToolcribError("not_found", "There is nothing.");
      const input = await readInput(exchange, match.route, match.params);
      const one = { name: match.route.operation, input, headers: exchange.request.headers };
      received.push(one);
      exchange.response.end(JSON.stringify(await play(one)));
    },
  };
  const { url } = await place({ auth: { tokens: [{ token: TOKEN }] } }, { routes: [api] });
  return { url, received };
}

const entry = { command: "npx", args: ["-y", "x"] };
const INPUTS: { [Name in OperationName]: InputOf<Name> } = {
  me: {},
  overview: {},
  getStats: { range: "7d", server: "my server" },
  getTokenCosts: {},
  getServerProcess: { serverId: "my server" },
  getServerLog: { serverId: "files", after: 3, level: "error", q: "a b" },
  listServers: { q: "a b&c", state: "ready", limit: 5, cursor: "x=" },
  getServer: { serverId: "my server" },
  addServer: { serverId: "files", config: entry },
  updateServer: { serverId: "files", updates: { name: "Files", env: null } },
  removeServer: { serverId: "files" },
  connectServer: { serverId: "files" },
  disconnectServer: { serverId: "files@role", ifIdle: true },
  listLogins: {},
  beginLogin: { serverId: "linear" },
  finishLogin: { path: "/oauth/callback", query: "?code=a&state=b" },
  endLogin: { serverId: "linear" },
  parseServers: { text: "npx -y x" },
  testServer: { config: entry },
  listTools: { serverId: "files", fields: "summary", q: "ä" },
  callTool: { toolName: "files__read", serverId: "files", args: { path: "a", deep: [{ b: null }] }, timeoutMs: 5 },
  listResources: { q: "x" },
  readResource: { uri: "file:///a b" },
  listPrompts: { serverId: "files" },
  getPrompt: { promptName: "files__review", args: { path: "a b" }, questions: true },
  completeArgument: { uri: "file:///{path}", argument: "path", value: "a", known: { b: "c" } },
  followResource: { uri: "file:///a" },
  unfollowResource: { uri: "file:///a" },
  listQuestions: {},
  answerQuestion: { questionId: "q", action: "accept", content: { name: "Ada" } },
  listSkills: { kind: "imported" },
  getSkill: { skillId: "notes" },
  getInstructions: { skillId: "notes" },
  skillPlaces: {},
  scanSkills: { path: "~/skills" },
  importSkills: { path: "~/skills", only: ["a", "b"], dryRun: true },
  removeSkill: { skillId: "notes" },
  listSessions: { state: "all" },
  openSession: { servers: { wiki: { url: "https://wiki.example.com/mcp" } } },
  getSession: { sessionId: "s" },
  closeSession: { sessionId: "s" },
  listTaint: {},
  clearTaint: { sessionId: "s" },
  listPassages: { callId: "c" },
  listApprovals: { status: "all" },
  getApproval: { approvalId: "a" },
  answerApproval: { approvalId: "a", answer: "once" },
  listPins: { serverId: "files", state: "changed" },
  changePins: { action: "approve", serverId: "files", tool: "read" },
  overrideTool: { name: "files__read", override: { hidden: true }, save: true },
  changeConfig: { changes: [{ kind: "revokeToken", name: "laptop" }], save: true, etag: "x" },
  listRoles: {},
  listTokens: {},
  explainPolicy: { name: "files__read", role: "r" },
  explainCall: { name: "a", arguments: { b: 1 }, tainted: true },
  getConfig: {},
  clientSnippets: {},
  connectClient: { clientId: "cursor" },
  disconnectClient: { clientId: "cursor" },
  listAudit: { since: "1h", name: "files__*", order: "oldest" },
  getRecording: {},
  setRecording: { server: "files", minutes: 15 },
  verifyAudit: {},
};

describe("[oper-06a] the client over REST", () => {
  it.each(Object.keys(OPERATIONS) as OperationName[])("%s arrives with its input", async (name) => {
    const { url, received } = await hub(() => ({ said: name }));
    const client = new ToolcribClient({ url, token: TOKEN });
    // Every method is called in the same way.
    const method = client[name].bind(client) as (input: object) => Promise<unknown>;
    expect(await method(INPUTS[name])).toEqual({ said: name });
    const [one] = received;
    // In a query everything is text; the check of the input reads it.
    const texts = (input: object): object =>
      JSON.parse(
        JSON.stringify(input, (_, value: unknown) => (typeof value === "number" ? String(value) : value)),
      ) as object;
    expect(one).toMatchObject({ name, headers: { authorization: `Bearer ${TOKEN}` } });
    expect(texts(one?.input ?? {})).toEqual(texts(INPUTS[name]));
    expect(OPERATIONS[name].input.safeParse(one?.input).success).toBe(true);
  });

  it("has the contract's types", () => {
    const client = new ToolcribClient({ url: "http://127.0.0.1:1" });
    expectTypeOf(client.listServers).parameter(0).toEqualTypeOf<InputOf<"listServers"> | undefined>();
    expectTypeOf(client.getServer).parameter(0).toEqualTypeOf<InputOf<"getServer">>();
    expectTypeOf(client.callTool).returns.toEqualTypeOf<Promise<OutputOf<"callTool">>>();
    expectTypeOf<ItemOf<"listTools">>().toEqualTypeOf<ToolInfo>();
    expect(client.me).toBeTypeOf("function");
  });

  it("sends the etag as If-Match", async () => {
    const { url, received } = await hub();
    const client = new ToolcribClient({ url: `${url}/`, token: TOKEN });
    await client.updateServer({ serverId: "files", updates: {}, ifMatch: "abc" });
    // As the hub gives it.
    await client.removeServer({ serverId: "files", ifMatch: '"abc"' });
    expect(received.map(({ headers, input }) => [headers["if-match"], "ifMatch" in input])).toEqual([
      ['"abc"', false],
      ['"abc"', false],
    ]);
  });

  it("sends the cookie to its own hub only, and says with writes that it is the page", async () => {
    const sent: { method: string; headers: Record<string, string>; credentials?: string }[] = [];
    const answering: Fetch = async (_, init) => {
      sent.push(init);
      return { ok: true, status: 200, text: async () => "{}" };
    };
    const client = new ToolcribClient({ url: "https://hub.example", fetch: answering });
    await client.listServers();
    await client.connectServer({ serverId: "x" });
    await client.login({ code: "c" });
    let key = "first";
    const offered: string[][] = [];
    class Offering implements Socket {
      constructor(_: string, protocols: string[]) {
        offered.push(protocols);
      }
      send(): void {}
      close(): void {}
      addEventListener(): void {}
    }
    const own = { url: "https://hub.example", fetch: answering, WebSocket: Offering };
    const page = new ToolcribClient({ ...own, pageKey: () => key });
    await page.listServers();
    key = "second";
    await page.connectServer({ serverId: "x" });
    page.live().close();
    expect(offered).toEqual([["toolcrib.v1", "page.second"]]);
    expect(sent.map(({ method, headers, credentials }) => [method, headers["x-toolcrib"], credentials])).toEqual([
      ["GET", undefined, "same-origin"],
      ["POST", "page", "same-origin"],
      ["POST", "page", "same-origin"],
      ["GET", "first", "same-origin"],
      ["POST", "second", "same-origin"],
    ]);
    expect(sent.every(({ headers }) => headers["authorization"] === undefined)).toBe(true);
    expect(client.auditExportAddress({ since: "1h", name: "a*" })).toBe(
      "https://hub.example/api/v1/audit/export?since=1h&name=a*",
    );
  });

  it("[oper-06a] downloads the audit log as a page and as a program", async () => {
    const sent: [string, Readonly<Record<string, string>>][] = [];
    let refusal: string | undefined;
    const answering: Fetch = async (address, { headers }) => {
      sent.push([address, headers]);
      return {
        ok: refusal === undefined,
        status: refusal === undefined ? 200 : 403,
        text: async () => refusal ?? "{}\n",
      };
    };
    const page = new ToolcribClient({ url: "https://hub.example", fetch: answering, pageKey: "key" });
    expect(await (await page.exportAudit({ type: "call" })).text()).toBe("{}\n");
    expect(sent).toEqual([
      [
        "https://hub.example/api/v1/audit/export?type=call",
        { "x-toolcrib": "key", "x-toolcrib-client": "toolcrib-client" },
      ],
    ]);
    refusal = JSON.stringify({ error: { code: "denied", message: "No." } });
    await expect(page.exportAudit()).rejects.toMatchObject({ code: "denied", status: 403 });

    const log: HttpRoute = {
      path: "/api/v1/audit/export",
      access: "read",
      handle: ({ response }) => void response.end('{"seq":1}\n'),
    };
    const { url } = await place({ auth: { tokens: [{ token: TOKEN }] } }, { routes: [log] });
    const blob = await new ToolcribClient({ url, token: TOKEN }).exportAudit();
    expect(await blob.text()).toBe('{"seq":1}\n');
    const gone = new ToolcribClient({ url: "http://127.0.0.1:1", token: TOKEN });
    await expect(gone.exportAudit()).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("walks through all pages of a list, as far as they are wanted", async () => {
    const { url, received } = await hub(({ input }) => {
      const page = Number((input as { cursor?: string }).cursor ?? 0);
      return {
        tools: [{ name: `a${page}` }, { name: `b${page}` }],
        total: 6,
        ...(page < 2 ? { nextCursor: String(page + 1) } : {}),
      };
    });
    const client = new ToolcribClient({ url, token: TOKEN });
    const names: string[] = [];
    for await (const tool of client.all("listTools", { serverId: "files" })) names.push(tool.name);
    expect(names).toEqual(["a0", "b0", "a1", "b1", "a2", "b2"]);
    expect(received.every(({ input }) => (input as { serverId?: string }).serverId === "files")).toBe(true);
    for await (const tool of client.all("listTools")) if (tool.name === "b0") break;
    expect(received).toHaveLength(4);
  });
});

describe("[oper-06a] what goes wrong", () => {
  it("is the hub's error object", async () => {
    const { url } = await hub(() => {
      throw new ToolcribError("conflict", "It is there.", { hint: "Take another.", details: { file: "x" } });
    });
    const failure = await new ToolcribClient({ url, token: TOKEN })
      .addServer({ config: entry })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ToolcribApiError);
    expect(failure).toMatchObject({
      code: "conflict",
      message: "It is there.",
      hint: "Take another.",
      details: { file: "x" },
      status: 409,
    });
  });

  it.each([
    [502, "<html>", "server_unavailable"],
    [401, "", "unauthorized"],
    [413, '{"error":"big"}', "too_large"],
    [200, "<html>", "internal"],
    [418, "[]", "internal"],
  ])("a proxy's answer %i %j is %s", async (status, body, code) => {
    const fetch = async (): Promise<{ ok: boolean; status: number; text(): Promise<string> }> => ({
      ok: status === 200,
      status,
      text: async () => body,
    });
    await expect(new ToolcribClient({ url: "http://x", fetch }).me()).rejects.toMatchObject({ code, status });
  });

  it("is server_unavailable where nobody answers, and cancelled where it was given up", async () => {
    const { url } = await hub(() => new Promise(() => {}));
    const client = new ToolcribClient({ url, token: TOKEN });
    const giveUp = new AbortController();
    const asked = client.me({}, { signal: giveUp.signal });
    giveUp.abort();
    await expect(asked).rejects.toMatchObject({ code: "cancelled", status: 0 });
    const nowhere = new ToolcribClient({ url: "http://127.0.0.1:1" });
    await expect(nowhere.me()).rejects.toMatchObject({
      code: "server_unavailable",
      status: 0,
      hint: expect.any(String) as string,
    });
    await expect(client.getServer({ serverId: "" })).rejects.toThrow("serverId must be a non-empty string");
  });
});
