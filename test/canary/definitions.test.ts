/** A server that writes its own secret into everything it says of itself. */
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it, vi } from "vitest";
import { fingerprint } from "../../src/base/fingerprint.ts";
import type { StoredRecord } from "../../src/telemetry/audit/record.ts";
import { type Workspace, workspace } from "../cli/run-cli.ts";
import { OfferingServer } from "../support/offering-server.ts";
import { Canaries, filesUnder } from "./canaries.ts";

const TOKEN = "token-of-the-operator-0123456789";
const headers = { authorization: `Bearer ${TOKEN}` };
const TELLS = "a key {API_TOKEN} and {b64:API_TOKEN}";

const OFFER = {
  instructions: `Use ${TELLS}.`,
  tools: [
    {
      name: "read",
      title: TELLS,
      description: `Reads with ${TELLS}.`,
      inputSchema: {
        type: "object",
        properties: { key: { type: "string", default: "{API_TOKEN}", enum: ["{API_TOKEN}", "{b64:API_TOKEN}"] } },
      },
    },
    { name: "tool-{API_TOKEN}", description: "Named after it." },
  ],
  prompts: [{ name: "greet", description: TELLS, arguments: [{ name: "who", description: TELLS }] }],
  resources: [
    { uri: "note://one", name: TELLS, description: TELLS },
    { uri: "note://{API_TOKEN}", name: "two" },
  ],
  templates: [{ uriTemplate: "log://{day}", name: "log", description: TELLS }],
};

interface Setting {
  readonly place: Workspace;
  readonly canaries: Canaries;
  readonly env: { readonly KEY: string };
  readonly lock: string;
}

function leaky(pins = "block"): Setting {
  const place = workspace();
  const server = new OfferingServer(place.dir);
  server.offer(OFFER);
  const canaries = new Canaries();
  const env = { KEY: canaries.make("the environment of a server"), TOKEN };
  place.configure(
    { files: { ...server.entry, env: { API_TOKEN: "${KEY}" } } },
    { guard: { pins }, http: { auth: { tokens: [{ token: "${TOKEN}", scopes: ["read", "call", "admin"] }] } } },
  );
  return { place, canaries, env, lock: join(place.dir, "toolcrib.lock") };
}

const NOTE = "definitions contain a secret";

