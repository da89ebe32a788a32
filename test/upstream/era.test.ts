import { mkdtemp, readFile, writeFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { Era } from "../../src/model/protocol.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import type { TransportKind } from "../../src/model/server-state.ts";
import { eraKey, FileEraMemory, InMemoryEras } from "../../src/upstream/era-memory.ts";
import { bench, specOf } from "../support/connection-bench.ts";
import { FakeWire, type Handlers, legacyHandlers, modernHandlers, RpcFailure } from "../support/fake-wire.ts";

const STDIO: ServerEntryInput = { command: "server" };
const HTTP: ServerEntryInput = { url: "https://example.com/mcp", transport: "http" };
const ANY_URL: ServerEntryInput = { url: "https://example.com/mcp" };

function status(code: number, rpc?: { code: number; message: string; data?: unknown }): ToolcribError {
  const kind = code === 401 || code === 403 ? "unauthorized" : "server_unavailable";
  return new ToolcribError(kind, `HTTP ${code}`, { details: { status: code, ...(rpc && { rpc }) } });
}

/** Every request of an HTTP wire ends in this status. */
const refusing = (error: ToolcribError): Handlers => ({
  initialize: () => Promise.reject(error),
  "server/discover": () => Promise.reject(error),
});

/** Connects with one set of handlers per wire that is opened, in order or by transport. */
async function connect(
  entry: ServerEntryInput,
  servers: readonly Handlers[] | Partial<Record<TransportKind, Handlers>>,
  remembered?: Era,
) {
  const eras = new InMemoryEras();
  if (remembered !== undefined) await eras.set(eraKey(specOf(entry)), remembered);
  const wires: FakeWire[] = [];
  const made = bench(entry, {
    eras,
    openWire: (kind) => {
      const handlers = Array.isArray(servers)
        ? servers[wires.length]
        : (servers as Partial<Record<TransportKind, Handlers>>)[kind];
      const wire = new FakeWire(kind, handlers ?? {});
      wires.push(wire);
      return wire;
    },
  });
  await made.connection.connect();
  const era = await eras.get(eraKey(specOf(entry)));
  return {
    ...made,
    wires,
    era,
    asked: wires.map((wire) => wire.methods().filter((method) => !method.endsWith("/list"))),
  };
}

describe("stdio", () => {
  it("begins with initialize and remembers legacy", async () => {
    const { connection, wires, era, asked } = await connect(STDIO, [legacyHandlers()]);
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["initialize", "notifications/initialized"]]);
    expect(wires[0]?.params("initialize")).toMatchObject({
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "toolcrib" },
    });
    expect(wires[0]?.agreements).toEqual([{ era: "legacy", version: "2025-11-25" }]);
    expect(era).toBe("legacy");
    expect(connection.info()).toMatchObject({ era: "legacy", serverVersion: "1.2.3" });
    expect(connection.instructions()).toBe("Be kind.");
  });

  it("asks a server that refuses initialize for the modern era, in the same process", async () => {
    const { connection, asked, era } = await connect(STDIO, [modernHandlers()]);
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["initialize", "server/discover"]]);
    expect(era).toBe("modern");
    expect(connection.info()).toMatchObject({ era: "modern", serverVersion: "4.5.6" });
  });

  it("[spine-07b] begins with what is remembered", async () => {
    const { asked, wires } = await connect(STDIO, [modernHandlers()], "modern");
    expect(asked).toEqual([["server/discover"]]);
    expect(wires[0]?.params("tools/list")["_meta"]).toMatchObject({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "toolcrib", version: "0.0.0-test" },
      "io.modelcontextprotocol/clientCapabilities": {},
    });
  });

  it("[spine-07b] corrects a memory that no longer holds", async () => {
    const { connection, asked, era } = await connect(STDIO, [legacyHandlers()], "modern");
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["server/discover", "initialize", "notifications/initialized"]]);
    expect(era).toBe("legacy");
  });

  it("starts a new process if the old one died of the remembered probe", async () => {
    const dying: Handlers = { "server/discover": (_params, { wire }) => wire.lose("exited with code 1") };
    const { connection, asked } = await connect(STDIO, [dying, legacyHandlers()], "modern");
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["server/discover"], ["initialize", "notifications/initialized"]]);
  });

  it("gives the new process time too if getting ready took long", async () => {
    const eras = new InMemoryEras();
    await eras.set(eraKey(specOf(STDIO)), "modern");
    const dying: Handlers = { "server/discover": (_params, { wire }) => wire.lose("exited with code 1") };
    let opened = 0;
    const { connection, clock } = bench(STDIO, {
      eras,
      openWire: (kind) => {
        const wire = new FakeWire(kind, opened++ === 0 ? dying : legacyHandlers());
        const open = async (signal: AbortSignal): Promise<void> => {
          await clock.advance(1);
          signal.throwIfAborted();
        };
        const makeReady = (): Promise<void> => (opened === 1 ? clock.advance(3_600_000) : Promise.resolve());
        return Object.assign(wire, { open, makeReady });
      },
    });
    await connection.connect();
    expect(connection.info().lastError).toBeNull();
    expect(opened).toBe(2);
  });

  it("remembers nothing of a server that exits", async () => {
    const dying: Handlers = { initialize: (_params, { wire }) => wire.lose("exited with code 3") };
    const { connection, era } = await connect({ ...STDIO, restart: false }, [dying]);
    expect(connection.state).toMatchObject({ kind: "failed", reason: "exited with code 3" });
    expect(era).toBeUndefined();
  });

  it.each(["2025-06-18", "2025-03-26", "2024-11-05"])("accepts the older version %s", async (version) => {
    const initialize = () => ({
      protocolVersion: version,
      capabilities: {},
      serverInfo: { name: "old", version: "0" },
    });
    const { connection, wires } = await connect(STDIO, [{ initialize }]);
    expect(connection.state.kind).toBe("ready");
    expect(wires[0]?.agreements).toEqual([{ era: "legacy", version }]);
  });

  it("refuses a version that nobody knows, and says which ones it knows", async () => {
    const initialize = () => ({ protocolVersion: "1999-01-01", capabilities: {} });
    const { connection, wires } = await connect(STDIO, [{ initialize }]);
    expect(connection.state).toMatchObject({ kind: "failed", reason: expect.stringMatching(/1999-01-01.*2025-11-25/) });
    expect(wires[0]?.closed).toBe(true);
  });
});

