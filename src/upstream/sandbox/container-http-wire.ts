/** A server that speaks HTTP inside a container: the container with its port on loopback, and the wire to that port. */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";
import { Emitter, type Listeners } from "../../base/emitter.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { RpcMessage } from "../../model/protocol.ts";
import { HttpClient } from "../http/http-client.ts";
import { StreamableWire } from "../http/streamable-wire.ts";
import { startError, trackChild, type TrackedChild, writeToPipe } from "../stdio/child-processes.ts";
import type { PidRecords } from "../stdio/pid-records.ts";
import { StderrTail } from "../stdio/server-log.ts";
import { type AgreedProtocol, notSent, type SendOptions, type Wire, type WireEvents } from "../wire.ts";
import { type ContainerLaunch, type ContainerSandbox, containerSandbox } from "./container-sandbox.ts";
import type { RunEnd, SandboxDeps, SandboxedProgram, SandboxSettings } from "./sandbox-settings.ts";

interface ContainerHttpOptions {
  readonly program: SandboxedProgram;
  readonly settings: SandboxSettings;
  readonly deps: Omit<SandboxDeps, "warn">;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly pids: PidRecords;
  readonly clock: Clock;
  /** Gets what the container writes. */
  readonly onOutput: (chunk: Buffer) => void;
  /** Hides secrets in what errors repeat of it. */
  readonly mask: (text: string) => string;
  /** From `close()` to SIGKILL; default 5 s. */
  readonly closeGraceMs?: number | undefined;
}

const CLOSE_GRACE_MS = 5000;
const DEFAULT_PATH = "/mcp";

/** Of the containers of this process. They ask for no credentials, so nothing but their hub is to reach them. */
const published = new Set<number>();

/** Whether a container of this process has its port there. */
export function isPublishedPort(port: number): boolean {
  return published.has(port);
}

export class ContainerHttpWire implements Wire {
  readonly transport = "http";
  readonly #options: ContainerHttpOptions;
  readonly #sandbox: ContainerSandbox;
  readonly #events = new Emitter<WireEvents>();
  #process: ContainerProcess | undefined;
  #wire: StreamableWire | undefined;
  #stopTimer: () => void = () => {};
  #ended = false;

  constructor(options: ContainerHttpOptions) {
    this.#options = options;
    this.#sandbox = containerSandbox(options.settings, {
      ...options.deps,
      warn: (text) => this.#emit("warning", text),
    });
  }

  listen(listeners: Listeners<WireEvents>): () => void {
    return this.#events.listen(listeners);
  }

  async makeReady(signal: AbortSignal): Promise<void> {
    // Before an image is fetched for nothing.
    if (this.#options.settings.network === "none") throw needsNetwork();
    await this.#sandbox.makeReady(this.#options.program, signal);
  }

  async open(signal: AbortSignal): Promise<void> {
    const { settings, program, headers, clock } = this.#options;
    const { port, path = DEFAULT_PATH, timeout } = settings;
    if (port === undefined) throw new ToolcribError("internal", "A container without a port serves no HTTP.");
    const launch = await this.#sandbox.prepare(program, signal);
    if (signal.aborted || this.#ended) {
      await launch.cleanUp();
      throw notSent("cancelled", "starting the container was cancelled");
    }
    const container = await this.#start(launch);
    this.#process = container;
    await container.started();
    const url = await untilEnded(container, signal, async (waiting) => {
      const address = await publishedAddress(launch, port, waiting);
      const found = new URL(path, `http://${address}`);
      const hostPort = Number(found.port);
      published.add(hostPort);
      void container.ended.then(() => published.delete(hostPort));
      await waitUntilReady(found, waiting);
      return found;
    });
    this.#wire = this.#hear(new StreamableWire({ url: url.href, headers, clock }));
    await this.#wire.open(signal);
    void container.ended.then((end) => this.#lose(endReason(container, end)));
    if (timeout !== undefined) this.#stopTimer = clock.after(timeout, () => this.#lose(ranTooLong(timeout)));
  }

  async #start(launch: ContainerLaunch): Promise<ContainerProcess> {
    const { program, pids, onOutput, mask } = this.#options;
    const onWarning = (text: string): void => this.#emit("warning", text);
    try {
      return new ContainerProcess({ serverId: program.serverId, launch, pids, onOutput, mask, onWarning });
    } catch (error) {
      await launch.cleanUp();
      // Never as it is: it may show what a variable or an argument holds.
      throw startError(error, launch.command);
    }
  }

  agreed(protocol: AgreedProtocol): void {
    this.#wire?.agreed(protocol);
  }

  send(message: RpcMessage, options?: SendOptions): Promise<void> {
    if (this.#wire !== undefined && !this.#ended) return this.#wire.send(message, options);
    return Promise.reject(notSent("server_unavailable", "the container is not running"));
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#end();
  }

  #hear(wire: StreamableWire): StreamableWire {
    wire.listen({
      message: (event) => this.#emit("message", event),
      failed: (event) => this.#emit("failed", event),
      warning: (event) => this.#emit("warning", event),
      lost: (error) => this.#lose(error),
    });
    return wire;
  }

  #lose(reason: ToolcribError): void {
    if (this.#ended) return;
    this.#emit("lost", reason);
    this.#ended = true;
    // close() waits for this.
    void this.#end();
  }

  async #end(): Promise<void> {
    this.#stopTimer();
    await this.#wire?.close();
    await this.#process?.end(() => this.#options.closeGraceMs ?? CLOSE_GRACE_MS);
  }

  #emit<Name extends keyof WireEvents>(name: Name, event: WireEvents[Name]): void {
    if (!this.#ended) this.#events.emit(name, event);
  }
}