describe("[trust-11a] a server's own secret in its definitions", () => {
  it("comes out at no door, in no file and in no event", async () => {
    const { place, canaries, env, lock } = leaky();
    const { child } = place.start(["serve", "--config", place.configFile, "--port", "0"], { env });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const url = await vi.waitFor(
      () => {
        const [found] = /http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/.exec(said) ?? [];
        if (found === undefined || !/ready +files/.test(said)) throw new Error(`not up: ${said}`);
        return found;
      },
      { timeout: 60_000, interval: 50 },
    );
    const seen: string[] = [];
    const get = async (path: string): Promise<string> => {
      const text = await (await fetch(`${url}/api/v1${path}`, { headers })).text();
      seen.push(text);
      return text;
    };
    expect(await get("/mcp/tools")).toContain("Reads with a key [redacted] and [redacted].");
    for (const path of ["/mcp/prompts", "/mcp/resources", "/mcp/servers", "/mcp/servers/files", "/pins", "/audit"]) {
      expect(await get(path), path).toContain("files");
    }
    await get("/mcp/tools?q=key");
    await get("/overview");

    const client = new Client({ name: "test", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(1);
    // The schema is still one: what was a secret in it is masked in its place.
    expect(tools[0]?.inputSchema.properties?.["key"]).toEqual({
      type: "string",
      default: "[redacted]",
      enum: ["[redacted]", "[redacted]"],
    });
    const { prompts } = await client.listPrompts();
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(["note://one"]);
    expect(client.getInstructions()).toContain("Use a key [redacted]");
    const { resourceTemplates } = await client.listResourceTemplates();
    seen.push(JSON.stringify([tools, prompts, resources, resourceTemplates, client.getInstructions()]));
    expect(JSON.stringify(await client.callTool({ name: "files__read", arguments: {} }))).toContain("ran read");
    await client.close();

    const feed = new AbortController();
    const events = await fetch(`${url}/api/v1/events?after=0`, { headers, signal: feed.signal });
    const reader = events.body?.getReader();
    let text = "";
    while (!text.includes("call.finished")) {
      const next = await reader?.read();
      if (next === undefined || next.done) break;
      text += Buffer.from(next.value).toString("utf8");
    }
    feed.abort();
    expect(text).toContain("call.finished");
    child.kill("SIGINT");
    await vi.waitFor(() => expect(child.exitCode ?? child.signalCode).not.toBeNull(), { timeout: 60_000 });

    seen.push(text, said, readFileSync(lock, "utf8"), filesUnder(place.home));
    for (const args of [["list"], ["list", "--all"], ["pins", "diff"], ["pins", "list"], ["status"], ["doctor"]]) {
      for (const more of [[], ["--json"]]) {
        const { stdout, stderr } = await place.run([...args, ...more, "--config", place.configFile], { env });
        seen.push(stdout, stderr);
      }
    }
    expect(canaries.foundIn(seen.join("\n"))).toEqual([]);
  });
});

describe("[trust-11b] a lock file with something masked", () => {
  it("is readable by its owner alone, also where it was not before, and the command says so once", async () => {
    const { place, env, lock, canaries } = leaky();
    const first = await place.run(["list", "--config", place.configFile], { env });
    expect(first.stderr).toContain(NOTE);
    expect(first.stderr).toContain(lock);
    expect(statSync(lock).mode & 0o777).toBe(0o600);
    expect((await place.run(["list", "--config", place.configFile], { env })).stderr).not.toContain(NOTE);
    const records = (await place.run(["audit", "--json"])).json<StoredRecord[]>();
    expect(records.map(({ event }) => event)).toContain("pin.masked");

    await place.run(["pins", "reset", "--config", place.configFile], { env });
    chmodSync(lock, 0o644);
    expect((await place.run(["pins", "diff", "--config", place.configFile], { env })).stderr).toContain(
      "own definitions contain a secret",
    );
    expect(statSync(lock).mode & 0o777).toBe(0o600);
    expect(canaries.foundIn(place.read("toolcrib.lock"))).toEqual([]);
  });

  it("is one for all to read where nothing was masked", async () => {
    const { place, env, lock } = leaky();
    new OfferingServer(place.dir).offer({ tools: [{ name: "read", description: "Reads." }] });
    expect((await place.run(["list", "--config", place.configFile], { env })).stderr).toBe("");
    expect(statSync(lock).mode & 0o777).toBe(0o644);
  });
});

it("[trust-11c] what is named after a secret is quarantined, with the reason", async () => {
  const { place, env, canaries } = leaky();
  const { stdout } = await place.run(["doctor", "--config", place.configFile], { env });
  expect(stdout).toContain("contains a secret");
  expect(canaries.foundIn(stdout)).toEqual([]);
  const { code } = await place.run(["call", "files__tool-redacted", "--config", place.configFile], { env });
  expect(code).toBe(1);
});

describe("[trust-11d] pins of what was masked", () => {
  it("do not change with the secret", async () => {
    const { place, env } = leaky();
    await place.run(["list", "--config", place.configFile], { env });
    const lock = place.read("toolcrib.lock");
    const rotated = { ...env, KEY: new Canaries().make("the next secret") };
    const { stdout, stderr } = await place.run(["list", "--config", place.configFile], { env: rotated });
    expect(stdout).toContain("files__read");
    expect(stderr).not.toContain("changed");
    expect(place.read("toolcrib.lock")).toBe(lock);
  });

  it("of a version that did not mask are masked without an alarm", async () => {
    const { place, env, lock, canaries } = leaky();
    const definition = JSON.parse(
      JSON.stringify(OFFER.tools[0])
        .replaceAll("{b64:API_TOKEN}", Buffer.from(env.KEY).toString("base64"))
        .replaceAll("{API_TOKEN}", JSON.stringify(env.KEY).slice(1, -1)),
    ) as { name: string };
    const pin = { definition, fingerprint: fingerprint(definition), pinnedAt: "2026-11-01T10:00:00.000Z" };
    writeFileSync(lock, JSON.stringify({ version: 1, servers: { files: { tools: { read: pin } } } }), { mode: 0o644 });
    expect(canaries.foundIn(place.read("toolcrib.lock"))).not.toEqual([]);
    const { stdout, stderr } = await place.run(["list", "--config", place.configFile], { env });
    expect(stdout).toContain("files__read");
    expect(stderr).not.toContain("has changed");
    expect(canaries.foundIn(place.read("toolcrib.lock"))).toEqual([]);
    expect(statSync(lock).mode & 0o777).toBe(0o600);
  });
});
