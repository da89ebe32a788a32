import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it } from "vitest";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import type { ServerInfo } from "../../src/model/server-state.ts";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/processes.ts";
import { workspace, type Workspace } from "./run-cli.ts";

const COUNTING = resolve(import.meta.dirname, "../fixtures/counting-server.mjs");

/** So many servers that note each life of theirs in one file. */
function countingServers(place: Workspace, count: number): Record<string, unknown> {
  const lives = join(place.dir, "lives");
  const ids = Array.from({ length: count }, (_, n) => `s${n}`);
  return Object.fromEntries(
    ids.map((id) => [id, { command: process.execPath, args: [COUNTING, `--name=${id}`, `--lives=${lives}`] }]),
  );
}

function starts(place: Workspace): number[] {
  const file = join(place.dir, "lives");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.flatMap((line) => (line.startsWith("start ") ? [Number(line.split(" ")[2])] : []));
}

/** Resolves when it listens. */
async function serve(place: Workspace): Promise<{ url: string; pid: number; end: () => Promise<void> }> {
  const { child, finished } = place.start(["serve", "--port", "0"]);
  let said = "";
  child.stdout?.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  const url = await eventually(() => /http:\/\/127\.0\.0\.1:\d+(?=\/mcp)/.exec(said)?.[0], "the address of serve");
  return {
    url,
    pid: child.pid ?? 0,
    async end() {
      child.kill("SIGTERM");
      await finished;
    },
  };
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  return client;
}

/** On systems that tell. */
function childrenOf(pid: number): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  const listed = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return listed === "" ? [] : listed.split(" ").map(Number);
}

/** They have run once, and none of them runs any more. */
async function learned(place: Workspace, count: number): Promise<void> {
  const first = await serve(place);
  const client = await connect(first.url);
  await eventually(async () => (await client.listTools()).tools.length === count * 6, "all lists");
  await client.close();
  await first.end();
  expect(starts(place)).toHaveLength(count);
  expect(starts(place).filter(isAlive)).toEqual([]);
}

describe("lazy servers", () => {
  it("[counter-06a] are all listed by serve as soon as it answers, and none of them runs", async () => {
    const place = workspace();
    place.configure(countingServers(place, 30), { start: "lazy" });
    await learned(place, 30);

    const hub = await serve(place);
    const client = await connect(hub.url);
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(30 * 6);
    expect(starts(place)).toHaveLength(30);
    expect(childrenOf(hub.pid)).toEqual([]);

    const answer = await client.callTool({ name: "s7__who", arguments: {} });
    expect(starts(place)).toHaveLength(31);
    expect(answer.content).toEqual([{ type: "text", text: String(starts(place)[30]) }]);
    await client.close();
    await hub.end();
  });

  it("[counter-07a] are shown as asleep by REST and `status`, and wake and sleep by REST", async () => {
    const place = workspace();
    place.configure(countingServers(place, 2), { start: "lazy" });
    await learned(place, 2);
    const hub = await serve(place);

    const token = readHubRecords(place.home)[0]?.token ?? "";
    const one = async (method: string, path: string): Promise<unknown> => {
      const response = await fetch(`${hub.url}/api/v1/mcp/servers${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
      return response.json();
    };
    const asleep = { state: "idle", status: "disconnected", sleeping: true, toolCount: 6 };
    expect(await one("GET", "/s0")).toMatchObject({ server: asleep });
    const shown = await place.runHere(["status", "--json"]);
    expect(shown.json<ServerInfo[]>()).toMatchObject([asleep, asleep]);
    expect((await place.runHere(["status"])).stdout).toMatch(/s0 +idle +stdio +6 .*asleep/);
    expect((await place.runHere(["list", "--json"])).json()).toHaveLength(12);
    expect(starts(place)).toHaveLength(2);

    expect(await one("POST", "/s0/connect")).toMatchObject({ server: { state: "ready" } });
    expect(starts(place)).toHaveLength(3);
    expect(await one("POST", "/s0/disconnect")).toMatchObject({ server: asleep });
    await expect.poll(() => isAlive(starts(place)[2] ?? 0)).toBe(false);
    await hub.end();
  });

  it("were announced before anyone asked for the WebSocket, which is loaded by its first client", async () => {
    const place = workspace();
    place.configure(countingServers(place, 2), { start: "lazy" });
    const hub = await serve(place);
    const client = await connect(hub.url);
    await eventually(async () => (await client.listTools()).tools.length === 12, "all lists");
    await client.close();

    const socket = new WebSocket(`${hub.url.replace(/^http/, "ws")}/ws?after=0`, ["toolcrib.v1"]);
    const types: string[] = [];
    socket.addEventListener("message", ({ data }) => {
      types.push((JSON.parse(String(data)) as { readonly type: string }).type);
    });
    await eventually(() => types.filter((type) => type === "mcp.server.connected").length === 2, "earlier events");
    expect(types[0]).toBe("hello");
    socket.close();
    await hub.end();
  });

  it("[counter-06b] are listed and called by a command without a hub, which starts only what it calls", async () => {
    const place = workspace();
    place.configure(countingServers(place, 3), { start: "lazy" });
    await learned(place, 3);
    expect((await place.runHere(["list", "--json"])).json()).toHaveLength(18);
    expect((await place.runHere(["list", "s2", "--json"])).json()).toHaveLength(6);
    expect((await place.runHere(["status"])).stdout).toContain("asleep");
    expect(starts(place)).toHaveLength(3);
    const called = await place.runHere(["call", "s1__who"]);
    expect(called).toMatchObject({ code: 0 });
    expect(starts(place)).toHaveLength(4);
    expect(called.stdout.trim()).toBe(String(starts(place)[3]));
  });

  it("[counter-06c] are started to approve what they say now", async () => {
    const place = workspace();
    place.configure(countingServers(place, 2), { start: "lazy" });
    await learned(place, 2);
    expect(await place.runHere(["pins", "diff"])).toMatchObject({ code: 0 });
    expect(starts(place)).toHaveLength(4);
    expect(await place.runHere(["pins", "diff", "s1__who"])).toMatchObject({ code: 0 });
    expect(starts(place)).toHaveLength(5);
  });
});
