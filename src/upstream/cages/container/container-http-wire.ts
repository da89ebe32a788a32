/** A server that speaks HTTP inside a container: the container with its port on loopback, and the wire to that port. */
import type { Clock } from "../../../model/clock.ts";
import { Emitter } from "../../../model/emitter.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { RpcMessage } from "../../../model/rpc.ts";
import { StreamableWire } from "../../http/streamable-wire.ts";
import type { PidRecords } from "../../orphans/pid-records.ts";
import { startFailure } from "../../stdio/start-failures.ts";
import type { AgreedProtocol, SendOptions, Wire, WireEvents } from "../../wire.ts";
import type { CagedProgram, CageDeps, CageSettings, RunEnd } from "../cage.ts";
import { awaitAnswer, publishedAddress } from "./await-answer.ts";
import { type ContainerCage, containerCage, type ContainerLaunch } from "./container-cage.ts";
import { ContainerProcess } from "./container-process.ts";

export interface ContainerHttpOptions {
  readonly program: CagedProgram;
  readonly settings: CageSettings;
  readonly deps: Omit<CageDeps, "warn">;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly pids: PidRecords;
  readonly clock: Clock;
  /** Gets what the container writes. */
  readonly onOutput: (chunk: Buffer) => void;
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
  readonly #cage: ContainerCage;
  readonly #events = new Emitter<WireEvents>();
  #process: ContainerProcess | undefined;
  #wire: StreamableWire | undefined;
  #stopTimer: () => void = () => {};
  #ended = false;

  constructor(options: ContainerHttpOptions) {
    this.#options = options;
    this.#cage = containerCage(options.settings, { ...options.deps, warn: (text) => this.#emit("warning", text) });
  }

  on<Name extends keyof WireEvents>(name: Name, listener: (event: WireEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  async makeReady(signal: AbortSignal): Promise<void> {
    // Before an image is fetched for nothing.
    if (this.#options.settings.network === "none") throw needsNetwork();
    await this.#cage.makeReady(this.#options.program, signal);
  }

  async open(signal: AbortSignal): Promise<void> {
    const { settings, program, headers, clock } = this.#options;
    const { port, path = DEFAULT_PATH, timeout } = settings;
    if (port === undefined) throw new ToolcribError("internal", "A container without a port serves no HTTP.");
    const launch = await this.#cage.prepare(program, signal);
    if (signal.aborted || this.#ended) {
      await launch.cleanUp();
      throw new ToolcribError("cancelled", "starting the container was cancelled", { details: { sent: false } });
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
      await awaitAnswer(found, waiting);
      return found;
    });
    this.#wire = this.#hear(new StreamableWire({ url: url.href, headers, clock }));
    await this.#wire.open(signal);
    void container.ended.then((end) => this.#lose(endReason(container, end)));
    if (timeout !== undefined) this.#stopTimer = clock.after(timeout, () => this.#lose(ranTooLong(timeout)));
  }

  async #start(launch: ContainerLaunch): Promise<ContainerProcess> {
    const { program, pids, onOutput } = this.#options;
    const { serverId } = program;
    const onWarning = (text: string): void => this.#emit("warning", text);
    try {
      return new ContainerProcess({ serverId, launch, pids, onOutput, onWarning });
    } catch (error) {
      await launch.cleanUp();
      // Never as it is: it may show what a variable or an argument holds.
      throw startFailure(error, launch.command);
    }
  }

  agreed(protocol: AgreedProtocol): void {
    this.#wire?.agreed(protocol);
  }

  send(message: RpcMessage, options?: SendOptions): Promise<void> {
    if (this.#wire !== undefined && !this.#ended) return this.#wire.send(message, options);
    const details = { sent: false };
    return Promise.reject(new ToolcribError("server_unavailable", "the container is not running", { details }));
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#end();
  }

  #hear(wire: StreamableWire): StreamableWire {
    wire.on("message", (event) => this.#emit("message", event));
    wire.on("failed", (event) => this.#emit("failed", event));
    wire.on("warning", (event) => this.#emit("warning", event));
    wire.on("lost", (error) => this.#lose(error));
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

/** What comes first: the work, or the end of the container, which is a failure then. */
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
    throw new ToolcribError("timeout", text, {
      hint: "Check `sandbox.port`, that the server listens on 0.0.0.0 inside the container, and `timeout`.",
      details: { sent: false },
    });
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
  return new ToolcribError(
    "invalid_config",
    'A port can be published only by a container with a network, and `network` is "none".',
    {
      hint: 'Set `sandbox.network` to "host": the container gets a network of its own that leads out, and its port is on loopback only. Or run the server over stdio, without `sandbox.port`, which needs no network.',
      details: { sent: false },
    },
  );
}
