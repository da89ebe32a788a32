/** Requests of ours to a legacy client that wait for its answer. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { RequestId, RpcResponse } from "../../model/rpc.ts";
import { errorFromRpc } from "../../upstream/rpc-error.ts";
import { encodeNotification, encodeRequest } from "./encode.ts";
import type { Outlet } from "./encoded.ts";

interface Waiting {
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (error: ToolcribError) => void;
}

export class ClientRequests {
  readonly #waiting = new Map<RequestId, Waiting>();
  #nextId = 1;

  /** Resolves with the client's result as it came; its error answer keeps code, message and data. */
  ask(outlet: Outlet, method: string, params: JsonObject | undefined, signal: AbortSignal): Promise<JsonObject> {
    if (signal.aborted) return Promise.reject(moot(method));
    const id = this.#nextId++;
    return new Promise<JsonObject>((resolve, reject) => {
      const giveUp = (): void => {
        if (!this.#waiting.delete(id)) return;
        outlet.send(encodeNotification("notifications/cancelled", { requestId: id, reason: "No longer needed." }));
        reject(moot(method));
      };
      const done = (): void => signal.removeEventListener("abort", giveUp);
      this.#waiting.set(id, {
        resolve: (result) => (done(), resolve(result)),
        reject: (error) => (done(), reject(error)),
      });
      signal.addEventListener("abort", giveUp, { once: true });
      outlet.send(encodeRequest(id, method, params));
    });
  }

  /** An answer that nobody waits for is ignored: the question may have been given up meanwhile. */
  answer(response: RpcResponse): void {
    const { id } = response;
    const waiting = id === null ? undefined : this.#waiting.get(id);
    if (id === null || waiting === undefined) return;
    this.#waiting.delete(id);
    if ("error" in response) waiting.reject(errorFromRpc(response.error));
    else if (isJsonObject(response.result)) waiting.resolve(response.result);
    else waiting.reject(new ToolcribError("tool_error", "The client's answer is no object."));
  }

  close(): void {
    const gone = new ToolcribError("cancelled", "The client's session ended.");
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
  }
}

function moot(method: string): ToolcribError {
  return new ToolcribError("cancelled", `${method} is no longer needed.`);
}
