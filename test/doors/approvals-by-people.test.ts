/** Who can lift a refusal, at every door of a real hub: never the one who was refused. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { ToolcribApiError, ToolcribClient } from "../../src/api-client/index.ts";
import type { HubEvent } from "../../src/contract/websocket.ts";
import { ServedHub } from "../load/served-hub.ts";
import { MAIN } from "../support/main-program.ts";
import { misbehaving } from "../support/servers.ts";

const AGENT = "agent-token-0123456789";
const BOTH = "both-token-01234567890";
const SAME_USER = "same-user-token-012345";
const OTHER = "other-token-0123456789";

const WAYS_TO_APPROVE = /toolcrib approve|\bapprove <|--hub|approvalId|"!one__env|ask list/;

let hub: ServedHub;
let operator: ToolcribClient;

beforeAll(async () => {
  hub = await ServedHub.start({
    mcpServers: { one: misbehaving("ok") },
    tools: { ask: ["one__env"] },
    http: {
      auth: {
        tokens: [
          { token: AGENT, user: "bot", scopes: ["call"] },
          { token: BOTH, user: "both", scopes: ["call", "approve"] },
          { token: SAME_USER, user: "bot", scopes: ["approve"] },
          { token: OTHER, user: "ann", scopes: ["approve"] },
        ],
      },
    },
  });
  operator = new ToolcribClient(hub);
  const areThere = async () => expect((await operator.listTools()).tools.length).toBeGreaterThan(0);
  await vi.waitFor(areThere, { timeout: 60_000 });
});

afterAll(() => hub.remove());

const clientOf = (token: string): ToolcribClient => new ToolcribClient({ url: hub.url, token });

/** A variable's name makes one call differ from another. */
const envOf = (name: string) => ({ toolName: "one__env", args: { name } });

async function pending(): Promise<{ readonly id: string; readonly callId: string }[]> {
  return (await operator.listApprovals()).approvals;
}

async function refusal(work: Promise<unknown>): Promise<ToolcribApiError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ToolcribApiError);
  // Checked in the line before.
  return error as ToolcribApiError;
}

/** Everything that an error has to say, in whatever field. */
function allOf(error: unknown): string {
  const own = error instanceof Error ? Object.getOwnPropertyNames(error).filter((name) => name !== "stack") : [];
  return `${String(error)} ${JSON.stringify(error, [...own, "code", "message", "hint", "details", "data", "rule", "pendingApproval"])} ${JSON.stringify(error)}`;
}

