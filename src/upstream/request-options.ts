import type { JsonObject } from "../model/json.ts";
import type { Progress } from "../model/protocol.ts";
import type { ClientSide } from "../model/session.ts";

/** How a request is sent, and who is behind it. */
export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Silence after which the request is given up; absent for requests that stay open. */
  readonly timeoutMs?: number;
  /** Progress restarts the timeout, but never beyond this. */
  readonly maxTotalMs?: number;
  readonly onProgress?: (progress: Progress) => void;
  /** Extra HTTP headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Who answers what the server asks while the request runs. */
  readonly client?: ClientSide;
  /** Replaces what is the same for all requests in a modern request's `_meta`. */
  readonly envelope?: JsonObject;
  /** Gets what the server says on this request's own stream, or in its time; the Peer's owner hands it on. */
  readonly onNotice?: (method: string, params: JsonObject) => void;
  /** The call that it is sent for. */
  readonly callId?: string;
  /** A request of our own that stays open, and does not make the connection busy. */
  readonly background?: boolean;
  /** `initialize` must not be cancelled by a notification. */
  readonly uncancellable?: boolean;
}
