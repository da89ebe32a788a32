import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Progress } from "../../src/model/protocol.ts";
import { startEverything, type RunningServer } from "../support/everything-http.ts";
import { everything, filesystem, memory } from "../support/servers.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-real-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

const firstText = (result: { content?: unknown } | undefined): string => {
  const content = result?.content;
  return Array.isArray(content) ? String((content[0] as JsonObject)["text"]) : "";
};

describe("[spine-21a] [spine-16a] the three real servers over stdio, from a Claude Desktop file", () => {
  it("are one live list of tools that work", async () => {
    const file = join(dir, "claude_desktop_config.json");
    writeFileSync(
      file,
      JSON.stringify({
        globalShortcut: "Ctrl+Space",
        mcpServers: { everything: everything(), files: filesystem(dir), memory: memory(join(dir, "memory.jsonl")) },
      }),
    );
    hub = await createHub(file);
    expect(hub.servers.list()).toMatchObject([
      { id: "everything", state: "ready", transport: "stdio", status: "connected", lastError: null },
      { id: "files", state: "ready" },
      { id: "memory", state: "ready" },
    ]);

    const names = hub.tools({ for: "openai" }).map((tool) => tool.name);
    expect(names).toEqual(
      expect.arrayContaining([
        "everything__echo",
        "everything__get-sum",
        "files__read_text_file",
        "memory__read_graph",
      ]),
    );
    for (const tool of hub.tools({ for: "openai" })) expect(tool.parameters).toMatchObject({ type: "object" });

    const path = join(dir, "note.txt");
    const written = await hub.call({
      name: "files__write_file",
      arguments: { path, content: "checked out" },
    });
    expect(written.ok).toBe(true);
    expect(readFileSync(path, "utf8")).toBe("checked out");
    const read = await hub.call({ name: "files__read_text_file", arguments: { path } });
    expect(firstText(read.result)).toBe("checked out");

    await hub.call({
      name: "memory__create_entities",
      arguments: { entities: [{ name: "crib", entityType: "place", observations: ["has tools"] }] },
    });
    const graph = await hub.call({ name: "memory__read_graph" });
    expect(firstText(graph.result)).toContain("has tools");

    const image = await hub.call({ name: "everything__get-tiny-image" });
    expect(image.result?.content.map((block) => block.type)).toContain("image");
    const structured = await hub.call({
      name: "everything__get-structured-content",
      arguments: { location: "Chicago" },
    });
    expect(structured.result?.structuredContent).toMatchObject({ temperature: expect.any(Number) });
  });

  it("have resources, templates, prompts and completion", async () => {
    hub = await createHub({ mcpServers: { everything: everything() } });
    const view = hub.view(hub.session);
    expect(view.resources.length).toBeGreaterThan(3);
    expect(view.templates.map((template) => template.name)).toContain("demo://resource/dynamic/text/{resourceId}");
    expect(view.prompts.map((prompt) => prompt.name)).toContain("everything__args-prompt");

    const dynamic = await hub.read({ uri: "demo://resource/dynamic/text/7" });
    expect(JSON.stringify(dynamic)).toContain("Resource 7");
    const prompt = await hub.prompt({ name: "everything__args-prompt", arguments: { city: "Kyoto" } });
    expect(JSON.stringify(prompt.result)).toContain("Kyoto");
    const completed = await hub.internals.complete(hub.session, {
      ref: { type: "ref/prompt", name: "everything__completable-prompt" },
      argument: { name: "department", value: "E" },
    });
    expect(completed.result).toMatchObject({ completion: { values: ["Engineering"] } });

    const uri = view.resources[0]?.name ?? "";
    expect(await hub.internals.subscribe(hub.session, { uri })).toMatchObject({ ok: true });
    expect(await hub.internals.unsubscribe(hub.session, { uri })).toMatchObject({ ok: true });
  });

  it("[spine-12a] [spine-12b] ask for roots, sampling and elicitation, and get answers", async () => {
    hub = await createHub(
      { mcpServers: { everything: everything() } },
      {
        workspaceDir: dir,
        onSample: async () => ({
          role: "assistant",
          model: "scripted",
          content: { type: "text", text: "sampled words" },
        }),
        onElicit: async () => ({ action: "accept", content: { name: "Ada", check: true } }),
      },
    );
    await expect.poll(() => hub?.tools().map((tool) => tool.name)).toContain("everything__get-roots-list");
    const roots = await hub.call({ name: "everything__get-roots-list" });
    expect(JSON.stringify(roots)).toContain(dir);
    const sampled = await hub.call({
      name: "everything__trigger-sampling-request",
      arguments: { prompt: "say something", maxTokens: 20 },
    });
    expect(JSON.stringify(sampled)).toContain("sampled words");
    const elicited = await hub.call({ name: "everything__trigger-elicitation-request" });
    expect(JSON.stringify(elicited)).toContain("Ada");
  });
});

describe.each(["streamableHttp", "sse"] as const)("[spine-21a] the everything server over %s", (transport) => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startEverything(transport);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  it("connects by its url alone, calls, reports progress and cancels", async () => {
    hub = await createHub({ mcpServers: { remote: { url: server.url } } });
    expect(hub.servers.list()).toMatchObject([{ state: "ready", transport: transport === "sse" ? "sse" : "http" }]);
    const sum = await hub.call({ name: "remote__get-sum", arguments: { a: 2, b: 40 } });
    expect(firstText(sum.result)).toContain("42");

    const seen: Progress[] = [];
    const long = await hub.call({
      name: "remote__trigger-long-running-operation",
      arguments: { duration: 1, steps: 4 },
      onProgress: (progress) => seen.push(progress),
    });
    expect(long.ok).toBe(true);
    expect(seen.map((progress) => progress.progress)).toEqual([1, 2, 3, 4]);

    const controller = new AbortController();
    const pending = hub.call({
      name: "remote__trigger-long-running-operation",
      arguments: { duration: 60, steps: 2 },
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(), 100);
    expect(await pending).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect((await hub.call({ name: "remote__echo", arguments: { message: "still here" } })).ok).toBe(true);
  });
});

it("[spine-09d] survives the restart of a remote server and reads its lists again", async () => {
  const first = await startEverything("streamableHttp");
  const port = Number(new URL(first.url).port);
  hub = await createHub({
    mcpServers: { remote: { url: first.url, restart: { max: 50, initialDelay: 100, maxDelay: 200 } } },
  });
  await first[Symbol.asyncDispose]();
  await using _second = await startEverything("streamableHttp", port);
  await expect
    .poll(async () => (await hub?.call({ name: "remote__echo", arguments: { message: "back" } }))?.ok, {
      timeout: 60_000,
      interval: 250,
    })
    .toBe(true);
  expect(hub.servers.list()[0]?.state).toBe("ready");
});
