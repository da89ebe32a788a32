/** Nodes that are killed, frozen, cut off and restarted while clients write, and what became of every single write. */
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../bench/client/connect.ts";
import { directHttp } from "../../bench/subjects/floor.ts";
import type { Running } from "../../bench/subjects/subject.ts";
import { isAlive } from "../support/processes.ts";
import { countingServer, overlaps, written } from "./rig/counting.ts";
import { Load, verdictOn } from "./rig/load.ts";
import type { NodeProcess } from "./rig/node-process.ts";
import { ownerOf, ownersOf } from "./rig/owner.ts";
import { missingForCluster, type Rig, startRig } from "./rig/rig.ts";

const missing = missingForCluster();
if (missing !== undefined) console.warn(`No cluster is tested: ${missing}.`);

/** How long a failover may take with the lease that holds by default; on a machine with far more to do than it can, twice that. */
const FAILOVER_MS = (loadavg()[0] ?? 0) > 4 * availableParallelism() ? 20_000 : 10_000;
const LEASE_MS = 4000;
const SERVER = "--name=count";
const NOTHING_WRONG = { lost: [], doubled: [], denied: [] };

describe.skipIf(missing !== undefined)("three nodes under load", () => {
  let rig: Rig;
  let web: Running;
  /** Processes of servers that a test has frozen: they alone may have lived beside their successors. */
  const frozen = new Set<number>();

  beforeAll(async () => {
    web = await directHttp.start({ upstream: "http", servers: 1, tools: 1 }, []);
    const url = "url" in web.endpoint ? web.endpoint.url : "";
    rig = await startRig({
      servers: (dir) => ({ count: countingServer(dir, "count"), other: countingServer(dir, "other"), web: { url } }),
    });
    await rig.whenReady();
  }, 120_000);

  afterAll(async () => {
    expect(await rig.stop(), "processes that outlived their nodes").toEqual([]);
    await web.stop();
  }, 60_000);

  /** Runs something while clients of both eras write, and looks at all they wrote. */
  async function underLoad(name: string, during: (load: Load) => Promise<void>): Promise<Load> {
    const load = new Load({
      url: `${rig.url}/mcp`,
      name,
      clients: { legacy: 2, modern: 4 },
      tools: ["count__append", "other__append"],
    });
    try {
      await load.progress(3);
      await during(load);
      await load.progress(3);
    } catch (error) {
      throw new Error(`${String(error)}\n${load.summary()}\n${rig.logs()}`, { cause: error });
    } finally {
      await load.stop();
    }
    const verdict = verdictOn(load, rig.dir);
    expect(verdict, load.summary()).toMatchObject(NOTHING_WRONG);
    expect(verdict.answered).toBeGreaterThan(30);
    const unexpected = overlaps(rig.dir).filter(({ earlier }) => !frozen.has(earlier));
    expect(unexpected, "two processes of one server").toEqual([]);
    await rig.whenReady();
    return load;
  }

  /** Only what was begun before it was over may have failed. */
  function expectFailuresBefore(load: Load, over: number): void {
    const late = load.failed.filter(({ begun }) => begun > over);
    expect(late, `${load.summary()}\n${rig.logs()}`).toEqual([]);
  }

  it("[scale-09b] [scale-10b] a killed node: its servers are up elsewhere, and only its calls fail", async () => {
    let over = 0;
    const load = await underLoad("kill", async (running) => {
      const { node, pid } = ownerOf(rig, SERVER);
      const session = await openSession(node);
      const survivor = rig.nodes.find((each) => each !== node) ?? node;
      expect(await statusOfList(survivor, session)).toBe(200);
      const back = running.untilAnswered(FAILOVER_MS, (attempt) => attempt.pid !== pid && isOf(attempt.pid, "count"));
      await node.kill();
      expect(await back, rig.logs()).toBeLessThan(FAILOVER_MS);
      over = Date.now();
      // Then its client begins a new one.
      await expect.poll(() => statusOfList(survivor, session), { timeout: FAILOVER_MS }).toBe(404);
      await expect.poll(() => isAlive(pid), { timeout: 2000 }).toBe(false);
      await node.start();
    });
    expectFailuresBefore(load, over);
  }, 120_000);

  it("[scale-09b] [scale-10b] a frozen node that wakes up runs nothing in the name of what it had", async () => {
    let over = 0;
    const load = await underLoad("freeze", async (running) => {
      const { node } = ownerOf(rig, SERVER);
      const before = node.children();
      for (const pid of before) frozen.add(pid);
      const back = running.untilAnswered(
        FAILOVER_MS + 5000,
        (attempt) => !before.includes(attempt.pid ?? 0) && isOf(attempt.pid, "count"),
      );
      const begun = Date.now();
      node.pause({ servers: true });
      const took = await back;
      expect(took, rig.logs()).toBeLessThan(FAILOVER_MS);
      await sleep(Math.max(0, begun + LEASE_MS * 1.5 - Date.now()));
      node.resume();
      // It gives its servers up by itself, and what they had been told before the frost is all that they do.
      await expect.poll(() => before.filter(isAlive)).toEqual([]);
      const later = new Set(running.attempts.filter((attempt) => attempt.begun > begun).map(({ id }) => id));
      const byOld = written(rig.dir).filter(({ id, pid }) => before.includes(pid) && later.has(id));
      expect(byOld, "run by a process that was out").toEqual([]);
      await expect.poll(() => readiness(node)).toMatchObject({ cluster: { nodes: 3, nats: "up" } });
      over = Date.now();
    });
    expectFailuresBefore(load, over);
  }, 120_000);

  it("[scale-09b] [scale-10b] a node that is cut off from NATS gives its servers up before others take them", async () => {
    let over = 0;
    const load = await underLoad("cut", async (running) => {
      const { node, pid } = ownerOf(rig, SERVER);
      const back = running.untilAnswered(FAILOVER_MS, (attempt) => attempt.pid !== pid && isOf(attempt.pid, "count"));
      rig.setLinks(node, "silent", ["nats"]);
      expect(await back, rig.logs()).toBeLessThan(FAILOVER_MS);
      expect(isAlive(pid)).toBe(false);
      expect(await readiness(node)).toMatchObject({ cluster: { nats: "down" } });
      rig.setLinks(node, "open", ["nats"]);
      await expect.poll(() => readiness(node)).toMatchObject({ status: "ready", cluster: { nodes: 3, nats: "up" } });
      over = Date.now();
    });
    expectFailuresBefore(load, over);
  }, 120_000);

  it("[scale-09c] a rolling restart fails no call of a modern client", async () => {
    const load = await underLoad("roll", async (running) => {
      for (const node of rig.nodes) {
        await node.stop();
        await running.progress(2);
        await node.start();
        await expect.poll(() => rig.balancer.isReady(node.name)).toBe(true);
      }
    });
    expect(
      load.failed.filter(({ era }) => era === "modern"),
      `${load.summary()}\n${rig.logs()}`,
    ).toEqual([]);
  }, 150_000);

  it("[scale-09d] [scale-10b] with NATS away every node serves what needs no other, says so, and heals", async () => {
    const { pid } = ownerOf(rig, SERVER);
    await rig.nats?.kill();
    for (const node of rig.nodes) {
      await expect.poll(() => readiness(node)).toMatchObject({ cluster: { nats: "down" } });
      expect(await callAt(node, "web__echo", { text: "still here" })).toContain("still here");
    }
    await expect.poll(() => isAlive(pid), { timeout: LEASE_MS + 5000 }).toBe(false);
    await rig.nats?.restart();
    for (const node of rig.nodes) {
      await expect.poll(() => readiness(node)).toMatchObject({ status: "ready", cluster: { nodes: 3, nats: "up" } });
    }
    await expect.poll(() => ownersOf(rig, SERVER).length, { timeout: FAILOVER_MS }).toBe(1);
    await underLoad("nats", async () => {});
  }, 120_000);

  it("[scale-09d] with PostgreSQL away calls go on, every node says so, and heals", async () => {
    const load = await underLoad("postgres", async (running) => {
      for (const node of rig.nodes) rig.setLinks(node, "cut", ["postgres"]);
      for (const node of rig.nodes) {
        await expect.poll(() => readiness(node)).toMatchObject({ store: "down" });
      }
      await running.progress(3);
      for (const node of rig.nodes) rig.setLinks(node, "open", ["postgres"]);
      for (const node of rig.nodes) {
        await expect.poll(() => readiness(node)).toMatchObject({ status: "ready", store: "up" });
      }
    });
    expect(load.failed, load.summary()).toEqual([]);
  }, 60_000);

  function isOf(pid: number | undefined, server: string): boolean {
    return ownersOf(rig, `--name=${server}`).some((owner) => owner.pid === pid);
  }

  async function callAt(node: NodeProcess, name: string, args: object): Promise<string> {
    const client = await connect({ kind: "streamable", url: `${node.url}/mcp`, era: "modern" });
    try {
      return JSON.stringify(await client.request("tools/call", { name, arguments: args }, AbortSignal.timeout(5000)));
    } finally {
      await client.close();
    }
  }
});

/** An old-era session at this node; its id. */
async function openSession(node: NodeProcess): Promise<string> {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } };
  const answer = await post(node, { jsonrpc: "2.0", id: 1, method: "initialize", params });
  const session = answer.headers.get("mcp-session-id") ?? "";
  await post(node, { jsonrpc: "2.0", method: "notifications/initialized" }, session);
  return session;
}

async function statusOfList(node: NodeProcess, session: string): Promise<number> {
  return (await post(node, { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} }, session)).status;
}

async function post(node: NodeProcess, message: object, session?: string): Promise<Response> {
  const answer = await fetch(`${node.url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(session === undefined ? {} : { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" }),
    },
    body: JSON.stringify(message),
  });
  await answer.arrayBuffer();
  return answer;
}

async function readiness(node: NodeProcess): Promise<unknown> {
  const answer = await fetch(`${node.url}/readyz`, { signal: AbortSignal.timeout(3000) });
  return answer.json();
}
