import type { RpcRequest } from "../../../model/rpc.ts";
import { requiredScope } from "../scopes.ts";
import type { McpExchange } from "./exchange.ts";
import type { Transport } from "./transport.ts";

/** Whether new requests are taken at all, and these from this caller. If not, that is answered. */
export function mayAsk(transport: Transport, exchange: McpExchange, requests: readonly RpcRequest[]): boolean {
  if (requests.length > 0 && transport.isClosing) {
    transport.refuseClosing(exchange.response, requests[0]?.id ?? null);
    return false;
  }
  for (const { method } of requests) {
    const scope = requiredScope(method);
    if (exchange.caller.scopes.has(scope)) continue;
    exchange.refuseScope(scope);
    return false;
  }
  return true;
}
