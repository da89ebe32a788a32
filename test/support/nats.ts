/** A real NATS server with JetStream for tests: loopback, a free port, its store in a temporary folder. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface Nats {
  readonly url: string;
  /** Stops it in the middle of whatever it does, or lets it go on. */
  freeze(frozen: boolean): void;
  /** Ends it at once; the store stays. */
  kill(): Promise<void>;
  /** Again at the same port; with `wiped`, of what it had stored nothing is left. */
  restart(options?: { wiped?: boolean }): Promise<void>;
  stop(): Promise<void>;
}

export interface NatsOptions {
  readonly jetStream?: boolean;
  readonly user?: string;
  readonly password?: string;
}

/** Debian has it in a folder that is not on everybody's path. */
const PROGRAM = ["/usr/sbin/nats-server", "/usr/bin/nats-server"].find((path) => existsSync(path)) ?? "nats-server";

/** Why there can be none here, or undefined. */
export function missingNats(): string | undefined {
  const found = spawnSync(PROGRAM, ["--version"], { encoding: "utf8" });
  return found.status === 0 ? undefined : "no program nats-server on the path";
}

export async function startNats(options: NatsOptions = {}): Promise<Nats> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-nats-"));
  const store = join(dir, "store");
  let running = await launch(dir, store, -1, options);
  const { port } = running;
  return {
    url: `nats://127.0.0.1:${port}`,
    freeze(frozen) {
      const { child } = running;
      child.kill(frozen ? "SIGSTOP" : "SIGCONT");
      // The signal is only on its way when it has been sent.
      if (frozen) while (!/^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, "utf8")));
    },
    kill: () => end(running.child),
    async restart({ wiped = false } = {}) {
      await end(running.child);
      if (wiped) rmSync(store, { recursive: true, force: true });
      running = await launch(dir, store, port, options);
    },
    async stop() {
      await end(running.child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function launch(dir: string, store: string, port: number, options: NatsOptions) {
  for (const old of readdirSync(dir).filter((name) => name.endsWith(".ports"))) rmSync(join(dir, old));
  const credentials = options.user === undefined ? [] : ["--user", options.user, "--pass", options.password ?? ""];
  const child = spawn(
    PROGRAM,
    ["-a", "127.0.0.1", "-p", String(port), "--ports_file_dir", dir, ...credentials].concat(
      options.jetStream === false ? [] : ["-js", "-sd", store],
    ),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  child.stderr?.on("data", (chunk) => (log += String(chunk)));
  for (let attempt = 0; attempt < 400 && child.exitCode === null; attempt++) {
    const found = portIn(join(dir, `nats-server_${child.pid}.ports`));
    // The ports file is written before JetStream takes requests.
    if (found !== undefined && log.includes("Server is ready")) return { child, port: found };
    await delay(10);
  }
  await end(child);
  throw new Error(`nats-server does not start: ${log}`);
}

function portIn(file: string): number | undefined {
  if (!existsSync(file)) return undefined;
  return Number(/"nats:\/\/[^"]*:(\d+)"/.exec(readFileSync(file, "utf8"))?.[1] ?? Number.NaN) || undefined;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}
