/** The real everything server on a loopback port, over Streamable HTTP or SSE. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { everythingArgs } from "./servers.ts";

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  probe.close();
  await once(probe, "close");
  return address.port;
}

export async function startEverything(transport: "sse" | "streamableHttp", port?: number): Promise<RunningServer> {
  const chosen = port ?? (await freePort());
  const child = spawn(process.execPath, everythingArgs(transport), {
    env: { ...process.env, PORT: String(chosen) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  const listening = new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      said += chunk.toString();
      if (/listening|running on port/i.test(said)) resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => reject(new Error(`the everything server did not start: ${said}`)));
  });
  await listening;
  return {
    url: `http://127.0.0.1:${chosen}/${transport === "sse" ? "sse" : "mcp"}`,
    pid: child.pid ?? -1,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}
