import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { Progress } from "../../src/model/protocol.ts";
import type { Tool } from "../../src/model/tool.ts";
import { ToolAuthorizationError, ToolInputError } from "../../src/model/tool.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { session, tool, use, useContext } from "./support.ts";

function sourceOf(...tools: Tool[]) {
  const registry = new ToolRegistry();
  for (const each of tools) registry.register(each);
  return registry.source();
}

/** A tool that ends as `execute` says. */
function ending(execute: () => unknown): Tool {
  // Tools of plugins are JavaScript: they return what they like.
  return tool("t", { execute: execute as Tool["execute"] });
}

describe("definitions", () => {
  it("[spine-15a] shows tools as MCP definitions and keeps the object until something changes", () => {
    const registry = new ToolRegistry();
    const source = registry.source();
    expect(source).toMatchObject({ id: "local", kind: "local" });
    registry.register(tool("a", { label: "A!", parameters: { properties: {} }, annotations: { readOnlyHint: true } }));
    const definitions = source.definitions();
    expect(definitions.tools).toEqual([
      {
        name: "a",
        title: "A!",
        description: "The tool a.",
        inputSchema: { type: "object", properties: {} },
        annotations: { readOnlyHint: true },
      },
    ]);
    expect(source.definitions()).toBe(definitions);
    registry.register(tool("b"));
    expect(source.definitions()).not.toBe(definitions);
  });

  it("[spine-15a] tells of changes of its own tools, and not of mirrored ones", () => {
    const registry = new ToolRegistry();
    const source = registry.source();
    let told = 0;
    const stop = source.onChange(() => (told += 1));
    registry.register(tool("mirrored"), { origin: "mcp" });
    expect(told).toBe(0);
    registry.register(tool("a"));
    source.definitions();
    registry.unregister("a");
    expect(told).toBe(2);
    stop();
    registry.register(tool("b"));
    expect(told).toBe(2);
  });
});

describe("running", () => {
  it("leaves out details that hold themselves, and keeps those that only have a part twice", async () => {
    const cyclic: Record<string, unknown> = { list: [] };
    cyclic["list"] = [{ again: cyclic }];
    const part = { n: 1 };
    for (const [details, kept] of [
      [cyclic, undefined],
      [
        { one: part, two: [part] },
        { one: { n: 1 }, two: [{ n: 1 }] },
      ],
    ]) {
      const source = sourceOf(ending(() => ({ content: [], details })));
      const result = await source.run(use("t"), useContext());
      expect(result).toEqual(kept === undefined ? { content: [] } : { content: [], details: kept });
    }
  });

  it("passes call id, arguments, signal, and keeps details and other fields of the result", async () => {
    const seen: unknown[] = [];
    const context = useContext();
    const source = sourceOf(
      tool("t", {
        async execute(...given) {
          seen.push(...given);
          return { content: [{ type: "text", text: "x", extra: 1 }], details: { n: 1 }, structuredContent: { a: 2 } };
        },
      }),
    );
    const result = await source.run(use("t", { a: 1 }), context);
    expect(seen.slice(0, 3)).toEqual(["call-1", { a: 1 }, context.signal]);
    expect(result).toEqual({
      content: [{ type: "text", text: "x", extra: 1 }],
      details: { n: 1 },
      structuredContent: { a: 2 },
    });
  });

  it("gives the tool its own copy of the arguments", async () => {
    const args = { list: [{ n: 1 }] };
    const source = sourceOf(
      tool("t", {
        async execute(_id, params) {
          (params as typeof args).list.push({ n: 2 });
          return { content: [] };
        },
      }),
    );
    await source.run(use("t", args), useContext());
    expect(args).toEqual({ list: [{ n: 1 }] });
    await expect(source.run(use("t", { f: () => 1 }), useContext())).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });

  it("runs the tool that a factory made for the caller's session", async () => {
    const registry = new ToolRegistry();
    registry.registerFactory(({ sessionId, role }) =>
      role === "guest"
        ? null
        : tool("who", { execute: async () => ({ content: [{ type: "text", text: `${sessionId}` }] }) }),
    );
    const source = registry.source();
    const result = await source.run(use("who"), useContext({ session: session({ id: "s7" }) }));
    expect(result).toEqual({ content: [{ type: "text", text: "s7" }] });
    const guest = useContext({ session: session({ id: "s8", role: "guest" }) });
    await expect(source.run(use("who"), guest)).rejects.toMatchObject({ code: "not_found" });
  });

  it("knows no unknown tool, no mirrored tool, and nothing but tools", async () => {
    const registry = new ToolRegistry();
    registry.register(tool("mirrored"), { origin: "mcp" });
    const source = registry.source();
    for (const one of [use("nothing"), use("mirrored"), { kind: "resource", uri: "a:b" } as const]) {
      await expect(source.run(one, useContext())).rejects.toMatchObject({ code: "not_found" });
    }
  });

  it("keeps tools for the owner from others", async () => {
    const source = sourceOf(tool("t", { ownerOnly: true }));
    const stranger = useContext({ session: session({ owner: false }) });
    await expect(source.run(use("t"), stranger)).rejects.toMatchObject({ code: "denied" });
    await expect(source.run(use("t"), useContext())).resolves.toBeDefined();
  });

  it("[spine-11c] turns updates into growing progress, and drops those after the end", async () => {
    const progress: Progress[] = [];
    let late = (): void => {};
    const source = sourceOf(
      tool("t", {
        async execute(_id, _params, _signal, onUpdate) {
          onUpdate?.({
            content: [
              { type: "text", text: "half" },
              { type: "image", data: "" },
            ],
          });
          onUpdate?.({ content: [] });
          late = () => onUpdate?.({ content: [{ type: "text", text: "late" }] });
          return { content: [] };
        },
      }),
    );
    await source.run(use("t"), useContext({ onProgress: (report) => progress.push(report) }));
    late();
    expect(progress).toEqual([{ progress: 1, message: "half" }, { progress: 2 }]);
  });
});

