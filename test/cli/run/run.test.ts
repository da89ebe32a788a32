import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../src/agent/agent-options.ts";
import { Conversations } from "../../../src/agent/conversation.ts";
import { runCommandLine } from "../../../src/cli/program.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { type ModelRequest, type ScriptedModel, startScriptedModel, type Turn } from "../../../src/testing/index.ts";
import { misbehaving, Workspace } from "../run-cli.ts";
import { type FakeStreams, fakeStreams } from "./fake-terminal.ts";
import { eventually } from "../../support/eventually.ts";

const PLUGIN = `export default (api) => {
  const text = (value) => ({ content: [{ type: "text", text: value }] });
  const one = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  const read = { readOnlyHint: true };
  api.registerTool({ name: "shout", description: "Loud.", parameters: one, annotations: read, execute: async (id, p) => text(p.text.toUpperCase()) });
  api.registerTool({ name: "write", description: "Writes.", parameters: one, execute: async (id, p) => text("wrote " + p.text) });
  api.registerTool({ name: "guarded", description: "Held back.", parameters: one, execute: async (id, p) => text("did " + p.text) });
  api.registerTool({ name: "fail", description: "Fails.", parameters: { type: "object" }, annotations: read, execute: async () => { throw new Error("The disk is full."); } });
};`;

/** Prints what was loaded. */
const TRACER = `import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
process.on("exit", () => process.stderr.write(urls.join("\\n")));
`;

const SKILL = `---
name: greet
description: Greets somebody in the way of the house.
---
Say "Welcome to the workshop".
`;

const DISPATCHING = `---
name: burn
description: Hands over to a tool.
command-dispatch: tool
command-tool: fail
---
Burn it.
`;

/** What the model does follows from the last thing that the user said. */
function scenario({ messages, model }: ModelRequest): Turn {
  const last = messages.at(-1);
  const said = messages.findLast(({ role }) => role === "user")?.text ?? "";
  const results = last?.results.map(({ text }) => text).join(" ") ?? "";
  const wanted = /use (\w+)/.exec(said)?.[1];
  if (last?.role === "tool") return { text: ["The tool said ", `${results}.`] };
  if (wanted !== undefined) return { text: "One moment.", calls: [{ name: wanted, arguments: { text: "hi" } }] };
  if (said.includes("refuse")) return { refusal: "I will not." };
  if (said.includes("wait")) return { text: ["Waiting", " for ever"], stallAfter: 1 };
  if (said.includes("think")) return { thought: "Hm.", text: "I have thought." };
  const users = messages.filter(({ role }) => role === "user");
  return { text: `${model} heard ${users.length}: ${said.replaceAll("\n", "|")}` };
}

let model: ScriptedModel;
let place: Workspace;

beforeAll(async () => {
  model = await startScriptedModel(scenario);
  place = new Workspace();
  place.write("tools.mjs", PLUGIN);
  mkdirSync(join(place.dir, "skills/greet"), { recursive: true });
  place.write("skills/greet/SKILL.md", SKILL);
  mkdirSync(join(place.dir, "skills/burn"), { recursive: true });
  place.write("skills/burn/SKILL.md", DISPATCHING);
  place.configure(
    {},
    {
      plugins: ["./tools.mjs"],
      skills: { dirs: ["./skills"] },
      tools: { ask: ["guarded"] },
      agent: {
        model: { baseUrl: `${model.url}/v1`, model: "one" },
        models: [{ baseUrl: `${model.url}/v1`, model: "two" }],
      },
    },
  );
});

afterAll(async () => {
  await model.close();
  place.remove();
});

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: place.home,
  TOOLCRIB_HOME: place.home,
  TOOLCRIB_CONFIG: place.configFile,
});

function start(args: readonly string[], streams: FakeStreams): Promise<Ran> {
  const { stdin, stdout, stderr, written } = streams;
  const env = { ...environment(), NO_COLOR: "1" };
  return runCommandLine(["run", ...args], { env, cwd: place.dir, stdin, stdout, stderr }).then(async (code) => {
    await new Promise(setImmediate);
    return { code, ...written() };
  });
}

async function run(args: readonly string[], input = ""): Promise<Ran> {
  const streams = fakeStreams();
  streams.stdin.end(input);
  return start(args, streams);
}

function events({ stdout }: Ran): AgentEvent[] {
  // What a test expects of them is what it checks next.
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as AgentEvent);
}

/** A conversation of an editor, and one of the command line in which nothing was said. */
async function keepOthers(): Promise<{ acp: string }> {
  const hub = await createHub({ store: "sqlite" }, { env: environment() });
  const conversations = new Conversations(hub);
  const acp = conversations.create({ door: "acp", cwd: place.dir });
  await acp.append([
    { role: "user", content: [{ type: "text", text: "Said in an editor." }] },
    { role: "assistant", parts: [{ type: "text", text: "Heard." }] },
  ]);
  await conversations.create({ door: "cli", cwd: place.dir }).setFacts({ mode: "ask" });
  await hub.close();
  return { acp: acp.id };
}

