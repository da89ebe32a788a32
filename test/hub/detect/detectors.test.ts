import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { Detectors as DetectorsOfHub } from "../../../src/hub/detect/detectors.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { type ConfigInput, ConfigSchema } from "../../../src/model/config.ts";
import type { Outcome } from "../../../src/model/errors.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { eventually } from "../../support/eventually.ts";
import { isMissing } from "../../support/skips.ts";
import { findOnnxRuntime, modelWith, tokenizerOf } from "./onnx-model.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-detectors-"));
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** No rule of the guard matches it. */
const PAYLOAD = "The zebra crosses at noon, as the tall giraffes like it.";
const HONEST = "The weather in Lisbon is fine today, with some wind.";

type Detectors = NonNullable<Extract<ConfigInput["guard"], object>["detectors"]>;

let files = 0;

function write(name: string, content: string | Buffer | object): string {
  const path = join(dir, `${(files += 1)}-${name}`);
  writeFileSync(path, typeof content === "string" || Buffer.isBuffer(content) ? content : JSON.stringify(content));
  return path;
}

async function start(script: JsonObject, detectors: Detectors, guard: JsonObject = {}): Promise<Hub> {
  const tools = Object.keys(script["results"] ?? {}).map((name) => ({ name, inputSchema: { type: "object" } }));
  const file = write("script.json", { tools, ...script });
  const args = [resolve(import.meta.dirname, "../../fixtures/scripted-server.mjs"), file];
  const hub = await createHub({
    // Far above what any needs, so that a busy machine fails no test.
    guard: { onSuspicious: "block", ...guard, detectors: detectors.map((each) => ({ timeoutMs: 30_000, ...each })) },
    mcpServers: { web: { command: process.execPath, args } },
  });
  closing.push(() => hub.close());
  return hub;
}

const said = (text: string): JsonObject => ({ content: [{ type: "text", text }] });
const RESULTS = { results: { hostile: said(PAYLOAD), honest: said(HONEST) } };

async function call(hub: Hub, tool: string): Promise<string> {
  return codeOf(await hub.call({ name: `web__${tool}` }));
}

function codeOf(outcome: Outcome): string {
  return outcome.ok ? "ok" : outcome.error.code;
}

/** A function that finds zebras, and counts the texts that it was given. */
function zebraModule(body = "return texts.map((text) => (text.includes('zebra') ? 0.97 : 0.02));"): string {
  return write(
    "detector.mjs",
    `export const seen = [];\nexport default async (texts, { place, signal }) => {\n  seen.push(...texts.map((text) => [place, text]));\n  ${body}\n};\n`,
  );
}

const seenBy = async (path: string): Promise<[place: string, text: string][]> =>
  ((await import(path)) as { seen: [string, string][] }).seen;

interface Service {
  readonly url: string;
  readonly requests: { readonly authorization: string | undefined; readonly body: JsonObject }[];
}

