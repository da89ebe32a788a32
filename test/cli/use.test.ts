import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { bundled, misbehaving, missingProgram, workspace } from "./run-cli.ts";

interface ListEntry {
  kind: string;
  name: string;
  server: string;
  tool?: string;
  description: string;
  inputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
  [key: string]: unknown;
}
interface CallResult {
  content: { type: string; text?: string; data?: string }[];
  structuredContent?: unknown;
  isError?: boolean;
}
interface ErrorOutput {
  error: { code: string; message: string; hint?: string; details?: Record<string, unknown> };
}

/** Writes down the methods it receives, and never answers a call. */
const RECORDER = `
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
const note = (line) => appendFileSync(process.argv[2], line + "\\n");
const results = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "recorder", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "wait", inputSchema: { type: "object" } }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  note(method);
  const result = results[method]?.(params);
  if (result) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
}).on("close", () => { note("ended"); process.exit(0); });
`;

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

describe("[spine-19a] list", () => {
  it("lists three real servers as a table and as JSON, with one broken server beside them", async () => {
    const place = workspace();
    place.configure({
      everything: bundled("everything", "stdio"),
      files: bundled("filesystem", place.dir),
      memory: bundled("memory"),
      broken: missingProgram,
    });
    const table = await place.run(["list"]);
    expect(table.code).toBe(0);
    expect(table.stdout).toMatch(/^NAME +SERVER +DESCRIPTION\n/);
    expect(table.stdout).toMatch(/^files__read_text_file +files +Read the complete contents/m);
    expect(table.stdout).toMatch(/^memory__read_graph +memory /m);
    expect(table.stderr).toMatch(/not connected: broken: .*toolcrib-no-such-program/);

    const json = await place.runHere(["list", "--json"]);
    const tools = json.json<ListEntry[]>();
    const sum = tools.find((tool) => tool.name === "everything__get-sum");
    expect(sum).toMatchObject({
      server: "everything",
      tool: "get-sum",
      kind: "tool",
      description: expect.stringContaining("sum"),
    });
    expect(sum?.inputSchema).toMatchObject({ type: "object", properties: { a: { type: "number" } } });
    expect(new Set(tools.map((tool) => tool.server))).toEqual(new Set(["everything", "files", "memory"]));
  });

  it("lists one server without starting any other, losing nothing of its definitions", async () => {
    const place = workspace();
    const marker = join(place.dir, "started");
    place.configure({
      ok: misbehaving("ok"),
      other: { command: process.execPath, args: ["-e", `require("fs").writeFileSync(${JSON.stringify(marker)}, "")`] },
    });
    const tools = (await place.run(["list", "ok", "--json"])).json<ListEntry[]>();
    expect(tools[0]).toMatchObject({
      name: "ok__echo",
      tool: "echo",
      title: "Echo",
      annotations: { readOnlyHint: true, custom: "kept" },
      "x-unknown": { kept: true },
    });
    expect(existsSync(marker)).toBe(false);
  });

  it("names a role that does not exist, and those that do", async () => {
    const place = workspace();
    place.write("home/toolcrib.json", JSON.stringify({ roles: { reviewer: {} } }));
    const [unknown, known] = [
      await place.runHere(["list", "--role", "nosuch"]),
      await place.runHere(["list", "--role", "reviewer"]),
    ];
    expect(unknown.stderr).toContain('There is no role "nosuch", so nothing is offered to it. Roles: reviewer.');
    expect(known.stderr).toContain("Nothing to list.");
  });

  it("lists resources, templates and prompts", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const all = (await place.runHere(["list", "--all", "--json"])).json<ListEntry[]>();
    expect(new Set(all.map((entry) => entry.kind))).toEqual(new Set(["tool", "resource", "template", "prompt"]));
    const resources = (await place.runHere(["list", "--resources", "--json"])).json<ListEntry[]>();
    expect(resources.every((entry) => typeof (entry["uri"] ?? entry["uriTemplate"]) === "string")).toBe(true);
    const prompts = await place.runHere(["list", "--prompts"]);
    expect(prompts.stdout).toMatch(/^everything__args-prompt +everything /m);
    expect(prompts.stdout).not.toContain("get-sum");
  });

  it("[spine-19b] --schema shows arguments", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok") });
    const { stdout } = await place.runHere(["list", "--schema"]);
    expect(stdout).toMatch(
      /ok__echo {2}Gives the text back\.\nARGUMENT +TYPE +REQUIRED +DESCRIPTION\ntext +string +yes/,
    );
  });

  it("[spine-19e] an unknown server exits 1, a failed or disabled one 4, and so does a list without any server", async () => {
    const place = workspace();
    place.configure({ broken: missingProgram, off: { ...misbehaving("ok"), enabled: false } });
    const unknown = await place.runHere(["list", "brokn", "--json"]);
    expect(unknown.code).toBe(1);
    expect(unknown.json<ErrorOutput>().error).toMatchObject({ code: "not_found", hint: "Did you mean broken?" });
    for (const args of [["list", "broken"], ["list", "off"], ["list"]]) {
      const { code, stdout } = await place.runHere([...args, "--json"]);
      expect(code).toBe(4);
      expect((JSON.parse(stdout) as ErrorOutput).error.code).toBe("server_unavailable");
    }
  });

  it("shows what is there when --timeout is over, and names what is not", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok"), silent: { ...misbehaving("never-answers"), timeout: 600_000 } });
    const { code, stdout, stderr } = await place.runHere(["list", "--timeout", "4000"]);
    expect(code).toBe(0);
    expect(stdout).toContain("ok__echo");
    expect(stderr).toMatch(/not connected: silent: not connected within 4000 ms/);
  });

  it("survives a reader that goes away", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok") });
    expect(await place.run(["list"], { readerGone: true })).toMatchObject({ code: 0, stderr: "" });
  });

  it("in-process tools of plugins are the server local", async () => {
    const place = workspace();
    place.write(
      "tools.mjs",
      `export default (api) => api.registerTool({ name: "shout", description: "Loud.",
        parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        async execute(id, { text }) { return { content: [{ type: "text", text: text.toUpperCase() }] }; } });`,
    );
    place.configure({}, { plugins: ["./tools.mjs"] });
    expect((await place.runHere(["list", "local", "--json"])).json<ListEntry[]>()).toMatchObject([
      { name: "shout", server: "local" },
    ]);
    expect(await place.run(["call", "shout", "text=hi"])).toMatchObject({ code: 0, stdout: "HI\n" });
  });
});

