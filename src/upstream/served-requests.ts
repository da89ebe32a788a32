/** The requests of a server that our side is answering right now. */
import type { JsonObject } from "../model/json.ts";
import type { SessionContext } from "../model/session.ts";
import { rpcFromError } from "./rpc-error.ts";
import type { RequestId, RpcResponse } from "./wire.ts";

export interface IncomingContext {
  readonly signal: AbortSignal;
  /** The session whose request's own stream carried this, where the transport knows it. */
  readonly session?: SessionContext;
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

  serve(id: RequestId, method: string, params: JsonObject, session: SessionContext | undefined): void {
    if (method === "ping") return this.#post({ jsonrpc: "2.0", id, result: {} });
    const controller = new AbortController();
    this.#open.set(id, controller);
    void this.#answer(id, method, params, controller.signal, session);
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
    session: SessionContext | undefined,
  ): Promise<void> {
    let answer: RpcResponse;
    try {
      const result = await this.#serve(method, params, { signal, ...(session === undefined ? {} : { session }) });
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
