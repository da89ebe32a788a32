import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { applyMode } from "../../../src/agent/tools/session-rules.ts";
import { addBuiltInTools } from "../../../src/agent/tools/built-in-tools.ts";
import { type AgentTool, chooseTools, type ToolChoiceOptions } from "../../../src/agent/tools/tool-choice.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { AskAnswer } from "../../../src/model/decision.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Tool } from "../../../src/model/tool.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { misbehaving } from "../../support/servers.ts";

const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: `The ${name} tool.`,
  parameters: { type: "object" },
  execute: async () => ({ content: [{ type: "text", text: `${name} ran` }] }),
  ...more,
});

const READS = { annotations: { readOnlyHint: true } };
const HUB_TOOLS = [
  tool("weather", READS),
  tool("mail"),
  tool("calendar", READS),
  ...Array.from({ length: 10 }, (_, index) => tool(`filler${index}`)),
];

let hub: Hub;
let session: Session;
beforeAll(async () => {
  const registry = new ToolRegistry();
  for (const each of HUB_TOOLS) registry.register(each);
  hub = await createHub({ mcpServers: { demo: misbehaving("ok") }, tools: { ask: ["calendar"] } }, { registry });
});
afterAll(() => hub.close());
beforeEach(() => {
  session?.close();
  session = hub.openSession({ workspaceDir: "/tmp" });
  addBuiltInTools(hub, session, { onPlan: () => {} });
});

const choose = (more: Partial<ToolChoiceOptions> = {}): readonly AgentTool[] =>
  chooseTools(hub, session, { model: { provider: "openai" }, query: "", max: 50, resultBytes: 4096, ...more });
const names = (tools: readonly AgentTool[]): string[] => tools.map(({ model }) => model.name);
const textOf = async (tools: readonly AgentTool[], name: string, input: JsonObject = {}): Promise<string> => {
  const found = tools.find(({ model }) => model.name === name);
  if (found === undefined) return `${name} is not there`;
  return (await found.tool.execute("call-1", input)).content.map((block) => String(block["text"])).join("\n");
};

const OWN = ["toolcrib_plan", "toolcrib_read"];
const SEARCH = ["toolcrib_search", "toolcrib_describe", "toolcrib_call"];

describe("[agent-05b] the tools that a model is told of", () => {
  it("are built-in ones and the session's own first, then what fits the prompt, and search for the rest", async () => {
    session.own.setTools("client", [tool("client_one"), tool("client_two")]);
    const chosen = choose({ max: 8, query: "How is the weather?" });
    expect(names(chosen).toSorted()).toEqual(["client_one", "client_two", "weather", ...OWN, ...SEARCH].toSorted());
    expect(await textOf(chosen, "toolcrib_call", { name: "mail" })).toBe("mail ran");
    expect(await textOf(chosen, "toolcrib_search", { query: "client_two" })).toMatch(/^client_two: /);
  });

  it("have those of servers that the session brings before the hub's, under the name that the client gave", async () => {
    await session.own.mount({ mine: misbehaving("ok") });
    const chosen = choose({ max: 6, query: "How is the weather?" });
    const [mine, another] = chosen.filter(({ model }) => !model.name.startsWith("toolcrib_"));
    expect(another).toBeUndefined();
    expect(mine?.model.name).toMatch(/^mine__/);
    expect(mine?.server).toBe("mine");
    expect(mine?.title({})).toMatch(/ \(mine\)$/);
  });

  it("are never more than max, and those of the session that do not fit are found by search", async () => {
    session.own.setTools(
      "client",
      Array.from({ length: 9 }, (_, index) => tool(`client_${index}`)),
    );
    const chosen = choose({ max: 8, query: "use client_7" });
    expect(names(chosen).toSorted()).toEqual(
      [expect.any(String), expect.any(String), "client_7", ...OWN, ...SEARCH].toSorted(),
    );
    expect(await textOf(chosen, "toolcrib_search", { query: "client_3" })).toMatch(/^client_3: /);
    expect(await textOf(chosen, "toolcrib_call", { name: "client_3" })).toBe("client_3 ran");
  });

  it("are those that patterns leave, also through the search tools, and built-in ones stay", async () => {
    const chosen = choose({ max: 6, include: ["weather", "filler*"], exclude: ["filler*", "!filler1"] });
    expect(names(chosen)).toEqual(expect.arrayContaining([...OWN, "weather", "filler1"]));
    expect(names(chosen)).toHaveLength(4);
    choose({ max: 5, include: ["weather", "filler*"], exclude: ["filler2"], query: "mail" });
    const few = choose({ max: 5, include: ["weather", "filler*"], exclude: ["filler2"], query: "mail" });
    expect(names(few)).toEqual([...OWN, ...SEARCH]);
    expect(await textOf(few, "toolcrib_search", { query: "mail" })).toMatch(/^No tool matches/);
    expect(await textOf(few, "toolcrib_call", { name: "mail" })).toMatch(/denied|not_found/);
    expect(await textOf(few, "toolcrib_call", { name: "filler2" })).toMatch(/denied|not_found/);
    expect(await textOf(few, "toolcrib_call", { name: "filler3" })).toBe("filler3 ran");
    expect(names(choose())).toContain("mail");
  });
});

