/**
 * Schemas from a client or a server. They are limited in size. A small one is compiled and used here, within a short
 * time budget that they all share; larger or slower ones go to a worker, which is ended when it takes
 * too long. So no schema can block the hub for its other callers.
 */
import { createContext, type Context, Script } from "node:vm";
import type { Worker } from "node:worker_threads";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import { schemaSize } from "../schemas/schema-size.ts";
import type { SchemaAnswer, SchemaJob } from "./schema-worker.ts";
import {
  compileSchema,
  dropCompilers,
  prepareCompiler,
  type Problems,
  problemsOf,
  type Validate,
} from "./validator.ts";

/** Compiling takes some 30 microseconds for each value of a schema. */
const MAX_NODES_HERE = 400;
/** As `SchemaSize` counts them. Compiling a regular expression is not interrupted when the time is up. */
const MAX_PATTERNS_HERE = 1024;

/** For one job of the worker, compiling and checking. */
const MAX_WORKER_MS = 3000;
const MAX_WORKER_START_MS = 30_000;
const MAX_WAITING_JOBS = 64;
/** It keeps all code that it made; a new one begins with none. */
const MAX_SCHEMAS_OF_WORKER = 200;
const WORKER_IDLE_MS = 30_000;
const WORKER_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

type SchemaState = { readonly here: Validate } | { readonly elsewhere: true } | { readonly refused: Error };

const schemaStates = new WeakMap<JsonObject, SchemaState>();

/** Whether it was looked at by `checkForeignSchema`, and is to be used with `foreignProblems`. */
export function isUntrustedSchema(schema: JsonObject): boolean {
  return schemaStates.has(schema);
}

/**
 * Throws `too_large` for a schema above the bounds, `invalid_arguments` for one that takes too long to compile, and what ajv
 * throws for an invalid schema. Synchronous for a small one while this turn of the event loop has time left, as it nearly always has.
 */
export function checkUntrustedSchema(schema: JsonObject): void | Promise<void> {
  const found = schemaStates.get(schema);
  if (found !== undefined && "refused" in found) throw found.refused;
  if (found !== undefined) return;
  const { nodes, patterns, fault } = schemaSize(schema);
  if (fault !== undefined) throw recordRefusal(schema, new ToolcribError("too_large", `The schema ${fault}.`));
  if (nodes > MAX_NODES_HERE || patterns > MAX_PATTERNS_HERE) return checkElsewhere(schema);
  if (!hasTimeLeft()) return nextTurn().then(() => checkUntrustedSchema(schema));
  try {
    schemaStates.set(schema, { here: compileHere(schema) });
  } catch (error) {
    if (error instanceof TimeBudgetExceeded) return checkElsewhere(schema);
    throw recordRefusal(schema, error instanceof Error ? error : new Error(String(error)));
  }
}

/** The value must be a copy that does not change until it is checked. */
export async function untrustedProblems(schema: JsonObject, value: JsonObject): Promise<Problems> {
  await checkUntrustedSchema(schema);
  const found = schemaStates.get(schema);
  if (found !== undefined && "here" in found) {
    if (!hasTimeLeft()) await nextTurn();
    try {
      return runWithinBudget(() => problemsOf(found.here, value));
    } catch (error) {
      if (!(error instanceof TimeBudgetExceeded)) throw error;
      // It would take as long the next time.
      schemaStates.set(schema, { elsewhere: true });
    }
  }
  const answer = await worker.run(schema, value);
  if (answer.ok && answer.problems !== undefined) return answer.problems;
  throw new Error(answer.ok ? "The schema was compiled and nothing checked." : answer.message);
}

function recordRefusal(schema: JsonObject, error: Error): Error {
  schemaStates.set(schema, { refused: error });
  return error;
}

function compileHere(schema: JsonObject): Validate {
  prepareCompiler(schema);
  try {
    return runWithinBudget(() => compileSchema(schema));
  } catch (error) {
    if (error instanceof TimeBudgetExceeded) dropCompilers();
    throw error;
  }
}

async function checkElsewhere(schema: JsonObject): Promise<void> {
  let answer: SchemaAnswer;
  try {
    answer = await worker.run(schema);
  } catch (error) {
    // A job that was not run may be retried; one that took too long would do so again.
    throw error instanceof ToolcribError && error.code === "invalid_arguments" ? recordRefusal(schema, error) : error;
  }
  if (!answer.ok) throw recordRefusal(schema, new Error(answer.message));
  schemaStates.set(schema, { elsewhere: true });
}

