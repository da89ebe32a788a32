/** The process that holds a container which serves HTTP: it lives as long as the container, and carries its output. */
import { type ChildProcess, spawn } from "node:child_process";
import { Writable } from "node:stream";
import type { ToolcribError } from "../../../model/errors.ts";
import type { PidRecords } from "../../orphans/pid-records.ts";
import { endChild } from "../../stdio/end-child.ts";
import { watchGroup } from "../../stdio/live-children.ts";
import { startFailure } from "../../stdio/start-failures.ts";
import { StderrTail } from "../../stdio/stderr-tail.ts";
import type { RunEnd } from "../cage.ts";
import type { ContainerLaunch } from "./container-cage.ts";

export interface ContainerProcessOptions {
  readonly serverId: string;
  readonly launch: ContainerLaunch;
  readonly pids: PidRecords;
  readonly onOutput: (chunk: Buffer) => void;
  readonly onWarning: (text: string) => void;
}

const LINES_IN_REASON = 8;

export class ContainerProcess {
  readonly #options: ContainerProcessOptions;
  readonly #child: ChildProcess;
  readonly #output = new StderrTail();
  readonly #unwatch: () => void;
  /** Resolves when the container has ended by itself or was ended. */
  readonly ended: Promise<RunEnd>;
  #ending: Promise<void> | undefined;

  constructor(options: ContainerProcessOptions) {
    this.#options = options;
    const { launch, serverId, pids } = options;
    const { command, args, env, cwd, fds = [] } = launch;
    const pipes = fds.map(() => "pipe" as const);
    this.#child = spawn(command, args, {
      cwd,
      env: { ...env },
      stdio: ["ignore", "pipe", "pipe", ...pipes],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    const { pid } = this.#child;
    this.#unwatch = pid === undefined ? () => {} : watchGroup(pid);
    const problem = pid === undefined ? null : pids.add({ pid, serverId, command, args });
    if (problem !== null) options.onWarning(problem);
    this.ended = this.#listen();
    for (const [index, bytes] of fds.entries()) feed(this.#child.stdio[3 + index], bytes);
  }

  /** Resolves once it runs; rejects if it cannot be started. */
  started(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.once("spawn", resolve);
      this.#child.on("error", (error) => reject(startFailure(error, this.#options.launch.command)));
    });
  }

  /** What it wrote last. */
  lastLines(): string {
    return this.#output.text(LINES_IN_REASON);
  }

  /** A reason that knows about containers, if there is one. */
  explain(end: RunEnd): ToolcribError | undefined {
    return this.#options.launch.explain?.(end);
  }

  /** Never rejects; the container is gone afterwards. @param graceMs Asked again while it ends: 0 kills it at once. */
  end(graceMs: () => number): Promise<void> {
    this.#ending ??= this.#end(graceMs);
    return this.#ending;
  }

  #listen(): Promise<RunEnd> {
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("error", () => {});
      stream?.on("data", (chunk: Buffer) => {
        this.#output.push(chunk);
        this.#options.onOutput(chunk);
      });
    }
    return new Promise((resolve) => {
      this.#child.once("close", (exitCode, signal) => {
        resolve({ exitCode, signal, stderr: this.lastLines(), heard: false });
      });
    });
  }

  async #end(graceMs: () => number): Promise<void> {
    const { launch, pids } = this.#options;
    const gone = await endChild(this.#child, { graceMs, stdinMs: 0, ask: () => launch.stop() });
    await launch.cleanUp();
    this.#unwatch();
    if (gone && this.#child.pid !== undefined) pids.remove(this.#child.pid);
    for (const stream of this.#child.stdio) stream?.destroy();
    this.#child.unref();
  }
}

function feed(stream: unknown, bytes: Uint8Array): void {
  if (!(stream instanceof Writable)) return;
  // A launcher that fails does not read it; why shows in its exit.
  stream.on("error", () => {});
  stream.end(bytes);
}
