/** The same door with a model behind real HTTP. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, text } from "../../../src/testing/index.ts";
import { acpOn, readOnly, scripted, tool } from "./acp-bench.ts";
import { eventually } from "../../support/eventually.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-acp-http-"));

describe("a model over HTTP", () => {
  it("[acp-10d] [acp-10f] sees the image of a prompt; plan and usage are told", async () => {
    const entries = [{ content: "Look", priority: "high", status: "in_progress" }];
    const { script, door } = await scripted([
      { ...calls({ id: "plan", name: "toolcrib_plan", arguments: { entries } }), usage: { input: 20, output: 5 } },
      { ...text("A ", "cat."), usage: { input: 30, output: 3, cached: 20 } },
    ]);
    const { client } = await acpOn({ door });
    const { sessionId } = await client.newSession(cwd);
    const prompt = [
      { type: "text", text: "What is it?" },
      { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
      { type: "resource", resource: { uri: "file:///a.txt", text: "embedded words" } },
    ];
    const { usage, stopReason } = await client.raw("session/prompt", { sessionId, prompt });
    expect(stopReason).toBe("end_turn");
    expect(client.text()).toBe("A cat.");
    const asked = script.requests[0]?.messages.at(-1);
    expect(asked?.images).toHaveLength(1);
    expect(asked?.text).toContain("embedded words");
    expect(client.of("plan")).toMatchObject([{ entries }]);
    expect(usage).toMatchObject({ inputTokens: 50, outputTokens: 8, cachedReadTokens: 20 });
    expect(script.problems).toEqual([]);
  });

  it("[acp-10e] is hung up on by a cancel", async () => {
    const { script, door } = await scripted([{ text: ["Let me ", "never"], stallAfter: 1 }, text("Again.")]);
    const { client } = await acpOn({ door });
    const { sessionId } = await client.newSession(cwd);
    const answer = client.prompt(sessionId, "go");
    await eventually(() => client.text() === "Let me ");
    await client.cancel(sessionId);
    expect(await answer).toEqual({ stopReason: "cancelled" });
    await eventually(() => script.aborted === 1);
    expect(await client.prompt(sessionId, "once more")).toMatchObject({ stopReason: "end_turn" });
    expect(script.problems).toEqual([]);
  });

  it("[acp-12b] reads what a user allowed and what not, and goes on after a cancelled question", async () => {
    const answers = ["allow_once", "reject_once", "cancelled"];
    const { script, door } = await scripted([
      calls({ id: "a", name: "change", arguments: { a: 1 } }, { id: "b", name: "change" }, { id: "c", name: "look" }),
      text("ok"),
      calls({ id: "d", name: "change" }),
      text("good"),
    ]);
    const { client } = await acpOn({
      door,
      tools: [tool("change"), tool("look", readOnly)],
      permit: ({ toolCall }) => (toolCall.toolCallId === "b" ? "reject_once" : (answers.shift() ?? "reject_once")),
    });
    const { sessionId } = await client.newSession(cwd);
    await client.prompt(sessionId, "go");
    const results = script.requests[1]?.messages.at(-1)?.results ?? [];
    expect(results.map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(results[0]?.text).toContain('change {"a":1}');
    expect(results[1]?.text).toContain("did not allow");
    answers.shift();
    expect(await client.prompt(sessionId, "again")).toEqual({ stopReason: "cancelled" });
    expect(await client.prompt(sessionId, "and now")).toMatchObject({ stopReason: "end_turn" });
    expect(script.problems).toEqual([]);
  });
});
