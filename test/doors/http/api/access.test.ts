import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { tool } from "../../../sessions/session-bench.ts";
import { misbehaving } from "../../../support/servers.ts";
import { type ApiScene, apiScene } from "./api-setup.ts";

interface Listed {
  readonly name: string;
  readonly access?: {
    verdict: string;
    conditional: boolean;
    rule: { list: string; pattern: string; where: string } | null;
  };
}

let scene: ApiScene;

beforeAll(async () => {
  const registry = new ToolRegistry();
  registry.register(tool("plain"));
  registry.registerFactory(({ role }) => (role === "reviewer" ? null : tool("write")));
  scene = await apiScene({
    registry,
    servers: { files: misbehaving("ok") },
    config: {
      tools: { deny: ["files__ec*"], rules: [{ ask: "files__*", when: { hours: "00-01" } }] },
      roles: { reviewer: { servers: [] } },
    },
  });
});
afterAll(() => scene.close());

const list = async (query: string): Promise<Listed[]> =>
  (await scene.request("admin", "GET", `/mcp/tools?${query}`)).json<{ tools: Listed[] }>().tools;

const lineOf = (text: string): number =>
  readFileSync(scene.file, "utf8")
    .split("\n")
    .findIndex((line) => line.includes(text)) + 1;

describe("[joy-03h] tools with what the rules decide", () => {
  it("has denied ones, each with its rule and the line of the file", async () => {
    expect((await list("")).map(({ name }) => name)).not.toContain("files__echo");
    const echo = (await list("access=true")).find(({ name }) => name === "files__echo");
    expect(echo?.access).toEqual({
      verdict: "deny",
      conditional: true,
      rule: { level: "hub", list: "deny", pattern: "files__ec*", where: `${scene.file}:${lineOf('"files__ec*"')}` },
    });
  });

  it("is as a role sees it, and the rule is that of the role", async () => {
    const tools = await list("access=true&role=reviewer");
    expect(tools.length).toBeGreaterThan(1);
    expect(new Set(tools.map(({ access }) => access?.verdict))).toEqual(new Set(["deny"]));
    const other = tools.find(({ name }) => name !== "files__echo");
    expect(other?.access?.rule).toEqual(
      expect.objectContaining({ level: "role", list: "servers", where: `${scene.file}:${lineOf('"servers"')}` }),
    );
  });

  it("[whole-08a] is without tools that a factory does not make for the role", async () => {
    const names = async (query: string): Promise<string[]> => (await list(query)).map(({ name }) => name);
    expect(await names("access=true")).toEqual(expect.arrayContaining(["plain", "write"]));
    const ofRole = await names("access=true&role=reviewer");
    expect([ofRole.includes("plain"), ofRole.includes("write")]).toEqual([true, false]);
  });

  it("is for operators only", async () => {
    expect((await scene.request("call", "GET", "/mcp/tools?access=true")).status).toBe(403);
  });
});

describe("[joy-03b] a change over the WebSocket", () => {
  it("is shown, written, applied and recorded", async () => {
    const talk = await scene.connect("admin");
    const changes = [{ kind: "rule", verdict: "allow", patterns: ["files__echo"] }];
    const planned = await talk.ask({ id: 1, type: "changeConfig", changes });
    expect(planned).toMatchObject({ ok: true, saved: false, unmet: [] });
    const done = await talk.ask({ id: 2, type: "changeConfig", changes, save: true, etag: planned["etag"] });
    expect(done).toMatchObject({ ok: true, saved: true });
    expect((await list("")).map(({ name }) => name)).toContain("files__echo");
    const again = await talk.ask({ id: 3, type: "changeConfig", changes, save: true, etag: planned["etag"] });
    expect(again).toMatchObject({ ok: false, error: { code: "conflict" } });
    await expect
      .poll(async () => {
        const answer = await scene.request("admin", "GET", "/audit?type=event&q=config.changed");
        return answer.json<{ entries: object[] }>().entries.length;
      })
      .toBe(1);
  });
});
