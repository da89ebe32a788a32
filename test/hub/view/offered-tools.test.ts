import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { AskRequest } from "../../../src/model/decision.ts";
import type { Tool } from "../../../src/model/tool.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";

const NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "weather", "mail", "calendar"];
const SEARCH = ["toolcrib_search", "toolcrib_describe", "toolcrib_call"];

const tool = (name: string): Tool => ({
  name,
  description: `The ${name} tool.`,
  parameters: { type: "object" },
  execute: async () => ({ content: [{ type: "text", text: `${name} ran, ${"and ran ".repeat(100)}` }] }),
});

let hub: Hub;
let session: Session;
beforeAll(async () => {
  const registry = new ToolRegistry();
  for (const name of NAMES) registry.register(tool(name));
  hub = await createHub({ tools: { ask: ["mail"] } }, { registry });
  session = hub.openSession();
});
afterAll(() => hub.close());

const names = (tools: readonly { name: string }[]): string[] => tools.map(({ name }) => name);

describe("[agent-05b] a list of tools with a max of its own", () => {
  it("has those that fit the query, and the search tools although the config has no tools.max", async () => {
    const other = hub.openSession();
    expect((await hub.call({ session, name: "toolcrib_search", arguments: { query: "mail" } })).ok).toBe(false);
    const offered = hub.tools({ for: "openai", session, max: 5, query: "what is the weather, and is there mail?" });
    expect(names(offered)).toEqual(["weather", "mail", ...SEARCH]);
    const found = await hub.call({ session, name: "toolcrib_search", arguments: { query: "calendar" } });
    expect(found.ok && found.result.structuredContent).toMatchObject({ tools: [{ name: "calendar" }] });
    expect(names(hub.internals.offered(session))).toEqual(NAMES);
    expect(hub.explain("toolcrib_search", other)).toBeUndefined();
  });

  it("keeps what is wanted first, and leaves out what is not wanted without counting it", () => {
    const query = "weather";
    const first = ({ name }: { name: string }): boolean => name === "epsilon";
    expect(names(hub.internals.offered(session, { max: 5, query, first }))).toEqual(["epsilon", "weather", ...SEARCH]);
    const without = ({ name }: { name: string }): boolean => name.includes("a");
    expect(names(hub.internals.offered(session, { max: 2, without }))).toEqual(["epsilon"]);
  });

  it("cuts texts where the caller says so, and asks whom the caller names for each call", async () => {
    const asked: [string, AskRequest][] = [];
    const tools = hub.tools({
      for: "openai",
      session,
      inlineBytes: 200,
      onAsk: (id) => (request) => {
        asked.push([id, request]);
        return id === "yes" ? "once" : "no";
      },
    });
    const mail = tools.find(({ name }) => name === "mail");
    const yes = await mail?.execute("yes", {});
    expect(String(yes?.content[0]?.["text"])).toMatch(/^mail ran[^]*cut here; the whole text is the resource/);
    expect((await mail?.execute("no", {}))?.isError).toBe(true);
    expect(asked.map(([id, request]) => `${id} ${request.name}`)).toEqual(["yes mail", "no mail"]);
  });
});
