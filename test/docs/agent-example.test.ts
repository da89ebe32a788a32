import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Agent } from "../../src/agent/agent-options.ts";
import { Conversations } from "../../src/agent/conversation.ts";
import { createAgent } from "../../src/agent/agent.ts";
import type { ChatModel } from "../../src/agent/model/chat-model.ts";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { call, type ScriptedModel, startFakeServer, startScriptedModel, text } from "../../src/testing/index.ts";
import { isBuilt, MAIN } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { examplesIn } from "./markdown-examples.ts";

const root = join(import.meta.dirname, "..", "..");
const example = join(root, "examples", "agent");

let model: ScriptedModel;
let dir: string;

beforeAll(async () => {
  const turns = [call("stock", { part: "bolt" }), text("120 bolts ", "are left.")];
  model = await startScriptedModel([...turns, ...turns]);
  dir = mkdtempSync(join(tmpdir(), "toolcrib-example-"));
  layOut();
});

afterAll(async () => {
  await model.close();
  rmSync(dir, { recursive: true, force: true });
});

/** The example in a folder where `toolcrib` is installed. */
function layOut(): void {
  writeFileSync(join(dir, "agent.mjs"), readFileSync(join(example, "agent.mjs")));
  const installed = join(dir, "node_modules", "toolcrib");
  mkdirSync(join(dir, "node_modules"));
  if (isBuilt()) return symlinkSync(root, installed, "dir");
  mkdirSync(installed);
  const entry = (...path: string[]): string => `export * from "${pathToFileURL(join(root, "src", ...path)).href}";\n`;
  writeFileSync(join(installed, "index.js"), entry("index.ts"));
  writeFileSync(join(installed, "agent.js"), entry("agent", "index.ts"));
  const exports = { ".": "./index.js", "./agent": "./agent.js" };
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name: "toolcrib", type: "module", exports }));
}

it("[agent-16a] the program of docs/agents.md is the example, and it runs", async () => {
  const shown = examplesIn(readFileSync(join(root, "docs", "agents.md"), "utf8")).map((each) => `${each.text}\n`);
  expect(shown).toContain(readFileSync(join(example, "agent.mjs"), "utf8"));
  const env = { MODEL_URL: `${model.url}/v1`, TOOLCRIB_HOME: join(dir, "home") };
  const ran = await runProgram(process.execPath, [join(dir, "agent.mjs"), "How many bolts?"], { cwd: dir, env });
  expect(ran).toMatchObject({ code: 0, stdout: "120 bolts are left.\n" });
  expect(ran.stderr).toContain('[done] stock {"part":"bolt"}');
  expect(model.requests[1]?.messages.at(-1)?.results[0]?.text).toContain("120 pieces");
  expect(model.requests[0]?.system).toContain("You keep the stock of a workshop.");
}, 60_000);

/** Runs a block of docs/agents.md as it stands, with what the text around it has; its `names` afterwards. */
async function runBlock(
  beginning: string,
  given: Readonly<Record<string, unknown>>,
  names: readonly string[],
  change: (code: string) => string = (code) => code,
): Promise<Record<string, unknown>> {
  const blocks = examplesIn(readFileSync(join(root, "docs", "agents.md"), "utf8"));
  const block = blocks.find(({ text: code }) => code.includes(beginning))?.text ?? "";
  const body = change(block.replace(/^import .*$/gm, ""));
  const scope = { Conversations, createAgent, ...given };
  // The constructor of asynchronous functions has no name of its own.
  const Code = (async () => {}).constructor as new (...args: string[]) => (...args: unknown[]) => Promise<object>;
  const run = new Code(...Object.keys(scope), `${body}\nreturn { ${names.join(", ")} };`);
  return { ...(await run(...Object.values(scope))) };
}

it("[agent-16a] the example of conversations goes on with the last one", async () => {
  const echo: ChatModel = {
    id: "test/echo",
    provider: "openai",
    images: false,
    async *step({ messages }) {
      yield { type: "text", text: `${messages.length} so far` };
      yield { type: "finish", reason: "stop" };
    },
  };
  await using hub = await createHub({ store: "sqlite" }, { env: { TOOLCRIB_HOME: join(dir, "kept") } });
  const answers: string[] = [];
  for (const prompt of ["One", "Two"]) {
    const { agent } = await runBlock("new Conversations(", { hub, model: echo }, ["agent"]);
    // What the block makes with createAgent.
    for await (const event of (agent as Agent).run(prompt)) if (event.type === "end") answers.push(event.text);
    await (agent as Agent).close();
  }
  expect(answers).toEqual(["1 so far", "3 so far"]);
});

it("[agent-16a] the example of a session with its own servers tells what was said while it was opened", async () => {
  const server = await startFakeServer({ tools: { ticket: () => "T-1" } });
  await using hub = await createHub({}, { env: { TOOLCRIB_HOME: join(dir, "home") }, store: false });
  const said: string[] = [];
  const given = {
    hub,
    model: "ollama/none",
    token: "abc",
    myTool: {
      name: "mine",
      description: "Mine.",
      parameters: { type: "object" },
      execute: async () => ({ content: [] }),
    },
    console: { error: (message: string) => void said.push(message) },
  };
  await runBlock("session.own.notices()", given, [], (code) =>
    code
      .replace("https://tickets.example.com/mcp", server.url)
      .replace("servers: { ", 'servers: { broken: { command: "toolcrib-no-such-program" }, ')
      .replace("// …", "console.error(hub.view(session).tools.map(({ name }) => name).join());"),
  );
  expect(said.slice(0, -1)).toEqual([expect.stringContaining("broken")]);
  expect(said.at(-1)).toMatch(/tickets__ticket/);
  expect(said.at(-1)).toMatch(/mine/);
  await server.close();
});

it("[agent-16a] its config works with toolcrib run", async () => {
  const args = [MAIN, "run", "--config", join(example, "toolcrib.json"), "How many bolts?"];
  const env = { MODEL_URL: `${model.url}/v1`, TOOLCRIB_HOME: join(dir, "home") };
  const ran = await runProgram(process.execPath, args, { cwd: dir, env });
  expect(ran).toMatchObject({ code: 0, stdout: "120 bolts are left.\n" });
  expect(ran.stderr).toMatch(/done .*stock/i);
  expect(model.problems).toEqual([]);
}, 60_000);