/** Rejects if the container ends before the work does. */
async function untilEnded<T>(
  container: ContainerProcess,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ended = container.ended.then((end) => {
    throw endReason(container, end);
  });
  try {
    return await Promise.race([work(AbortSignal.any([signal, over.signal])), ended]);
  } catch (error) {
    if (!signal.aborted) throw error;
    const said = container.lastLines();
    const text = `nothing answered at its port in time${said === "" ? "" : `; its last lines:\n${said}`}`;
    const hint = "Check `sandbox.port`, that the server listens on 0.0.0.0 inside the container, and `timeout`.";
    throw notSent("timeout", text, hint);
  } finally {
    over.abort();
    ended.catch(() => {});
  }
}

function endReason(container: ContainerProcess, end: RunEnd): ToolcribError {
  const explained = container.explain(end);
  if (explained !== undefined) return explained;
  const { exitCode, signal, stderr } = end;
  const how = signal === null ? `ended with code ${exitCode}` : `was killed by ${signal}`;
  const text = `the container ${how}${stderr === "" ? "" : `; its last lines:\n${stderr}`}`;
  return new ToolcribError("server_unavailable", text, { details: { exitCode, signalCode: signal } });
}

function ranTooLong(timeout: number): ToolcribError {
  const text = `was ended because it had run for ${timeout} ms, as long as its sandbox allows`;
  return new ToolcribError("server_unavailable", text, { hint: "Raise `sandbox.timeout`, or leave it out." });
}

/** Engines publish ports of a network that leads out, and of no other. */
function needsNetwork(): ToolcribError {
  return notSent(
    "invalid_config",
    'A port can be published only by a container with a network, and `network` is "none".',
    'Set `sandbox.network` to "host": the container gets a network of its own that leads out, and its port is on loopback only. Or run the server over stdio, without `sandbox.port`, which needs no network.',
  );
}

interface ContainerProcessOptions {
  readonly serverId: string;
  readonly launch: ContainerLaunch;
  readonly pids: PidRecords;
  readonly onOutput: (chunk: Buffer) => void;
  readonly mask: (text: string) => string;
  readonly onWarning: (text: string) => void;
}

const MAX_REASON_LINES = 8;

/** The process that holds a container which serves HTTP: it lives as long as the container, and carries its output. */
class ContainerProcess {
  readonly #options: ContainerProcessOptions;
  readonly #child: ChildProcess;
  readonly #output: StderrTail;
  readonly #tracked: TrackedChild;
  /** Resolves when the container has ended by itself or was ended. */
  readonly ended: Promise<RunEnd>;
  #ending: Promise<void> | undefined;

  constructor(options: ContainerProcessOptions) {
    this.#options = options;
    this.#output = new StderrTail(options.mask);
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
    this.#tracked = trackChild(this.#child, pids, { serverId, command, args });
    if (this.#tracked.warning !== null) options.onWarning(this.#tracked.warning);
    this.ended = this.#listen();
    for (const [index, bytes] of fds.entries()) writeToPipe(this.#child.stdio[3 + index], bytes);
  }

  /** Resolves once it runs; rejects if it cannot be started. */
  started(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.once("spawn", resolve);
      this.#child.on("error", (error) => reject(startError(error, this.#options.launch.command)));
    });
  }

  /** Its last lines of output. */
  lastLines(): string {
    return this.#output.text(MAX_REASON_LINES);
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
    const { launch } = this.#options;
    await this.#tracked.end({ graceMs, stdinMs: 0, ask: () => launch.stop() });
    await launch.cleanUp();
  }
}

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/** Where the engine published the port, such as 127.0.0.1:41853. Rejects when the signal aborts. */
async function publishedAddress(launch: ContainerLaunch, port: number, signal: AbortSignal): Promise<string> {
  for (const pause of pauses()) {
    const { code, stdout } = await launch.ask(["port", launch.name, `${port}/tcp`], signal);
    const address = stdout.split("\n").find((line) => /^127\.0\.0\.1:\d+$/.test(line.trim()));
    if (code === 0 && address !== undefined) return address.trim();
    await delay(pause, undefined, { signal });
  }
  throw new Error("unreachable");
}

/** Any answer will do. Engines take connections before the server does, so a connection alone says nothing. */
async function waitUntilReady(url: URL, signal: AbortSignal): Promise<void> {
  const client = new HttpClient();
  try {
    for (const pause of pauses()) {
      const answer = await client
        // Not what opens an event stream.
        .request({ method: "GET", url, headers: { accept: "application/json" }, signal })
        .catch(() => undefined);
      if (answer !== undefined) {
        answer.body.destroy();
        return;
      }
      await delay(pause, undefined, { signal });
    }
  } finally {
    client.destroy();
  }
}

/** Without end: who waits gives a signal. */
function* pauses(): Generator<number> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, MAX_PAUSE_MS)) yield pause;
}