describe("[trust-07a] a refused call", () => {
  it("tells its caller no id and no command that approves it: MCP over HTTP, REST, WebSocket, events", async () => {
    const agent = clientOf(AGENT);
    const heard: HubEvent[] = [];
    const live = agent.live({ onEvent: (event) => heard.push(event) });
    onTestFinished(() => live.close());
    const mcp = new Client({ name: "agent", version: "1" });
    const headers = { authorization: `Bearer ${AGENT}` };
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${hub.url}/mcp`), { requestInit: { headers } }));
    onTestFinished(() => mcp.close());

    const texts = [
      allOf(await refusal(agent.callTool(envOf("A")))),
      allOf(await live.command("mcp.callTool", envOf("B")).catch((error: unknown) => error)),
      allOf(await mcp.callTool({ name: "one__env", arguments: { name: "C" } }).catch((error: unknown) => error)),
    ];
    const waiting = await pending();
    expect(waiting.length, texts.join("\n")).toBe(3);
    const answers = await Promise.all(
      ["/approvals", `/approvals/${waiting[0]?.id}`, "/audit"].map(async (path) => {
        const answer = await fetch(`${hub.url}/api/v1${path}`, { headers });
        expect(answer.status, path).toBe(403);
        return answer.text();
      }),
    );
    await expect.poll(() => heard.filter(({ type }) => type === "call.finished").length).toBe(1);
    for (const text of [...texts, ...answers.slice(0, 1), ...answers.slice(2), JSON.stringify(heard)]) {
      expect(text).not.toMatch(WAYS_TO_APPROVE);
      for (const { id } of waiting) expect(text).not.toContain(id);
    }
    for (const text of texts) expect(text).toContain("The operator was asked.");
    expect(heard.map(({ type }) => type)).not.toContain("approval.requested");
    for (const { id } of waiting) await operator.answerApproval({ approvalId: id, answer: "no" });
  });

  it("over stdio, and on the command line without a terminal, says that no one can approve it", async () => {
    const args = ["--config", join(hub.dir, "toolcrib.json")];
    const env = { PATH: process.env["PATH"] ?? "", HOME: hub.dir, TOOLCRIB_HOME: join(hub.dir, "other-home") };
    const mcp = new Client({ name: "agent", version: "1" });
    await mcp.connect(
      new StdioClientTransport({ command: process.execPath, args: [MAIN, "mcp", ...args], env, stderr: "ignore" }),
    );
    onTestFinished(() => mcp.close());
    const byStdio = allOf(await mcp.callTool({ name: "one__env", arguments: {} }).catch((error: unknown) => error));
    const byCommand = await printed(["call", "one__env", ...args, "--json"], env);
    const asText = await printed(["call", "one__env", "--yes", ...args], env);
    for (const text of [byStdio, byCommand, asText]) {
      expect(text).toContain("No one is connected who can approve it.");
      expect(text).not.toMatch(WAYS_TO_APPROVE);
      expect(text).not.toMatch(/toolcrib (?:call|approve)/);
    }
  });
});

describe("[trust-07b] who approves", () => {
  it("is never the caller whose call waits: not with its token, not with another token of its user", async () => {
    await refusal(clientOf(AGENT).callTool(envOf("own")));
    const [first] = await pending();
    const approvalId = first?.id ?? "";
    const agent = await refusal(clientOf(AGENT).answerApproval({ approvalId, answer: "once" }));
    expect([agent.code, agent.message]).toEqual(["denied", expect.stringContaining("approve")]);
    const sameUser = await refusal(clientOf(SAME_USER).answerApproval({ approvalId, answer: "once" }));
    expect([sameUser.code, sameUser.message]).toEqual(["denied", expect.stringContaining("own")]);

    await refusal(clientOf(BOTH).callTool(envOf("both")));
    const second = (await pending()).find(({ id }) => id !== approvalId)?.id ?? "";
    const own = await refusal(clientOf(BOTH).answerApproval({ approvalId: second, answer: "once" }));
    expect([own.code, own.message]).toEqual(["denied", expect.stringContaining("own")]);
    expect((await refusal(clientOf(AGENT).callTool(envOf("own")))).code).toBe("denied");
    expect((await refusal(clientOf(BOTH).callTool(envOf("both")))).code).toBe("denied");

    // What was refused still waits, and each may answer for the other.
    await clientOf(BOTH).answerApproval({ approvalId, answer: "once" });
    await clientOf(OTHER).answerApproval({ approvalId: second, answer: "once" });
    expect((await clientOf(AGENT).callTool(envOf("own"))).isError).not.toBe(true);
    expect((await clientOf(BOTH).callTool(envOf("both"))).isError).not.toBe(true);
    const answered = await operator.listApprovals({ status: "answered" });
    expect(answered.approvals.filter(({ answer }) => answer === "once").map(({ answeredBy }) => answeredBy)).toEqual([
      "ann",
      "both",
    ]);
  });

  it("with the scope approve sees what waits and answers it, and nothing else", async () => {
    const approver = clientOf(OTHER);
    const heard: HubEvent[] = [];
    const live = approver.live({ onEvent: (event) => heard.push(event) });
    onTestFinished(() => live.close());
    await expect.poll(() => live.status).toBe("open");
    await refusal(clientOf(AGENT).callTool(envOf("seen")));
    await expect.poll(() => heard.map(({ type }) => type)).toEqual(["approval.requested"]);
    const [waiting] = (await approver.listApprovals()).approvals;
    for (const other of [
      () => approver.listTools(),
      () => approver.callTool(envOf("x")),
      () => approver.listAudit(),
      () => approver.me(),
    ]) {
      expect((await refusal(other())).code).toBe("denied");
    }
    const lasting = await refusal(approver.answerApproval({ approvalId: waiting?.id ?? "", answer: "always" }));
    expect(lasting.message).toContain('"admin"');
    expect(await approver.answerApproval({ approvalId: waiting?.id ?? "", answer: "no" })).toMatchObject({
      answer: "no",
    });
    expect(JSON.parse(readFileSync(join(hub.dir, "toolcrib.json"), "utf8"))).toMatchObject({
      tools: { ask: ["one__env"] },
    });
  });

  it("an operator who tries a tool answers for it too, as on the page", async () => {
    const held = await refusal(operator.callTool(envOf("page")));
    expect(held.details).toMatchObject({ pendingApproval: true });
    const [waiting] = await pending();
    await operator.answerApproval({ approvalId: waiting?.id ?? "", answer: "once" });
    expect((await operator.callTool(envOf("page"))).isError).not.toBe(true);
  });
});

async function printed(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  expect(code).toBe(3);
  return text;
}