describe("[spine-19a] call", () => {
  it("[spine-19b] types key=value by the schema and prints text, or the MCP result as JSON", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const text = await place.run(["call", "everything__get-sum", "a=2", "b=3.5"]);
    expect(text).toMatchObject({ code: 0, stderr: "" });
    expect(text.stdout).toContain("5.5");
    const json = await place.runHere(["call", "everything__get-sum", "a=2", "b=3.5", "--json"]);
    expect(json.json<CallResult>().content[0]).toMatchObject({ type: "text", text: expect.stringContaining("5.5") });
  });

  it("[spine-19b] takes --args JSON and --args - from stdin", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok") });
    expect((await place.runHere(["call", "ok__echo", "--args", '{"text": "one"}'])).stdout).toBe("one\n");
    expect((await place.run(["call", "ok__echo", "--args", "-"], { input: '{"text": "two\\u2028"}' })).stdout).toBe(
      "two\\u{2028}\n",
    );
    const bad = await place.runHere(["call", "ok__echo", "--args", "-"], { input: "{" });
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain("--args is not valid JSON");
  });

  it("[spine-19b] --schema shows the arguments and calls nothing", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok") });
    const text = await place.runHere(["call", "ok__exit", "--schema"]);
    expect(text).toMatchObject({ code: 0, stderr: "" });
    expect(text.stdout).toMatch(/^code +number/m);
    const json = await place.runHere(["call", "ok__echo", "--schema", "--json"]);
    expect(json.json()).toMatchObject({ type: "object", required: ["text"] });
    expect((await place.runHere(["call", "ok__nothing-like-it", "--schema"])).code).toBe(1);
  });

  it("[spine-19b] saves images with --out, and never over a file without --force", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const call = ["call", "everything__get-tiny-image"];
    const saved = await place.run([...call, "--out", "logo"]);
    expect(saved.code).toBe(0);
    expect(saved.stdout).toMatch(/\[image: image\/png, \d+ (K)?B\]/);
    expect(saved.stderr).toBe(`saved ${join(place.dir, "logo.png")}\n`);
    expect(readFileSync(join(place.dir, "logo.png")).subarray(0, 4)).toEqual(PNG);

    const refused = await place.runHere([...call, "--out", "logo.png", "--json"]);
    expect(refused.code).toBe(1);
    expect(refused.json<ErrorOutput>().error.code).toBe("conflict");
    expect((await place.runHere([...call, "--out", "logo.png", "--force"])).code).toBe(0);
    expect((await place.runHere([...call, "--out", "images/"])).code).toBe(0);
    expect((await place.runHere([...call, "--out", "images"])).stderr).toContain("get-tiny-image-2.png");
  });

  it("[spine-19e] refuses arguments that do not fit with exit 2 and says what does", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const wrong = await place.runHere(["call", "everything__get-sum", "a=two", "--json"]);
    expect(wrong.code).toBe(2);
    expect(wrong.json<ErrorOutput>().error).toMatchObject({
      code: "invalid_arguments",
      details: { problems: ['"a": "two" is not number', '"b" is missing (number)'] },
    });
    expect((await place.runHere(["call", "everything__get-sum", "--args", "{}"])).stderr).toContain(
      '"a" is missing (number)',
    );
  });

  it("[spine-19e] prints a tool's own error result and exits 1", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok") });
    expect(await place.run(["call", "ok__fail"])).toMatchObject({ code: 1, stdout: "it failed\n", stderr: "" });
    const json = await place.runHere(["call", "ok__fail", "--json"]);
    expect(json.code).toBe(1);
    expect(json.json<CallResult>()).toMatchObject({ isError: true, content: [{ type: "text", text: "it failed" }] });
  });

  it("[spine-19e] exits 1 for an unknown tool, 3 for a denied one, 4 for a server that is down, 5 for a timeout", async () => {
    const place = workspace();
    place.configure(
      { ok: misbehaving("ok"), broken: missingProgram, dies: { ...misbehaving("crash-mid-call"), restart: false } },
      { tools: { deny: ["ok__env"] } },
    );
    const codes: [args: string[], exit: number, code: string][] = [
      [["ok__ecko", "text=x"], 1, "not_found"],
      [["ok__env"], 3, "denied"],
      [["broken__anything"], 4, "server_unavailable"],
      [["dies__echo", "text=x"], 4, "server_unavailable"],
      [["ok__slow", "ms=60000", "--timeout", "3000"], 5, "timeout"],
    ];
    for (const [args, exit, code] of codes) {
      const { code: got, stdout, stderr } = await place.runHere(["call", ...args, "--json"]);
      expect([args[0], got, (JSON.parse(stdout) as ErrorOutput).error.code]).toEqual([args[0], exit, code]);
      expect(stderr).not.toMatch(/\n\s+at /);
    }
    const near = await place.runHere(["call", "ok__ecko"]);
    expect(near.stderr).toMatch(/error: There is no tool "ok__ecko".*\n.*ok__echo/);
  });

  it("does not wait for servers that have nothing to do with the tool", async () => {
    const place = workspace();
    place.configure({ ok: misbehaving("ok"), silent: { ...misbehaving("never-answers"), timeout: 600_000 } });
    expect(await place.run(["call", "ok__echo", "text=quick"])).toMatchObject({ code: 0, stdout: "quick\n" });
  });

  it("connects a server that waits to be asked for", async () => {
    const place = workspace();
    place.configure({ lazy: { ...misbehaving("ok"), autoConnect: false } });
    expect((await place.runHere(["call", "lazy__echo", "text=awake"])).stdout).toBe("awake\n");
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("[spine-19e] %s cancels the call at its server and exits %i", async (signal, exit) => {
    const place = workspace();
    const log = join(place.dir, "received");
    place.configure({ recorder: { command: process.execPath, args: [place.write("recorder.mjs", RECORDER), log] } });
    const { child, finished } = place.start(["call", "recorder__wait"]);
    await vi.waitFor(() => expect(readFileSync(log, "utf8")).toContain("tools/call"), {
      timeout: 60_000,
      interval: 20,
    });
    child.kill(signal);
    expect(await finished).toMatchObject({ code: exit, stdout: "" });
    expect(readFileSync(log, "utf8")).toMatch(/tools\/call\nnotifications\/cancelled\nended/);
  });
});

