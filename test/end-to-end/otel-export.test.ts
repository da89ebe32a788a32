/** OTLP export by the `OTEL_*` variables: real hubs, real clients, an endpoint that reads protobuf and JSON. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import { OtlpReceiver, type ReceivedSpan, SPAN_CLIENT, SPAN_SERVER, STATUS_ERROR } from "../doubles/otlp-receiver.ts";
import { startEverything } from "../support/everything-http.ts";
import { CODE, MAIN } from "../support/main-program.ts";
import { type Run, runProgram } from "../support/run-program.ts";
import { configure, env, home, httpClient, useSharedHome } from "../support/shared-hub.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const META = { traceparent: `00-${TRACE}-${PARENT}-01` };
const BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

useSharedHome();

/** A server whose tool `echo` says which `_meta` it got, and `fail` and `refuse` do so. */
function scripted(): object {
  const tools = ["echo", "fail", "refuse"].map((name) => ({ name, inputSchema: { type: "object" } }));
  const results = {
    echo: { content: [], __meta: true },
    fail: { content: [], isError: true },
    refuse: { __error: { code: -32042, message: "no" } },
  };
  const script = join(home, "script.json");
  writeFileSync(script, JSON.stringify({ tools, results }));
  return { command: process.execPath, args: [resolve(import.meta.dirname, "../fixtures/scripted-server.mjs"), script] };
}

interface Served {
  readonly url: string;
  readonly said: () => string;
  /** As an operator stops it: everything that waits is sent first. */
  stop(): Promise<void>;
}

