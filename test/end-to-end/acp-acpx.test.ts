/** `toolcrib acp` behind a client that others wrote, with servers that the client brings. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import {
  calls,
  type FakeServer,
  type Scenario,
  type ScriptedModel,
  startFakeServer,
  startScriptedModel,
  text,
} from "../../src/testing/index.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";
import { isAlive } from "../support/processes.ts";
import { type Run, runProgram } from "../support/run-program.ts";
import { misbehaving } from "../support/servers.ts";

const ACPX = createRequire(import.meta.url).resolve("acpx");
/** Long enough for a machine that is busy; a command that hangs would otherwise outlive the test. */
const TIMEOUT = 60_000;
const POLL = { timeout: 10_000 };

const work = mkdtempSync(join(tmpdir(), "toolcrib-acpx-"));
const home = join(work, "home");
const mcpConfig = join(work, "mcp.json");
let remote: FakeServer;
let model: ScriptedModel | undefined;

beforeAll(async () => {
  mkdirSync(home);
  remote = await startFakeServer({
    tools: {
      look: { run: () => "a view", annotations: { readOnlyHint: true } },
      write: (args) => `wrote ${String(args["what"])}`,
    },
  });
  const { command, args } = misbehaving("ok");
  const local = { name: "local", command, args, env: [{ name: "GREETING", value: "from acpx" }] };
  const servers = [local, { type: "http", name: "remote", url: remote.url, headers: [] }];
  writeFileSync(mcpConfig, JSON.stringify({ mcpServers: servers }));
});
afterEach(async () => {
  await model?.close();
  // The process that acpx keeps for a session, if a test left one.
  const left = owners();
  for (const pid of left) process.kill(pid, "SIGTERM");
  await expect.poll(() => left.filter(isAlive), POLL).toEqual([]);
});
afterAll(async () => {
  await remote.close();
  rmSync(work, { recursive: true, force: true });
});

/** Those of sessions that acpx holds open. */
function owners(): number[] {
  const queues = join(home, ".acpx", "queues");
  let files: string[];
  try {
    files = readdirSync(queues).filter((name) => name.endsWith(".lock"));
  } catch {
    return [];
  }
  return files.flatMap((name) => {
    const lease: unknown = JSON.parse(readFileSync(join(queues, name), "utf8"));
    return isJsonObject(lease) && typeof lease["pid"] === "number" ? lease["pid"] : [];
  });
}

async function start(scenario: Scenario): Promise<ScriptedModel> {
  model = await startScriptedModel(scenario);
  const endpoint = { baseUrl: `${model.url}/v1`, model: "scripted" };
  writeFileSync(join(work, "toolcrib.json"), JSON.stringify({ mcpServers: {}, agent: { model: endpoint } }));
  return model;
}

/** `acpx`, with what its options stand before and its command after. */
function acpx(...args: string[]): Promise<Run> {
  const agent = [process.execPath, MAIN, "acp", "--config", join(work, "toolcrib.json")].join(" ");
  const options = ["--agent", agent, "--mcp-config", mcpConfig, "--format", "json", "--timeout", "30"];
  const env = { HOME: home, ...PATIENT, TOOLCRIB_HOME: join(home, ".toolcrib") };
  return runProgram(process.execPath, [ACPX, ...options, ...args], { cwd: work, env });
}

function messages({ stdout }: Run): JsonObject[] {
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line): JsonObject => JSON.parse(line));
}

/** The `session/update`s of a kind. */
function updates(run: Run, ...kinds: string[]): JsonObject[] {
  return messages(run).flatMap(({ method, params }) => {
    const update = method === "session/update" && isJsonObject(params) ? params["update"] : undefined;
    return isJsonObject(update) && kinds.includes(String(update["sessionUpdate"])) ? [update] : [];
  });
}

/** Notices of the agent stand before what the model says. */
function said(run: Run): string {
  return updates(run, "agent_message_chunk")
    .map(({ content }) => (isJsonObject(content) ? String(content["text"]) : ""))
    .join("");
}

function stopReason(run: Run): unknown {
  return messages(run)
    .flatMap(({ result }) => (isJsonObject(result) ? (result["stopReason"] ?? []) : []))
    .at(-1);
}

/** How the calls of a run ended. */
function ends(run: Run): Record<string, unknown> {
  const last: Record<string, unknown> = {};
  for (const { toolCallId, status } of updates(run, "tool_call", "tool_call_update"))
    if (status !== undefined) last[String(toolCallId)] = status;
  return last;
}