describe("[spine-19a] read and prompt", () => {
  it("reads a text and a binary resource", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const text = await place.run(["read", "demo://resource/dynamic/text/1"]);
    expect(text.code).toBe(0);
    expect(text.stdout).toContain("Resource 1");
    const json = await place.runHere(["read", "demo://resource/dynamic/text/1", "--json"]);
    expect(json.json<{ contents: { uri: string }[] }>().contents[0]?.uri).toBe("demo://resource/dynamic/text/1");
    const blob = await place.runHere(["read", "demo://resource/dynamic/blob/2", "--out", "two.bin"]);
    expect(blob.code).toBe(0);
    expect(place.read("two.bin")).toContain("Resource 2");
  });

  it("gets a prompt with arguments, and refuses those that do not fit", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything", "stdio") });
    const prompt = await place.run(["prompt", "everything__args-prompt", "city=Graz"]);
    expect(prompt.code).toBe(0);
    expect(prompt.stdout).toMatch(/^user: .*Graz/);
    const json = await place.runHere(["prompt", "everything__args-prompt", "city=Graz", "--json"]);
    expect(json.json<{ messages: unknown[] }>().messages).toHaveLength(1);
    const wrong = await place.runHere(["prompt", "everything__args-prompt", "cty=Graz"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/"cty" is unknown; did you mean "city".*"city" is missing/);
    expect((await place.runHere(["prompt", "everything__no-such"])).code).toBe(1);
  });

  it("an unknown resource exits 1", async () => {
    const place = workspace();
    place.configure({ files: bundled("filesystem", place.dir) });
    const { code, stdout } = await place.runHere(["read", pathToFileURL(place.dir).href, "--json"]);
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as ErrorOutput).error.code).toBe("not_found");
  });
});