async function startService(answer: (body: JsonObject, request: IncomingMessage) => unknown): Promise<Service> {
  const requests: Service["requests"] = [];
  const server = createServer((request, response) => {
    void readAll(request).then(async (sent) => {
      const body = JSON.parse(sent) as JsonObject;
      requests.push({ authorization: request.headers.authorization, body });
      const given = await answer(body, request);
      if (typeof given === "number") response.writeHead(given).end("out of order");
      else response.setHeader("content-type", "application/json").end(JSON.stringify(given));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/classify`, requests };
}

const zebraService = (body: JsonObject): JsonObject => ({
  results: (body["texts"] as string[]).map((text) => ({ score: text.includes("zebra") ? 0.9 : 0.1 })),
});

describe("[detect-06a] a function of the config", () => {
  it("judges results with the built-in rules, once for each text", async () => {
    const path = zebraModule();
    const hub = await start(RESULTS, [{ type: "module", path, name: "zoo" }]);
    expect(await call(hub, "hostile")).toBe("blocked");
    expect(await call(hub, "hostile")).toBe("blocked");
    expect(await call(hub, "honest")).toBe("ok");
    expect(await seenBy(path)).toEqual([
      ["result", PAYLOAD],
      ["result", HONEST],
    ]);
  });

  it("names kind, place, score and part, which the record and the mark have too", async () => {
    const body = `return texts.map((text) => {
      const start = text.indexOf("zebra");
      return start < 0 ? null : [{ score: 0.85, kind: "concealment", start, end: start + 5 }];
    });`;
    const hub = await start(RESULTS, [{ type: "module", path: zebraModule(body) }], { onSuspicious: "redact" });
    const events: unknown[] = [];
    hub.on("call", ({ findings }) => events.push(findings));
    const outcome = await hub.call({ name: "web__hostile" });
    const text = outcome.ok ? String(outcome.result.content[0]?.["text"]) : "";
    expect(text).toMatch(/^The \[removed: .*\] crosses at noon/);
    expect(events).toEqual([[{ code: "concealment", severity: "medium", place: "result", score: 8.5 }]]);
    expect(JSON.stringify(outcome)).toContain('"score":8.5');
  });

  it("reads errors, prompts, definitions and instructions; progress where it is asked to", async () => {
    const path = zebraModule();
    const hub = await start(
      {
        tools: [
          { name: "poisoned", description: PAYLOAD, inputSchema: { type: "object" } },
          { name: "failing", inputSchema: { type: "object" } },
        ],
        prompts: [{ name: "ask" }],
        results: { failing: { __error: { code: -1, message: PAYLOAD } } },
        gets: { ask: { messages: [{ role: "user", content: { type: "text", text: PAYLOAD } }] } },
      },
      [{ type: "module", path }],
      { definitions: "quarantine" },
    );
    expect(await call(hub, "failing")).toBe("blocked");
    expect(codeOf(await hub.prompt({ name: "web__ask" }))).toBe("blocked");
    await eventually(
      () =>
        hub
          .tools()
          .map(({ name }) => name)
          .join() === "web__failing",
    );
    expect(new Set((await seenBy(path)).map(([place]) => place))).toEqual(new Set(["definition", "error", "prompt"]));
  });

  it("reads progress where it is asked to, and the reports keep their order before the result", async () => {
    const path = zebraModule();
    const script = { results: { slow: { ...said(HONEST), __progress: PAYLOAD } } };
    const hub = await start(script, [{ type: "module", path, places: ["progress"] }], { onSuspicious: "redact" });
    const updates: string[] = [];
    const tool = hub.tools({ for: "anthropic" }).find(({ name }) => name === "web__slow");
    const result = await tool?.execute("1", {}, undefined, (update) => updates.push(JSON.stringify(update)));
    expect(updates).toHaveLength(1);
    expect(updates[0]).not.toContain("zebra");
    expect(JSON.stringify(result)).toContain("Lisbon");
  });

  it("that fails is passed over or makes texts suspicious, by choice, and a warning says so once", async () => {
    const path = zebraModule("throw new Error('no brain');");
    for (const [onFailure, expected] of [
      ["open", "ok"],
      ["closed", "blocked"],
    ] as const) {
      const warnings: string[] = [];
      const hub = await start(RESULTS, [{ type: "module", path, onFailure, cacheEntries: 0 }]);
      hub.on("warning", ({ message }) => warnings.push(message));
      expect([await call(hub, "honest"), await call(hub, "honest")], onFailure).toEqual([expected, expected]);
      expect(warnings.filter((message) => message.includes("no brain"))).toHaveLength(1);
    }
  });

  it("that takes too long, or gets a longer text than it reads, has failed", async () => {
    const slow = zebraModule("return new Promise(() => {});");
    const late = await start(RESULTS, [{ type: "module", path: slow, timeoutMs: 20, onFailure: "closed" }]);
    expect(await call(late, "honest")).toBe("blocked");
    const short = await start(RESULTS, [
      { type: "module", path: zebraModule(), maxCharacters: 20, onFailure: "closed" },
    ]);
    expect(await call(short, "honest")).toBe("blocked");
  });

  it("is not asked about results of many small texts one by one", async () => {
    const path = zebraModule();
    const rows = Array.from({ length: 400 }, (_, index) => `row ${index} of the table`);
    const result = { content: [], structuredContent: { rows: [...rows, PAYLOAD] } };
    const hub = await start({ results: { rows: result } }, [{ type: "module", path }]);
    expect(await call(hub, "rows")).toBe("blocked");
    expect((await seenBy(path)).length).toBeLessThan(20);
  });

  it("that is missing, or is not a function, is named when the hub starts", async () => {
    await expect(start(RESULTS, [{ type: "module", path: join(dir, "none.mjs") }])).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("guard.detectors, module-1"),
    });
    const path = write("nothing.mjs", "export default 3;");
    await expect(start(RESULTS, [{ type: "module", path }])).rejects.toMatchObject({ code: "invalid_config" });
  });
});

const zebraLabels = ({ inputs }: JsonObject): JsonObject[] => [
  { label: "INJECTION", score: String(inputs).includes("zebra") ? 0.99 : 0.02 },
];

describe("[detect-06b] a classifier service", () => {
  it("that fails on one text is heard about the others", async () => {
    const filler = "Lorem ipsum dolor sit amet, consectetur.";
    const both = { content: [filler, PAYLOAD].map((text) => ({ type: "text", text })) };
    for (const format of ["toolcrib", "huggingface"] as const) {
      const { url, requests } = await startService((body) => {
        if (JSON.stringify(body).includes("Lorem")) return 500;
        return format === "toolcrib" ? zebraService(body) : zebraLabels(body);
      });
      const hub = await start({ results: { both, hostile: said(PAYLOAD) } }, [{ type: "http", url, format }]);
      expect(await call(hub, "both"), format).toBe("blocked");
      const count = requests.length;
      expect(await call(hub, "hostile")).toBe("blocked");
      expect(requests).toHaveLength(count);
    }
  });

  it("[sound-06a] that hangs on many texts is heard about the others", async () => {
    const hanging = Array.from({ length: 12 }, (_, index) => `Lorem ipsum ${index}`);
    const many = { content: [PAYLOAD, ...hanging].map((text) => ({ type: "text", text })) };
    const never = new Promise<never>(() => {});
    for (const format of ["toolcrib", "huggingface"] as const) {
      const { url } = await startService((body) => {
        if (JSON.stringify(body).includes("Lorem")) return never;
        return format === "toolcrib" ? zebraService(body) : zebraLabels(body);
      });
      const hub = await start({ results: { many } }, [{ type: "http", url, format, timeoutMs: 3000 }]);
      expect(await call(hub, "many"), format).toBe("blocked");
    }
  });

  it("with labels reads a long text in parts to its end, in smaller ones where it must", async () => {
    const filler = "The tall giraffes like the shade. ".repeat(400);
    const { url, requests } = await startService((body) =>
      String(body["inputs"]).length > 900 ? 413 : zebraLabels(body),
    );
    const script = { results: { long: said(`${filler}${PAYLOAD}${filler}`), fine: said(filler) } };
    const hub = await start(script, [{ type: "http", url, format: "huggingface" }]);
    expect([await call(hub, "long"), await call(hub, "fine")]).toEqual(["blocked", "ok"]);
    expect(requests.every(({ body }) => body["truncate"] === false)).toBe(true);
    expect(Math.max(...requests.map(({ body }) => String(body["inputs"]).length))).toBeLessThanOrEqual(1500);
  });

  it("gets no secrets, whoever says them", async () => {
    const { url, requests } = await startService(zebraService);
    process.env["ZEBRA_TOKEN"] = "zebra-token-5f1c9a";
    closing.push(() => delete process.env["ZEBRA_TOKEN"]);
    const description = "Takes the token zebra-token-5f1c9a, as everyone knows.";
    const tools = [{ name: "open", description, inputSchema: { type: "object" } }];
    const file = write("script.json", { tools, results: { open: said(`${HONEST} ${description}`) } });
    const args = [resolve(import.meta.dirname, "../../fixtures/scripted-server.mjs"), file];
    const hub = await createHub({
      guard: { detectors: [{ type: "http", url, timeoutMs: 30_000 }] },
      secrets: { maskResults: false },
      mcpServers: { web: { command: process.execPath, args, env: { TOKEN: "secret://env/ZEBRA_TOKEN" } } },
    });
    closing.push(() => hub.close());
    expect(await call(hub, "open")).toBe("ok");
    await eventually(() => requests.some(({ body }) => body["place"] === "definition"));
    const sent = JSON.stringify(requests.map(({ body }) => body));
    expect(sent).toContain("as everyone knows");
    expect(sent).not.toContain("5f1c9a");
  });

  it("is asked with its token, which is masked, and its verdict counts", async () => {
    const { url, requests } = await startService(zebraService);
    process.env["ZEBRA_TOKEN"] = "zebra-token-5f1c9a";
    closing.push(() => delete process.env["ZEBRA_TOKEN"]);
    const leaking = { ...RESULTS.results, leaking: said("The token is zebra-token-5f1c9a, they say.") };
    const hub = await start({ results: leaking }, [{ type: "http", url, token: "secret://env/ZEBRA_TOKEN" }]);
    expect(await call(hub, "hostile")).toBe("blocked");
    expect(await call(hub, "honest")).toBe("ok");
    expect(requests.map(({ authorization }) => authorization)).toEqual(Array(2).fill("Bearer zebra-token-5f1c9a"));
    expect(requests[0]?.body).toEqual({ place: "result", texts: [PAYLOAD] });
    expect(JSON.stringify(await hub.call({ name: "web__leaking" }))).not.toContain("5f1c9a");
  });

  it("may answer with labels, as services for transformers do", async () => {
    const labels = (text: unknown): unknown => [
      { label: "SAFE", score: String(text).includes("zebra") ? 0.01 : 0.98 },
      { label: "INJECTION", score: String(text).includes("zebra") ? 0.99 : 0.02 },
    ];
    for (const nested of [false, true]) {
      const { url } = await startService(({ inputs }) => (nested ? [labels(inputs)] : labels(inputs)));
      const hub = await start(RESULTS, [{ type: "http", url, format: "huggingface" }]);
      expect([await call(hub, "hostile"), await call(hub, "honest")]).toEqual(["blocked", "ok"]);
    }
  });

  it("that is out of order, answers nonsense or never answers has failed", async () => {
    for (const answer of [() => 500, () => ({ results: [] }), () => ({ results: [7] }), () => new Promise(() => {})]) {
      const { url } = await startService(answer);
      const hub = await start(RESULTS, [{ type: "http", url, onFailure: "closed", timeoutMs: 500 }]);
      expect(await call(hub, "honest")).toBe("blocked");
    }
  });

  it("obeys the rules for addresses, and its token is a reference", async () => {
    for (const url of ["http://classifier.example/x", "ftp://127.0.0.1/x"])
      await expect(start(RESULTS, [{ type: "http", url }])).rejects.toMatchObject({ code: "invalid_config" });
    const url = "http://127.0.0.1:9/x";
    await expect(start(RESULTS, [{ type: "http", url, token: "plain-text" }])).rejects.toMatchObject({
      code: "invalid_config",
    });
    // A redirect to another origin would take the texts there.
    const other = await startService(zebraService);
    const redirecting = createServer((_, response) => response.writeHead(307, { location: other.url }).end());
    await new Promise<void>((done) => redirecting.listen(0, "127.0.0.1", done));
    closing.push(() => redirecting.close());
    const from = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/`;
    const hub = await start(RESULTS, [{ type: "http", url: from, onFailure: "closed" }]);
    expect(await call(hub, "honest")).toBe("blocked");
    expect(other.requests).toEqual([]);
  });

  it("stays open while another config is only looked at", async () => {
    const { url } = await startService(zebraService);
    const configOf = (detectors: Detectors) => ({
      config: ConfigSchema.parse({ guard: { detectors } }),
      baseDir: dir,
    });
    const warnings: string[] = [];
    const detectors = new DetectorsOfHub({
      clock: systemClock,
      resolve: (reference) => Promise.resolve(reference),
      mask: (text) => text,
      warn: (message) => warnings.push(message),
    });
    closing.push(() => detectors.close());
    const config = configOf([{ type: "http", url, timeoutMs: 30_000, cacheEntries: 0 }]);
    await detectors.prepare(config);
    expect(detectors.readersOf(configOf([])).detects("result")).toBe(false);
    const { scan } = detectors.readersOf(config);
    expect([...(await scan([PAYLOAD], {})).keys()]).toEqual([PAYLOAD]);
    detectors.keep(configOf([]));
    expect(detectors.readersOf(config).detects("result")).toBe(false);
    expect(warnings).toEqual([]);
  });

  it("can change with a reload", async () => {
    const { url } = await startService(zebraService);
    const file = write("script.json", { tools: [{ name: "hostile", inputSchema: { type: "object" } }], ...RESULTS });
    const args = [resolve(import.meta.dirname, "../../fixtures/scripted-server.mjs"), file];
    const mcpServers = { web: { command: process.execPath, args } };
    const hub = await createHub({ guard: { onSuspicious: "block" }, mcpServers });
    closing.push(() => hub.close());
    const verdicts = [await call(hub, "hostile")];
    for (const detectors of [[{ type: "http" as const, url }], []]) {
      await hub.reload({ guard: { onSuspicious: "block", detectors }, mcpServers });
      verdicts.push(await call(hub, "hostile"));
    }
    expect(verdicts).toEqual(["ok", "blocked", "ok"]);
    const broken = { guard: { detectors: [{ type: "module" as const, path: join(dir, "none.mjs") }] }, mcpServers };
    await expect(hub.reload(broken)).rejects.toMatchObject({ code: "invalid_config" });
    expect(await call(hub, "hostile")).toBe("ok");
  });
});

const runtime = await findOnnxRuntime();
const reason = "missing" in runtime ? runtime.missing : undefined;

describe.skipIf(isMissing("detectors of the type onnx", reason))("[detect-06c] a model in the ONNX format", () => {
  const words: readonly string[] = PAYLOAD.toLowerCase().match(/\w+/g) ?? [];
  const entry = () => ({
    type: "onnx" as const,
    model: write("model.onnx", modelWith(1 + words.indexOf("zebra"))),
    tokenizer: write("tokenizer.json", tokenizerOf(words)),
    runtime: "path" in runtime ? runtime.path : "",
  });

  it("judges results", async () => {
    const hub = await start(RESULTS, [entry()]);
    expect([await call(hub, "hostile"), await call(hub, "honest")]).toEqual(["blocked", "ok"]);
  }, 60_000);

  it("reads a long text in windows, and the finding names the one", async () => {
    const filler = Array.from({ length: 1500 }, () => "the tall giraffes like noon").join(" ");
    const long = said(`${filler} zebra ${filler}`);
    const hub = await start({ results: { long } }, [{ ...entry(), maxTokens: 128, maxCharacters: 200_000 }], {
      onSuspicious: "redact",
    });
    const outcome = await hub.call({ name: "web__long" });
    const text = outcome.ok ? String(outcome.result.content[0]?.["text"]) : "";
    expect(text).not.toContain("zebra");
    expect(text.length).toBeGreaterThan(2 * filler.length - 3000);
  }, 60_000);

  it("may have names for its outputs", async () => {
    const labels = ["INJECTION", "BENIGN"];
    const hub = await start(RESULTS, [{ ...entry(), labels }]);
    expect([await call(hub, "hostile"), await call(hub, "honest")]).toEqual(["ok", "blocked"]);
  }, 60_000);
});

it("[detect-06c] a package that is not installed and files that are missing are named when the hub starts", async () => {
  const tokenizer = write("tokenizer.json", tokenizerOf(["a"]));
  const entry = { type: "onnx" as const, model: write("model.onnx", modelWith(1)), tokenizer };
  await expect(start(RESULTS, [{ ...entry, runtime: "onnxruntime-nowhere" }])).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringContaining('"onnxruntime-nowhere" is not installed'),
    hint: expect.stringContaining("npm install"),
  });
});

it("[detect-06c] a window that is no longer than its overlap with the next is refused", async () => {
  const entry = { type: "onnx" as const, model: "m.onnx", tokenizer: "t.json" };
  await expect(start(RESULTS, [{ ...entry, maxTokens: 30 }])).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringContaining("maxTokens"),
  });
});
