import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { stopHub } from "../../../src/cli/hub/stop-hub.ts";
import type { HubRecord } from "../../../src/hub/activity/hub-records.ts";
import { isAlive } from "../../support/processes.ts";

/** A program that answers every request so, in a process of its own. */
async function answering(status: number, body: string): Promise<HubRecord> {
  const script = `require("node:http").createServer((_, response) => response.writeHead(${status}).end(${JSON.stringify(body)}))
    .listen(0, "127.0.0.1", function () { console.log(this.address().port); });`;
  const child = spawn(process.execPath, ["--eval", script], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [port] = await once(child.stdout, "data");
  return { url: `http://127.0.0.1:${String(port).trim()}`, pid: child.pid ?? 0, token: "t" };
}

describe("[counter-01m] hub stop", () => {
  it("ends a hub whose program was replaced under it, so that it can load nothing more", async () => {
    const body = JSON.stringify({ error: { code: "internal", message: "Cannot find module" } });
    const hub = await answering(500, body);
    expect(await stopHub(hub)).toBe(true);
    expect(isAlive(hub.pid)).toBe(false);
  });

  it.each([
    [404, "nothing here"],
    [401, JSON.stringify({ error: { code: "unauthorized", message: "no token" } })],
    [500, "a fault of its own"],
  ])("leaves a program alone that has the hub's process id and port by now, and answers %i", async (status, body) => {
    const other = await answering(status, body);
    expect(await stopHub(other)).toBe(false);
    expect(isAlive(other.pid)).toBe(true);
  });
});