async function serve(variables: Record<string, string>): Promise<Served> {
  const child = spawn(process.execPath, [MAIN, "serve", "--port", "0", "--log-format", "json"], {
    env: { ...env, ...variables },
    cwd: home,
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  const listening = new Promise<string>((done, fail) => {
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const line = said.split("\n").find((each) => each.includes('"listening"'));
      if (line !== undefined) done(new URL((JSON.parse(line) as { page: string }).page).origin);
    });
    child.once("exit", () => fail(new Error(`serve ended: ${said}`)));
  });
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return {
    url: await listening,
    said: () => said,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

async function receivedMeta(client: Client, name: string): Promise<Record<string, unknown>> {
  const { structuredContent } = await client.callTool({ name, arguments: { secret: "4711-argument" }, _meta: META });
  return (structuredContent as { meta: Record<string, unknown> }).meta;
}

function only(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.filter((span) => span.name === name);
  expect(found, name).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

describe("[joy-18d] serve with OTEL_EXPORTER_OTLP_ENDPOINT", () => {
  it.each([["http/protobuf"], ["http/json"]])("exports spans and durations of calls as %s", async (protocol) => {
    const receiver = await OtlpReceiver.start();
    await using remote = await startEverything("streamableHttp");
    configure({ mcpServers: { up: scripted(), far: { url: remote.url } } });
    const hub = await serve({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20otlp-secret-71",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    const client = await httpClient(hub.url);
    const meta = await receivedMeta(client, "up__echo");
    await client.callTool({ name: "far__get-sum", arguments: { a: 2, b: 3 } });
    await client.callTool({ name: "up__fail", arguments: {} });
    await expect(client.callTool({ name: "up__refuse", arguments: {} })).rejects.toThrow("-32042");
    await expect(client.callTool({ name: "made__up", arguments: {} })).rejects.toThrow("made__up");
    await client.close();
    await hub.stop();

    const type = protocol === "http/json" ? "application/json" : "application/x-protobuf";
    for (const { headers } of receiver.requests) {
      expect(headers).toMatchObject({ "content-type": type, authorization: "Bearer otlp-secret-71" });
    }
    const { spans, points } = receiver;
    const served = only(spans, "tools/call up__echo");
    expect(served).toMatchObject({
      kind: SPAN_SERVER,
      traceId: TRACE,
      parentSpanId: PARENT,
      statusCode: 0,
      scope: "toolcrib",
      attributes: {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "up__echo",
        "mcp.protocol.version": "2025-11-25",
        "mcp.session.id": expect.any(String),
        "jsonrpc.request.id": expect.stringMatching(/^\d+$/),
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "toolcrib.client": "web 1",
        "toolcrib.server": "up",
      },
      resource: { "service.name": "toolcrib", "deployment.environment.name": "test" },
    });
    expect(Object.keys(served.resource).filter((key) => key.startsWith("process."))).toEqual([]);
    const sent = only(spans, "tools/call echo");
    expect(sent).toMatchObject({
      kind: SPAN_CLIENT,
      traceId: TRACE,
      parentSpanId: served.spanId,
      attributes: {
        "gen_ai.tool.name": "echo",
        "network.transport": "pipe",
        // The one that this server speaks.
        "mcp.protocol.version": "2025-06-18",
        "jsonrpc.request.id": expect.stringMatching(/^\d+$/),
        "toolcrib.server": "up",
      },
    });
    expect(meta["traceparent"]).toBe(`00-${TRACE}-${sent.spanId}-01`);
    expect(only(spans, "tools/call get-sum").attributes).toMatchObject({
      "network.transport": "tcp",
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(remote.url).port),
    });
    for (const name of ["tools/call up__fail", "tools/call fail"]) {
      expect(only(spans, name)).toMatchObject({ statusCode: STATUS_ERROR, attributes: { "error.type": "tool_error" } });
    }
    for (const name of ["tools/call up__refuse", "tools/call refuse"]) {
      expect(only(spans, name)).toMatchObject({
        statusCode: STATUS_ERROR,
        attributes: { "error.type": "-32042", "rpc.response.status_code": "-32042" },
      });
    }

    const durations = (metric: string): object =>
      Object.fromEntries(
        points
          .filter((point) => point.metric === metric)
          .map(({ attributes, count }) => [
            `${String(attributes["gen_ai.tool.name"])} ${String(attributes["error.type"])}`,
            count,
          ]),
      );
    expect(durations("mcp.server.operation.duration")).toEqual({
      "up__echo undefined": 1,
      "far__get-sum undefined": 1,
      "up__fail tool_error": 1,
      "up__refuse -32042": 1,
      // The name was the caller's own.
      "undefined -32602": 1,
    });
    expect(durations("mcp.client.operation.duration")).toEqual({
      "echo undefined": 1,
      "get-sum undefined": 1,
      "fail tool_error": 1,
      "refuse -32042": 1,
    });
    for (const { unit, bounds, sum } of points) {
      expect({ unit, bounds }).toEqual({ unit: "s", bounds: BOUNDS });
      expect(sum).toBeGreaterThan(0);
    }
    const whole = receiver.requests.map(({ body }) => body.toString("latin1")).join("");
    expect(whole).not.toContain("4711-argument");
    expect(whole).not.toContain("otlp-secret-71");
    expect(hub.said()).not.toContain("otlp-secret-71");
  });

  it.each([
    ["OTEL_TRACES_EXPORTER=none", { OTEL_TRACES_EXPORTER: "none" }, ["/v1/metrics"]],
    ["OTEL_METRICS_EXPORTER=none", { OTEL_METRICS_EXPORTER: "none" }, ["/v1/traces"]],
    ["OTEL_TRACES_SAMPLER=always_off", { OTEL_TRACES_SAMPLER: "always_off" }, ["/v1/metrics"]],
    ["OTEL_SDK_DISABLED=true", { OTEL_SDK_DISABLED: "true" }, []],
  ])("leaves to the SDK what is exported: %s", async (_title, variables, paths) => {
    const receiver = await OtlpReceiver.start();
    configure({ mcpServers: { up: scripted() } });
    const hub = await serve({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_SERVICE_NAME: "my-hub",
      ...variables,
    });
    const client = await httpClient(hub.url);
    const { structuredContent } = await client.callTool({ name: "up__echo", arguments: {} });
    expect(structuredContent).toBeDefined();
    await client.close();
    await hub.stop();
    expect([...new Set(receiver.requests.map(({ path }) => path))]).toEqual(paths);
    const resources = [...receiver.spans, ...receiver.points].map(({ resource }) => resource["service.name"]);
    expect(new Set(resources)).toEqual(new Set(paths.length === 0 ? [] : ["my-hub"]));
  });

  it("with an endpoint for traces alone exports traces alone", async () => {
    const receiver = await OtlpReceiver.start();
    configure({ mcpServers: { up: scripted() } });
    const hub = await serve({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/mine/v1/traces` });
    const client = await httpClient(hub.url);
    await client.callTool({ name: "up__echo", arguments: {} });
    await client.close();
    await hub.stop();
    expect(receiver.requests.map(({ path }) => path)).toEqual(["/mine/v1/traces"]);
    expect(hub.said()).not.toContain("could not be exported");
  });

  it("ends in time when the endpoint takes nothing, and says so", async () => {
    const receiver = await OtlpReceiver.start();
    receiver.isStuck = true;
    configure({ mcpServers: { up: scripted() } });
    const hub = await serve({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    const client = await httpClient(hub.url);
    await client.callTool({ name: "up__echo", arguments: {} });
    await client.close();
    // The SDK alone would wait for 10 seconds and more; without a bound the test runs out of time.
    await hub.stop();
    expect(receiver.requests.length).toBeGreaterThan(0);
    expect(hub.said()).toContain("The last traces and metrics may be lost");
  });

  it("says once that exports fail, and serves on", async () => {
    const receiver = await OtlpReceiver.start();
    receiver.status = 401;
    configure({ mcpServers: { up: scripted() } });
    const hub = await serve({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=otlp-secret-72",
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_METRIC_EXPORT_INTERVAL: "50",
      OTEL_METRIC_EXPORT_TIMEOUT: "50",
    });
    const client = await httpClient(hub.url);
    await client.callTool({ name: "up__echo", arguments: {} });
    await expect.poll(() => receiver.requests.length).toBeGreaterThan(3);
    await expect.poll(hub.said).toContain("Traces or metrics could not be exported");
    await client.callTool({ name: "up__echo", arguments: {} });
    await client.close();
    await hub.stop();
    expect(hub.said().match(/could not be exported/g)).toHaveLength(1);
    expect(hub.said()).not.toContain("otlp-secret-72");
    expect(hub.said()).not.toMatch(/\bat .*\.m?js:\d+/);
  });
});

describe("[joy-18d] other hubs", () => {
  it("over stdio: nothing but the protocol is on stdout, whatever OTEL_LOG_LEVEL says", async () => {
    const receiver = await OtlpReceiver.start();
    configure({ mcpServers: { up: scripted() } });
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_LOG_LEVEL: "verbose" };
    const child = spawn(process.execPath, [MAIN, "mcp", "--standalone"], { env: { ...env, ...variables }, cwd: home });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    let logged = "";
    child.stderr.on("data", (chunk: Buffer) => (logged += chunk.toString()));
    const send = (message: object): void =>
      void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const clientInfo = { name: "raw", version: "1" };
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo } });
    send({ method: "notifications/initialized" });
    send({ id: "two", method: "tools/call", params: { name: "up__echo", arguments: {}, _meta: META } });
    await expect.poll(() => said).toContain('"id":"two"');
    const gone = once(child, "exit");
    child.stdin.end();
    await gone;
    const messages = said
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id?: unknown; result?: { structuredContent?: unknown } });
    expect(logged).toContain("opentelemetry: ");
    expect(receiver.spans).toHaveLength(2);
    expect(only(receiver.spans, "tools/call up__echo").attributes).toMatchObject({
      "network.transport": "pipe",
      "mcp.protocol.version": "2025-03-26",
      "jsonrpc.request.id": "two",
    });
    expect(messages.find(({ id }) => id === "two")?.result?.structuredContent).toMatchObject({
      meta: { traceparent: `00-${TRACE}-${only(receiver.spans, "tools/call echo").spanId}-01` },
    });
  });

  it("a single command sends its span before it ends", async () => {
    const receiver = await OtlpReceiver.start();
    configure({ mcpServers: { up: scripted() } });
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
    const { code } = await runProgram(process.execPath, [MAIN, "call", "up__echo", "--standalone"], {
      env: { ...env, ...variables },
      cwd: home,
    });
    expect(code).toBe(0);
    expect(receiver.spans.map(({ name }) => name).toSorted()).toEqual(["tools/call echo", "tools/call up__echo"]);
  });

  it("of the library export only if asked to", async () => {
    const receiver = await OtlpReceiver.start();
    const before = process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url;
    onTestFinished(() => {
      if (before === undefined) delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
      else process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = before;
    });
    for (const otelExport of [false, true]) {
      const hub = await createHub({ mcpServers: { up: scripted() } }, { home, otelExport });
      await hub.call({ name: "up__echo", arguments: {} });
      await hub.close();
      expect(receiver.spans.length).toBe(otelExport ? 2 : 0);
    }
    expect(Reflect.get(globalThis, Symbol.for("opentelemetry.js.api.1"))).not.toHaveProperty("trace");
    expect(process.env["OTEL_SERVICE_NAME"]).toBeUndefined();
  });

  it("without the package it warns with the command that installs it", async () => {
    // The program with the packages that it depends on, in a folder where nothing else is installed.
    const root = dirname(CODE);
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object };
    cpSync(CODE, join(home, basename(CODE)), { recursive: true });
    cpSync(join(root, "package.json"), join(home, "package.json"));
    for (const name of Object.keys(manifest.dependencies)) {
      const link = join(home, "node_modules", name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(root, "node_modules", name), link);
    }
    configure({ mcpServers: { up: scripted() } });
    const main = join(home, basename(CODE), "cli", basename(MAIN));
    const call = (variables: Record<string, string>): Promise<Run> =>
      runProgram(process.execPath, [main, "call", "up__echo", "--standalone"], {
        env: { ...env, ...variables },
        cwd: home,
      });
    const called = await call({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
    expect(called.code).toBe(0);
    expect(called.stderr).toContain("Traces and metrics are not exported");
    expect(called.stderr).toContain("npm install @opentelemetry/sdk-node");
    expect((await call({})).stderr).not.toContain("opentelemetry");
  });
});
