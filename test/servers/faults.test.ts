import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { createHub, type HubOptions } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { ConfigInput } from "../../src/model/config.ts";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { isAlive } from "../support/processes.ts";
import { misbehaving } from "../support/servers.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

const FAST_RESTART = { restart: { initialDelay: 20, maxDelay: 50 } };

async function start(
  mcpServers: Record<string, ServerEntryInput>,
  config: ConfigInput = {},
  options: HubOptions = {},
): Promise<Hub> {
  hub = await createHub({ mcpServers, limits: { callsPerMinute: 1_000_000, concurrency: 1000 }, ...config }, options);
  return hub;
}

const info = (hub: Hub, id: string) => hub.servers.list().find((server) => server.id === id);
const echo = (hub: Hub, server: string, text = "hi") => hub.call({ name: `${server}__echo`, arguments: { text } });
const echoed = (text = "hi") => ({ ok: true, result: { content: [{ type: "text", text }] } });

describe("[spine-08a] a sick server", () => {
  it("delays and breaks no other", async () => {
    const hub = await start(
      {
        slow: misbehaving("slow-start", "1500"),
        silent: { ...misbehaving("never-answers"), timeout: 3000, restart: false },
        crash: { ...misbehaving("crash-on-start"), restart: false },
        missing: { command: "no-such-program-toolcrib" },
        well: misbehaving("ok"),
      },
      {},
      { wait: false },
    );
    await expect.poll(() => info(hub, "well")?.state).toBe("ready");
    expect(info(hub, "slow")?.state).toBe("connecting");
    expect(info(hub, "silent")?.state).toBe("connecting");
    expect(await echo(hub, "well")).toMatchObject(echoed());

    await expect.poll(() => info(hub, "slow")?.state).toBe("ready");
    await expect.poll(() => info(hub, "silent")?.state).toBe("failed");
    expect(info(hub, "crash")).toMatchObject({ state: "failed", status: "error" });
    expect(info(hub, "crash")?.lastError).toMatch(/exited with code 3/);
    expect(info(hub, "crash")?.lastError).toContain("MISBEHAVING_KEY is not set");
    expect(info(hub, "missing")?.lastError).toMatch(/command not found: no-such-program-toolcrib/i);
    expect(info(hub, "silent")?.lastError).toMatch(/did not answer|timed out|no answer/i);
  });
});

