/** What REST does beyond one operation to a request: pages, filters, roles, tags of answers, forms of bodies, leaving early. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLIENT_IDS } from "../../../../src/clients/agent-client.ts";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import type { Tool } from "../../../../src/model/tool.ts";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { Raw } from "../support.ts";
import { type ApiScene, apiScene, TOKENS, type Who } from "./api-setup.ts";

const MANY = 1000;

function tool(name: string, given: Partial<Tool> = {}): Tool {
  const content = [{ type: "text" as const, text: name }];
  return {
    name,
    description: `Does ${name}.`,
    parameters: { type: "object" },
    execute: async () => ({ content }),
    ...given,
  };
}

let scene: ApiScene;
let removeMany: () => void;
let started = Promise.withResolvers<void>();

beforeAll(async () => {
  const registry = new ToolRegistry();
  const many = Array.from({ length: MANY }, (_, number) => tool(`tool_${number}`));
  removeMany = registry.registerFactory(() => many);
  registry.register(tool("bake_bread", { description: "Puts dough into the oven." }));
  registry.register(
    tool("wait_long", {
      execute: (_id, _args, signal) => {
        started.resolve();
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("stopped"))));
      },
    }),
  );
  const off = { command: "nothing", enabled: false };
  scene = await apiScene({
    servers: {
      files: { ...off, tags: ["docs"] },
      hidden: { ...off, name: "Other files", roles: ["chef"] },
    },
    config: {
      roles: { reviewer: { servers: ["files", "local"], tools: { deny: ["wait_*"], ask: ["tool_7"] } }, chef: {} },
    },
    registry,
  });
});

afterAll(() => scene.close());

async function get<Body>(who: Who, path: string): Promise<Body> {
  const answer = await scene.request(who, "GET", path);
  expect(answer.status, answer.text.slice(0, 500)).toBe(200);
  return answer.json<Body>();
}

interface Tools {
  readonly tools: ToolInfo[];
  readonly total: number;
  readonly nextCursor?: string;
}

describe("[oper-04c] lists", () => {
  it("come in pages that together are the whole", async () => {
    const names = new Set<string>();
    let cursor = "";
    let pages = 0;
    do {
      const page = await get<Tools>("read", `/mcp/tools?fields=summary&limit=300${cursor}`);
      expect(page.total).toBe(MANY + 2);
      for (const { name } of page.tools) names.add(name);
      cursor = page.nextCursor === undefined ? "" : `&cursor=${page.nextCursor}`;
      pages += 1;
    } while (cursor !== "");
    expect([pages, names.size]).toEqual([4, MANY + 2]);
  });

  it("filter: tools by words, name, server and pin; the schemas can be left out", async () => {
    const found = await get<Tools>("read", "/mcp/tools?q=oven%20dough&limit=3");
    expect(found.tools[0]).toMatchObject({ name: "bake_bread", server: "local", tool: "bake_bread", pin: "off" });
    expect(found.tools[0]).toHaveProperty("inputSchema");
    expect((await get<Tools>("read", "/mcp/tools?q=ool_499&fields=summary")).tools.map(({ name }) => name)).toContain(
      "tool_499",
    );
    const [summary] = (await get<Tools>("read", "/mcp/tools?name=tool_3&fields=summary")).tools;
    expect(summary).not.toHaveProperty("inputSchema");
    expect((await get<Tools>("read", "/mcp/tools?pin=changed")).total).toBe(0);
    expect((await get<Tools>("read", "/mcp/tools/local?limit=1")).total).toBe(MANY + 2);
    expect((await get<Tools>("read", "/mcp/tools/files")).total).toBe(0);
    expect((await scene.request("read", "GET", "/mcp/tools/nobody")).status).toBe(404);
  });

  it("filter: servers by part of a name, state and tag", async () => {
    const ids = async (query: string): Promise<string[]> =>
      (await get<{ servers: { id: string }[] }>("admin", `/mcp/servers${query}`)).servers.map(({ id }) => id);
    expect(await ids("")).toEqual(["files", "hidden"]);
    expect(await ids("?q=OTHER")).toEqual(["hidden"]);
    expect(await ids("?tag=docs&state=disabled")).toEqual(["files"]);
    expect(await ids("?state=ready")).toEqual([]);
  });
});

describe("[oper-07a] a caller with a role", () => {
  it("sees its servers and tools, and no others are there", async () => {
    const { servers } = await get<{ servers: { id: string }[] }>("reviewer", "/mcp/servers");
    expect(servers.map(({ id }) => id)).toEqual(["files"]);
    expect((await get<Tools>("reviewer", "/mcp/tools?name=wait_long")).total).toBe(0);
    expect((await get<Tools>("reviewer", "/mcp/tools?q=wait")).tools.map(({ name }) => name)).not.toContain(
      "wait_long",
    );
    expect((await scene.request("reviewer", "GET", "/mcp/tools/hidden")).status).toBe(404);
    const body = { serverId: "hidden" };
    const call = await scene.request("reviewer", "POST", "/mcp/tools/x/call", { body });
    expect([call.status, call.json().error.code]).toEqual([404, "not_found"]);
    expect((await scene.request("reviewer", "POST", "/mcp/tools/wait_long/call")).status).not.toBe(200);
    expect((await scene.request("reviewer", "POST", "/mcp/tools/tool_1/call")).json()).toMatchObject({
      content: [{ text: "tool_1" }],
    });
  });

  it("a guest without a role does not see what is for roles only", async () => {
    const { servers } = await get<{ servers: { id: string }[] }>("read", "/mcp/servers");
    expect(servers.map(({ id }) => id)).toEqual(["files", "hidden"].filter((id) => id !== "hidden"));
  });

  it("gets its own rules explained without where they stand; other roles need admin", async () => {
    const asked = await get<object>("reviewer", "/policy/explain?name=tool_7");
    expect(asked).toEqual({
      name: "tool_7",
      nearest: null,
      verdict: "ask",
      visible: true,
      rule: null,
      reasons: ["It needs approval first."],
    });
    expect((await scene.request("reviewer", "GET", "/policy/explain?name=wait_long")).status).toBe(404);
    expect((await scene.request("reviewer", "GET", "/policy/explain?name=tool_7&role=chef")).status).toBe(403);
    expect(await get<object>("admin", "/policy/explain?name=wait_long&role=reviewer")).toMatchObject({
      verdict: "deny",
      visible: false,
      rule: { level: "role", list: "deny", pattern: "wait_*" },
      reasons: [expect.stringContaining('It may not be used: deny "wait_*" of the role')],
    });
    expect(await get<object>("admin", "/policy/explain?name=tool_1")).toMatchObject({ verdict: "allow", rule: null });
    expect((await scene.request("admin", "GET", "/policy/explain?name=tool_x")).status).toBe(404);
  });

  it("gets snippets for other machines: no paths, no command of this one, no token", async () => {
    interface Clients {
      readonly clients: { id: string; file: string | null; snippet: string; command: string }[];
    }
    const [own, others] = [await get<Clients>("admin", "/clients"), await get<Clients>("reviewer", "/clients")];
    expect(own.clients).toHaveLength(CLIENT_IDS.length);
    expect(own.clients.find(({ id }) => id === "claude-desktop")?.snippet).toContain("mcp");
    expect(others.clients.map(({ id }) => id)).not.toContain("claude-desktop");
    const text = JSON.stringify(others);
    expect(text).not.toContain(scene.dir);
    expect(text).not.toContain(TOKENS.reviewer);
    const cursor = others.clients.find(({ id }) => id === "cursor");
    expect(cursor).toMatchObject({ file: null, command: `toolcrib connect cursor --url ${scene.url}/mcp` });
    expect(JSON.parse(cursor?.snippet ?? "")).toEqual({
      mcpServers: { toolcrib: { url: `${scene.url}/mcp`, headers: { Authorization: "Bearer <token>" } } },
    });
  });
});

describe("[oper-04d] tags of answers", () => {
  it("spare what the caller has, until it is other than before", async () => {
    const first = await scene.request("read", "GET", "/mcp/tools?limit=5");
    const tag = String(first.headers["etag"]);
    const again = (given: string) =>
      scene.request("read", "GET", "/mcp/tools?limit=5", { headers: { "if-none-match": given } });
    expect(await again(tag)).toMatchObject({ status: 304, text: "" });
    expect((await again(`"other", W/${tag}`)).status).toBe(304);
    expect((await again('"other"')).status).toBe(200);
    removeMany();
    expect((await again(tag)).status).toBe(200);
  });

  it("HEAD gives the headers of GET and no body", async () => {
    const head = await scene.request("read", "HEAD", "/me");
    const whole = await scene.request("read", "GET", "/me");
    expect([head.status, head.text]).toEqual([200, ""]);
    expect(head.headers).toMatchObject({
      etag: whole.headers["etag"],
      "content-length": whole.headers["content-length"],
    });
  });

  it("If-Match of * and of several tags", async () => {
    const body = { id: "tagged", command: "nothing", enabled: false };
    const added = await scene.request("admin", "POST", "/mcp/servers", { body });
    const tag = String(added.headers["etag"]);
    const patch = (name: string, given: string) =>
      scene.request("admin", "PATCH", "/mcp/servers/tagged", { body: { name }, headers: { "if-match": given } });
    expect((await patch("one", `"0-0", ${tag}`)).status).toBe(200);
    const late = await patch("two", tag);
    expect([late.status, late.json().error.code]).toEqual([412, "conflict"]);
    expect(late.headers["etag"]).not.toBe(tag);
    expect((await patch("two", "*")).status).toBe(200);
    expect((await scene.request("admin", "DELETE", "/mcp/servers/tagged")).json()).toEqual({ serverId: "tagged" });
  });
});

describe("[oper-04c] servers sent in every form", () => {
  const entry = { command: "nothing", enabled: false, toolTimeout: 5000 };

  it.each([
    ["flat", { id: "my notes@home", ...entry }],
    ["with serverId and config", { serverId: "my notes@home", config: entry }],
    ["with id and config", { id: "my notes@home", config: entry }],
    ["with the id in config", { config: { id: "my notes@home", ...entry } }],
  ])("%s; the id is encoded in the path", async (_form, body) => {
    const added = await scene.request("admin", "POST", "/mcp/servers", { body });
    expect(added.status, added.text).toBe(201);
    const place = String(added.headers["location"]);
    expect(place).toBe("/api/v1/mcp/servers/my%20notes%40home");
    const path = place.slice("/api/v1".length);
    expect(await get("admin", path)).toMatchObject({
      server: { id: "my notes@home", config: entry, from: "store", editable: true },
    });
    const patched = await scene.request("admin", "PATCH", path, { body: { tags: ["x"], toolTimeout: null } });
    const { config } = patched.json<{ server: { config: object } }>().server;
    expect(config).toMatchObject({ command: "nothing", tags: ["x"] });
    expect(config).not.toHaveProperty("toolTimeout");
    expect((await scene.request("admin", "DELETE", path)).status).toBe(200);
  });

  it("[oper-03b] what was changed stands in the audit log with who did it, and without values", async () => {
    const body = { id: "noted", command: "nothing", env: { MODE: "value-of-mode" }, enabled: false };
    expect((await scene.request("admin", "POST", "/mcp/servers", { body })).status).toBe(201);
    await scene.request("admin", "PATCH", "/mcp/servers/noted", { body: { tags: ["x"] } });
    await scene.request("admin", "DELETE", "/mcp/servers/noted");
    const audit = await scene.request("admin", "GET", "/audit?server=noted&type=event&order=oldest");
    const { entries } = audit.json<{
      entries: { event: string; user: string; door: string; details: { by: string } }[];
    }>();
    expect(entries.every(({ details }) => /^token [0-9a-f]{24}$/.test(details.by))).toBe(true);
    expect(entries.map(({ event, user, door }) => [event, user, door])).toEqual([
      ["server.added", "ops", "rest"],
      ["server.changed", "ops", "rest"],
      ["server.removed", "ops", "rest"],
    ]);
    expect(audit.text).not.toContain("value-of-mode");
  });

  it("without an id, or with one that cannot be, it is 400", async () => {
    for (const body of [entry, { config: entry }, { id: "", ...entry }, { id: "a/b", ...entry }, { id: 7, ...entry }]) {
      const answer = await scene.request("admin", "POST", "/mcp/servers", { body });
      expect([answer.status, answer.json().error.code]).toEqual([400, "invalid_arguments"]);
    }
  });

  it("an entry that is none is 400 with what is wrong", async () => {
    const answer = await scene.request("admin", "POST", "/mcp/servers", { body: { id: "odd", args: 5 } });
    expect(answer.status).toBe(400);
    expect(answer.json().error.code).toBe("invalid_config");
  });
});

describe("requests that are odd", () => {
  it("[oper-04e] a parameter twice, or at the wrong place, is 400", async () => {
    for (const path of ["/mcp/tools?limit=1&limit=2", "/mcp/tools/local?serverId=x", "/me?x=1"]) {
      expect((await scene.request("admin", "GET", path)).status, path).toBe(400);
    }
    const stray = await scene.request("admin", "POST", "/mcp/servers/parse?text=x", { body: { text: "npx x" } });
    expect(stray.json().error.message).toBe("text: belongs in the body, not in the query.");
    const both = { arguments: {}, args: {} };
    expect((await scene.request("call", "POST", "/mcp/tools/bake_bread/call", { body: both })).status).toBe(400);
  });

  it("a caller that leaves ends its call", async () => {
    started = Promise.withResolvers();
    const ended = new Promise((resolve) => scene.hub.on("call", resolve));
    const client = await Raw.open(Number(new URL(scene.url).port));
    client.send(
      "POST /api/v1/mcp/tools/wait_long/call HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${TOKENS.call}`,
      "Content-Length: 0",
      "",
      "",
    );
    await started.promise;
    client.socket.destroy();
    expect(await ended).toMatchObject({ name: "wait_long", outcome: "cancelled", door: "rest" });
  });

  it("[oper-04b] the docs need no token", async () => {
    const page = await fetch(`${scene.url}/api/docs`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).toContain("/api/v1/mcp/servers");
    expect((await fetch(`${scene.url}/api/docs/x`)).status).toBe(404);
    expect((await fetch(`${scene.url}/api/docs`, { method: "POST" })).headers.get("allow")).toBe("GET, HEAD");
  });
});
