import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { LocalServer } from "../../../src/upstream/clustered/local-server.ts";
import { contextOf, depsOf, specOf } from "../../support/connection-bench.ts";
import { isAlive } from "../../support/processes.ts";
import { textOf } from "./memory-nodes.ts";

const fixtures = resolve(import.meta.dirname, "../../fixtures");
/** What a server gets between being asked to end and being killed. */
const GRACE_MS = 5000;

describe("[scale-09b] a server whose lease is lost is killed", () => {
  const start = async (file: string, ...args: string[]): Promise<LocalServer> => {
    const server = new LocalServer(specOf({ command: process.execPath, args: [resolve(fixtures, file), ...args] }), {
      ...depsOf(systemClock),
    });
    await server.connection.connect();
    expect(server.state.kind).toBe("ready");
    return server;
  };
  const call = (server: LocalServer, name: string, args = {}): Promise<string> =>
    textOf(server.run({ kind: "tool", name, arguments: args }, contextOf()));

  it("with the program before it, which still had a call", async () => {
    const server = await start("counting-server.mjs");
    const pid = Number(await call(server, "who"));
    const long = call(server, "slow", { ms: 60_000 }).catch((error: unknown) => error);
    await server.respec(
      specOf({ command: process.execPath, args: [resolve(fixtures, "counting-server.mjs"), "--name=next"] }),
    );
    const next = Number(await call(server, "who"));
    expect([isAlive(pid), isAlive(next)]).toEqual([true, true]);
    await server.kill();
    expect([isAlive(pid), isAlive(next)]).toEqual([false, false]);
    expect(await long).toMatchObject({ code: "server_unavailable" });
  });

  it("at once, also while it is being closed", { retry: 2 }, async () => {
    const server = await start("misbehaving-server.mjs", "ignore-sigterm");
    const { pid } = JSON.parse(await call(server, "pids")) as { pid: number };
    const began = performance.now();
    const closing = server.close();
    await new Promise((done) => setTimeout(done, 100));
    expect(isAlive(pid)).toBe(true);
    await Promise.all([closing, server.kill()]);
    expect(isAlive(pid)).toBe(false);
    expect(performance.now() - began).toBeLessThan(GRACE_MS - 1000);
  });
});
