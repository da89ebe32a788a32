import { describe, expect, it } from "vitest";
import { testServer } from "../../../src/hub/servers/test-server.ts";
import type { ConnectionDeps } from "../../../src/upstream/connection-deps.ts";
import { depsOf, specOf } from "../../support/connection-bench.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeWire, legacyHandlers } from "../../support/fake-wire.ts";
import { misbehaving } from "../../support/servers.ts";
import { isAlive } from "../../support/processes.ts";
import { ids, Place, sound } from "./place.ts";

/** A server that says its process id on stderr first. */
const talking = (rest: string): string[] => ["-e", `process.stderr.write("pid " + process.pid + "\\n"); ${rest}`];

function pidIn(stderr: readonly string[]): number {
  const [, pid] = /^pid (\d+)$/m.exec(stderr.join("\n")) ?? [];
  return Number(pid);
}

describe("[oper-09b] a server that is tried before it is saved", () => {
  it("says what it has, and leaves nothing behind", async () => {
    const hub = await new Place().hub();
    const version = hub.view(hub.session).tools;
    const tested = await hub.servers.test("s", sound());
    expect(tested).toMatchObject({ ok: true, serverVersion: "1.0.0", error: null });
    expect(tested.tools).toContain("echo");
    expect(ids(hub)).toEqual([]);
    expect(hub.view(hub.session).tools).toBe(version);
    expect(await hub.internals.store?.servers.list()).toEqual([]);
  });

  it("says why it does not work, in its own words, masked, and is ended", async () => {
    const hub = await new Place().hub({ env: { ...process.env, MY_TOKEN: "canary-of-the-test" } });
    const broken = { command: process.execPath, args: talking("console.error(process.env.T); process.exit(4)") };
    const crashed = await hub.servers.test(undefined, { ...broken, env: { T: "${MY_TOKEN}" } });
    expect(crashed).toMatchObject({ ok: false, tools: [], error: expect.stringContaining("exited with code 4") });
    expect(crashed.stderr).toContain("[redacted]");
    expect(JSON.stringify(crashed)).not.toContain("canary-of-the-test");
    expect(await hub.servers.test(undefined, { command: "toolcrib-no-such-program" })).toMatchObject({
      ok: false,
      error: expect.stringContaining("command not found"),
      hint: expect.any(String),
    });
  });

  it("is given up in time or when nobody waits any more, and its process ends", async () => {
    const hub = await new Place().hub();
    const silent = { command: process.execPath, args: talking("process.stdin.resume()"), timeout: 400 };
    const late = await hub.servers.test(undefined, silent);
    expect(late).toMatchObject({ ok: false, error: expect.stringMatching(/400 ms|timeout|no answer/i) });
    expect(isAlive(pidIn(late.stderr))).toBe(false);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 300);
    const cancelled = await hub.servers.test(undefined, { ...silent, timeout: 60_000 }, controller.signal);
    expect(cancelled).toMatchObject({ ok: false, error: "the test was cancelled" });
    expect(isAlive(pidIn(cancelled.stderr))).toBe(false);
  });
});

describe("[oper-09b] the time that a server has to connect", () => {
  it("begins when what is made for it once, such as an image, is ready", async () => {
    const clock = new FakeClock();
    const openWire: ConnectionDeps["openWire"] = (kind) =>
      Object.assign(new FakeWire(kind, legacyHandlers()), { makeReady: () => clock.advance(3_600_000) });
    const tested = await testServer(specOf({ command: "server" }), depsOf(clock, { openWire }), undefined);
    expect(tested).toMatchObject({ ok: true, error: null });
    const silent: ConnectionDeps["openWire"] = (kind) =>
      Object.assign(new FakeWire(kind), { makeReady: () => clock.advance(1), open: () => clock.advance(3_600_000) });
    const late = await testServer(specOf({ command: "server" }), depsOf(clock, { openWire: silent }), undefined);
    expect(late).toMatchObject({ ok: false });
    expect(clock.pending).toBe(0);
  });
});

describe("[oper-09b] why a server is red", () => {
  it("is told by its last words and its history, over restarts", async () => {
    const hub = await new Place().hub();
    await hub.servers.add("s", { ...misbehaving("crash-on-start", "3"), restart: { max: 1, initialDelay: 50 } });
    await expect.poll(async () => (await hub.servers.get("s"))?.state).toBe("failed");
    const detail = await hub.servers.get("s");
    expect(detail?.history.map(({ state }) => state)).toEqual(["connecting", "restarting", "connecting", "failed"]);
    expect(detail?.history.at(-1)?.reason).toContain("exited with code 3");
    // Once for each start.
    expect(detail?.stderr.filter((line) => line.includes("MISBEHAVING_KEY is not set"))).toHaveLength(2);
    await hub.servers.update("s", { args: sound()["args"] });
    expect((await hub.servers.get("s"))?.history.at(-1)).toMatchObject({ state: "ready" });
    await hub.servers.remove("s");
    await hub.servers.add("s", { command: "x", autoConnect: false });
    expect(await hub.servers.get("s")).toMatchObject({ history: [], stderr: [], state: "idle" });
  });
});