describe("http", () => {
  it("begins with a modern probe", async () => {
    const { asked, era } = await connect(HTTP, [modernHandlers()]);
    expect(asked).toEqual([["server/discover"]]);
    expect(era).toBe("modern");
  });

  it.each([
    ["an unknown method", new RpcFailure(-32601, "no")],
    ["bad params", new RpcFailure(-32602, "no")],
    ["400 without a body", status(400)],
    ["400 about a missing session", status(400, { code: -32000, message: "Server not initialized" })],
    ["404", status(404)],
    ["500", status(500)],
  ])("falls back to initialize after %s", async (_name, error) => {
    const server = legacyHandlers({ handlers: { "server/discover": () => Promise.reject(error) } });
    const { connection, asked, era } = await connect(HTTP, [server]);
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["server/discover", "initialize", "notifications/initialized"]]);
    expect(era).toBe("legacy");
  });

  it("does not fall back from a modern error", async () => {
    const error = status(400, { code: -32020, message: "Header mismatch" });
    const { connection, asked } = await connect(ANY_URL, { http: refusing(error) });
    expect(asked).toEqual([["server/discover"]]);
    expect(connection.state).toMatchObject({ kind: "failed", reason: expect.stringContaining("Header mismatch") });
  });

  it("follows the versions that a modern refusal lists", async () => {
    const data = { supported: ["2025-11-25"], requested: "2026-07-28" };
    const refusal = status(400, { code: -32022, message: "Unsupported protocol version", data });
    const server = legacyHandlers({ handlers: { "server/discover": () => Promise.reject(refusal) } });
    const { connection } = await connect(HTTP, [server]);
    expect(connection.info().era).toBe("legacy");
    const none = status(400, { code: -32022, message: "no", data: { supported: ["2031-01-01"] } });
    const failed = await connect(HTTP, [{ "server/discover": () => Promise.reject(none) }]);
    expect(failed.connection.state).toMatchObject({ kind: "failed", reason: expect.stringContaining("2031-01-01") });
  });

  it.each([{}, { supportedVersions: [] }, { ok: true }])(
    "takes %o as an answer to the probe for that of a legacy server",
    async (answer) => {
      const { connection, asked } = await connect(HTTP, [{ ...legacyHandlers(), "server/discover": () => answer }]);
      expect(connection.state.kind).toBe("ready");
      expect(asked).toEqual([["server/discover", "initialize", "notifications/initialized"]]);
    },
  );

  it("asks once more if the refusal lists the very version that was asked for", async () => {
    let refused = 0;
    const modern = modernHandlers();
    const handlers: Handlers = {
      ...modern,
      "server/discover": (...args) => {
        if (refused++ > 0) return modern["server/discover"]?.(...args) ?? {};
        throw new RpcFailure(-32022, "unsupported", { supported: ["2026-07-28"] });
      },
    };
    const { connection, asked } = await connect(HTTP, [handlers]);
    expect(connection.state.kind).toBe("ready");
    expect(asked).toEqual([["server/discover", "server/discover"]]);
  });

  it("gives an unanswered probe only a part of the time", async () => {
    const eras = new InMemoryEras();
    const wire = new FakeWire("http", legacyHandlers({ handlers: { "server/discover": () => undefined } }));
    const { connection, clock } = bench({ ...HTTP, timeout: 8000 }, { eras, openWire: () => wire });
    const done = connection.connect();
    await clock.advance(4000);
    await done;
    expect(connection.state.kind).toBe("ready");
  });

  it.each([401, 403])("reports %i and tries nothing else", async (code) => {
    const { connection, asked } = await connect(ANY_URL, { http: refusing(status(code)), sse: legacyHandlers() });
    expect(asked).toEqual([["server/discover"]]);
    expect(connection.state).toMatchObject({
      kind: "failed",
      reason: `HTTP ${code}`,
      hint: expect.stringContaining("auth"),
    });
  });
});

