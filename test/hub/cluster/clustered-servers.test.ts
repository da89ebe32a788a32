import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { McpDoor } from "../../../src/doors/mcp/mcp-door.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { guest, LegacyClient, ModernClient } from "../../doors/mcp/door-bench.ts";
import { everything } from "../../support/servers.ts";
import { cluster, type Ground, LEASE_MS, missing, type Nodes, serverOf, startGround, textOf, wayTo } from "./nodes.ts";
import { isMissing } from "../../support/skips.ts";

isMissing("servers of a cluster", missing);

const taskServer = resolve(import.meta.dirname, "../../fixtures/task-server.mjs");
const followingServer = resolve(import.meta.dirname, "../../fixtures/following-server.mjs");
const WITHIN = { timeout: 60_000, interval: 30 };

describe.skipIf(missing !== undefined)("servers of a cluster", { timeout: 60_000 }, () => {
  let ground: Ground;
  let nodes: Nodes;
  beforeAll(async () => {
    ground = await startGround();
  });
  afterEach(() => nodes.close());
  afterAll(() => ground.stop());

  const call = async (hub: Hub, name: string, args: Record<string, unknown> = {}): Promise<string> =>
    textOf(await hub.call({ name, arguments: args }));

  /** The hub that runs the server, and one that does not. */
  const split = (id: string, ...hubs: Hub[]): Promise<[Hub, Hub]> => vi.waitFor(() => splitNow(id, ...hubs), WITHIN);
  const splitNow = (id: string, ...hubs: Hub[]): [Hub, Hub] => {
    const where = serverOf(hubs[0] as Hub, id).node;
    const owner = hubs.find((hub) => hub.internals.cluster?.node.name === where);
    const other = hubs.find((hub) => hub !== owner);
    if (owner === undefined || other === undefined) throw new Error(`${id} runs at ${where ?? "no node"}`);
    return [owner, other];
  };
  const starts = (id: string): number => nodes.lives(id).filter(([what]) => what === "start").length;
  const overlaps = (id: string): string[][] => nodes.lives(id).filter(([what]) => what === "overlap");

  it("[whole-24h] a task that was begun at one node is read, reported, answered and ended at another, and outlives its node", async () => {
    const file = join(ground.dir, "tasks.json");
    nodes = await cluster(ground, { s: { args: [taskServer, file, "--modern"] } });
    const hubs = await Promise.all(["a", "b"].map((name) => nodes.start(name)));
    const [owner, other] = await split("s", ...hubs);
    const [first, second] = [new McpDoor({ hub: owner }), new McpDoor({ hub: other })];
    onTestFinished(() => [first, second].forEach((door) => door.close()));
    const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
    const ask = async (client: ModernClient, method: string, params: JsonObject) =>
      (await client.request(method, params, { capabilities }))?.result;
    for (const [from, to] of [[second, first] as const, [first, second] as const]) {
      const begun = await ask(new ModernClient(from), "tools/call", { name: "s__slow", arguments: { say: "far" } });
      expect(begun).toMatchObject({ resultType: "task", status: "working" });
      const taskId = begun?.["taskId"];
      const there = new ModernClient(to);
      expect(await ask(there, "tasks/get", { taskId })).toMatchObject({ taskId, status: "input_required" });
      const eve = new ModernClient(to, { caller: guest("eve") });
      expect((await eve.request("tasks/get", { taskId }, { capabilities }))?.error?.code).toBe(-32602);
      const ending = new AbortController();
      const notifications = { taskIds: [taskId] };
      const stream = there.request("subscriptions/listen", { notifications }, { capabilities, signal: ending.signal });
      await vi.waitFor(() => expect(there.noticed("notifications/subscriptions/acknowledged")).toHaveLength(1), WITHIN);
      expect(there.noticed("notifications/subscriptions/acknowledged")).toMatchObject([{ notifications }]);
      expect(await ask(there, "tasks/update", { taskId, inputResponses: { ok: { action: "accept" } } })).toEqual({
        resultType: "complete",
      });
      writeFileSync(`${file}.go`, "");
      await vi.waitFor(
        () =>
          expect(there.noticed("notifications/tasks")).toContainEqual(
            expect.objectContaining({ taskId, status: "completed" }),
          ),
        WITHIN,
      );
      ending.abort();
      await stream;
      rmSync(`${file}.go`);
    }
    const kept = await ask(new ModernClient(first), "tools/call", { name: "s__must", arguments: { say: "kept" } });
    const taskId = kept?.["taskId"];
    first.close();
    await owner.close();
    writeFileSync(`${file}.go`, "");
    const survivor = new LegacyClient(second);
    await survivor.initialize();
    const { result } = await survivor.request("tasks/result", { taskId });
    expect(result).toMatchObject({ content: [{ text: "kept" }] });
  });

  it("[scale-05a] [scale-06a] [scale-06c] one catalog on all nodes, and one process of each server", async () => {
    nodes = await cluster(ground, { one: {}, two: {}, many: { replicas: 2 } });
    const hubs = await Promise.all(["a", "b", "c"].map((name) => nodes.start(name)));
    const names = (hub: Hub): string[] => hub.view(hub.session).tools.map(({ name }) => name);
    const [first] = hubs;
    expect(names(first as Hub)).toContain("one__echo");
    for (const hub of hubs) expect(names(hub)).toEqual(names(first as Hub));
    const pids = await Promise.all(hubs.map((hub) => call(hub, "one__who")));
    expect(new Set(pids).size).toBe(1);
    expect(starts("one")).toBe(1);
    const places = hubs.map((hub) => serverOf(hub, "one").node);
    expect(new Set(places).size).toBe(1);
    expect(["a", "b", "c"]).toContain(places[0]);
    expect(hubs.map((hub) => hub.internals.activity.overview().node)).toEqual(["a", "b", "c"]);

    // Two of them run it, the third spreads its calls over both.
    await vi.waitFor(() => expect(serverOf(first as Hub, "many").node?.split(", ")).toHaveLength(2), WITHIN);
    const taken = serverOf(first as Hub, "many").node?.split(", ") ?? [];
    const third = hubs.find((hub) => !taken.includes(hub.internals.cluster?.node.name ?? ""));
    const answered = new Set<string>();
    await vi.waitFor(async () => {
      answered.add(await call(third as Hub, "many__who"));
      expect(answered.size).toBe(2);
    }, WITHIN);
    expect(starts("many")).toBe(2);
  });

  describe("calls to another node", () => {
    it("[scale-06b] carry progress, cancellation and large results", async () => {
      nodes = await cluster(ground, { one: {} });
      const [, other] = await split("one", ...(await Promise.all([nodes.start("a"), nodes.start("b")])));
      const steps: number[] = [];
      const done = await other.call({
        name: "one__progress",
        arguments: { steps: 3 },
        onProgress: ({ progress }) => steps.push(progress),
      });
      expect(textOf(done)).toBe("done");
      expect(steps).toEqual([1, 2, 3]);

      expect(await call(other, "one__big", { bytes: 5 * 1024 * 1024 })).toHaveLength(5 * 1024 * 1024);
      const text = "x".repeat(3 * 1024 * 1024);
      expect(await call(other, "one__echo", { text })).toBe(text);

      const controller = new AbortController();
      const slow = other.call({
        name: "one__slow",
        arguments: { id: "given-up", ms: 20_000 },
        signal: controller.signal,
      });
      await vi.waitFor(() => expect(nodes.counts("one")).toContain("given-up"), WITHIN);
      controller.abort();
      expect(await slow).toMatchObject({ ok: false, error: { code: "cancelled" } });
      await vi.waitFor(() => expect(nodes.lives("one").at(-1)?.[0]).toBe("cancelled"), WITHIN);
    });

    it("[scale-06b] reach the client when the server asks, and errors come back as they are", async () => {
      nodes = await cluster(ground, { all: everything() });
      const asked: unknown[] = [];
      const options = {
        onElicit: async (params: unknown) => {
          asked.push(params);
          return { action: "decline" };
        },
      };
      const hubs = await Promise.all([nodes.start("a", options), nodes.start("b", options)]);
      const [, other] = await split("all", ...hubs);
      expect(await call(other, "all__trigger-elicitation-request")).toContain("decline");
      expect(asked).toHaveLength(1);
      const wrong = await other.call({ name: "all__echo", arguments: {} });
      expect(wrong.ok).toBe(false);
      const read = await other.read({ uri: "demo://resource/static/document/features.md" });
      expect(read.ok).toBe(true);
    });
  });

  it("[scale-09c] a node that leaves hands its servers over, and no call fails", async () => {
    nodes = await cluster(ground, { one: {} });
    const [owner, other] = await split("one", ...(await Promise.all([nodes.start("a"), nodes.start("b")])));
    const stop = new AbortController();
    let sent = 0;
    const load = Array.from({ length: 4 }, async () => {
      while (!stop.signal.aborted) await call(other, "one__append", { id: `call-${++sent}`, delayMs: 20 });
    });
    await vi.waitFor(() => expect(sent).toBeGreaterThan(20), WITHIN);
    await owner.close();
    const before = sent;
    await vi.waitFor(() => expect(sent).toBeGreaterThan(before + 20), WITHIN);
    stop.abort();
    await Promise.all(load);
    expect(nodes.counts("one").toSorted()).toEqual(Array.from({ length: sent }, (_, n) => `call-${n + 1}`).toSorted());
    expect(starts("one")).toBe(2);
    expect(overlaps("one")).toEqual([]);
    expect(serverOf(other, "one")).toMatchObject({ state: "ready", node: other.internals.cluster?.node.name });
  });

  it("[scale-06c] [scale-09b] while NATS is away nothing runs twice, and what may run anywhere goes on", async () => {
    nodes = await cluster(ground, { one: {}, many: { replicas: 2 } });
    const hubs = await Promise.all([nodes.start("a"), nodes.start("b")]);
    const [owner, other] = await split("one", ...hubs);
    const who = (): Promise<string[]> => Promise.all(hubs.map((hub) => call(hub, "many__who")));
    await vi.waitFor(async () => expect(new Set(await who()).size).toBe(2), WITHIN);
    const pids = await who();
    const pid = Number(await call(owner, "one__who"));
    ground.nats.freeze(true);
    try {
      await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), WITHIN);
      await vi.waitFor(() => expect(serverOf(owner, "one").lastError).toContain("NATS"), WITHIN);
      expect(await who()).toEqual(pids);
    } finally {
      ground.nats.freeze(false);
    }
    await vi.waitFor(async () => expect(await call(other, "one__echo", { text: "back" })).toBe("back"), WITHIN);
    expect(overlaps("one")).toEqual([]);
    expect(starts("one")).toBe(2);
    await vi.waitFor(() => expect(serverOf(owner, "many").node?.split(", ")).toHaveLength(2), WITHIN);
    expect(await who()).toEqual(pids);
    expect(starts("many")).toBe(2);
  });

  it("[scale-09b] a server whose node is cut off comes up elsewhere when its old process is gone", async () => {
    nodes = await cluster(ground, { one: { args: ["--stay"] } });
    const way = await wayTo(ground.nats.url);
    const cutOff = await nodes.start("a", { url: way.url });
    expect(serverOf(cutOff, "one").node).toBe("a");
    const other = await nodes.start("b");
    const pid = await call(other, "one__who");
    const inDoubt = other.call({ name: "one__slow", arguments: { id: "cut", ms: 30_000 } });
    await vi.waitFor(() => expect(nodes.counts("one")).toContain("cut"), WITHIN);
    way.cut();
    const lost = await inDoubt;
    expect(lost).toMatchObject({ ok: false, error: { code: "server_unavailable" } });
    expect(lost.ok || lost.error.details?.["sent"]).not.toBe(false);
    expect(await call(other, "one__who")).not.toBe(pid);
    expect(serverOf(other, "one").node).toBe("b");
    expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
    expect(overlaps("one")).toEqual([]);
    // Once only: what may have run is not sent again.
    expect(nodes.counts("one").filter((id) => id === "cut")).toHaveLength(1);
    await cutOff.close();
    await way.close();
  });

  it("[scale-06a] a changed entry replaces the program where it runs, for all nodes", async () => {
    nodes = await cluster(ground, { one: {} });
    const [owner, other] = await split("one", ...(await Promise.all([nodes.start("a"), nodes.start("b")])));
    const pid = await call(other, "one__who");
    const changed = (hub: Hub): Promise<unknown> =>
      hub.reload(nodes.config(hub.internals.cluster?.node.name ?? "", { one: { args: ["--name=next"] } }));
    await Promise.all([changed(other), changed(owner)]);
    const pids = await Promise.all([call(owner, "one__who"), call(other, "one__who")]);
    expect(pids[0]).toBe(pids[1]);
    expect(pids[0]).not.toBe(pid);
    await vi.waitFor(() => expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH"), WITHIN);
    await other.reload(nodes.config(other.internals.cluster?.node.name ?? "", {}));
    await owner.reload(nodes.config(owner.internals.cluster?.node.name ?? "", {}));
    await vi.waitFor(() => expect(() => process.kill(Number(pids[0]), 0)).toThrow("ESRCH"), WITHIN);
    expect(starts("one")).toBe(2);
  });

  it("[scale-06b] who follows a resource goes on following it on the next node", async () => {
    const file = join(ground.dir, "followers");
    nodes = await cluster(ground, { notes: { args: [followingServer, file] } });
    const [owner, other] = await split("notes", ...(await Promise.all([nodes.start("a"), nodes.start("b")])));
    const session = other.openSession();
    const heard: string[] = [];
    other.on("resource-updated", ({ originUri }) => heard.push(originUri));
    const uri = other.view(session).resources[0]?.name ?? "";
    expect(await other.internals.subscribe(session, { uri })).toMatchObject({ ok: true });
    await call(other, "notes__touch");
    await vi.waitFor(() => expect(heard).toEqual(["note://one"]), WITHIN);
    await owner.close();
    await vi.waitFor(() => expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(2), WITHIN);
    await call(other, "notes__touch");
    await vi.waitFor(() => expect(heard).toEqual(["note://one", "note://one"]), WITHIN);
  });

  it("[scale-06b] each user has a connection of their own on the node that runs it", async () => {
    const args = [followingServer, join(ground.dir, "unused")];
    nodes = await cluster(ground, { notes: { args, isolation: "user" } });
    const hubs = await Promise.all([nodes.start("a"), nodes.start("b")]);
    const pidFor = async (hub: Hub, user: string): Promise<string> =>
      textOf(await hub.call({ session: hub.openSession({ user }), name: "notes__user" }));
    const [here, there, another] = await Promise.all(
      hubs.map((hub) => pidFor(hub, "ada")).concat(hubs.slice(0, 1).map((hub) => pidFor(hub, "bob"))),
    );
    expect(here).toBe(there);
    expect(another).not.toBe(here);
  });

  it("[scale-06a] an operator's wish holds on all nodes", async () => {
    nodes = await cluster(ground, { one: {} });
    const [owner, other] = await split("one", ...(await Promise.all([nodes.start("a"), nodes.start("b")])));
    const pid = Number(await call(other, "one__who"));
    expect((await other.servers.disconnect("one")).state).toBe("idle");
    await vi.waitFor(() => expect(serverOf(owner, "one").state).toBe("idle"), WITHIN);
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), WITHIN);
    await delay(LEASE_MS);
    expect(starts("one")).toBe(1);
    expect((await other.servers.connect("one")).state).toBe("ready");
    await vi.waitFor(() => expect(serverOf(owner, "one").state).toBe("ready"), WITHIN);
    expect(starts("one")).toBe(2);
  });

  it("[scale-06a] what no node can start has failed on all of them, with the reason", async () => {
    nodes = await cluster(ground, { gone: { command: "/nonexistent/program", args: [] } });
    const hubs = await Promise.all([nodes.start("a"), nodes.start("b")]);
    for (const hub of hubs) {
      await vi.waitFor(() => expect(serverOf(hub, "gone").state).toBe("failed"), WITHIN);
      expect(serverOf(hub, "gone").lastError).toContain("nonexistent");
    }
  });
});
