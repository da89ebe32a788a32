/** One node: a `toolcrib serve` of its own, with its own home and config, which a test may end in every way there is. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf } from "../../../bench/processes.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { MAIN, PATIENT } from "../../support/main-program.ts";
import type { Backend } from "./balancer.ts";
import type { Link } from "./link.ts";

export interface NodeOptions {
  readonly name: string;
  /** Of the rig; the node has a folder of its own in it. */
  readonly dir: string;
  readonly config: object;
  readonly env: Readonly<Record<string, string>>;
  /** To NATS and to PostgreSQL; none where a node stands alone. */
  readonly links: { readonly nats?: Link; readonly postgres?: Link };
}

const START_MS = 60_000;
const STOP_MS = 25_000;
const LOG_KEPT = 200_000;

export class NodeProcess implements Backend {
  readonly name: string;
  readonly dir: string;
  readonly links: NodeOptions["links"];
  readonly #options: NodeOptions;
  #child: ChildProcess | undefined;
  #port: number | undefined;
  #log = "";
  #paused: readonly number[] = [];

  constructor(options: NodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.links = options.links;
    this.dir = join(options.dir, options.name);
    mkdirSync(join(this.dir, "home"), { recursive: true });
    writeFileSync(this.configFile, JSON.stringify(options.config, null, 2));
  }

  get configFile(): string {
    return join(this.dir, "toolcrib.json");
  }

  get port(): number | undefined {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port ?? 0}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The end of what it has said, of all its lives. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    if (this.isRunning) throw new Error(`${this.name} runs already.`);
    const child = spawn(
      process.execPath,
      [MAIN, "serve", "--config", this.configFile, "--port", "0", "--json", "--log-level", "info"],
      {
        cwd: this.dir,
        env: {
          PATH: process.env["PATH"] ?? "",
          ...this.#options.env,
          HOME: this.dir,
          ...PATIENT,
          TOOLCRIB_HOME: join(this.dir, "home"),
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.#child = child;
    this.#note(`-- started as ${child.pid}`);
    child.on("error", (error) => this.#note(error.message));
    child.on("exit", (code, signal) => {
      this.#note(`-- ended (${signal ?? code})`);
      if (this.#child === child) this.#port = undefined;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.#note(text));
    const { mcp } = await this.#addresses(child);
    this.#port = Number(new URL(mcp).port);
  }

  /** Writes its config anew; it takes changes up by itself. */
  changeConfig(change: (config: JsonObject) => JsonObject): void {
    // The file is this rig's own, an object that was written as JSON.
    const config = JSON.parse(readFileSync(this.configFile, "utf8")) as JsonObject;
    writeFileSync(this.configFile, JSON.stringify(change(config), null, 2));
  }

  /** As a crash or a power cut ends it: without a word. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** As an orchestrator ends it. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Stops it in the middle of whatever it does; with its servers, as a frozen machine, or alone. */
  pause({ servers = false } = {}): void {
    this.#paused = [this.pid, ...(servers ? descendantsOf(this.pid) : [])];
    for (const pid of this.#paused) signal(pid, "SIGSTOP");
  }

  resume(): void {
    for (const pid of this.#paused) signal(pid, "SIGCONT");
    this.#paused = [];
  }

  /** Servers and whatever else it has started. */
  children(): number[] {
    return this.isRunning ? descendantsOf(this.pid) : [];
  }

  async #end(how: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.isRunning) return;
    const ended = once(child, "exit");
    child.kill(how);
    const inTime = await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
    if (inTime !== undefined) return;
    this.#note(`-- had to be killed: it did not end within ${STOP_MS / 1000} s`);
    child.kill("SIGKILL");
    await ended;
    throw new Error(`${this.name} did not end within ${STOP_MS / 1000} s of ${how}.`);
  }

  async #addresses(child: ChildProcess): Promise<{ readonly mcp: string }> {
    let said = "";
    const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
    try {
      return await new Promise((resolve, reject) => {
        child.once("exit", () => reject(new Error(`${this.name} did not start:\n${said}${this.#log.slice(-3000)}`)));
        child.stdout?.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          // The object is printed over several lines; its end stands alone in one.
          if (!/^\}/m.test(said)) return;
          const addresses = JSON.parse(said) as { mcp?: string };
          // An error is printed the same way; then the process ends.
          if (addresses.mcp !== undefined) resolve({ mcp: addresses.mcp });
        });
      });
    } finally {
      clearTimeout(timer);
    }
  }

  #note(text: string): void {
    this.#log = `${this.#log}${text.trimEnd()}\n`.slice(-LOG_KEPT);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, name);
  } catch {
    // It has gone in the meantime.
  }
}
