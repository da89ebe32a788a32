import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { LIBRARY } from "../support/main-program.ts";
import { isAlive } from "../support/processes.ts";
import { misbehaving } from "../support/servers.ts";

const home = mkdtempSync(join(tmpdir(), "toolcrib-exit-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Runs a program that uses the library; `hub` and `pids` (of server and grandchild) are there for its body. */
function program(body: string) {
  const code = `
    import { createHub, loadMCPServers, ToolRegistry, closeOnSignals } from ${JSON.stringify(LIBRARY)};
    const config = ${JSON.stringify({ mcpServers: { a: misbehaving("grandchild") } })};
    const hub = await createHub(config, { home: ${JSON.stringify(home)} });
    const outcome = await hub.call({ name: "a__pids" });
    console.log(outcome.result.content[0].text);
    ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk) => (out += String(chunk)));
  child.stderr.on("data", (chunk) => (err += String(chunk)));
  const pids = async (): Promise<number[]> => {
    await expect.poll(() => out).toContain("\n");
    const found: { pid: number; grandchild: number } = JSON.parse(out.split("\n")[0] ?? "");
    return [found.pid, found.grandchild];
  };
  return { child, pids, errors: () => err };
}

const gone = async (pids: number[]): Promise<void> => {
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
};

describe("[spine-16e] a program that closes its hub", () => {
  it.each([
    ["close()", "await hub.close();"],
    ["asyncDispose", "await hub[Symbol.asyncDispose]();"],
    ["closing twice at once", "await Promise.all([hub.close(), hub.close()]);"],
    [
      "loadMCPServers failed",
      'await hub.close(); await loadMCPServers(config, undefined, { for: "nobody" }).catch(() => {});',
    ],
  ])("exits by itself after %s and leaves no process", async (_name, body) => {
    const { child, pids, errors } = program(body);
    const [code] = await once(child, "exit");
    expect(errors()).toBe("");
    expect(code).toBe(0);
    await gone(await pids());
  });
});

describe("[spine-10b] a program that is told to end", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("by %s leaves no process", async (signal) => {
    const { child, pids } = program(`closeOnSignals(() => hub.close()); setInterval(() => {}, 1000);`);
    const started = await pids();
    expect(started.map(isAlive)).toEqual([true, true]);
    child.kill(signal);
    await once(child, "exit");
    await gone(started);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("by %s, and does not listen for it, leaves no process", async (signal) => {
    const { child, pids } = program("setInterval(() => {}, 1000);");
    const started = await pids();
    child.kill(signal);
    const [, died] = await once(child, "exit");
    expect(died).toBe(signal);
    await gone(started);
  });

  it("and handles the signal itself is not interfered with", async () => {
    const { child, pids } = program(
      "process.on('SIGTERM', () => setTimeout(() => hub.close().then(() => process.exit(7)), 200)); setInterval(() => {}, 1000);",
    );
    const started = await pids();
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect(code).toBe(7);
    await gone(started);
  });

  it("by process.exit() leaves no process either", async () => {
    const { child, pids } = program("process.exit(0);");
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    await gone(await pids());
  });
});

describe("[spine-10c] after a SIGKILL of our own process", () => {
  it("the next start ends the orphans, and a hub that is alive keeps its own", async () => {
    const killed = program("setInterval(() => {}, 1000);");
    const alive = program("setInterval(() => {}, 1000);");
    const orphans = await killed.pids();
    const kept = await alive.pids();
    killed.child.kill("SIGKILL");
    await once(killed.child, "exit");

    const next = program("await hub.close();");
    await once(next.child, "exit");
    await gone(orphans);
    expect(kept.map(isAlive)).toEqual([true, true]);
    alive.child.kill("SIGTERM");
    await once(alive.child, "exit");
    const last = program("await hub.close();");
    await once(last.child, "exit");
    await gone(kept);
  });
});
