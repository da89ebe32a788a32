/** Wire: one open channel to an MCP server that carries JSON-RPC messages, on any transport. */
import type { ToolcribError } from "../model/errors.ts";
import type { Era } from "../model/protocol.ts";
import type { RequestId, RpcMessage } from "../model/rpc.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { CancelSignal } from "../model/cancel.ts";

export interface WireEvents {
  /** `related` is the id of our request on whose response stream the message came, where the transport knows it. */
  message: { readonly message: RpcMessage; readonly related?: RequestId };
  /**
   * A request of ours, already handed over, that will get no answer although the channel lives: its response stream
   * ended early, was unreadable or too large. Not sent after that request's signal aborted or after `close()`.
   */
  failed: { readonly id: RequestId; readonly error: ToolcribError };
  /** Once, when the channel is gone without `close()` having been called. The reason is for a person. */
  lost: ToolcribError;
  /** Something odd that the channel survived: junk on stdout, an oversized line, a bad event. */
  warning: string;
}

export interface Wire {
  readonly transport: TransportKind;
  on<Name extends keyof WireEvents>(name: Name, listener: (event: WireEvents[Name]) => void): () => void;
  /**
   * What takes long and is needed once, such as making an image; called before `open()` and not part of the time that
   * connecting may take. It has a bound of its own.
   */
  makeReady?(signal: AbortSignal): Promise<void>;
  /** Opens the channel. Rejects with a ToolcribError that says what a person can do. */
  open(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the message has been handed over. Rejects with ToolcribError; `details.sent: false` says that the
   * server cannot have acted on it, `details.sessionLost: true` that an HTTP session is gone (404), `details.status` is an
   * HTTP status, `details.rpc` a JSON-RPC error body of an HTTP error answer.
   */
  send(message: RpcMessage, options?: SendOptions): Promise<void>;
  /** Told once the handshake is over; HTTP needs it for its headers and opens the GET stream of a legacy session. */
  agreed(protocol: AgreedProtocol): void;
  /** Ends the channel gracefully and for good; a child and its whole process group are gone afterwards. Never rejects. */
  close(): Promise<void>;
}

export interface SendOptions {
  /** Aborting it on a request closes that request's response stream: how modern HTTP cancels. */
  readonly signal?: CancelSignal | undefined;
  /** Extra HTTP headers, such as `Mcp-Param-*`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface AgreedProtocol {
  readonly era: Era;
  readonly version: string;
}
