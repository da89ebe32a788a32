import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Hub } from "../../src/hub/hub.ts";
import {
  type FakeServer,
  type InMemoryHub,
  inMemoryHub,
  ManualClock,
  startFakeServer,
} from "../../src/testing/index.ts";

let server: FakeServer;
let there: InMemoryHub;
let hub: Hub;

beforeAll(async () => {
  server = await startFakeServer({
    instructions: "Be gentle.",
    tools: {
      echo: (args) => String(args["text"]),
      fail: () => {
        throw new TypeError("does not work");
      },
      look: {
        description: "Looks",
        annotations: { readOnlyHint: true },
        inputSchema: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
        run: () => ({ content: [{ type: "text", text: "seen" }], structuredContent: { seen: true } }),
      },
      ask: async (_, { elicit }) => {
        const { action, content } = await elicit({
          message: "Name?",
          requestedSchema: { type: "object", properties: {} },
        });
        return `${String(action)} ${JSON.stringify(content)}`;
      },
      think: async (_, { sample }) => JSON.stringify(await sample({ messages: [], maxTokens: 5 })),
      wait: (_, { signal, progress }) =>
        new Promise((resolve) => {
          progress(1, 2, "waiting");
          signal.addEventListener("abort", () => resolve("cancelled"));
        }),
    },
  });
  there = await inMemoryHub(
    { mcpServers: { fake: { url: server.url } } },
    {
      onElicit: () => Promise.resolve({ action: "accept", content: { name: "Ada" } }),
      onSample: () => Promise.resolve({ role: "assistant", content: { type: "text", text: "hm" }, model: "m" }),
    },
  );
  hub = there.hub;
});
afterAll(async () => {
  await there.close();
  await server.close();
});

const call = (name: string, args = {}) => hub.call({ name, arguments: args });
const textOf = async (name: string, args = {}) => (await call(name, args)).result?.content[0]?.["text"];

it("[agent-14a] a fake server's tools are functions that also fail, ask the user and use a model", async () => {
  expect(await textOf("fake__echo", { text: "hi" })).toContain("hi");
  expect(server.calls.at(-1)).toEqual({ name: "echo", arguments: { text: "hi" } });
  expect(await call("fake__fail")).toMatchObject({ ok: false, error: { code: "tool_error" } });
  expect((await call("fake__look", { at: "it" })).result?.structuredContent).toEqual({ seen: true });
  expect(await textOf("fake__ask")).toContain('accept {"name":"Ada"}');
  expect(await textOf("fake__think")).toContain('"text":"hm"');
});

it("[agent-14a] a fake server is slow until it is cancelled, and changes its list", async () => {
  const abort = new AbortController();
  const progress: unknown[] = [];
  const outcome = await hub.call({
    name: "fake__wait",
    signal: abort.signal,
    onProgress(told) {
      progress.push(told);
      abort.abort();
    },
  });
  expect(outcome).toMatchObject({ ok: false, error: { code: "cancelled" } });
  expect(progress).toMatchObject([{ progress: 1, total: 2, message: "waiting" }]);
  server.setTools({ other: () => "other" });
  await expect.poll(() => hub.view(hub.session).tools.map((tool) => tool.name)).toEqual(["fake__other"]);
});

it("[agent-14a] a fake server crashes and is there again", async () => {
  await server.crash();
  expect(server.sessions).toBe(0);
  await server.restart();
  await expect.poll(() => textOf("fake__other").catch(() => undefined)).toContain("other");
});

it("[agent-14a] a fake server can keep its clients waiting; the hub leaves nothing behind", async () => {
  const gate = Promise.withResolvers<void>();
  await using late = await startFakeServer({ opens: gate.promise, tools: { echo: () => "late" } });
  const second = await inMemoryHub({ mcpServers: { late: { url: late.url } } }, { wait: false });
  expect(second.hub.view(second.hub.session).tools).toEqual([]);
  gate.resolve();
  await second.hub.servers.settled();
  expect(second.hub.view(second.hub.session).tools.map((tool) => tool.name)).toEqual(["late__echo"]);
  const { home } = second;
  expect(existsSync(home)).toBe(true);
  await second.close();
  expect(existsSync(home)).toBe(false);
});

it("[agent-14a] a manual clock runs timers in order, and only when it is advanced", async () => {
  const clock = new ManualClock();
  const ran: string[] = [];
  clock.after(20, () => ran.push("second"));
  clock.after(10, () => {
    ran.push("first");
    clock.after(5, () => ran.push("between"));
  });
  clock.after(1, () => ran.push("never"))();
  const begin = clock.now();
  await clock.advance(15);
  expect(ran).toEqual(["first", "between"]);
  await clock.advance(5);
  expect([clock.now() - begin, clock.pending, ...ran]).toEqual([20, 0, "first", "between", "second"]);
});