describe("[agent-08c] toolcrib run", () => {
  it("answers with tools: the answer on stdout, calls on stderr", async () => {
    const ran = await run(["use", "shout"]);
    expect(ran).toMatchObject({ code: 0, stdout: "The tool said HI.\n" });
    expect(ran.stderr).toMatch(/One moment\.\n {2}done {4}Shout.* \d+ ms\n/);
  });

  it("--json gives the events, and errors as an object on a line", async () => {
    const all = events(await run(["--json", "use shout"]));
    expect(all.filter(({ type }) => type === "tool-call").at(-1)).toMatchObject({ name: "shout", state: "done" });
    expect(all.at(-1)).toMatchObject({ type: "end", reason: "done", text: "The tool said HI." });
    const failed = await run(["--json", "--model", "anthropic/x", "hello"]);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({
      error: { code: "unauthorized", hint: expect.stringContaining("ANTHROPIC_API_KEY") },
    });
  });

  it("reads the prompt from stdin and takes files along", async () => {
    place.write("notes.txt", "remember the milk");
    writeFileSync(join(place.dir, "raw.bin"), Buffer.from([0, 255, 254]));
    const ran = await run(["--file", "notes.txt", "-"], "what is it?\n");
    expect(ran.stdout).toContain("what is it?");
    expect(model.requests.at(-1)?.messages.at(-1)?.text).toContain("remember the milk");
    expect(await run(["--file", "raw.bin", "x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("neither UTF-8 text"),
    });
    expect(await run(["--file", "gone.txt", "x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ENOENT"),
    });
    place.write("dot.png", "a picture");
    expect(await run(["--file", "dot.png", "what is it?"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/openai-compatible\/one does not support images\.\n.*"images": true/),
    });
  });

  it("without a terminal a rule that asks denies and says what to do; other tools run unless the mode says no", async () => {
    const denied = await run(["use guarded"]);
    expect(denied.code).toBe(3);
    expect(denied.stderr).toMatch(
      /denied {2}Guarded.*\n.*Run it on a terminal to approve calls, or change the rule in \S+json/,
    );
    expect(denied.stdout).toContain("No one is connected");
    expect(denied.stdout).not.toMatch(/!guarded|toolcrib\.json|terminal/);
    expect(await run(["use write"])).toMatchObject({ code: 0, stdout: "The tool said wrote hi.\n" });
    expect(await run(["--mode", "ask", "use write"])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("Run it on a terminal to approve calls, or use --mode auto."),
    });
    expect((await run(["--mode", "read-only", "use write"])).stdout).not.toContain("wrote");
  });

  it("on a terminal it asks before it writes, and takes yes and no", async () => {
    for (const [answer, code, said] of [
      ["o", 0, "wrote hi"],
      ["n", 3, "The tool said"],
    ] as const) {
      const streams = fakeStreams({ isTTY: true });
      const ran = start(["use", "write"], streams);
      await eventually(() => streams.written().stderr.includes("Allow this call?"));
      streams.stdin.write(`${answer}\r`);
      const { code: exit, stdout } = await ran;
      expect(exit).toBe(code);
      expect(stdout).toContain(said);
    }
  });

  it("goes on with a conversation: the last one of its own that has something in it, or any by its id", async () => {
    await run(["My name is Ada."]);
    const others = await keepOthers();
    expect((await run(["--continue", "Who am I?"])).stdout).toBe("one heard 2: Who am I?\n");
    expect((await run(["--resume", others.acp, "And I?"])).stdout).toBe("one heard 2: And I?\n");
    const verbose = await run(["--verbose", "--resume", "nothing-like-it", "x"]);
    expect(verbose).toMatchObject({ code: 1, stderr: expect.stringContaining("no conversation") });
    const id = /conversation: (\S+)/.exec((await run(["--verbose", "think"])).stderr)?.[1] ?? "";
    expect((await run(["--resume", id.slice(0, 12), "Again."])).stdout).toBe("one heard 2: Again.\n");
  });

  it("refusals, budgets and wrong usage have their exit codes", async () => {
    expect((await run(["please refuse"])).code).toBe(1);
    expect(await run(["--max-steps", "1", "use shout"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--max-steps"),
    });
    expect(await run(["--timeout", "300", "wait"])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("300 ms"),
    });
    for (const args of [
      [],
      ["--mode", "yolo", "x"],
      ["--max-steps", "0", "x"],
      ["--model", "nothing", "x"],
      ["--continue", "--resume", "a", "x"],
    ]) {
      expect(await run(args)).toMatchObject({ code: 2, stdout: "" });
    }
  });

  it("[whole-28i] has the tools of servers and of its own in the first turn before any schema is compiled", async () => {
    const other = new Workspace();
    const tracer = other.write("tracer.mjs", TRACER);
    const agent = { model: { baseUrl: `${model.url}/v1`, model: "one" } };
    other.configure({ fine: misbehaving("ok") }, { agent });
    const { code, stderr } = await other.run(["run", "hello there"], { nodeArgs: ["--import", tracer] });
    expect(code, stderr).toBe(0);
    const asked = model.requests.findLast(({ messages }) => messages.at(-1)?.text === "hello there");
    expect(asked?.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["fine__echo", "toolcrib_plan"]));
    expect(stderr).toMatch(/\/src\/agent\/agent\.ts$/m);
    expect(stderr).not.toMatch(/node_modules\/ajv\//);
    other.remove();
  });

  it("says what to set where no model is", async () => {
    place.write("bare.json", '{ "mcpServers": {} }');
    const ran = await run(["--config", "bare.json", "x"]);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(/No model is set.*\n.*--model.*ANTHROPIC_API_KEY/);
  });
});

