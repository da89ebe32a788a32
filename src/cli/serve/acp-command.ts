/** The agent for editors over stdio. Nothing but the protocol goes to stdout, and nothing is left when it ends. */
import fs, { appendFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { type AcpDoorOptions, serveAcp } from "../../doors/acp/serve-acp.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import type { Hub } from "../../hub/hub.ts";
import { asToolcribError, ERROR_TABLE, type ErrorObject, ToolcribError } from "../../model/errors.ts";
import { parseJsonObject } from "../../model/json.ts";
import type { Log } from "../../telemetry/log.ts";
import { killProcessGroups } from "../../upstream/stdio/child-processes.ts";
import { loadCommandConfig } from "../command-config.ts";
import { exitCodeOf, type Invocation } from "../command.ts";
import { chosenModel, modeOf } from "../run/run-options.ts";
import { listenForStopSignals, type StopSignals } from "../signals.ts";
import { suggestGuard } from "../suggest-guard.ts";
import { logFor, logHubEvents, logStart, logWarnings } from "./hub-log.ts";

/** Clients wait five seconds for an agent to end. A server that does not end by itself is killed before that. */
const KILL_AFTER_MS = 2500;
const GIVE_UP_AFTER_MS = 4000;

export async function run(invocation: Invocation): Promise<number> {
  const { stdin: input, out } = invocation;
  const stopped = listenForStopSignals({ names: ["SIGINT", "SIGTERM", "SIGHUP"], onSecond: "exit" });
  const claimed = claimStdout();
  const giveUp = (): void => {
    out.labelled("red", "error:", "Closing took too long. The remaining servers were not closed.");
    process.exit(stopped.exitCode ?? 1);
  };
  const steps = { [KILL_AFTER_MS]: killProcessGroups, [GIVE_UP_AFTER_MS]: giveUp };
  const inTime = runStepsAfterStop({ signal: stopped.signal, input, steps });
  try {
    return await serve(invocation, claimed.output, stopped);
  } finally {
    await claimed.release();
    inTime();
    stopped.dispose();
  }
}

async function serve(invocation: Invocation, output: AcpDoorOptions["output"], stopped: StopSignals): Promise<number> {
  const { stdin, out, env, flags } = invocation;
  let agent: PreparedAgent;
  try {
    agent = await prepare(invocation);
  } catch (thrown) {
    const error = asToolcribError(thrown).toObject();
    out.error(error);
    await refuseFirstRequest(stdin, output, out.redactor.maskAll(error), stopped.signal);
    return stopped.exitCode ?? exitCodeOf(error.code);
  }
  const { hub, log, model, mode } = agent;
  try {
    await serveAcp({
      hub,
      input: stdin,
      output,
      env,
      model,
      mode,
      role: flags.text("role"),
      signal: stopped.signal,
      followConfig: true,
      log: (message) => log.warn(message),
    });
    return stopped.exitCode ?? 0;
  } finally {
    await hub.close();
  }
}

interface PreparedAgent {
  readonly hub: Hub;
  readonly log: Log;
  readonly model: AcpDoorOptions["model"];
  readonly mode: AcpDoorOptions["mode"];
}

async function prepare(invocation: Invocation): Promise<PreparedAgent> {
  const { flags, env, out, cwd } = invocation;
  const file = flags.text("logFile");
  const log = logFor(invocation, file === undefined ? undefined : fileWriter(resolve(cwd, file)));
  const named = flags.text("mode");
  const mode = named === undefined ? undefined : modeOf(named);
  const config = await loadCommandConfig(invocation, { asks: false });
  const given = flags.text("model");
  // Without a model it starts anyway: the client gets the error when it authenticates or sends a prompt.
  const model = given === undefined ? undefined : chosenModel(config.config.agent, given);
  const hub = await createHub(config, {
    wait: false,
    rootsOnRequest: true,
    door: "acp",
    env,
    redactor: out.redactor,
    otelExport: true,
  });
  logWarnings(hub, log);
  logHubEvents(hub, log);
  void logStart(hub, log);
  await suggestGuard(hub, (message) => log.warn(message));
  return { hub, log, model, mode };
}

function fileWriter(path: string): (line: string) => void {
  const write = (line: string): void => appendFileSync(path, line, { mode: 0o600 });
  try {
    write("");
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `The log file ${path} cannot be written.`, { cause: error });
  }
  return write;
}

interface StopSteps {
  readonly signal: AbortSignal;
  readonly input: Readable;
  /** By milliseconds after the signal or the end of the input. */
  readonly steps: Readonly<Record<number, () => void>>;
}

