/** Resources, prompts, completion, subscriptions and questions over REST and the WebSocket, with the real everything server. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { everything } from "../../../support/servers.ts";
import { type ApiScene, apiScene, TOKENS } from "./api-setup.ts";

let scene: ApiScene;

beforeAll(async () => {
  scene = await apiScene({ servers: { all: everything() } });
});
afterAll(() => scene.close());

const FEATURES = "demo://resource/static/document/features.md";
const TEXT_TEMPLATE = "demo://resource/dynamic/text/{resourceId}";

describe("[joy-01a] resources and prompts", () => {
  it("reads a template with values, and says which are missing or unknown", async () => {
    const listed = await scene.request("read", "GET", "/mcp/resources?q=dynamic");
    expect(listed.json()).toMatchObject({
      resources: expect.arrayContaining([
        expect.objectContaining({ uri: TEXT_TEMPLATE, template: true, variables: ["resourceId"], followable: true }),
      ]) as unknown,
    });
    const read = await scene.request("read", "POST", "/mcp/resources/read", {
      body: { uri: TEXT_TEMPLATE, variables: { resourceId: "7" } },
    });
    expect(read.json()).toMatchObject({ contents: [{ uri: "demo://resource/dynamic/text/7" }] });
    const wrong = await scene.request("read", "POST", "/mcp/resources/read", {
      body: { uri: TEXT_TEMPLATE, variables: { resourceID: "7" } },
    });
    expect(wrong.status).toBe(400);
    expect(JSON.stringify(wrong.json())).toContain("variables.resourceId: is missing");
    expect(JSON.stringify(wrong.json())).toContain("variables.resourceID: is not a variable of the template");
  });

  it("runs a prompt through the call path", async () => {
    const calls: string[] = [];
    const stop = scene.hub.on("call", ({ kind, name, door }) => calls.push(`${door} ${kind} ${name}`));
    const got = await scene.request("read", "POST", "/mcp/prompts/all__args-prompt/get", {
      body: { args: { city: "Bern" } },
    });
    stop();
    expect(got.json()).toMatchObject({
      messages: [{ role: "user", content: { type: "text", text: expect.stringContaining("Bern") as unknown } }],
    });
    expect(calls).toEqual(["rest prompt all__args-prompt"]);
    const missing = await scene.request("read", "POST", "/mcp/prompts/all__nothing/get", { body: {} });
    expect(missing.status).toBe(404);
  });

  it("completes an argument from what is known already", async () => {
    const complete = async (body: object): Promise<unknown> =>
      (await scene.request("read", "POST", "/mcp/complete", { body })).json();
    const name = { promptName: "all__completable-prompt", argument: "name" };
    expect(await complete({ ...name, argument: "department", value: "S" })).toMatchObject({
      values: ["Sales", "Support"],
    });
    expect(await complete({ ...name, known: { department: "Sales" } })).toMatchObject({
      values: ["David", "Eve", "Frank"],
    });
    expect(await complete({ uri: TEXT_TEMPLATE, argument: "resourceId", value: "12" })).toMatchObject({
      values: ["12"],
    });
    const both = await scene.request("read", "POST", "/mcp/complete", { body: { ...name, uri: TEXT_TEMPLATE } });
    expect(both.status).toBe(400);
  });
});

describe("[joy-01b] subscriptions", () => {
  it("report to the connection that follows, and to no other", async () => {
    const [one, other] = await Promise.all([scene.connect("admin"), scene.connect("admin")]);
    expect(await one.ask({ id: 1, type: "followResource", uri: FEATURES })).toMatchObject({ ok: true, uri: FEATURES });
    await other.ask({ id: 1, type: "mcp.callTool", toolName: "all__toggle-subscriber-updates" });
    expect(await one.until(({ type }) => type === "resource.updated")).toMatchObject({ uri: FEATURES });
    // An event that both get comes after it.
    await other.ask({ id: 2, type: "mcp.callTool", toolName: "all__toggle-subscriber-updates" });
    await other.until((frame) => frame["type"] === "call.finished");
    expect(other.frames.filter(({ type }) => type === "resource.updated")).toEqual([]);
    const { length } = one.frames.filter(({ type }) => type === "resource.updated");
    await one.ask({ id: 2, type: "unfollowResource", uri: FEATURES });
    await one.ask({ id: 3, type: "mcp.callTool", toolName: "all__toggle-subscriber-updates" });
    await one.ask({ id: 4, type: "mcp.callTool", toolName: "all__toggle-subscriber-updates" });
    expect(one.frames.filter(({ type }) => type === "resource.updated")).toHaveLength(length);
  });

  it("over REST report in the event stream of the same caller", async () => {
    const events = await fetch(`${scene.url}/api/v1/events?events=resource.updated`, {
      headers: { authorization: `Bearer ${TOKENS.call}` },
    });
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const reading = (async () => {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += part.value;
    })();
    const followed = await scene.request("call", "POST", "/mcp/resources/follow", { body: { uri: FEATURES } });
    expect(followed.status).toBe(200);
    const toggle = "/mcp/tools/all__toggle-subscriber-updates/call";
    await scene.request("call", "POST", toggle, { body: {} });
    await vi.waitFor(() => expect(text).toContain(`"uri":"${FEATURES}"`));
    await scene.request("call", "POST", toggle, { body: {} });
    await reader?.cancel();
    await reading;
  });
});

describe("[joy-01c] questions of a call", () => {
  const elicit = { type: "mcp.callTool", toolName: "all__trigger-elicitation-request", questions: true };

  it("are asked of the connection that called, and answered by its caller alone", async () => {
    const [one, other] = await Promise.all([scene.connect("call"), scene.connect("admin")]);
    one.say({ id: 1, ...elicit });
    const { question } = (await one.until(({ type }) => type === "question.asked")) as {
      question: { id: string };
    };
    expect(question).toMatchObject({
      kind: "form",
      name: "all__trigger-elicitation-request",
      schema: { type: "object", properties: { name: { type: "string" } } },
    });
    const answer = { type: "answerQuestion", questionId: question.id, action: "accept" };
    expect(await other.ask({ id: 1, ...answer, content: { name: "Eve" } })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    });
    expect((await scene.request("admin", "GET", "/questions")).json()).toEqual({ questions: [] });
    expect((await scene.request("call", "GET", "/questions")).json()).toMatchObject({
      questions: [{ id: question.id }],
    });
    expect(await one.ask({ id: 2, ...answer })).toMatchObject({ ok: false, error: { code: "invalid_arguments" } });
    // Over REST as well, because it is the same caller.
    const answered = await scene.request("call", "POST", `/questions/${question.id}`, {
      body: { action: "accept", content: { name: "Ada Lovelace" } },
    });
    expect(answered.json()).toEqual({ questionId: question.id, action: "accept" });
    expect(JSON.stringify(await one.until(({ id, ok }) => id === 1 && ok === true))).toContain("Ada Lovelace");
    expect(one.frames).toContainEqual(
      expect.objectContaining({ type: "question.closed", id: question.id, action: "accept" }),
    );
    expect(other.frames.filter(({ type }) => String(type).startsWith("question."))).toEqual([]);
    expect(await one.ask({ id: 3, ...answer, content: {} })).toMatchObject({ error: { code: "not_found" } });
  });

  it("are refused for a caller who does not answer, at once", async () => {
    const refused = await scene.request("call", "POST", "/mcp/tools/all__trigger-elicitation-request/call", {
      body: {},
    });
    expect(JSON.stringify(refused.json())).toContain("No one can answer elicitation/create");
  });

  it("to a model are answered or declined by a person", async () => {
    const socket = await scene.connect("call");
    const sample = {
      type: "mcp.callTool",
      toolName: "all__trigger-sampling-request",
      args: { prompt: "Which river?", maxTokens: 20 },
      questions: true,
    };
    const asked = async (): Promise<string> => {
      const frame = (await socket.until(({ type }) => type === "question.asked")) as { question: { id: string } };
      socket.frames.splice(socket.frames.indexOf(frame), 1);
      expect(frame.question).toMatchObject({ kind: "sampling", sampling: { maxTokens: 20 } });
      expect(JSON.stringify(frame)).toContain("Which river?");
      return frame.question.id;
    };
    socket.say({ id: 1, ...sample });
    await socket.ask({ id: 2, type: "answerQuestion", questionId: await asked(), action: "accept", text: "The Aare" });
    const result = JSON.stringify(await socket.until(({ id, ok }) => id === 1 && ok === true));
    expect(result).toContain("The Aare");
    expect(result).toContain("human");
    socket.say({ id: 3, ...sample });
    await socket.ask({ id: 4, type: "answerQuestion", questionId: await asked(), action: "decline" });
    expect(JSON.stringify(await socket.until(({ id, ok }) => id === 3 && ok === true))).toContain("rejected");
  });

  it("with an address are for a browser, never another scheme", async () => {
    const socket = await scene.connect("call");
    const call = (id: number, url: string): void =>
      socket.say({
        id,
        type: "mcp.callTool",
        toolName: "all__trigger-url-elicitation",
        args: { url },
        questions: true,
      });
    call(1, "https://example.com/confirm?a=b");
    const { question } = (await socket.until(({ type }) => type === "question.asked")) as {
      question: { id: string };
    };
    expect(question).toMatchObject({ kind: "url", url: "https://example.com/confirm?a=b" });
    await socket.ask({ id: 2, type: "answerQuestion", questionId: question.id, action: "accept" });
    expect(JSON.stringify(await socket.until(({ id, ok }) => id === 1 && ok === true))).toContain("User completed");
    call(3, "javascript:alert(1)");
    const refused = JSON.stringify(await socket.until(({ id, ok }) => id === 3 && ok !== undefined));
    expect(refused).toContain("must be an http or https address");
    expect(socket.frames.filter(({ type }) => type === "question.asked")).toHaveLength(1);
  });

  it("end with the call, and with the connection", async () => {
    const socket = await scene.connect("call");
    socket.say({ id: 1, ...elicit });
    await socket.until(({ type }) => type === "question.asked");
    await socket.ask({ id: 2, type: "cancel", command: 1 });
    expect(await socket.until(({ type }) => type === "question.closed")).toMatchObject({ action: null });
    socket.say({ id: 3, ...elicit });
    await vi.waitFor(() => expect(socket.frames.filter(({ type }) => type === "question.asked")).toHaveLength(2));
    socket.socket.terminate();
    await vi.waitFor(async () =>
      expect((await scene.request("call", "GET", "/questions")).json()).toEqual({ questions: [] }),
    );
  });
});
