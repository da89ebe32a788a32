/** The servers behind the gateway, steady and unsteady ones, and who kills them. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { commandOf, descendantsOf, freePort, type Started, startNode } from "../processes.ts";
import { ECHO_HTTP, ECHO_STDIO } from "../subjects/subject.ts";
import type { Random } from "./random.ts";

const STDIO = ["pipe0", "pipe1", "pipe2"];
const HTTP = ["web0", "web1"];
/** Dies by itself, again and again. */
const MORTAL = "mortal";
const LIFE_MS = 4000;
const DOWN_MS = 300;
/** Comes back soon and for as long as the soak lasts. */
const RESTART = { max: 100_000, initialDelay: 100, maxDelay: 400 };
const CALL_TIMEOUT_MS = 8000;

export class Fleet {
  /** Ids of all servers, in the config and as prefix of the tools. */
  readonly ids: readonly string[] = [...STDIO, MORTAL, ...HTTP];
  /** Has a line for every call that a server ran. */
  readonly log: string;
  readonly #web = new Map<string, { readonly port: number; process: Started }>();
  #stopped = false;
  kills = 0;

  private constructor(dir: string) {
    this.log = join(dir, "ran.log");
  }

  static async start(dir: string): Promise<Fleet> {
    const fleet = new Fleet(dir);
    for (const id of HTTP) {
      const port = await freePort();
      void fleet.#keepUp(id, port);
    }
    return fleet;
  }

  /** Entries of `mcpServers`. */
  entries(): Record<string, object> {
    const common = { restart: RESTART, toolTimeout: CALL_TIMEOUT_MS };
    const pipe = (...args: string[]): object => ({
      ...common,
      command: process.execPath,
      args: [ECHO_STDIO, `--log=${this.log}`, ...args],
    });
    return {
      ...Object.fromEntries(STDIO.map((id) => [id, pipe()])),
      [MORTAL]: pipe(`--life=${LIFE_MS}`),
      ...Object.fromEntries(
        [...this.#web].map(([id, { port }]) => [id, { ...common, url: `http://127.0.0.1:${port}/mcp` }]),
      ),
    };
  }

  /** The stdio servers that the gateway has started. */
  children(gateway: number): number[] {
    return descendantsOf(gateway).filter((pid) => commandOf(pid).includes(this.log));
  }

  /** Kills one server outright, by its process id. */
  killOne(gateway: number, random: Random): void {
    const web = [...this.#web.values()].map(({ process: started }) => started.pid);
    const pid = random.pick([...this.children(gateway), ...web]);
    if (pid === undefined) return;
    this.kills += 1;
    kill(pid);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#web.values()].map(({ process: started }) => started.stop()));
  }

  /** Starts an HTTP server, and again after a moment whenever it has died, on the same port: the gateway starts stdio ones only. */
  async #keepUp(id: string, port: number): Promise<void> {
    while (!this.#stopped) {
      const started = startNode([ECHO_HTTP, `--log=${this.log}`, `--port=${port}`]);
      this.#web.set(id, { port, process: started });
      await started.exited;
      await sleep(DOWN_MS);
    }
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has just died by itself.
  }
}
