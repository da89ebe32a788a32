import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isAlive } from "../../support/processes.ts";
import { openOn, type StdioBench, wireOn } from "./stdio-bench.ts";

async function pidsOf(bench: StdioBench): Promise<{ pid: number; grandchild: number }> {
  return JSON.parse(await bench.call("pids"));
}

/** A server that writes down how it is asked to end. */
const WITNESS = `
  process.stdin.on("end", () => console.error("stdin closed")).resume();
  process.on("SIGTERM", () => console.error("SIGTERM"));
  setInterval(() => {}, 1e6);
  console.log('{"method":"ready"}');
`;

describe("StdioWire: close", () => {
  it("[spine-10d] lets a server end by itself when its stdin closes", async () => {
    const bench = await openOn("exit-on-eof-late", "50", { closeGraceMs: 60_000 });
    const { pid } = await pidsOf(bench);
    await bench.wire.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("[spine-10d] closes stdin, then sends SIGTERM, then SIGKILL", async () => {
    const bench = wireOn({ args: ["-e", WITNESS], closeGraceMs: 600 });
    await bench.wire.open(new AbortController().signal);
    await expect.poll(() => bench.messages.length).toBe(1);
    const started = performance.now();
    await bench.wire.close();
    expect(bench.wire.stderrTail()).toBe("stdin closed\nSIGTERM");
    // The grace was given: relative to what was configured, not an absolute time.
    expect(performance.now() - started).toBeGreaterThan(500);
  });

  it("[spine-10a] ends a server that ignores SIGTERM and the end of stdin", async () => {
    const bench = await openOn("ignore-sigterm", undefined, { closeGraceMs: 300 });
    const { pid } = await pidsOf(bench);
    await bench.wire.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("[spine-10a] ends grandchildren too", async () => {
    const bench = await openOn("grandchild");
    const { pid, grandchild } = await pidsOf(bench);
    expect(isAlive(grandchild)).toBe(true);
    await bench.wire.close();
    expect([isAlive(pid), isAlive(grandchild)]).toEqual([false, false]);
  });

  it("[spine-10a] ends a grandchild that ignores SIGTERM after the server itself has ended", async () => {
    const bench = await openOn("grandchild-stubborn", undefined, { closeGraceMs: 400 });
    const { grandchild } = await pidsOf(bench);
    await bench.wire.close();
    expect(isAlive(grandchild)).toBe(false);
  });

  it("[spine-10a] ends grandchildren of a server that crashed", async () => {
    const bench = await openOn("grandchild");
    const { grandchild } = await pidsOf(bench);
    void bench.call("exit", { code: 1 });
    await bench.lost;
    await bench.wire.close();
    expect(isAlive(grandchild)).toBe(false);
  });

  it("tells nothing after close, and may be closed twice or unopened", async () => {
    const bench = await openOn("list-burst");
    let lost = false;
    void bench.lost.then(() => (lost = true));
    await Promise.all([bench.wire.close(), bench.wire.close()]);
    const heard = bench.messages.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([bench.messages.length, lost]).toEqual([heard, false]);
    await wireOn().wire.close();
  });

  it("leaves no file descriptor behind", async () => {
    const descriptors = (): number => readdirSync("/proc/self/fd").length;
    const first = await openOn("ok");
    await first.call("echo", { text: "x" });
    await first.wire.close();
    const before = descriptors();
    for (let n = 0; n < 5; n++) {
      const bench = await openOn("ok");
      await bench.call("echo", { text: "x" });
      await bench.wire.close();
    }
    await expect.poll(descriptors).toBeLessThanOrEqual(before);
  });
});
