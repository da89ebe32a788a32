/** One server-sent event to the messages in it. */
import { decodeMessages, isResponse } from "../decode.ts";
import type { RequestId, RpcMessage } from "../../model/rpc.ts";
import type { SseEvent } from "./sse-parser.ts";

export interface EventDelivery {
  /** The request whose answer the stream is for. */
  readonly id?: RequestId;
  readonly onMessage: (message: RpcMessage) => void;
  readonly onJunk: (what: string, sample?: string) => void;
}

/** True if the answer to the request `id` was in it. */
export function deliverEvent({ event, data }: SseEvent, delivery: EventDelivery): boolean {
  // Events without data carry only the id to resume from; other names are not MCP's.
  if (event !== "message" || data === "") return false;
  const messages = decodeMessages(data);
  if (messages === null) {
    delivery.onJunk("an event of the server is no JSON-RPC message", data);
    return false;
  }
  return deliverMessages(messages, delivery);
}

export function deliverMessages(messages: readonly RpcMessage[], delivery: EventDelivery): boolean {
  let answered = false;
  for (const message of messages) {
    if (delivery.id !== undefined && isResponse(message)) answered ||= answers(message.id, delivery.id);
    delivery.onMessage(message);
  }
  return answered;
}

/** Some servers send a number back as text. */
function answers(id: RequestId | null, request: RequestId): boolean {
  return String(id) === String(request);
}
