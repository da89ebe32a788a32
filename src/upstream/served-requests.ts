/** The requests of a server that our side is answering right now. */
import type { JsonObject } from "../model/json.ts";
import type { ClientSide } from "../model/session.ts";
import { rpcFromError } from "./rpc-error.ts";
import type { RequestId, RpcResponse } from "../model/rpc.ts";

export interface IncomingContext {
  readonly signal: AbortSignal;
  /** The client of the request whose own stream carried this, where the transport knows it. */
  readonly client?: ClientSide;
}

type Serve = (method: string, params: JsonObject, context: IncomingContext) => Promise<JsonObject>;

export class ServedRequests {
  readonly #serve: Serve;
  readonly #post: (answer: RpcResponse) => void;
  readonly #open = new Map<RequestId, AbortController>();

  constructor(serve: Serve, post: (answer: RpcResponse) => void) {
    this.#serve = serve;
    this.#post = post;
  }

  get busy(): boolean {
    return this.#open.size > 0;
  }

  serve(id: RequestId, method: string, params: JsonObject, client: ClientSide | undefined): void {
    if (method === "ping") return this.#post({ jsonrpc: "2.0", id, result: {} });
    const controller = new AbortController();
    this.#open.set(id, controller);
    void this.#answer(id, method, params, controller.signal, client);
  }

  /** Whether there was such a request. */
  cancel(id: RequestId): boolean {
    const controller = this.#open.get(id);
    controller?.abort();
    return controller !== undefined;
  }

  abortAll(): void {
    for (const controller of this.#open.values()) controller.abort();
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
      const result = await this.#serve(method, params, { signal, ...(client === undefined ? {} : { client }) });
      answer = { jsonrpc: "2.0", id, result };
    } catch (error) {
      answer = { jsonrpc: "2.0", id, error: rpcFromError(error) };
    } finally {
      this.#open.delete(id);
    }
    // A cancelled request gets no answer.
    if (!signal.aborted) this.#post(answer);
  }
}
