/** The agent for editors over stdio. Nothing but the protocol goes to stdout, and nothing is left when it ends. */
import { appendFileSync } from "node:fs";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { constants } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { type AcpDoorOptions, serveAcp } from "../../doors/acp/serve-acp.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import type { Hub } from "../../hub/hub.ts";
import { asToolcribError, ERROR_TABLE, type ErrorObject, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Log } from "../../telemetry/log.ts";
import { killProcessGroups } from "../../upstream/stdio/child-processes.ts";
import { loadCommandConfig } from "../command-config.ts";
import { exitCodeOf, type Invocation } from "../command.ts";
import { chosenModel, modeOf } from "../run/run-options.ts";
import { logFor, logHubEvents, logWarnings } from "./hub-log.ts";

/** A server that does not end by itself would be waited for longer than the client waits for us, which is five seconds. */
const KILL_AFTER_MS = 2500;
const GIVE_UP_AFTER_MS = 4000;

export async function run(invocation: Invocation): Promise<number> {
  const { stdin: input, out } = invocation;
  const stopped = stopSignal();
  const claimed = claimStdout();
  const giveUp = (): void => {
    out.labelled("red", "error:", "Closing took too long; what is left is given up.");
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

async function serve(invocation: Invocation, output: AcpDoorOptions["output"], stopped: StopSignal): Promise<number> {
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
  const mode = flags.text("mode");
  const chosen = { mode: mode === undefined ? undefined : modeOf(mode) };
  const config = await loadCommandConfig(invocation, { asks: false });
  const given = flags.text("model");
  // Without one it starts all the same: the client is told when it wants to authenticate or to prompt.
  const model = given === undefined ? undefined : chosenModel(config.config.agent, given);
  const hub = await createHub(config, { wait: false, rootsOnRequest: true, door: "acp", env, redactor: out.redactor });
  logWarnings(hub, log);
  logHubEvents(hub, log);
  return { hub, log, model, ...chosen };
}

function fileWriter(path: string): (line: string) => void {
  const write = (line: string): void => appendFileSync(path, line, { mode: 0o600 });
  try {
    write("");
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `--log-file ${path} cannot be written.`, { cause: error });
  }
  return write;
}

/** The end of a program on stdio: told by a signal, and over within a time. */

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

interface StopSignal {
  readonly signal: AbortSignal;
  /** What a shell expects of a process that ended for the signal; undefined if there was none. */
  readonly exitCode: number | undefined;
  dispose(): void;
}

/** A second signal ends the process at once. */
function stopSignal(): StopSignal {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    if (exitCode !== undefined) process.exit(exitCode);
    exitCode = 128 + constants.signals[name];
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return {
    signal: controller.signal,
    get exitCode() {
      return exitCode;
    },
    dispose: () => {
      for (const name of SIGNALS) process.off(name, onSignal);
    },
  };
}

interface StopSteps {
  readonly signal: AbortSignal;
  readonly input: Readable;
  /** From the signal or the end of the input on; each by its time in milliseconds. */
  readonly steps: Readonly<Record<number, () => void>>;
}

/** Runs the steps in time unless the returned function is called before. */
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

/** Tells a client why there is no agent: the answer to its first request. On stderr alone it would be lost in most editors. */

/** Resolves when a request was answered, the input has ended, or the signal aborted. */
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
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(message) || typeof message["method"] !== "string") return undefined;
  const { id } = message;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/**
 * stdout for a protocol alone. Whatever else prints there, such as `console.log` in a plugin or a logger that writes to the file
 * descriptor, goes to stderr from then on. What a child of a plugin prints with an inherited stdout cannot be caught.
 */

const STDOUT = 1;
const STDERR = 2;

interface ClaimedStdout {
  /** The only way left to the real stdout. */
  readonly output: Writable;
  /** Gives stdout back once everything is written. */
  release(): Promise<void>;
}

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
  // Whoever writes learns of it; a client that went away is not a fault of this process.
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
/** Those of promises take no descriptor, but the names that systems have for it, as the others do. */
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
