/** Calls between two threads: each side offers functions by name, and calls those of the other. And a pool of threads for one kind of work. */
import type { Worker } from "node:worker_threads";
import { endsWithin } from "./async.ts";
import { asToolcribError, type ErrorObject, ToolcribError } from "../model/errors.ts";

/** A Worker, or the port of one to its parent. */
interface ThreadPort {
  postMessage(message: unknown, transfer: []): void;
  on(event: "message", listener: (message: Message) => void): unknown;
}

type Message =
  | { readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: ErrorObject };

/** Functions by name. Arguments and results are copied by structured cloning. */
export type ThreadFunctions = Readonly<Record<string, (...args: never[]) => unknown>>;

export class ThreadCalls {
  readonly #port: ThreadPort;
  readonly #offered: ThreadFunctions;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  constructor(port: ThreadPort, offered: ThreadFunctions) {
    this.#port = port;
    this.#offered = offered;
    port.on("message", (message) => void this.#take(message));
  }

  /** How many calls have no answer yet. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Rejects with what the other side threw, as a ToolcribError. The caller knows the type of the answer. */
  call<Result>(name: string, ...args: readonly unknown[]): Promise<Result> {
    const id = (this.#lastId += 1);
    const answer = Promise.withResolvers<unknown>();
    this.#send({ id, name, args });
    this.#waiting.set(id, answer);
    return answer.promise as Promise<Result>;
  }

  /** The other side is gone. */
  fail(error: ToolcribError): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #send(message: Message): void {
    this.#port.postMessage(message, []);
  }

  async #take(message: Message): Promise<void> {
    const { id } = message;
    if ("name" in message) {
      try {
        // Both sides are of one program: what is sent is what the function takes.
        const offered = this.#offered[message.name] as ((...args: readonly unknown[]) => unknown) | undefined;
        const result = await offered?.(...message.args);
        this.#send({ id, result });
      } catch (error) {
        this.#send({ id, error: asToolcribError(error).toObject() });
      }
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if ("error" in message) {
      const { code, message: text, ...rest } = message.error;
      waiting?.reject(new ToolcribError(code, text, rest));
    } else waiting?.resolve(message.result);
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
  readonly #running = new Map<ThreadCalls, Worker>();
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
    let thread: ThreadCalls | undefined;
    for (const each of this.#running.keys()) {
      waiting += each.size;
      if (thread === undefined || each.size < thread.size) thread = each;
    }
    if (waiting >= maxWaiting) throw new ToolcribError("internal", "All threads are busy.");
    if (thread === undefined || (thread.size > 0 && this.#running.size < most)) thread = this.#start();
    const worker = this.#running.get(thread);
    clearTimeout(this.#timer);
    worker?.ref();
    try {
      return await thread.call<Result>(name, ...args);
    } finally {
      if (thread.size === 0) worker?.unref();
      clearTimeout(this.#timer);
      const isIdle = ([each]: readonly [ThreadCalls, Worker]): boolean => each.size === 0;
      this.#timer = setTimeout(() => void this.#end([...this.#running].filter(isIdle)), idleMs).unref();
    }
  }

  /** Ends all of them; what has no answer after this time gets none. */
  async close(waitMs: number): Promise<void> {
    clearTimeout(this.#timer);
    for (const worker of this.#running.values()) worker.ref();
    await this.#end([...this.#running], waitMs);
  }

  #start(): ThreadCalls {
    const worker = this.#options.start();
    const thread = new ThreadCalls(worker, {});
    let reason = "";
    worker.on("error", (error) => (reason = `: ${error instanceof Error ? error.message : String(error)}`));
    worker.on("exit", () => {
      this.#running.delete(thread);
      thread.fail(new ToolcribError("internal", `The thread ended${reason}.`));
    });
    this.#running.set(thread, worker);
    return thread;
  }

  async #end(chosen: readonly (readonly [ThreadCalls, Worker])[], waitMs?: number): Promise<void> {
    // What comes now is not for one that ends.
    for (const [thread] of chosen) this.#running.delete(thread);
    const end = async ([thread, worker]: readonly [ThreadCalls, Worker]): Promise<void> => {
      const closed = thread.call("close").catch(() => {});
      await endsWithin(closed, { ms: waitMs });
      await worker.terminate();
    };
    await Promise.all(chosen.map(end));
  }
}
