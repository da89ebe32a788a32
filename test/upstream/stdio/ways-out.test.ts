/** Whatever way our own process ends, except SIGKILL, nothing that it started lives on. */
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isAlive } from "../../support/processes.ts";
import { startSmallHub } from "./small-hub-process.ts";

const runDir = (): string => mkdtempSync(join(tmpdir(), "toolcrib-run-"));

describe("the ways out of a hub's process", () => {
  it("[spine-16e] after close() node exits by itself and no record is left", async () => {
    const dir = runDir();
    const hub = await startSmallHub(dir, "close");
    expect(await hub.ended).toEqual([0, null]);
    expect([isAlive(hub.pid), isAlive(hub.grandchild)]).toEqual([false, false]);
    expect(readdirSync(dir)).toEqual([]);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "[spine-10b] %s closes first and then kills as it would have",
    async (signal) => {
      const hub = await startSmallHub(runDir(), "signal");
      expect(await hub.line()).toBe("listening");
      hub.process.kill(signal);
      expect(await hub.line()).toBe("closed");
      expect(await hub.ended).toEqual([null, signal]);
      expect([isAlive(hub.pid), isAlive(hub.grandchild)]).toEqual([false, false]);
    },
  );

  it("[spine-10b] a second signal does not wait for a server that will not end", async () => {
    const hub = await startSmallHub(runDir(), "slow-signal", "ignore-sigterm");
    expect(await hub.line()).toBe("listening");
    hub.process.kill("SIGINT");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(isAlive(hub.hub)).toBe(true);
    hub.process.kill("SIGTERM");
    expect(await hub.ended).toEqual([null, "SIGTERM"]);
    await expect.poll(() => isAlive(hub.pid)).toBe(false);
  });

  it.each(["exit", "throw"])("[spine-10b] %s without close leaves nothing", async (way) => {
    const hub = await startSmallHub(runDir(), way, "grandchild-stubborn");
    const [code] = await hub.ended;
    expect(code).toBe(way === "exit" ? 0 : 1);
    await expect.poll(() => [isAlive(hub.pid), isAlive(hub.grandchild)]).toEqual([false, false]);
  });

  it("importing alone listens to no signal", async () => {
    const before = ["SIGINT", "SIGTERM", "SIGHUP", "exit"].map((name) => process.listenerCount(name));
    const { closeOnSignals } = await import("../../../src/upstream/stdio/child-processes.ts");
    expect(["SIGINT", "SIGTERM", "SIGHUP", "exit"].map((name) => process.listenerCount(name))).toEqual(before);
    const stop = closeOnSignals(async () => {});
    expect(process.listenerCount("SIGTERM")).toBe((before[1] ?? 0) + 1);
    stop();
    expect(process.listenerCount("SIGTERM")).toBe(before[1]);
  });
});
