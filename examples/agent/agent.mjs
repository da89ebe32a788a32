// An agent with a function of this program as a tool. Run it with `node examples/agent/agent.mjs "<prompt>"`.
import { createHub, ToolRegistry } from "toolcrib";
import { createAgent } from "toolcrib/agent";

const registry = new ToolRegistry();
registry.register({
  name: "stock",
  description: "How many pieces of a part are in stock.",
  parameters: {
    type: "object",
    properties: { part: { type: "string", description: "Name of the part, such as bolt." } },
    required: ["part"],
  },
  annotations: { readOnlyHint: true },
  async execute(_toolCallId, { part }) {
    const pieces = new Map([
      ["bolt", 120],
      ["nut", 7],
    ]).get(String(part));
    if (pieces === undefined)
      return { content: [{ type: "text", text: `There is no part "${String(part)}".` }], isError: true };
    return { content: [{ type: "text", text: `${pieces} pieces` }], details: { part, pieces } };
  },
});

// Any model will do: "anthropic/…", "openai/…", "google/…", "ollama/…", or an endpoint as here.
const model = { baseUrl: process.env.MODEL_URL ?? "http://127.0.0.1:11434/v1", model: process.env.MODEL ?? "qwen3" };

const hub = await createHub({ mcpServers: {} }, { registry });
const agent = createAgent({ hub, model, instructions: "You keep the stock of a workshop. Answer in one sentence." });

for await (const event of agent.run(process.argv[2] ?? "How many bolts are left?")) {
  if (event.type === "text") process.stdout.write(event.text);
  if (event.type === "tool-call") console.error(`[${event.state}] ${event.name} ${JSON.stringify(event.input)}`);
  if (event.type === "notice") console.error(event.message);
  if (event.type === "end") {
    console.log();
    if (event.reason !== "done") console.error(event.error?.message ?? event.reason, event.error?.hint ?? "");
    process.exitCode = event.reason === "done" ? 0 : 1;
  }
}

await agent.close();
await hub.close();