describe("what is told of a tool", () => {
  it("is its server, its kind, and the title and files of a call, also of one by toolcrib_call", () => {
    const chosen = choose({ max: 8, query: "demo echo" });
    const echo = chosen.find(({ model }) => model.name === "demo__echo");
    expect(echo).toMatchObject({ server: "demo", kind: "read" });
    expect(echo?.title({ text: "hi" })).toBe("Echo hi (demo)");
    expect(echo?.locations({ path: "a.txt" })).toEqual([{ path: "/tmp/a.txt" }]);
    const call = chosen.find(({ model }) => model.name === "toolcrib_call");
    expect(call?.server).toBeNull();
    expect(call?.title({ name: "demo__echo", arguments: { text: "ho" } })).toBe("Echo ho (demo)");
    expect(chosen.find(({ model }) => model.name === "toolcrib_plan")).toMatchObject({ server: null, kind: "think" });
  });
});

describe("a call of a chosen tool", () => {
  it("[agent-05a] with arguments that do not fit is an error for the model, and does not reach the server", async () => {
    const text = await textOf(choose(), "demo__echo", { text: 3 });
    expect(text).toMatch(/^invalid_arguments: .*text must be string/);
  });

  it("[agent-05c] gives untrusted text between markers, and long text in part", async () => {
    const chosen = choose({ resultBytes: 2048 });
    expect(await textOf(chosen, "demo__echo", { text: "hi" })).toMatch(/^<<<UNTRUSTED_TOOL_RESULT [^]*\nhi\n<<<END_/);
    const whole = Array.from({ length: 800 }, (_, index) => `line ${index}`).join("\n");
    const cut = await textOf(chosen, "demo__echo", { text: whole });
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(2048);
    const uri = /toolcrib:\/\/results\/[\w-]+/.exec(cut)?.[0] ?? "";
    const piece = await textOf(chosen, "toolcrib_read", { uri, offset: whole.indexOf("line 400"), length: 17 });
    expect(piece).toMatch(
      /^<<<UNTRUSTED_TOOL_RESULT [^]*\n\nline 400\nline 401\n<<<END_[^]*>>>\n\[Characters \d+ to \d+ of/,
    );
    const next = /Continue with offset (\d+)/.exec(piece)?.[1];
    expect(await textOf(chosen, "toolcrib_read", { uri, offset: Number(next), length: 9 })).toContain(
      "\nline 402\n<<<END",
    );
    expect(await textOf(chosen, "toolcrib_read", { uri: "toolcrib://results/none" })).toMatch(/^not_found: /);
  });

  it("[agent-05c] waits for the answer of whoever is asked for that call", async () => {
    const asked: string[] = [];
    const answers: AskAnswer[] = ["no", "once"];
    const onAsk =
      (id: string) =>
      ({ name }: { name: string }) => {
        asked.push(`${id} ${name}`);
        return answers.shift() ?? "no";
      };
    const chosen = choose({ onAsk });
    expect(await textOf(chosen, "calendar")).toMatch(/^denied: /);
    expect(await textOf(chosen, "calendar")).toBe("calendar ran");
    expect(asked).toEqual(["call-1 calendar", "call-1 calendar"]);
  });
});

describe("the modes", () => {
  it("ask before what is not read-only, or leave it out; a rule of the config asks in each", async () => {
    const asked: string[] = [];
    const onAsk =
      () =>
      ({ name }: { name: string }) => {
        asked.push(name);
        return "once" as const;
      };
    const run = async (max = 50): Promise<string[]> => {
      asked.length = 0;
      const chosen = choose({ onAsk, max });
      for (const name of ["weather", "mail", "calendar", "toolcrib_plan"]) await textOf(chosen, name, { entries: [] });
      return [...asked];
    };
    expect(await run()).toEqual(["calendar"]);
    applyMode(session, "ask");
    expect(await run()).toEqual(["mail", "calendar"]);
    const searched = choose({ onAsk, max: 6 });
    asked.length = 0;
    expect(await textOf(searched, "toolcrib_call", { name: "filler5" })).toBe("filler5 ran");
    expect(asked).toEqual(["filler5"]);
    applyMode(session, "read-only");
    expect(await run()).toEqual(["calendar"]);
    expect(names(choose())).toEqual(expect.arrayContaining(["weather", "calendar", ...OWN]));
    expect(names(choose())).not.toContain("mail");
    expect(await textOf(choose({ max: 4 }), "toolcrib_call", { name: "mail" })).toMatch(/denied|not_found|not there/);
    applyMode(session, "auto");
    expect(names(choose())).toContain("mail");
  });
});

describe("the plan", () => {
  it("is told as it was last given, whoever listens by then", async () => {
    const plans: unknown[] = [];
    addBuiltInTools(hub, session, { onPlan: (entries) => plans.push(entries) });
    const chosen = choose();
    await textOf(chosen, "toolcrib_plan", { entries: [{ content: "look", status: "in_progress" }] });
    expect(plans).toEqual([[{ content: "look", status: "in_progress", priority: "medium" }]]);
    expect(await textOf(chosen, "toolcrib_plan", { entries: [{ content: "look", status: "soon" }] })).toMatch(
      /^invalid_arg/,
    );
  });
});