describe("[agent-08c] toolcrib run -i", () => {
  it("chats line by line with its own commands and those of skills", async () => {
    const lines = [
      "first \\",
      "prompt",
      "/tools",
      "/skills",
      "/greet Ada",
      "/mode read-only",
      "/mode loud",
      "/model two",
      "second",
      "/sesions",
      "/what",
      "/etc/hosts is what?",
      "/burn it",
      "/sessions",
      "/clear",
      "third",
      "/resume nothing-like-it",
      "/resume",
      "/help",
      "/exit",
      "never",
    ];
    const { code, stdout, stderr } = await run(["-i"], `${lines.join("\n")}\n`);
    expect(code).toBe(0);
    expect(stdout).toContain("one heard 1: first |prompt\n");
    expect(stdout).toMatch(/^shout +Loud\.$/m);
    expect(stdout).toMatch(/^\/greet.* Greets somebody/m);
    expect(stdout).toMatch(/one heard 2: .*Welcome to the workshop.*Ada/);
    expect(stdout).toMatch(/^read-only$/m);
    expect(stderr).toContain('error: The mode must be one of ask, auto, read-only, not "loud".');
    expect(stdout).toMatch(/^openai-compatible\/two \(current\)$/m);
    expect(stdout).toContain("two heard 3: second\n");
    expect(stderr).toContain("error: There is no command /sesions.\n  Did you mean /sessions?\n");
    expect(stderr).toContain("error: There is no command /what.\n  Type /help for a list.\n");
    expect(stdout).toContain("two heard 4: /etc/hosts is what?\n");
    expect(`${stdout}${stderr}`.split("The disk is full.")).toHaveLength(2);
    expect(stdout).toMatch(/^ID +LAST USED +TITLE$/m);
    expect(stdout).toMatch(/^[0-9a-f-]{36} +\S+ +first prompt$/m);
    expect(stdout).not.toContain("Said in an editor.");
    expect(stdout).toContain("Started a new conversation.\ntwo heard 1: third\n");
    expect(stderr).toContain('There is no conversation "nothing-like-it".');
    expect(stdout).toMatch(/^third, 2 messages\.$/m);
    expect(stdout).toMatch(/^\/resume \[id\] +continue a conversation/m);
    expect(stdout).not.toContain("never");
  });

  it("stays with its model where another one cannot be opened", async () => {
    const { stdout, stderr } = await run(["-i"], "/model anthropic/x\n/model\nhello\n");
    expect(stderr).toContain("ANTHROPIC_API_KEY");
    expect(stdout).toBe("openai-compatible/one (current)\nopenai-compatible/two\none heard 1: hello\n");
  });

  it("Ctrl-C ends the turn and not the chat; without a chat the program, as a shell expects it", async () => {
    const waiting = (): number =>
      model.requests.filter(({ messages }) => messages.at(-1)?.text === "wait for Ctrl-C").length;
    const aborted = model.aborted;
    const chat = place.start(["run", "-i", "wait for Ctrl-C"], { input: "still there?\n" });
    const single = place.start(["run", "wait for Ctrl-C"]);
    await eventually(() => waiting() === 2);
    chat.child.kill("SIGINT");
    single.child.kill("SIGINT");
    expect(await chat.finished).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("heard 2: still there?"),
      stderr: expect.stringContaining("stopped: The turn was cancelled."),
    });
    expect((await single.finished).code).toBe(130);
    expect(model.aborted).toBe(aborted + 2);
  });
});
