/**
 * StdioWire: a server as a child process, one JSON message per line.
 *
 * The SDK's transports are not used for any wire: they buffer without bound, leave the grandchildren of `npx` behind,
 * never initialise again after a lost HTTP session, drop fields they do not know, and cost several times a plain pipe.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { type Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "../../model/clock.ts";
import { Emitter } from "../../model/emitter.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Cage, CagedLaunch, CagedProgram, CageSettings } from "../cages/cage.ts";
import { decodeMessages, isRequest, isResponse } from "../decode.ts";
import type { PidRecords } from "../orphans/pid-records.ts";
import type { AgreedProtocol, Wire, WireEvents } from "../wire.ts";
import type { RpcMessage } from "../../model/rpc.ts";
import { coverDescriptors } from "./cover-descriptors.ts";
import { endChild } from "./end-child.ts";
import { JunkWarnings } from "../junk-warnings.ts";
import { LineSplitter } from "./line-splitter.ts";
import { LineWriter } from "./line-writer.ts";
import { watchGroup } from "./live-children.ts";
import { startFailure, workingFolderProblem } from "./start-failures.ts";
import { StderrTail } from "./stderr-tail.ts";
import { windowsCommand } from "./windows-command.ts";

export interface StdioOptions {
  readonly serverId: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What it runs in; as any other child of ours if absent. */
  readonly cage?: StdioCage;
  readonly pids: PidRecords;
  /** A longer line is dropped; default 64 MiB. */
  readonly maxLineBytes?: number;
  /** From `close()` to SIGKILL; default 5 s. Read again while it ends: 0 kills it at once. */
  readonly closeGraceMs?: number | undefined;
  readonly clock?: Clock;
  /** Gets what the child writes to stderr, besides the tail that is kept here. */
  readonly onStderr?: (chunk: Buffer) => void;
}

export interface StdioCage {
  open(warn: (message: string) => void): Cage;
  readonly baseDir: string;
  /** `timeout`: milliseconds that a run may last. */
  readonly settings: Pick<CageSettings, "timeout">;
}

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const CLOSE_GRACE_MS = 5000;
/** From the end of its input to SIGTERM. Many servers never end by themselves, and a single command waits for them. */
const STDIN_MS = 500;
/** How long output written just before an exit may take to arrive; a grandchild may hold the pipes open for ever. */
const DRAIN_MS = 250;
const LINES_IN_REASON = 8;
/** 0 to 2 are stdin, stdout and stderr. */
const FIRST_PIPE = 3;