describe("[spine-21b] a misbehaving server", () => {
  it("that crashes during a call ends that call and comes back", async () => {
    const hub = await start({ ill: { ...misbehaving("ok"), ...FAST_RESTART } });
    const outcome = await hub.call({ name: "ill__exit", arguments: { code: 9 } });
    expect(outcome).toMatchObject({ ok: false, error: { code: "server_unavailable" } });
    expect(JSON.stringify(outcome)).toContain("exited with code 9");
    await expect.poll(() => info(hub, "ill")?.state).toBe("ready");
    expect(await echo(hub, "ill")).toMatchObject(echoed());
  });

  it("that crashes on every call answers each with an error and is given up in the end", async () => {
    const hub = await start({
      ill: { ...misbehaving("crash-on-start"), restart: { max: 2, initialDelay: 10, maxDelay: 20 } },
    });
    await expect.poll(() => info(hub, "ill")?.state).toBe("failed");
    expect(await echo(hub, "ill")).toMatchObject({
      ok: false,
      error: { code: "server_unavailable", message: expect.stringContaining("exited with code 3") },
    });
  });

  it("[spine-08b] is named when a tool of it is called while it is down, and woken when it only waits to be asked", async () => {
    const hub = await start({
      lazy: { ...misbehaving("ok"), autoConnect: false },
      off: { ...misbehaving("ok"), enabled: false },
      hidden: { ...misbehaving("ok"), autoConnect: false, roles: ["ops"] },
    });
    expect(info(hub, "lazy")?.state).toBe("idle");
    expect(await echo(hub, "lazy")).toMatchObject(echoed());
    expect(info(hub, "lazy")?.state).toBe("ready");
    expect(await echo(hub, "off")).toMatchObject({
      ok: false,
      error: { code: "server_unavailable", message: expect.stringContaining("disabled") },
    });
    const guest = hub.openSession({ owner: false });
    expect(await hub.call({ session: guest, name: "hidden__echo" })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    });
    expect(info(hub, "hidden")?.state).toBe("idle");
  });

  it("that hangs times out, and other calls go on", async () => {
    const hub = await start({ ill: { ...misbehaving("hang"), toolTimeout: 300 }, well: misbehaving("ok") });
    const [hung, fine] = await Promise.all([echo(hub, "ill"), echo(hub, "well")]);
    expect(hung).toMatchObject({ ok: false, error: { code: "timeout" } });
    expect(fine).toMatchObject(echoed());
    expect(info(hub, "ill")?.state).toBe("ready");
  });

  it("[spine-09e] that writes junk, floods stderr or sends a 50 MB line is survived", async () => {
    const hub = await start({
      junk: misbehaving("junk"),
      flood: misbehaving("stderr-flood"),
      huge: misbehaving("huge-line"),
      twice: misbehaving("answers-twice"),
    });
    for (const server of ["junk", "flood", "huge", "twice"]) {
      expect(await echo(hub, server, server), server).toMatchObject(echoed(server));
      expect(await echo(hub, server, "again"), server).toMatchObject(echoed("again"));
    }
    expect(hub.servers.list().map((server) => server.state)).toEqual(["ready", "ready", "ready", "ready"]);
  });

  it("[spine-13b] that announces list changes in a burst is read a few times, not each time", async () => {
    const hub = await start({ burst: misbehaving("list-burst", "300") });
    let changes = 0;
    hub.on("catalog", () => changes++);
    expect(await echo(hub, "burst")).toMatchObject(echoed());
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(changes).toBe(0);
    expect(await echo(hub, "burst")).toMatchObject(echoed());
  });

  it("[spine-14c] whose definitions are partly bad keeps the good ones", async () => {
    const warnings: string[] = [];
    const hub = await start({ bad: misbehaving("bad-tools"), well: misbehaving("ok") }, {}, { wait: false });
    hub.on("warning", ({ message }) => warnings.push(message));
    await expect.poll(() => info(hub, "bad")?.state).toBe("ready");
    await expect.poll(() => info(hub, "well")?.state).toBe("ready");
    const names = hub.view(hub.session).tools.map((tool) => tool.name);
    expect(names).toEqual(expect.arrayContaining(["bad__echo", "bad__twice", "well__echo"]));
    const twice = hub.view(hub.session).tools.find((tool) => tool.name === "bad__twice");
    expect(twice?.definition.description).toBe("last");
    expect([...warnings, ...hub.internals.quarantined().map((each) => each.reason)].join("\n")).toMatch(
      /twice|duplicate/i,
    );
  });

  it("[spine-10a] that ignores SIGTERM, or leaves a stubborn grandchild, is gone after close", async () => {
    const hub = await start({ deaf: misbehaving("ignore-sigterm"), family: misbehaving("grandchild-stubborn") });
    const pids: number[] = [];
    for (const server of ["deaf", "family"]) {
      const outcome = await hub.call({ name: `${server}__pids` });
      if (!outcome.ok) throw new Error(outcome.error.message);
      const found: { pid: number; grandchild: number | null } = JSON.parse(String(outcome.result.content[0]?.["text"]));
      pids.push(found.pid, ...(found.grandchild === null ? [] : [found.grandchild]));
    }
    expect(pids).toHaveLength(3);
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    await hub.close();
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false, false]);
  });

  it("[spine-11d] takes any number of calls on one signal and leaks no listener", async () => {
    const hub = await start({ well: misbehaving("ok") }, { limits: { callsPerMinute: 1_000_000, concurrency: 1000 } });
    const { signal } = new AbortController();
    let good = 0;
    for (let round = 0; round < 20; round++) {
      const outcomes = await Promise.all(
        Array.from({ length: 500 }, (_, n) =>
          hub.call({ name: "well__echo", arguments: { text: `${round}-${n}` }, signal }),
        ),
      );
      good += outcomes.filter(
        (outcome, n) => outcome.ok && outcome.result.content[0]?.["text"] === `${round}-${n}`,
      ).length;
    }
    expect(good).toBe(10_000);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect(getEventListeners(hub.session.closing, "abort")).toHaveLength(0);
  });
});
