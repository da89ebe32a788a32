/** What a server leaves behind: processes that it started, and that no longer belong to anything. */
import { existsSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/processes.ts";
import { isMissing } from "../support/skips.ts";
import { workspace, type Workspace } from "./run-cli.ts";

const reason = process.platform === "linux" ? undefined : "the system does not show the environment of processes";
const skipped = isMissing("processes in sessions of their own", reason);

const started: number[] = [];
afterEach(() => {
  for (const pid of started.splice(0)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
});

/** Starts two programs that ignore SIGTERM, one of them in a session of its own, writes their pids to a file, and goes on as told. */
const PARENT = `
  const { spawn } = require("node:child_process");
  const { appendFileSync } = require("node:fs");
  const [file, then] = process.argv.slice(1);
  const idle = "process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); setInterval(() => {}, 1e6); console.log(1)";
  const started = [false, true].map((detached) => {
    const child = spawn(process.execPath, ["-e", idle], { detached, stdio: ["ignore", "pipe", "ignore"] });
    appendFileSync(file, child.pid + "\\n");
    return new Promise((resolve) => child.stdout.once("data", resolve));
  });
  Promise.all(started).then(() => {
    appendFileSync(file, "up\\n");
    if (then === "crash") process.exit(3);
    // Ends with its input, as servers do when their hub is gone.
    process.stdin.on("end", () => process.exit(0)).resume();
  });
`;

function startedPids(file: string): Promise<number[]> {
  return eventually(() => {
    const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
    if (!lines.includes("up")) return undefined;
    const pids = lines.filter((line) => line !== "up").map(Number);
    started.push(...pids);
    return pids;
  }, "the programs of the server");
}

function parentIn(space: Workspace, then: string): { file: string; server: Record<string, unknown> } {
  const file = join(space.dir, "pids");
  return { file, server: { command: process.execPath, args: ["-e", PARENT, file, then] } };
}

describe.skipIf(skipped)("processes that a server leaves behind", () => {
  it("[whole-11a] are ended at once if it crashes at its start", async () => {
    const space = workspace();
    const { file, server } = parentIn(space, "crash");
    space.configure({ broken: { ...server, restart: false } });
    const { child } = space.start(["serve", "--config", space.configFile, "--port", "0"]);
    const pids = await startedPids(file);
    await eventually(() => !pids.some(isAlive), "both ended while the hub runs");
    expect(child.exitCode).toBeNull();
  });

  it("[whole-11b] are ended by the next hub if theirs was killed before the server had answered", async () => {
    const space = workspace();
    const { file, server } = parentIn(space, "wait");
    space.configure({ slow: server });
    const { child } = space.start(["serve", "--config", space.configFile, "--port", "0"]);
    const pids = await startedPids(file);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(pids.map(isAlive)).toEqual([true, true]);
    space.configure({});
    expect((await space.run(["list", "--standalone", "--config", space.configFile])).code).toBe(0);
    expect(pids.map(isAlive)).toEqual([false, false]);
  });
});
