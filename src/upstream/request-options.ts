import type { JsonObject } from "../model/json.ts";
import type { Progress } from "../model/protocol.ts";
import type { ClientSide } from "../model/session.ts";

/** How a request is sent, and who is behind it. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Silence after which the request is given up; absent for requests that stay open. */
  readonly timeoutMs?: number | undefined;
  /** Progress restarts the timeout, but never beyond this. */
  readonly maxTotalMs?: number | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Extra HTTP headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Who answers what the server asks while the request runs. */
  readonly client?: ClientSide | undefined;
  /** Replaces what is the same for all requests in a modern request's `_meta`. */
  readonly envelope?: JsonObject | undefined;
  /** Gets what the server says on this request's own stream, or in its time; the Peer's owner hands it on. */
  readonly onNotice?: ((method: string, params: JsonObject) => void) | undefined;
  /** The call that it is sent for. */
  readonly callId?: string | undefined;
  /** A request of our own that stays open, and does not make the connection busy. */
  readonly background?: boolean | undefined;
  /** `initialize` must not be cancelled by a notification. */
  readonly uncancellable?: boolean | undefined;
}