describe("failing", () => {
  class ForeignInputError extends Error {
    override readonly name = "ToolInputError";
  }
  class ForeignAuthorizationError extends Error {
    override readonly name = "ToolAuthorizationError";
  }

  it.each<[string, unknown, string]>([
    ["ToolInputError", new ToolInputError("what?"), "invalid_arguments"],
    ["ToolInputError of another copy", new ForeignInputError("what?"), "invalid_arguments"],
    ["ToolAuthorizationError", new ToolAuthorizationError("what?"), "denied"],
    ["ToolAuthorizationError of another copy", new ForeignAuthorizationError("what?"), "denied"],
  ])("[spine-15c] %s becomes its code", async (_case, error, code) => {
    const running = sourceOf(ending(() => Promise.reject(error))).run(use("t"), useContext());
    await expect(running).rejects.toMatchObject({ code, message: "what?" });
    await expect(running).rejects.toBeInstanceOf(ToolcribError);
  });

  it.each<[string, () => unknown, RegExp]>([
    ["rejects", () => Promise.reject(new Error("disk full")), /^disk full$/],
    [
      "throws at once",
      () => {
        throw new TypeError("x is not a function");
      },
      /^x is not a function$/,
    ],
    ["throws a string", () => Promise.reject("plain"), /^plain$/],
    ["throws an error without a message", () => Promise.reject(new Error("")), /"t" failed without/],
    ["throws one of our errors", () => Promise.reject(new ToolcribError("not_found", "inner")), /^inner$/],
    ["returns a number", () => 7, /"t" returned something that is not a result/],
    ["returns an object without content", () => ({ ok: true }), /"t" returned something/],
    [
      "returns a block without a type",
      () => ({ content: [{ text: "x" }] }),
      /"t" returned a content block without a type/,
    ],
  ])("[spine-15c] a tool that %s gives an error result", async (_case, execute, text) => {
    const result = await sourceOf(ending(execute)).run(use("t"), useContext());
    expect(result).toEqual({ content: [{ type: "text", text: expect.stringMatching(text) }], isError: true });
  });

  it.each<[string, unknown, unknown]>([
    ["a string", "hello", { content: [{ type: "text", text: "hello" }] }],
    ["nothing", undefined, { content: [] }],
    ["strings as content", { content: ["a"] }, { content: [{ type: "text", text: "a" }] }],
    ["isError", { content: [], isError: true }, { content: [], isError: true }],
    ["an odd isError", { content: [], isError: 0 }, { content: [] }],
  ])("takes %s as a result", async (_case, returned, expected) => {
    expect(await sourceOf(ending(() => returned)).run(use("t"), useContext())).toEqual(expected);
  });
});

describe("giving up", () => {
  it("does not start when the signal has aborted", async () => {
    let started = false;
    const source = sourceOf(ending(() => (started = true)));
    await expect(source.run(use("t"), useContext({ signal: AbortSignal.abort() }))).rejects.toMatchObject({
      code: "cancelled",
    });
    expect(started).toBe(false);
  });

  it("settles at once for a tool that ignores the signal, whose later failure goes unheard", async () => {
    const unheard: unknown[] = [];
    const listener = (reason: unknown): number => unheard.push(reason);
    process.on("unhandledRejection", listener);
    const stuck = Promise.withResolvers<never>();
    const abort = new AbortController();
    const running = sourceOf(ending(() => stuck.promise)).run(use("t"), useContext({ signal: abort.signal }));
    abort.abort();
    await expect(running).rejects.toMatchObject({ code: "cancelled", message: expect.stringContaining('"t"') });
    stuck.reject(new Error("too late"));
    await new Promise((done) => setImmediate(done));
    process.off("unhandledRejection", listener);
    expect(unheard).toEqual([]);
  });

  it("is cancelled, not failed, when the tool stops because of the signal", async () => {
    const abort = new AbortController();
    const source = sourceOf(
      tool("t", {
        execute(_id, _params, signal) {
          abort.abort();
          signal?.throwIfAborted();
          return Promise.resolve({ content: [] });
        },
      }),
    );
    await expect(source.run(use("t"), useContext({ signal: abort.signal }))).rejects.toMatchObject({
      code: "cancelled",
    });
  });

  it("gives the reason of whoever aborted, if it is one of our errors", async () => {
    const abort = new AbortController();
    const running = sourceOf(ending(() => new Promise(() => {}))).run(use("t"), useContext({ signal: abort.signal }));
    abort.abort(new ToolcribError("timeout", "No answer in 60 s."));
    await expect(running).rejects.toMatchObject({ code: "timeout", message: "No answer in 60 s." });
  });

  it("[spine-11d] leaves no listener on a signal that many calls share", async () => {
    const { signal } = new AbortController();
    const source = sourceOf(tool("t"));
    for (let batch = 0; batch < 10; batch += 1) {
      await Promise.all(Array.from({ length: 100 }, () => source.run(use("t"), useContext({ signal }))));
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});
