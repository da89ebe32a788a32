import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { misbehaving } from "../../support/servers.ts";
import { acpOn, calls, says } from "./acp-bench.ts";
import { eventually } from "../../support/eventually.ts";

const place = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-acp-config-")));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const inside = join(place, "project");
const outside = join(place, "outside");
const home = join(inside, "home");
for (const dir of [inside, outside, home]) mkdirSync(dir, { recursive: true });
const file = join(inside, "toolcrib.json");

/** A server that shows that it was started. */
function config(trace?: string): string {
  const args = ["-e", `require("node:fs").writeFileSync(${JSON.stringify(trace)}, "")`];
  return JSON.stringify({ mcpServers: trace === undefined ? {} : { evil: { command: process.execPath, args } } });
}

describe("[acp-12c] the hub's own files", () => {
  it("are not written through the client, nor read in the home, nor reached through links", async () => {
    writeFileSync(file, config());
    symlinkSync(outside, join(inside, "way-out"));
    symlinkSync(join(outside, "not-there.txt"), join(inside, "dangling.txt"));
    symlinkSync(file, join(inside, "alias.json"));
    const files = new Map<string, string>();
    const capabilities = { fs: { readTextFile: true, writeTextFile: true } };
    const door = { mode: "auto", home } as const;
    const { client, model } = await acpOn({ config: file, capabilities, files, door });
    const { sessionId } = await client.newSession(inside);
    const content = "x";
    const written = ["toolcrib.json", "alias.json", "home/key", "way-out/a.txt", "dangling.txt", "../outside/b.txt"];
    model.will(
      calls(
        ...written.map((path) => ["write_text_file", { path, content }] as const),
        ["read_text_file", { path: "home/key" }],
        ["write_text_file", { path: "fine.txt", content }],
      ),
      says("ok"),
    );
    await client.prompt(sessionId, "go");
    expect([...files.keys()]).toEqual([join(inside, "fine.txt")]);
    const ends = client.of("tool_call_update").filter(({ status }) => status === "failed" || status === "completed");
    expect(ends.filter(({ status }) => status === "completed")).toHaveLength(1);
  });

  it("are taken up while no session can write them, and never afterwards", async () => {
    writeFileSync(file, config());
    const logged: string[] = [];
    const door = { home, followConfig: true, log: (message: string) => void logged.push(message) };
    const { client, hub } = await acpOn({ config: file, door, capabilities: { session: { notices: {} } } });
    await client.newSession(outside);
    writeFileSync(file, config(join(outside, "first")));
    await eventually(() => existsSync(join(outside, "first")));

    await client.newSession(inside);
    writeFileSync(file, config(join(outside, "second")));
    const notice = await eventually(() => client.of("notice").find(({ title }) => title.includes("toolcrib.json")));
    expect(notice).toMatchObject({ severity: "warning", title: expect.stringContaining("Restart") });
    expect(logged).toEqual([notice.title]);
    expect(JSON.stringify(hub.config.servers)).not.toContain("second");
    expect(existsSync(join(outside, "second"))).toBe(false);
  });
});

describe("[acp-15e] the hub's own servers", () => {
  it("are there at the first prompt, and those that are not are told once", async () => {
    const mcpServers = {
      slow: misbehaving("slow-start", "300"),
      bad: { command: "/does/not/exist" },
    };
    const { client, model } = await acpOn({ config: { mcpServers }, hubOptions: { wait: false } });
    const { sessionId } = await client.newSession(outside);
    await client.prompt(sessionId, "hi");
    expect(model.tools).toContain("slow__echo");
    expect(client.text()).toMatch(/^> \*\*Note:\*\* The server "bad" of the hub could not be connected: [^]*done$/);
    await client.prompt(sessionId, "hi");
    await client.raw("session/load", { sessionId, cwd: outside, mcpServers: [] });
    await client.prompt(sessionId, "hi");
    expect(client.text().match(/"bad"/g)).toHaveLength(1);
  });

  it("are waited for no longer than a session waits, and told when they come or go", async () => {
    const mcpServers = { mute: misbehaving("never-answers"), fine: misbehaving("ok") };
    const { client, hub } = await acpOn({
      config: { mcpServers, sessions: { wait: 50 } },
      hubOptions: { wait: false },
      capabilities: { session: { notices: {} } },
    });
    await client.newSession(outside);
    expect(hub.servers.list().find(({ id }) => id === "mute")?.state).toBe("connecting");
    const titles = () => client.of("notice").map(({ title }) => title);
    await eventually(() => titles().some((title) => /"mute" of the hub is still connecting/.test(title)));
    await eventually(() => hub.servers.list().find(({ id }) => id === "fine")?.state === "ready");
    await hub.call({ name: "fine__exit" });
    await eventually(() => titles().some((title) => /"fine" of the hub was lost/.test(title)));
    await eventually(() => titles().some((title) => /"fine" of the hub is back/.test(title)));
  });

  it("[whole-28j] are told once where they are still connecting", async () => {
    const { client } = await acpOn({
      config: { mcpServers: { mute: misbehaving("never-answers") }, limits: { listWaitMs: 50 } },
      hubOptions: { wait: false },
      capabilities: { session: { notices: {} } },
    });
    const { sessionId } = await client.newSession(outside);
    await client.prompt(sessionId, "hi");
    expect(client.of("notice").map(({ title }) => title)).toEqual([
      expect.stringMatching(/^The server "mute" of the hub is still connecting/),
    ]);
  });

  it("[whole-13a] are not said to have tools where the list of them cannot be read", async () => {
    const go = join(outside, "go");
    const late = { command: process.execPath, args: ["-e", LISTLESS, go] };
    const { client } = await acpOn({
      config: { mcpServers: { late }, sessions: { wait: 50 }, limits: { listWaitMs: 50 } },
      hubOptions: { wait: false },
      capabilities: { session: { notices: {} } },
    });
    await client.newSession(outside);
    const titles = () => client.of("notice").map(({ title }) => title);
    const told =
      /"late" of the hub is connected now, but offers no tools: tools\/list could not be read: no list today/;
    await eventually(() => titles().some((title) => /"late" of the hub is still connecting/.test(title)));
    writeFileSync(go, "");
    await eventually(() => titles().some((title) => told.test(title)));
    expect(titles().join()).not.toContain("tools are available");
  });
});

/** Speaks MCP once a file exists, and answers tools/list with an error. */
const LISTLESS = `
  require("node:readline").createInterface(process.stdin).on("line", async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    while (!require("node:fs").existsSync(process.argv[1])) await new Promise((resolve) => setTimeout(resolve, 20));
    const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "late", version: "1" } };
    const answer = method === "initialize" ? { result } : { error: { code: -32603, message: "no list today" } };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
`;
