/** A request of the modern era: it stands alone, with its version and its client's abilities in `_meta`. */
import { INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, type RpcRequest } from "../../../model/rpc.ts";
import type { Origin, ViewScope } from "../origin.ts";
import { errorCodeOf } from "../encode.ts";
import type { Encoded } from "../encoded.ts";
import { sharedMethod } from "../requests.ts";
import { KeptResults } from "../../../sessions/kept-results.ts";
import { InputRounds } from "../input-rounds.ts";
import type { Accepts } from "./accepts.ts";
import { answerOf } from "./answer-of.ts";
import { isElsewhere } from "./elsewhere.ts";
import { type McpExchange, refuse } from "./exchange.ts";
import { mayAsk } from "./may-ask.ts";
import { headerError, paramError } from "./modern-headers.ts";
import { ModernReply } from "./modern-reply.ts";
import type { Transport } from "./transport.ts";

export async function postModern(
  transport: Transport,
  exchange: McpExchange,
  accepts: Accepts,
  scope: ViewScope,
  message: RpcRequest,
): Promise<void> {
  const { request, response, caller } = exchange;
  const error = headerError(message, request.headers);
  if (error !== undefined) return refuse(response, 400, message.id, error);
  if (transport.ids !== undefined && (await isOthers(transport, exchange, message))) return;
  if (!mayAsk(transport, exchange, [message])) return;
  const origin: Origin = { caller, scope };
  const mismatch = message.method === "tools/call" ? toolError(transport, origin, message, exchange) : undefined;
  if (mismatch !== undefined) return refuse(response, 400, message.id, mismatch);
  const { streams } = transport;
  const isListen = message.method === "subscriptions/listen";
  if (isListen && !accepts.stream) {
    const text = "subscriptions/listen answers with text/event-stream: the header Accept must allow it.";
    return refuse(response, 406, message.id, { code: INVALID_PARAMS, message: text });
  }
  const full = isListen ? streams.reachedFor(caller) : undefined;
  if (full !== undefined) return transport.refuseFull(response, message.id, "streams", full);
  const reply = new ModernReply(exchange, accepts, streams);
  // A stream that only listens owes nothing, and a shutdown does not wait for it.
  if (!isListen) streams.owe(reply);
  const answer = await answerOf(message.id, () => transport.door.modern(message, origin, reply, reply.signal));
  reply.finish(answer, statusOf(message.method, answer));
  streams.settle(reply);
}

/** The call that waits for this answer, or the result that is asked for, may be at another node. */
async function isOthers({ ids }: Transport, exchange: McpExchange, { id, params }: RpcRequest): Promise<boolean> {
  const { requestState, uri } = params ?? {};
  const round = InputRounds.idOf(requestState);
  if (round !== undefined) return isElsewhere(ids, exchange, "round", round, id);
  const result = typeof uri === "string" ? KeptResults.idOf(uri) : undefined;
  return result !== undefined && isElsewhere(ids, exchange, "result", result, id);
}

function toolError(
  { door }: Transport,
  origin: Origin,
  { params }: RpcRequest,
  { request }: McpExchange,
): ReturnType<typeof paramError> {
  const name = params?.["name"];
  if (typeof name !== "string") return undefined;
  const tool = door.toolDefinition(origin, name);
  return tool === undefined ? undefined : paramError(tool, params, request.headers);
}

/**
 * The errors that the protocol gives a status of their own; all others are answers like any other. That a server behind us
 * does not know a method that we know is such an answer.
 */
function statusOf(method: string, answer: Encoded | null): number {
  switch (answer === null ? undefined : errorCodeOf(answer)) {
    case METHOD_NOT_FOUND:
      return sharedMethod(method) === undefined ? 404 : 200;
    case MISSING_CAPABILITY:
      return 400;
    default:
      return 200;
  }
}
