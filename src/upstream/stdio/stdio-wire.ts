/**
 * StdioWire: a server as a child process, one JSON message per line.
 *
 * The SDK's transports are not used for any wire: they buffer without bound, leave the grandchildren of `npx` behind,
 * never initialise again after a lost HTTP session, drop fields they do not know, and cost several times a plain pipe.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync } from "node:fs";
import { win32 } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, systemClock } from "../../base/clock.ts";
import { Emitter, type Listeners } from "../../base/emitter.ts";
import { LARGE_JSON } from "../../base/json-bytes.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { RpcMessage } from "../../model/protocol.ts";
import type { Sandbox, SandboxLaunch, SandboxedProgram, SandboxSettings } from "../sandbox/sandbox-settings.ts";
import {
  type AgreedProtocol,
  decodeMessages,
  isRequest,
  isResponse,
  ThrottledWarnings,
  type Wire,
  type WireEvents,
} from "../wire.ts";
import { startError, trackChild, type TrackedChild, workingFolderError, writeToPipe } from "./child-processes.ts";
import { LineSplitter, LineWriter } from "./line-framing.ts";
import { registryFailure, RunnerWatch, type StartedRunner } from "./package-runner.ts";
import type { PidRecords } from "./pid-records.ts";
import { MARK_VARIABLE } from "./process-table.ts";
import { StderrTail } from "./server-log.ts";
import { environmentValue, findProgram } from "../../base/programs.ts";

export interface StdioOptions {
  readonly serverId: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the variables in it that it inherits, and could do without. */
  readonly inherited?: readonly string[];
  /** If the command is a package runner, which fetches the program before it starts it. */
  readonly runner?: StartedRunner;
  readonly cwd?: string;
  /** The sandbox it runs in, if any. */
  readonly sandbox?: StdioSandbox;
  readonly pids: PidRecords;
  /** A longer line is dropped; default 64 MiB. */
  readonly maxLineBytes?: number;
  /** From `close()` to SIGKILL; default 5 s. Read again while it ends: 0 kills it at once. */
  readonly closeGraceMs?: number | undefined;
  readonly clock?: Clock;
  /** Gets what the child writes to stderr, besides the tail that is kept here. */
  readonly onStderr?: (chunk: Buffer) => void;
  /** Hides secrets in what errors repeat of it. */
  readonly mask: (text: string) => string;
}

interface StdioSandbox {
  open(warn: (message: string) => void): Sandbox;
  readonly baseDir: string;
  /** `timeout`: milliseconds that a run may last. */
  readonly settings: Pick<SandboxSettings, "timeout">;
}

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const CLOSE_GRACE_MS = 5000;
/** From the end of its input to SIGTERM. Many servers never end by themselves, and a single command waits for them. */
const STDIN_GRACE_MS = 500;
/** From SIGTERM to SIGKILL for what a server left behind when it ended by itself: no one is left who uses it. */
const REST_GRACE_MS = 500;
/** How long output written just before an exit may take to arrive; a grandchild may hold the pipes open for ever. */
const MAX_DRAIN_MS = 250;
const MAX_REASON_LINES = 8;
/** 0 to 2 are stdin, stdout and stderr. */
const FIRST_PIPE = 3;

