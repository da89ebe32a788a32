/** Calls from a thread to functions of another that it started, by name; and a pool of threads for one kind of work. */
import type { MessagePort, Worker } from "node:worker_threads";
import { endsWithin } from "./async.ts";
import { asToolcribError, type ErrorObject, ToolcribError } from "../model/errors.ts";

interface Call {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: ErrorObject;
}

/** Functions by name. Arguments and results are copied by structured cloning. */
type ThreadFunctions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** In the thread that was started: what it throws becomes a ToolcribError there. */
export function offerFunctions(port: MessagePort, functions: ThreadFunctions): void {
  const answer = async ({ id, name, args }: Call): Promise<void> => {
    try {
      // Both sides are of one program: what is sent is what the function takes.
      const offered = functions[name] as ((...args: readonly unknown[]) => unknown) | undefined;
      port.postMessage({ id, result: await offered?.(...args) } satisfies Answer, []);
    } catch (error) {
      port.postMessage({ id, error: asToolcribError(error).toObject() } satisfies Answer, []);
    }
  };
  port.on("message", (call: Call) => void answer(call));
}

/** A thread that was started, with the calls that it has not answered. */
class Thread {
  readonly worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  constructor(worker: Worker) {
    this.worker = worker;
    worker.on("message", ({ id, result, error }: Answer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new ToolcribError(error.code, error.message, error));
    });
  }

  /** How many calls have no answer yet. */
  get size(): number {
    return this.#waiting.size;
  }

  /** The caller knows the type of the answer. */
  call<Result>(name: string, ...args: readonly unknown[]): Promise<Result> {
    const id = (this.#lastId += 1);
    const answer = Promise.withResolvers<unknown>();
    this.worker.postMessage({ id, name, args } satisfies Call, []);
    this.#waiting.set(id, answer);
    return answer.promise as Promise<Result>;
  }

  /** It is gone. */
  fail(error: ToolcribError): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** More calls than this are not kept waiting: they are refused, so that who makes them does the work and slows down. */
const MAX_WAITING = 64;
const IDLE_MS = 30_000;

interface ThreadPoolOptions {
  readonly most: number;
  /** Infinite for work that can be done nowhere else. */
  readonly maxWaiting?: number;
  /** How long a thread stays without anything to do. */
  readonly idleMs?: number;
  /** A thread that offers `close` is asked to before it is ended. */
  start(): Worker;
}

/** Threads for work that comes now and then: started when it comes, ended when none does. They keep no process alive. */
export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #running = new Set<Thread>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  async call<Result>(name: string, ...args: readonly unknown[]): Promise<Result> {
    const { most, maxWaiting = MAX_WAITING, idleMs = IDLE_MS } = this.#options;
    let waiting = 0;
    let thread: Thread | undefined;
    for (const each of this.#running) {
      waiting += each.size;
      if (thread === undefined || each.size < thread.size) thread = each;
    }
    if (waiting >= maxWaiting) throw new ToolcribError("internal", "All threads are busy.");
    if (thread === undefined || (thread.size > 0 && this.#running.size < most)) thread = this.#start();
    clearTimeout(this.#timer);
    thread.worker.ref();
    try {
      return await thread.call<Result>(name, ...args);
    } finally {
      if (thread.size === 0) thread.worker.unref();
      clearTimeout(this.#timer);
      const endIdle = (): void => void this.#end([...this.#running].filter(({ size }) => size === 0));
      this.#timer = setTimeout(endIdle, idleMs).unref();
    }
  }

  /** Ends all of them; what has no answer after this time gets none. */
  async close(waitMs: number): Promise<void> {
    clearTimeout(this.#timer);
    for (const { worker } of this.#running) worker.ref();
    await this.#end([...this.#running], waitMs);
  }

  #start(): Thread {
    const worker = this.#options.start();
    const thread = new Thread(worker);
    let reason = "";
    worker.on("error", (error) => (reason = `: ${error instanceof Error ? error.message : String(error)}`));
    worker.on("exit", () => {
      this.#running.delete(thread);
      thread.fail(new ToolcribError("internal", `The thread ended${reason}.`));
    });
    this.#running.add(thread);
    return thread;
  }

  async #end(chosen: readonly Thread[], waitMs?: number): Promise<void> {
    // What comes now is not for one that ends.
    for (const thread of chosen) this.#running.delete(thread);
    const end = async (thread: Thread): Promise<void> => {
      const closed = thread.call("close").catch(() => {});
      await endsWithin(closed, { ms: waitMs });
      await thread.worker.terminate();
    };
    await Promise.all(chosen.map(end));
  }
}
