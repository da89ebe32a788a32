/** A hub with tools of its own and models that play a scenario, for tests of the agent. */
import { createAgent } from "../../src/agent/agent.ts";
import type { Agent, AgentEvent, AgentOptions, ToolCallEvent } from "../../src/agent/agent-options.ts";
import { createHub, type HubOptions } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { ConfigInput } from "../../src/model/config.ts";
import type { Tool } from "../../src/model/tool.ts";
import { type Scenario, type ScriptedModel, startScriptedModel } from "../../src/testing/index.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";

export type EndEvent = Extract<AgentEvent, { type: "end" }>;

export interface Stage extends AsyncDisposable {
  readonly hub: Hub;
  /** The names of tools in the order in which they were called, as far as they began. */
  readonly ran: string[];
  /** An agent on a model that plays the scenario; both end with the stage. */
  agent(scenario: Scenario, options?: Partial<AgentOptions>): Promise<{ agent: Agent; model: ScriptedModel }>;
}

export async function openStage(
  config: ConfigInput = {},
  { tools = [], ...options }: HubOptions & { readonly tools?: readonly Tool[] } = {},
): Promise<Stage> {
  const ran: string[] = [];
  const registry = new ToolRegistry();
  for (const tool of tools) {
    registry.register({
      ...tool,
      execute(...given) {
        ran.push(tool.name);
        return tool.execute(...given);
      },
    });
  }
  const hub = await createHub(config, { registry, ...options });
  const opened: AsyncDisposable[] = [];
  return {
    hub,
    ran,
    async agent(scenario, agentOptions = {}) {
      const model = await startScriptedModel(scenario);
      const agent = createAgent({ hub, model: { baseUrl: `${model.url}/v1`, model: "scripted" }, ...agentOptions });
      opened.push(agent, model);
      return { agent, model };
    },
    async [Symbol.asyncDispose]() {
      for (const each of opened) await each[Symbol.asyncDispose]();
      await hub.close();
    },
  };
}

export function tool(name: string, execute: Tool["execute"], rest: Partial<Tool> = {}): Tool {
  return { name, description: `Does ${name}.`, parameters: { type: "object" }, execute, ...rest };
}

export const ECHO = tool("echo", async (_id, { text }) => ({ content: [{ type: "text", text: String(text) }] }), {
  parameters: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
});

export async function allOf(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

export function endOf(events: readonly AgentEvent[]): EndEvent {
  const last = events.at(-1);
  if (last?.type !== "end") throw new Error(`The last event is ${last?.type ?? "none"}.`);
  if (events.filter(({ type }) => type === "end").length > 1) throw new Error("There are several ends.");
  return last;
}

export async function endOfRun(events: AsyncIterable<AgentEvent>): Promise<EndEvent> {
  return endOf(await allOf(events));
}

export function textOf(events: readonly AgentEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.text : "")).join("");
}

/** `echo pending`, `echo running` … in order. */
export function statesOf(events: readonly AgentEvent[]): string[] {
  return callsOf(events).map(({ name, state }) => `${name} ${state}`);
}

export function callsOf(events: readonly AgentEvent[]): ToolCallEvent[] {
  return events.filter((event) => event.type === "tool-call");
}

/** Aborts when the event comes that the test waits for, and gives everything that was told. */
export async function abortedAt(
  agent: Agent,
  isTime: (event: AgentEvent) => boolean,
  prompt = "Begin",
): Promise<AgentEvent[]> {
  const controller = new AbortController();
  const events: AgentEvent[] = [];
  for await (const event of agent.run(prompt, { signal: controller.signal })) {
    events.push(event);
    if (isTime(event)) controller.abort();
  }
  return events;
}

/** The results that the model was given with its last request. */
export function readBy(model: ScriptedModel): string[] {
  return (
    model.requests
      .at(-1)
      ?.messages.at(-1)
      ?.results.map(({ text }) => text) ?? []
  );
}