export class StdioWire implements Wire {
  readonly transport = "stdio";
  readonly #options: StdioOptions;
  readonly #events = new Emitter<WireEvents>();
  readonly #stderr: StderrTail;
  readonly #malformed: ThrottledWarnings;
  readonly #sandbox: Sandbox | undefined;
  /** The program itself, or the launcher of its sandbox. */
  #launch: SandboxLaunch;
  #child: ChildProcessWithoutNullStreams | undefined;
  #input: LineWriter | undefined;
  /** Lines that wait for the next turn of the event loop, in their order. */
  #held: string[] = [];
  /** Roughly the requests in progress: cancelled ones may never be answered. */
  #unanswered = 0;
  #state: "new" | "open" | "lost" | "closed" = "new";
  #heard = false;
  #ending: Promise<void> | undefined;
  #tracked: TrackedChild | undefined;
  #stopTimer: () => void = () => {};
  #runner: RunnerWatch | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#launch = options;
    this.#stderr = new StderrTail(options.mask);
    this.#sandbox = options.sandbox?.open((text) => this.#warn(text));
    this.#malformed = new ThrottledWarnings(options.clock ?? systemClock, (text) => this.#warn(text));
  }

  listen(listeners: Listeners<WireEvents>): () => void {
    return this.#events.listen(listeners);
  }

  /** The last lines of the child's stderr, at most 20 lines and 8 KiB. */
  stderrTail(): string {
    return this.#stderr.text();
  }

  async makeReady(signal: AbortSignal): Promise<void> {
    await this.#sandbox?.makeReady?.(this.#program(), signal);
  }

  async open(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw cancelled();
    const problem = workingFolderError(this.#options.cwd);
    if (problem !== null) throw problem;
    if (this.#sandbox !== undefined) this.#launch = await this.#sandbox.prepare(this.#program(), signal);
    await turnToStart();
    if (signal.aborted || this.#state !== "new") {
      await this.#launch.cleanUp?.();
      throw cancelled();
    }
    this.#child = this.#spawn(this.#launch);
    this.#input = new LineWriter(this.#child.stdin, (error) => notSent("the server has closed its input", error));
    await this.#started(this.#child);
    this.#runner = this.#watchRunner(this.#child);
    this.#listen(this.#child);
    this.#limitRun(this.#options.sandbox?.settings.timeout);
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
    await this.#end(Math.min(STDIN_GRACE_MS, this.#graceMs() / 5));
  }

  #program(): SandboxedProgram {
    const { serverId, command, args, env, inherited, cwd, sandbox } = this.#options;
    return { serverId, command, args, env, inherited, cwd, baseDir: sandbox?.baseDir ?? "/" };
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

  #spawn(launch: SandboxLaunch): ChildProcessWithoutNullStreams {
    const { pids, serverId } = this.#options;
    const { command, args, env, cwd, fds = [], withheld = [] } = launch;
    const windows = process.platform === "win32";
    const covered = withholdDescriptors(withheld, FIRST_PIPE + fds.length);
    const mark = randomBytes(12).toString("hex");
    try {
      const start = windows ? windowsCommand(command, args, env) : { file: command, args, verbatim: false };
      const child = spawn(start.file, start.args, {
        cwd,
        env: { ...env, [MARK_VARIABLE]: mark },
        stdio: ["pipe", "pipe", "pipe", ...fds.map(() => "pipe" as const), ...covered.stdio],
        // A group of its own, so that everything the server starts can be ended with it. On Windows it would only open a window.
        detached: !windows,
        windowsHide: true,
        windowsVerbatimArguments: start.verbatim,
        // The first three are pipes.
      }) as ChildProcessWithoutNullStreams;
      // With the words of the program, not of the launcher, which may become it.
      const program = { command: this.#options.command, args: this.#options.args };
      this.#tracked = trackChild(child, pids, { serverId, ...program, mark });
      this.#warn(this.#tracked.warning);
      for (const [index, bytes] of fds.entries()) writeToPipe(child.stdio[FIRST_PIPE + index], bytes);
      return child;
    } catch (error) {
      throw error instanceof ToolcribError ? error : startError(error, command);
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
      child.on("error", (error) => reject(startError(error, this.#launch.command)));
    });
  }

  #listen(child: ChildProcessWithoutNullStreams): void {
    const splitter = new LineSplitter({
      maxBytes: this.#options.maxLineBytes ?? MAX_LINE_BYTES,
      onLine: (line) => this.#take(line),
      onOversize: (bytes) =>
        this.#malformed.add(`dropped a line of ${bytes} bytes on stdout, which is above the limit`),
    });
    child.stdout.on("data", (chunk: Buffer) => splitter.push(chunk));
    child.stdout.on("end", () => splitter.end());
    child.stderr.on("data", (chunk: Buffer) => this.#keepStderr(this.#runner?.read(chunk) ?? chunk));
    // Broken pipes show in send() and in the exit.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});

    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const outputEnded = new Promise<void>((resolve) => child.stdout.once("close", () => resolve()));
    const allEnded = new Promise<void>((resolve) => child.once("close", () => resolve()));
    void Promise.race([exited, outputEnded])
      .then(() => Promise.race([allEnded, delay(MAX_DRAIN_MS)]))
      .then(() => this.#lose(child));
  }

  #keepStderr(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#stderr.push(chunk);
    this.#options.onStderr?.(chunk);
  }

  #watchRunner({ pid }: ChildProcessWithoutNullStreams): RunnerWatch | undefined {
    const { runner, clock = systemClock } = this.#options;
    if (runner === undefined || pid === undefined) return undefined;
    return new RunnerWatch({
      ...runner,
      pid,
      clock,
      onInstalling: (isInstalling) => this.#events.emit("installing", isInstalling),
      onProgress: (text) => this.#events.emit("progress", text),
      onFailure: (error) => this.#giveUp(error),
    });
  }

  #stopRunnerWatch(): void {
    const watch = this.#runner;
    this.#runner = undefined;
    if (watch !== undefined) this.#keepStderr(watch.stop());
  }

  /**
   * To put a large line together takes almost as long as to parse it: others have a turn in between. There is one at the end of each
   * reading of the pipe, so no more is held than one reading has brought.
   */
  #take(line: string): void {
    if (this.#held.length === 0 && line.length <= LARGE_JSON) return this.#receive(line);
    if (this.#held.push(line) === 1) setImmediate(() => this.#receiveHeld());
  }

  #receiveHeld(): void {
    const lines = this.#held;
    this.#held = [];
    for (const line of lines) this.#receive(line);
  }

  #receive(line: string): void {
    if (this.#state !== "open") return;
    const messages = decodeMessages(line);
    if (messages === null) {
      if (line.trim() !== "") this.#malformed.add("a line on stdout is not a JSON-RPC message", line);
      return;
    }
    if (!this.#heard) {
      this.#heard = true;
      this.#stopRunnerWatch();
      if (this.#child?.pid !== undefined) this.#options.pids.update(this.#child.pid);
    }
    for (const message of messages) {
      if (isResponse(message) && this.#unanswered > 0) this.#unanswered--;
      this.#events.emit("message", { message });
    }
  }

  #lose(child: ChildProcessWithoutNullStreams): void {
    this.#receiveHeld();
    if (this.#state !== "open") return;
    const { exitCode, signalCode } = child;
    const { runner } = this.#options;
    const wasInstalling = this.#runner?.hasProgram === false;
    this.#stopRunnerWatch();
    if (runner !== undefined && wasInstalling && exitCode !== 0) {
      const failure = registryFailure(runner, this.#stderr.text());
      if (failure !== undefined) return this.#giveUp(failure);
    }
    const stderr = this.#stderr.text(MAX_REASON_LINES);
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
      exitCode === 0 && !this.#heard ? "It ended without any output. Is it an MCP server that uses stdio?" : undefined;
    this.#giveUp(new ToolcribError("server_unavailable", text, { hint, details: { exitCode, signalCode } }));
  }

  #giveUp(reason: ToolcribError): void {
    if (this.#state !== "open") return;
    this.#state = "lost";
    this.#events.emit("lost", reason);
    // Its own children end with it. close() waits for this.
    void this.#end(0);
  }

  readonly #graceMs = (): number => this.#options.closeGraceMs ?? CLOSE_GRACE_MS;

  #end(stdinMs: number): Promise<void> {
    this.#ending ??= this.#endGroup(stdinMs);
    return this.#ending;
  }

  async #endGroup(stdinMs: number): Promise<void> {
    this.#stopTimer();
    this.#stopRunnerWatch();
    const launch = this.#launch;
    const pid = this.#child?.pid;
    const ask = pid === undefined || launch.stop === undefined ? undefined : async () => launch.stop?.(pid);
    const hasExited = this.#child !== undefined && (this.#child.exitCode !== null || this.#child.signalCode !== null);
    const limit = hasExited && ask === undefined ? REST_GRACE_MS : Infinity;
    await this.#tracked?.end({ graceMs: () => Math.min(limit, this.#graceMs()), stdinMs, ask });
    await launch.cleanUp?.();
  }

  #warn(text: string | null): void {
    if (text !== null && this.#state !== "closed") this.#events.emit("warning", text);
  }
}

/** The last start of a program in this process. */
let lastTurn = Promise.resolve();

/**
 * Resolves in a turn of the event loop in which no other program is started. A start takes until the new process has its program,
 * on a busy machine 10 ms and more: what thirty servers answer is not to wait for the last of them, nor clients.
 */
function turnToStart(): Promise<void> {
  const turn = lastTurn;
  lastTurn = turn.then(() => nextTurn());
  return turn;
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

interface SpawnCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** The arguments are quoted already. */
  readonly verbatim: boolean;
}

/**
 * How a command is started on Windows, where `npx` is a batch file `npx.cmd`: Node finds only .exe files and refuses
 * batch files without a shell. They are run by cmd.exe with every character that means something to it escaped.
 */
export function windowsCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  exists: (path: string) => boolean = existsSync,
): SpawnCommand {
  const file = resolveCommand(command, env, exists);
  if (file === undefined || !/\.(cmd|bat)$/i.test(file)) return { file: file ?? command, args, verbatim: false };
  const line = [escapeMeta(win32.normalize(file)), ...args.map(escapeArgument)].join(" ");
  const shell = environmentValue(env, "COMSPEC", "win32") ?? "cmd.exe";
  return { file: shell, args: ["/d", "/s", "/c", `"${line}"`], verbatim: true };
}

function resolveCommand(
  command: string,
  env: Readonly<Record<string, string>>,
  exists: (path: string) => boolean,
): string | undefined {
  // Outside of PATH the current folder is not searched, though cmd.exe does: what lies there is not what was meant.
  if (!/[\\/]/.test(command)) return findProgram(command, { env, platform: "win32", isProgram: exists });
  const endings = (environmentValue(env, "PATHEXT", "win32") ?? ".COM;.EXE;.BAT;.CMD").split(";");
  const paths = win32.extname(command) === "" ? endings.map((ending) => command + ending.toLowerCase()) : [command];
  return paths.find(exists);
}

const SHELL_META = /[()\][%!^"`<>&|;, *?]/g;

function escapeMeta(text: string): string {
  return text.replace(SHELL_META, "^$&");
}

/** Quoted for the program (backslashes double before a quote), then escaped twice: batch files read their arguments again. */
function escapeArgument(argument: string): string {
  if (/[\r\n\0]/.test(argument)) {
    throw new ToolcribError(
      "invalid_config",
      "An argument of a batch file contains a line break, which cmd.exe cannot pass on.",
      {
        hint: "Give the program behind the batch file as `command`, such as node with the path of the script.",
      },
    );
  }
  const quoted = `"${argument.replace(/(?<!\\)(\\*)"/g, '$1$1\\"').replace(/(?<!\\)(\\*)$/, "$1$1")}"`;
  return escapeMeta(escapeMeta(quoted));
}

interface WithheldDescriptors {
  /** The next entries of a child's `stdio`: each is one descriptor. */
  readonly stdio: readonly ("ignore" | number)[];
  close(): void;
}

/** Puts /dev/null in the place of descriptors that a child would inherit: `spawn` can replace them and not close them. */
function withholdDescriptors(descriptors: readonly number[], first: number): WithheldDescriptors {
  const last = Math.max(-1, ...descriptors);
  if (last < first) return { stdio: [], close: () => {} };
  const nothing = openSync("/dev/null", "r+");
  const stdio = Array.from({ length: last - first + 1 }, (_, index) =>
    descriptors.includes(first + index) ? nothing : "ignore",
  );
  return { stdio, close: () => closeSync(nothing) };
}