describe("a url without a transport", () => {
  it.each([400, 404, 405])("[spine-07c] falls back to SSE after %i", async (code) => {
    const { connection, wires } = await connect(ANY_URL, { http: refusing(status(code)), sse: legacyHandlers() });
    expect(wires.map(({ transport }) => transport)).toEqual(["http", "sse"]);
    expect(wires[0]?.closed).toBe(true);
    expect(connection.info()).toMatchObject({ state: "ready", transport: "sse", era: "legacy" });
  });

  it("[spine-07c] stays with Streamable HTTP if the refusal is a modern one", async () => {
    const error = status(404, { code: -32601, message: "Method not found" });
    const { wires } = await connect(ANY_URL, { http: refusing(error), sse: legacyHandlers() });
    expect(wires.map(({ transport }) => transport)).toEqual(["http"]);
  });

  it("does not try SSE where the transport is given", async () => {
    const { connection, wires } = await connect(HTTP, { http: refusing(status(404)), sse: legacyHandlers() });
    expect(wires).toHaveLength(1);
    expect(connection.state.kind).toBe("failed");
  });

  it("tells the first reason if SSE fails too", async () => {
    const { connection } = await connect(ANY_URL, { http: refusing(status(404)), sse: refusing(status(405)) });
    expect(connection.state).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(/HTTP 404.*SSE was tried too/),
    });
  });
});

describe("what is offered to servers", () => {
  it("is only what somebody answers", async () => {
    const wire = new FakeWire("stdio", legacyHandlers());
    const offers = { roots: { listChanged: true }, sampling: {}, "x-future": {} };
    await bench(STDIO, { offers, openWire: () => wire }).connection.connect();
    expect(wire.params("initialize")["capabilities"]).toEqual({
      roots: { listChanged: true },
      sampling: {},
      "x-future": {},
    });
  });
});

describe("FileEraMemory", () => {
  it("[spine-07b] keeps eras across processes and merges with what others wrote", async () => {
    const file = join(await mkdtemp(join(tmpdir(), "eras-")), "cache", "eras.json");
    const [one, two] = [new FileEraMemory(file), new FileEraMemory(file)];
    await one.set("a", "modern");
    await two.set("b", "legacy");
    expect(await new FileEraMemory(file).get("a")).toBe("modern");
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ a: "modern", b: "legacy" });
  });

  it("[speed-05d] writes those of servers that start together in few writes, and loses none", async () => {
    const folder = await mkdtemp(join(tmpdir(), "eras-"));
    const memory = new FileEraMemory(join(folder, "eras.json"));
    const keys = Array.from({ length: 30 }, (_, index) => `key ${index}`);
    const files = new Set<number>();
    const set = async (key: string): Promise<void> => {
      await memory.set(key, "legacy");
      // A file that takes the place of another has a number of its own.
      files.add((await stat(join(folder, "eras.json"))).ino);
      expect(JSON.parse(await readFile(join(folder, "eras.json"), "utf8"))).toHaveProperty([key], "legacy");
    };
    await Promise.all(keys.map(set));
    expect(files.size).toBeLessThan(4);
    expect(await Promise.all(keys.map((key) => memory.get(key)))).toEqual(keys.map(() => "legacy"));
  });

  it("takes a broken file for an empty one and mends it", async () => {
    const file = join(await mkdtemp(join(tmpdir(), "eras-")), "eras.json");
    await writeFile(file, "{ not json");
    const memory = new FileEraMemory(file);
    expect(await memory.get("a")).toBeUndefined();
    await memory.set("a", "legacy");
    expect(await memory.get("a")).toBe("legacy");
  });

  it("never rejects when it cannot write", async () => {
    const memory = new FileEraMemory("/dev/null/eras.json");
    await expect(memory.set("a", "legacy")).resolves.toBeUndefined();
  });

  it("has keys without resolved secrets, one per server", () => {
    const key = (entry: ServerEntryInput): string => eraKey(specOf(entry));
    expect(key({ command: "a", env: { TOKEN: "1" } })).toBe(key({ command: "a", env: { TOKEN: "2" } }));
    expect(key({ command: "a" })).not.toBe(key({ command: "a", args: ["b"] }));
    expect(key(HTTP)).not.toBe(key(ANY_URL));
  });
});
