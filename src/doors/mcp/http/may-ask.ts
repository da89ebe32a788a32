import type { RpcRequest } from "../../../model/rpc.ts";
import { requiredScope } from "../scopes.ts";
import type { McpExchange } from "./exchange.ts";
import { refuseNoSession } from "./find-session.ts";
import type { Transport } from "./transport.ts";

/**
 * Whether new requests are taken at all, and these from this caller. If not, that is answered. A session of a node that ends
 * is as good as over: its client is to begin a new one, which it gets at another node.
 */
export function mayAsk(
  transport: Transport,
  exchange: McpExchange,
  requests: readonly RpcRequest[],
  { ofSession = false }: { readonly ofSession?: boolean } = {},
): boolean {
  if (requests.length > 0 && transport.isClosing) {
    const id = requests[0]?.id ?? null;
    if (ofSession && transport.ids !== undefined) refuseNoSession(exchange, id);
    else transport.refuseClosing(exchange.response, id);
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