/** The returned function cancels the steps. */
function runStepsAfterStop({ signal, input, steps }: StopSteps): () => void {
  let timers: NodeJS.Timeout[] | undefined;
  const begin = (): void => {
    timers ??= Object.entries(steps).map(([ms, step]) => setTimeout(step, Number(ms)));
  };
  signal.addEventListener("abort", begin, { once: true });
  input.once("end", begin);
  return () => {
    timers?.forEach(clearTimeout);
    signal.removeEventListener("abort", begin);
    input.off("end", begin);
  };
}

/**
 * Answers the client's first request with the reason why there is no agent; most editors do not show stderr. Resolves when a
 * request was answered, the input has ended, or the signal aborted.
 */
async function refuseFirstRequest(
  input: Readable,
  output: Writable,
  error: ErrorObject,
  signal: AbortSignal,
): Promise<void> {
  const lines = createInterface({ input, crlfDelay: Infinity });
  const stop = (): void => lines.close();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const line of lines) {
      const id = requestId(line);
      if (id === undefined) continue;
      const { code, message, hint, details } = error;
      const text = hint === undefined ? message : `${message} ${hint}`;
      const answer = { code: ERROR_TABLE[code].rpc, message: text, data: { code, message, hint, details } };
      output.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: answer })}\n`);
      return;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    lines.close();
  }
}

function requestId(line: string): string | number | undefined {
  const { id, method } = parseJsonObject(line) ?? {};
  if (typeof method !== "string") return undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

const STDOUT = 1;
const STDERR = 2;

interface ClaimedStdout {
  /** The only way left to the real stdout. */
  readonly output: Writable;
  /** Gives stdout back once everything is written. */
  release(): Promise<void>;
}

/**
 * Reserves stdout for the protocol. Everything else that prints there, such as `console.log` in a plugin or a logger that writes
 * to the file descriptor, goes to stderr until it is released. What a plugin's child prints to an inherited stdout is not caught.
 */
function claimStdout(): ClaimedStdout {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  const giveBack = divertDescriptor();

  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      write(chunk, (error) => done(error));
    },
  });
  const onError = (error: Error): void => void output.destroy(error);
  stdout.on("error", onError);
  // The writer gets the error too; a client that disconnected is not a fault of this process.
  output.on("error", () => {});

  return {
    output,
    async release() {
      if (!output.destroyed) await new Promise<void>((done) => output.end(() => done()));
      stdout.off("error", onError);
      stdout.write = write;
      giveBack();
    },
  };
}

/** Functions whose first argument can be a file descriptor. */
const DESCRIPTOR_FUNCTIONS = [
  "write",
  "writeSync",
  "writev",
  "writevSync",
  "writeFile",
  "writeFileSync",
  "appendFile",
  "appendFileSync",
] as const;
/** These take no descriptor, but the paths of one. */
const PROMISE_FUNCTIONS = ["writeFile", "appendFile"] as const;
const STDOUT_PATHS: ReadonlySet<unknown> = new Set([
  "/dev/stdout",
  "/dev/fd/1",
  "/proc/self/fd/1",
  `/proc/${process.pid}/fd/1`,
]);

type WriteFunction = (...args: unknown[]) => unknown;

/** Loggers write to file descriptors, past `process.stdout`. */
function divertDescriptor(): () => void {
  const isStdout = (place: unknown): boolean => place === STDOUT || STDOUT_PATHS.has(place);
  // The arguments go on as they came; only the first may be another one.
  const behind =
    (real: WriteFunction): WriteFunction =>
    (place, ...rest) =>
      Reflect.apply(real, fs, [isStdout(place) ? STDERR : place, ...rest]);
  const behindPromise =
    (real: WriteFunction, write: WriteFunction): WriteFunction =>
    (place, ...rest) =>
      isStdout(place) ? promisify(write, [STDERR, ...rest]) : Reflect.apply(real, fs.promises, [place, ...rest]);
  const { promises } = fs;
  const stops = [
    ...PROMISE_FUNCTIONS.map((name) =>
      replaceFunction(promises, name, behindPromise(promises[name] as WriteFunction, fs[name] as WriteFunction)),
    ),
    ...DESCRIPTOR_FUNCTIONS.map((name) => replaceFunction(fs, name, behind(fs[name] as WriteFunction))),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const stop of stops) stop();
    syncBuiltinESMExports();
  };
}

/** The returned function puts back what was there. */
function replaceFunction<Part extends object>(part: Part, name: keyof Part, by: WriteFunction): () => void {
  const before = part[name];
  Object.assign(part, { [name]: by });
  return () => void Object.assign(part, { [name]: before });
}

function promisify(write: WriteFunction, args: readonly unknown[]): Promise<void> {
  return new Promise((resolve, reject) => {
    write(...args, (error: unknown) => (error == null ? resolve() : reject(error)));
  });
}