export class StdioWire implements Wire {
  readonly transport = "stdio";
  readonly #options: StdioOptions;
  readonly #events = new Emitter<WireEvents>();
  readonly #stderr = new StderrTail();
  readonly #junk: JunkWarnings;
  readonly #cage: Cage | undefined;
  /** What is started: the program itself, or what puts it into its cage. */
  #launch: CagedLaunch;
  #child: ChildProcessWithoutNullStreams | undefined;
  #input: LineWriter | undefined;
  /** About how many requests are under way: cancelled ones may never be answered. */
  #unanswered = 0;
  #state: "new" | "open" | "lost" | "closed" = "new";
  #heard = false;
  #ending: Promise<void> | undefined;
  #unwatch: () => void = () => {};
  #stopTimer: () => void = () => {};

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#launch = options;
    this.#cage = options.cage?.open((text) => this.#warn(text));
    this.#junk = new JunkWarnings(options.clock ?? systemClock, (text) => this.#warn(text));
  }

  on<Name extends keyof WireEvents>(name: Name, listener: (event: WireEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  /** The last lines of the child's stderr, at most 20 lines and 8 KiB. */
  stderrTail(): string {
    return this.#stderr.text();
  }

  async makeReady(signal: AbortSignal): Promise<void> {
    await this.#cage?.makeReady?.(this.#program(), signal);
  }

  async open(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw cancelled();
    const problem = workingFolderProblem(this.#options.cwd);
    if (problem !== null) throw problem;
    if (this.#cage !== undefined) await this.#enter(this.#cage, signal);
    this.#child = this.#spawn(this.#launch);
    this.#input = new LineWriter(this.#child.stdin, (error) => notSent("the server has closed its input", error));
    await this.#started(this.#child);
    this.#listen(this.#child);
    this.#limitRun(this.#options.cage?.settings.timeout);
    if (!signal.aborted) return;
    await this.close();
    throw cancelled();
  }

  agreed(_protocol: AgreedProtocol): void {
    // Pipes carry every version alike.
  }

  send(message: RpcMessage): Promise<void> {
    if (this.#state !== "open" || this.#input === undefined) {
      return Promise.reject(notSent("the server is not running"));
    }
    try {
      const line = `${JSON.stringify(message)}\n`;
      if (isRequest(message)) this.#unanswered++;
      return this.#input.write(line, this.#unanswered > 1);
    } catch (error) {
      // Arguments made in code may hold what JSON cannot carry.
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async close(): Promise<void> {
    this.#state = "closed";
    this.#input?.flush();
    await this.#end(Math.min(STDIN_MS, this.#graceMs() / 5));
  }

  async #enter(cage: Cage, signal: AbortSignal): Promise<void> {
    this.#launch = await cage.prepare(this.#program(), signal);
    if (!signal.aborted && this.#state === "new") return;
    await this.#launch.cleanUp?.();
    throw cancelled();
  }

  #program(): CagedProgram {
    const { serverId, command, args, env, cwd, cage } = this.#options;
    return { serverId, command, args, env, cwd, baseDir: cage?.baseDir ?? "/" };
  }

  #limitRun(timeout: number | undefined): void {
    if (timeout === undefined) return;
    this.#stopTimer = (this.#options.clock ?? systemClock).after(timeout, () => {
      const text = `was ended because it had run for ${timeout} ms, as long as its sandbox allows`;
      this.#giveUp(
        new ToolcribError("server_unavailable", text, { hint: "Raise `sandbox.timeout`, or leave it out." }),
      );
    });
  }

  #spawn(launch: CagedLaunch): ChildProcessWithoutNullStreams {
    const { pids, serverId } = this.#options;
    const { command, args, env, cwd, fds = [], withheld = [] } = launch;
    const windows = process.platform === "win32";
    const covered = coverDescriptors(withheld, FIRST_PIPE + fds.length);
    try {
      const start = windows ? windowsCommand(command, args, env) : { file: command, args, verbatim: false };
      const child = spawn(start.file, start.args, {
        cwd,
        env: { ...env },
        stdio: ["pipe", "pipe", "pipe", ...fds.map(() => "pipe" as const), ...covered.stdio],
        // A group of its own, so that everything the server starts can be ended with it. On Windows it would only open a window.
        detached: !windows,
        windowsHide: true,
        windowsVerbatimArguments: start.verbatim,
        // The first three are pipes.
      }) as ChildProcessWithoutNullStreams;
      if (child.pid !== undefined) {
        this.#unwatch = watchGroup(child.pid);
        // The words of the program too: a launcher may become it.
        this.#warn(pids.add({ pid: child.pid, serverId, command: this.#options.command, args: this.#options.args }));
      }
      for (const [index, bytes] of fds.entries()) feed(child.stdio[FIRST_PIPE + index], bytes);
      return child;
    } catch (error) {
      throw error instanceof ToolcribError ? error : startFailure(error, command);
    } finally {
      covered.close();
    }
  }

  #started(child: ChildProcessWithoutNullStreams): Promise<void> {
    return new Promise((resolve, reject) => {
      child.once("spawn", () => {
        this.#state = "open";
        resolve();
      });
      // It stays on after the start: a signal that cannot be delivered is reported here too, and must not be thrown.
      child.on("error", (error) => reject(startFailure(error, this.#launch.command)));
    });
  }

  #listen(child: ChildProcessWithoutNullStreams): void {
    const splitter = new LineSplitter({
      maxBytes: this.#options.maxLineBytes ?? MAX_LINE_BYTES,
      onLine: (line) => this.#receive(line),
      onOversize: (bytes) => this.#junk.add(`dropped a line of ${bytes} bytes on stdout, which is above the limit`),
    });
    child.stdout.on("data", (chunk: Buffer) => splitter.push(chunk));
    child.stdout.on("end", () => splitter.end());
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr.push(chunk);
      this.#options.onStderr?.(chunk);
    });
    // Broken pipes show in send() and in the exit.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});

    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const outputEnded = new Promise<void>((resolve) => child.stdout.once("close", () => resolve()));
    const allEnded = new Promise<void>((resolve) => child.once("close", () => resolve()));
    void Promise.race([exited, outputEnded])
      .then(() => Promise.race([allEnded, delay(DRAIN_MS)]))
      .then(() => this.#lose(child));
  }

  #receive(line: string): void {
    if (this.#state !== "open") return;
    const messages = decodeMessages(line);
    if (messages === null) {
      if (line.trim() !== "") this.#junk.add("a line on stdout is no JSON-RPC message", line);
      return;
    }
    if (!this.#heard) {
      this.#heard = true;
      if (this.#child?.pid !== undefined) this.#options.pids.update(this.#child.pid);
    }
    for (const message of messages) {
      if (isResponse(message) && this.#unanswered > 0) this.#unanswered--;
      this.#events.emit("message", { message });
    }
  }

  #lose(child: ChildProcessWithoutNullStreams): void {
    if (this.#state !== "open") return;
    const { exitCode, signalCode } = child;
    const stderr = this.#stderr.text(LINES_IN_REASON);
    const end = { exitCode, signal: signalCode, stderr, heard: this.#heard };
    const explained = this.#launch.explain?.(end);
    if (explained !== undefined) return this.#giveUp(explained);
    const reason =
      signalCode !== null
        ? `was killed by ${signalCode}`
        : exitCode !== null
          ? `exited with code ${exitCode}`
          : "closed its output but is still running";
    const text = stderr === "" ? reason : `${reason}; the last lines of its stderr:\n${stderr}`;
    const hint =
      exitCode === 0 && !this.#heard
        ? "It ended without a word. Is it an MCP server that speaks over stdio?"
        : undefined;
    this.#giveUp(new ToolcribError("server_unavailable", text, { hint, details: { exitCode, signalCode } }));
  }

  #giveUp(reason: ToolcribError): void {
    if (this.#state !== "open") return;
    this.#state = "lost";
    this.#events.emit("lost", reason);
    // What it started goes with it. close() waits for this.
    void this.#end(0);
  }

  readonly #graceMs = (): number => this.#options.closeGraceMs ?? CLOSE_GRACE_MS;

  #end(stdinMs: number): Promise<void> {
    this.#ending ??= this.#endGroup(stdinMs);
    return this.#ending;
  }

  async #endGroup(stdinMs: number): Promise<void> {
    this.#stopTimer();
    if (this.#child !== undefined) await this.#endChild(this.#child, stdinMs);
    await this.#launch.cleanUp?.();
  }

  async #endChild(child: ChildProcessWithoutNullStreams, stdinMs: number): Promise<void> {
    const { pid } = child;
    const launch = this.#launch;
    const ask = pid === undefined || launch.stop === undefined ? undefined : async () => launch.stop?.(pid);
    const gone = await endChild(child, { graceMs: this.#graceMs, stdinMs, ask });
    this.#unwatch();
    // What could not be killed stays in the record: the next start tries again.
    if (gone && pid !== undefined) this.#options.pids.remove(pid);
    // A pipe that a stray process still holds would keep this process alive.
    for (const stream of child.stdio) stream?.destroy();
    child.unref();
  }

  #warn(text: string | null): void {
    if (text !== null && this.#state !== "closed") this.#events.emit("warning", text);
  }
}

function feed(stream: Readable | Writable | null | undefined, bytes: Uint8Array): void {
  if (!(stream instanceof Writable)) return;
  // A launcher that fails does not read it; why shows in its exit.
  stream.on("error", () => {});
  stream.end(bytes);
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

function notSent(why: string, cause?: unknown): ToolcribError {
  return new ToolcribError("server_unavailable", why, { details: { sent: false }, cause });
}

function cancelled(): ToolcribError {
  return new ToolcribError("cancelled", "starting the server was cancelled", { details: { sent: false } });
}