const offered = (index: number) => model?.requests[index]?.tools.map((tool) => tool.name) ?? [];
const results = (index: number) => model?.requests[index]?.messages.at(-1)?.results.map((result) => result.text) ?? [];

it(
  "[acp-15a] acpx approves: tools of its stdio and its HTTP server run, and nothing is left",
  async () => {
    await start([
      calls(
        { id: "pids", name: "local__pids" },
        { id: "env", name: "local__env" },
        { id: "write", name: "remote__write", arguments: { what: "it" } },
      ),
      text("All ", "done."),
    ]);
    const run = await acpx("--approve-all", "exec", "Do it");
    expect(run.stderr).toBe("");
    expect([run.code, said(run), stopReason(run)]).toEqual([0, expect.stringMatching(/All done\.$/), "end_turn"]);
    expect(ends(run)).toEqual({ pids: "completed", env: "completed", write: "completed" });
    expect(offered(0)).toEqual(expect.arrayContaining(["local__echo", "remote__look", "remote__write"]));
    const [pids, env, wrote] = results(1);
    expect(wrote).toContain("wrote it");
    expect(env).toContain("from acpx");
    const pid = Number(/"pid":(\d+)/.exec(pids ?? "")?.[1]);
    expect(pid).toBeGreaterThan(1);
    await expect.poll(() => isAlive(pid), POLL).toBe(false);
  },
  TIMEOUT,
);

it(
  "[acp-15a] acpx denies: only what is read-only runs, and the model is told",
  async () => {
    const before = remote.calls.length;
    await start([
      calls({ id: "look", name: "remote__look" }, { id: "write", name: "remote__write" }),
      text("I may not."),
    ]);
    const run = await acpx("--deny-all", "exec", "Do it");
    expect([said(run), stopReason(run)]).toEqual([expect.stringMatching(/I may not\.$/), "end_turn"]);
    expect(ends(run)).toEqual({ look: "completed", write: "failed" });
    expect(remote.calls.slice(before).map((call) => call.name)).toEqual(["look"]);
    const [look, write] = results(1);
    expect(look).toContain("a view");
    expect(write).toMatch(/reject|denied|not allow/i);
  },
  TIMEOUT,
);

it(
  "[acp-15a] acpx cancels, sets a mode, and takes the session up again in another process",
  async () => {
    const playing = await start([
      { text: ["Let me ", "never"], stallAfter: 1 },
      calls({ id: "write", name: "remote__write" }),
      text("Not in this mode."),
    ]);
    const before = remote.calls.length;
    expect((await acpx("sessions", "new", "-s", "one")).code).toBe(0);
    const first = acpx("--approve-all", "prompt", "-s", "one", "Take your time");
    await playing.waitForRequest(1);
    expect(messages(await acpx("cancel", "-s", "one"))).toMatchObject([{ cancelled: true }]);
    expect(stopReason(await first)).toBe("cancelled");
    await expect.poll(() => playing.aborted, POLL).toBe(1);
    expect(offered(0)).toContain("remote__write");
    const mode = await acpx("set-mode", "-s", "one", "read-only");
    expect(messages(mode)).toMatchObject([{ action: "mode_set", modeId: "read-only" }]);

    const [owner] = owners();
    expect(owner).toBeDefined();
    if (owner !== undefined) process.kill(owner, "SIGTERM");
    await expect
      .poll(
        () =>
          owners()
            .concat(owner ?? [])
            .filter(isAlive),
        POLL,
      )
      .toEqual([]);
    const second = await acpx("--approve-all", "prompt", "-s", "one", "Write it");
    expect([said(second), stopReason(second)]).toEqual([expect.stringMatching(/Not in this mode\.$/), "end_turn"]);
    expect(ends(second)).toEqual({ write: "failed" });
    expect(remote.calls).toHaveLength(before);
    const asked = playing.requests[1]?.messages.filter((message) => message.role === "user");
    expect(asked?.map((message) => message.text)).toEqual([
      expect.stringContaining("Take your time"),
      expect.stringContaining("Write it"),
    ]);
    expect(offered(1)).toContain("remote__look");
    expect(offered(1)).not.toContain("remote__write");
    expect(playing.problems).toEqual([]);
  },
  TIMEOUT,
);