function tooSlowError(): ToolcribError {
  return new ToolcribError("invalid_arguments", "Checking against the schema takes too long.", {
    hint: "Send less, or make the schema and its patterns simpler.",
  });
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface WaitingJob {
  /** Values of the schema. */
  readonly nodes: number;
  readonly schema: JsonObject;
  readonly value: JsonObject | undefined;
  readonly resolve: (answer: SchemaAnswer) => void;
  readonly reject: (error: ToolcribError) => void;
}

/** One thread for all schemas, one job at a time. It is started for the first job and ended when there are none for a while. */
class SchemaWorker {
  readonly #waiting: WaitingJob[] = [];
  readonly #keys = new WeakMap<JsonObject, number>();
  #lastKey = 0;
  #running: WaitingJob | undefined;
  #thread: Worker | undefined;
  #isReady = false;
  /** Keys of the schemas that the thread has. */
  #sent = new Set<number>();
  #timer: NodeJS.Timeout | undefined;

  run(schema: JsonObject, value?: JsonObject): Promise<SchemaAnswer> {
    if (this.#waiting.length >= MAX_WAITING_JOBS) {
      const hint = "Try again in a few seconds.";
      throw new ToolcribError("rate_limited", "Too many schemas are being checked.", { hint });
    }
    return new Promise((resolve, reject) => {
      const { nodes } = schemaSize(schema);
      const job: WaitingJob = { nodes, schema, value, resolve, reject };
      // Small ones first: those who send large schemas wait for their own.
      const behind = this.#waiting.findIndex((other) => other.nodes > nodes);
      this.#waiting.splice(behind === -1 ? this.#waiting.length : behind, 0, job);
      this.#next();
    });
  }

  #next(): void {
    if (this.#running !== undefined) return;
    if (this.#sent.size >= MAX_SCHEMAS_OF_WORKER) this.#end();
    if (this.#waiting.length === 0) return this.#rest();
    if (this.#thread === undefined) this.#start();
    else if (this.#isReady) this.#send(this.#thread);
  }

  #send(thread: Worker): void {
    const job = this.#waiting.shift();
    if (job === undefined) return;
    this.#running = job;
    const { schema, value } = job;
    thread.ref();
    let key = this.#keys.get(schema);
    if (key === undefined) this.#keys.set(schema, (key = ++this.#lastKey));
    const isNew = !this.#sent.has(key);
    this.#sent.add(key);
    this.#limit(MAX_WORKER_MS, tooSlowError);
    try {
      const message: SchemaJob = { key, schema: isNew ? schema : undefined, value };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      thread.postMessage(message);
    } catch (error) {
      this.#fail(new ToolcribError("invalid_arguments", "The schema or the arguments are not JSON.", { cause: error }));
    }
  }

  #start(): void {
    let thread: Worker;
    try {
      thread = startThread();
    } catch {
      return this.#fail(workerStartError());
    }
    this.#thread = thread;
    this.#limit(MAX_WORKER_START_MS, workerStartError);
    thread.on("message", (message: "ready" | SchemaAnswer) => {
      if (thread !== this.#thread) return;
      clearTimeout(this.#timer);
      if (message === "ready") this.#isReady = true;
      else this.#settle((job) => job.resolve(message));
      this.#next();
    });
    thread.on("error", (error) => {
      if (thread === this.#thread) this.#fail(this.#isReady ? workerError(error) : workerStartError());
    });
  }

  /** Ends the thread, and with it the job that it has; without one, all that wait for it. */
  #limit(ms: number, reason: () => ToolcribError): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(reason()), ms);
  }

  #fail(error: ToolcribError): void {
    this.#end();
    if (this.#running !== undefined) this.#settle((job) => job.reject(error));
    else for (const job of this.#waiting.splice(0)) job.reject(error);
    this.#next();
  }

  #settle(how: (job: WaitingJob) => void): void {
    const job = this.#running;
    this.#running = undefined;
    if (job !== undefined) how(job);
  }

  #rest(): void {
    if (this.#thread === undefined) return;
    this.#thread.unref();
    this.#limit(WORKER_IDLE_MS, tooSlowError);
    this.#timer?.unref();
  }

  #end(): void {
    clearTimeout(this.#timer);
    const thread = this.#thread;
    this.#thread = undefined;
    this.#isReady = false;
    this.#sent = new Set();
    void thread?.terminate();
  }
}

const worker = new SchemaWorker();

function startThread(): Worker {
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  // The bundler knows this line by its words.
  return new Worker(new URL("./schema-worker.ts", import.meta.url), {
    name: "toolcrib schemas",
    // Nothing of the hub's is for a thread that works on what strangers wrote.
    env: {},
    argv: [],
    execArgv: [],
    resourceLimits: WORKER_LIMITS,
  });
}

function workerStartError(): ToolcribError {
  return new ToolcribError("internal", "The thread that checks large schemas cannot be started.");
}

function workerError(error: Error): ToolcribError {
  const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  const text = isMemory ? "Checking against the schema takes too much memory." : "The schema cannot be checked.";
  return new ToolcribError("invalid_arguments", text, { cause: error });
}

/** For all schemas in one turn of the event loop. Longer work is done by a worker. */
const MAX_MS_PER_TURN = 50;

let spentMs = 0;
let isCounting = false;
let vmRoom: { readonly context: Context; readonly script: Script } | undefined;

/** The work was stopped half-way. */
export class TimeBudgetExceeded extends Error {
  override name = "TookTooLong";
}

/** Whether there is time left in this turn. */
function hasTimeLeft(): boolean {
  return timeLeft() >= 1;
}

/**
 * Runs work on an untrusted schema and stops it when the time of this turn is used up, because the whole hub waits for it:
 * patterns can be made to take forever, and a harmless one is slow on long texts. Costs a tenth of a millisecond; throws
 * TimeBudgetExceeded.
 */
export function runWithinBudget<T>(work: () => T): T {
  if (!isCounting) {
    isCounting = true;
    setImmediate(() => {
      isCounting = false;
      spentMs = 0;
    });
  }
  const left = timeLeft();
  if (left < 1) throw new TimeBudgetExceeded();
  const began = performance.now();
  try {
    return runInterruptible(left, work);
  } finally {
    spentMs += performance.now() - began;
  }
}

function timeLeft(): number {
  return Math.floor(MAX_MS_PER_TURN - spentMs);
}

/** Only a script can be interrupted, with everything that it calls. */
function runInterruptible<T>(timeout: number, work: () => T): T {
  vmRoom ??= { context: createContext({}), script: new Script("work()") };
  const { context, script } = vmRoom;
  context["work"] = work;
  try {
    // The script returns what `work` does.
    return script.runInContext(context, { timeout }) as T;
  } catch (error) {
    // It is not an Error of this realm.
    const isLate = typeof error === "object" && error !== null && "code" in error;
    throw isLate && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? new TimeBudgetExceeded() : error;
  } finally {
    context["work"] = undefined;
  }
}
