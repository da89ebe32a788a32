/** Calls between two threads: each side offers functions by name, and calls those of the other. */
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
