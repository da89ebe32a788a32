/** The requests of a server that our side is answering right now. */
import type { JsonObject } from "../model/json.ts";
import type { ClientSide } from "../model/session.ts";
import { rpcFromError } from "./rpc-error.ts";
import { INVALID_REQUEST, type RequestId, type RpcResponse } from "../model/rpc.ts";

export interface IncomingContext {
  readonly signal: AbortSignal;
  /** The client of the request whose own stream carried this, where the transport knows it. */
  readonly client?: ClientSide;
}

type Serve = (method: string, params: JsonObject, context: IncomingContext) => Promise<JsonObject>;

/** What a person or a model is kept busy with; the rest is answered at once. */
const ASKS_A_PERSON: ReadonlySet<string> = new Set(["elicitation/create", "sampling/createMessage"]);

interface Open {
  readonly controller: AbortController;
  /** Of those that it can belong to, the ones that are still under way. */
  readonly calls: Set<RequestId>;
}

export class ServedRequests {
  readonly #serve: Serve;
  readonly #post: (answer: RpcResponse) => void;
  readonly #open = new Map<RequestId, Open>();

  constructor(serve: Serve, post: (answer: RpcResponse) => void) {
    this.#serve = serve;
    this.#post = post;
  }

  get busy(): boolean {
    return this.#open.size > 0;
  }

  /**
   * @param client Of the request whose own stream carried this.
   * @param calls Our requests of which one made the server ask; empty if it asks by itself.
   */
  serve(
    { id, method }: { readonly id: RequestId; readonly method: string },
    params: JsonObject,
    { client, calls }: { readonly client: ClientSide | undefined; readonly calls: readonly RequestId[] },
  ): void {
    if (method === "ping") return this.#post({ jsonrpc: "2.0", id, result: {} });
    const open = { controller: new AbortController(), calls: new Set(ASKS_A_PERSON.has(method) ? calls : []) };
    this.#open.set(id, open);
    void this.#answer(id, method, params, open.controller.signal, client);
  }

  /** Nobody needs an answer that only this call was in need of. The server gets an error, should it still wait. */
  callEnded(call: RequestId): void {
    for (const [id, { controller, calls }] of this.#open) {
      if (!calls.delete(call) || calls.size > 0) continue;
      controller.abort();
      this.#open.delete(id);
      this.#post({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message: "The call that asked has ended." } });
    }
  }

  /** Whether there was such a request. */
  cancel(id: RequestId): boolean {
    const open = this.#open.get(id);
    open?.controller.abort();
    return open !== undefined;
  }

  abortAll(): void {
    for (const { controller } of this.#open.values()) controller.abort();
  }

  async #answer(
    id: RequestId,
    method: string,
    params: JsonObject,
    signal: AbortSignal,
    client: ClientSide | undefined,
  ): Promise<void> {
    let answer: RpcResponse;
    try {
      const result = await this.#serve(method, params, { signal, client });
      answer = { jsonrpc: "2.0", id, result };
    } catch (error) {
      answer = { jsonrpc: "2.0", id, error: rpcFromError(error) };
    } finally {
      // Another request may have the id by now.
      if (this.#open.get(id)?.controller.signal === signal) this.#open.delete(id);
    }
    // A cancelled request gets no answer.
    if (!signal.aborted) this.#post(answer);
  }
}
