/** Arguments and results in the audit log for a time, as an operator switches them on. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuditEntry, RecordingState } from "../../../../src/contract/activity-schemas.ts";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import { OPERATIONS } from "../../../../src/contract/operations.ts";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { everything } from "../../../support/servers.ts";
import { type ApiScene, apiScene } from "./api-setup.ts";

const DEMO_KEY = "s3cr3t-of-the-demo-server";

function registry(): ToolRegistry {
  const tools = new ToolRegistry();
  tools.register({
    name: "keep",
    description: "Answers with what it was given.",
    parameters: { type: "object" },
    execute: async (_id, args) => ({ content: [{ type: "text", text: `kept ${JSON.stringify(args)}` }] }),
  });
  return tools;
}

describe("recording of arguments and results", () => {
  let scene: ApiScene;
  beforeAll(async () => {
    scene = await apiScene({
      servers: { demo: { ...everything(), env: { DEMO_KEY: "secret://env/DEMO_KEY" } } },
      registry: registry(),
      env: { DEMO_KEY },
    });
  });
  afterAll(() => scene.close());

  const record = async (body: object): Promise<RecordingState> =>
    (await scene.request("admin", "POST", "/audit/recording", { body })).json<RecordingState>();
  const call = async (name: string, args: object): Promise<AuditEntry> => {
    await scene.request("admin", "POST", `/mcp/tools/${name}/call`, { body: { arguments: args } });
    // On a busy machine a query does not wait until the newest records are in the store.
    await scene.hub.audit.flush();
    const { entries } = (await scene.request("admin", "GET", `/audit?type=call&name=${name}&limit=1`)).json<{
      entries: AuditEntry[];
    }>();
    if (entries[0] === undefined) throw new Error(`${name} has no record.`);
    return entries[0];
  };

  it("[joy-07b] is off at first: neither is in the log", async () => {
    expect((await scene.request("admin", "GET", "/audit/recording")).json()).toEqual({
      arguments: false,
      results: false,
      recordings: [],
    });
    const entry = await call("demo__echo", { message: "unseen" });
    expect(entry).toMatchObject({ outcome: "ok", resultBytes: expect.any(Number) });
    expect(entry).not.toHaveProperty("arguments");
    expect(entry).not.toHaveProperty("result");
  });

  it("[joy-07b] of one server leaves the others alone, and 0 minutes end it", async () => {
    const state = await record({ server: "demo", minutes: 15 });
    expect(state.recordings).toMatchObject([{ server: "demo", by: "ops" }]);
    expect(state.recordings.map(({ since, until }) => Date.parse(until) - Date.parse(since))).toEqual([15 * 60_000]);
    const entry = await call("demo__echo", { message: "seen" });
    expect(entry.arguments).toBe('{"message":"seen"}');
    expect(entry.result).toContain("Echo: seen");
    expect(await call("keep", { a: 1 })).not.toHaveProperty("arguments");
    expect((await record({ server: "demo", minutes: 0 })).recordings).toEqual([]);
    expect(await call("demo__echo", { message: "unseen" })).not.toHaveProperty("arguments");
  });

  it("[joy-07b] of all has calls that fail as well, with the error", async () => {
    await record({ minutes: 60 });
    const entry = await call("nobody", { a: 1 });
    expect(entry).toMatchObject({ outcome: "not_found", arguments: '{"a":1}' });
    expect(JSON.parse(entry.result ?? "")).toMatchObject({ code: "not_found" });
    await record({ minutes: 0 });
  });

  it("[joy-07b] masks secrets by their name, by their form and by their value", async () => {
    await record({ minutes: 15 });
    const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const entry = await call("keep", {
      password: "my own pass phrase",
      nested: [{ apiKey: { value: "k 1" } }],
      text: `use ${token}`,
      harmless: "yes",
    });
    const text = JSON.stringify(entry);
    for (const secret of ["my own pass", "k 1", token]) expect(entry.arguments).not.toContain(secret);
    expect(text).not.toContain(token);
    expect(entry.arguments).toContain('"harmless":"yes"');
    expect(JSON.stringify(await call("demo__echo", { message: DEMO_KEY }))).not.toContain(DEMO_KEY);
    await record({ minutes: 0 });
  });

  it("[joy-07b] bounds what it keeps of a call", async () => {
    await record({ server: "local", minutes: 15 });
    const entry = await call("keep", { text: "x".repeat(50_000) });
    expect(Buffer.byteLength(entry.arguments ?? "")).toBeLessThanOrEqual(4096 + 3);
    expect(Buffer.byteLength(entry.result ?? "")).toBeLessThanOrEqual(16 * 1024 + 3);
    await record({ server: "local", minutes: 0 });
  });

  it("[joy-07b] is set by operators alone, for servers that there are, and the log says so", async () => {
    for (const who of ["call", "read", "reviewer"] as const)
      expect((await scene.request(who, "POST", "/audit/recording", { body: { minutes: 5 } })).status).toBe(403);
    expect(
      (await scene.request("admin", "POST", "/audit/recording", { body: { server: "none", minutes: 5 } })).json(),
    ).toMatchObject({ error: { code: "not_found" } });
    expect((await scene.request("admin", "POST", "/audit/recording", { body: { minutes: 100_000 } })).status).toBe(400);
    await record({ server: "demo", minutes: 5 });
    await record({ server: "demo", minutes: 0 });
    await scene.hub.audit.flush();
    const { entries } = (await scene.request("admin", "GET", "/audit?type=event&q=recording&limit=2")).json<{
      entries: AuditEntry[];
    }>();
    expect(entries).toMatchObject([
      { event: "recording.stopped", user: "ops", origin: { source: "demo" } },
      { event: "recording.started", user: "ops", origin: { source: "demo" }, details: { minutes: 5 } },
    ]);
  });

  it("[joy-07b] reaches everyone who watches, and stays through a reload", async () => {
    const talk = await scene.connect("admin");
    await talk.ask({ id: 1, type: "subscribe", events: ["recording.changed"] });
    await record({ server: "demo", minutes: 5 });
    await talk.until(({ type }) => type === "recording.changed");
    const config = JSON.parse(readFileSync(scene.file, "utf8")) as object;
    writeFileSync(scene.file, JSON.stringify({ ...config, tools: { deny: ["demo__get-env"] } }));
    await scene.hub.reload();
    expect((await call("demo__echo", { message: "after" })).arguments).toBe('{"message":"after"}');
    await record({ server: "demo", minutes: 0 });
  });
});

it("[joy-07b] ends by itself, which the log says", async () => {
  const clock = new FakeClock();
  const hub = await createHub({ mcpServers: {} }, { clock, store: false });
  try {
    let changes = 0;
    hub.on("recording", () => (changes += 1));
    hub.audit.recording.set(null, 1, null);
    expect(hub.audit.recording.isOn("any")).toBe(true);
    await clock.advance(59_000);
    expect(hub.audit.recording.isOn(null)).toBe(true);
    await clock.advance(1000);
    expect(hub.audit.recording.isOn("any")).toBe(false);
    expect(hub.audit.recording.state.recordings).toEqual([]);
    expect(changes).toBe(2);
    const wish = OPERATIONS.listAudit.input.parse({ type: "event" });
    expect((await hub.audit.query(wish)).entries).toMatchObject([{ event: "recording.ended" }]);
  } finally {
    await hub.close();
  }
});
