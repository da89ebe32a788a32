/** What Toolcrib tells a server about itself: in `initialize` once, in the modern era with every request. */
import type { JsonObject } from "../model/json.ts";
import type { Implementation } from "../model/protocol.ts";

/** Which requests of servers there is someone to answer. */
export interface Offers {
  readonly roots: boolean;
  readonly sampling: boolean;
  readonly elicitation: boolean;
}

export interface ClientOffer {
  readonly clientInfo: Implementation;
  readonly offers: Offers;
  /** Asks a modern server for log messages from this level on. */
  readonly logLevel?: string;
}

/** Only what can be answered is declared, so that servers can choose another way. */
export function clientCapabilities(offers: Offers): JsonObject {
  return {
    ...(offers.roots ? { roots: { listChanged: true } } : {}),
    ...(offers.sampling ? { sampling: {} } : {}),
    ...(offers.elicitation ? { elicitation: { form: {} } } : {}),
  };
}

export const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

export function modernEnvelope(offer: ClientOffer, version: string): JsonObject {
  const { roots, ...rest } = clientCapabilities(offer.offers);
  return {
    [VERSION_KEY]: version,
    "io.modelcontextprotocol/clientInfo": offer.clientInfo,
    // The modern era has no notification for changed roots.
    "io.modelcontextprotocol/clientCapabilities": roots === undefined ? rest : { ...rest, roots: {} },
    ...(offer.logLevel === undefined ? {} : { "io.modelcontextprotocol/logLevel": offer.logLevel }),
  };
}
