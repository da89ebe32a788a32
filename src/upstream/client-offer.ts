/** What Toolcrib tells a server about itself: in `initialize` once, in the modern era with every request. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  type Implementation,
  LOG_LEVEL_KEY,
  VERSION_KEY,
} from "../model/protocol.ts";

/**
 * The same for every hub and command: servers choose by it what they list, and a list that depended on the command would
 * look changed to the pins. Whoever cannot answer refuses when asked.
 */
export const ALL_OFFERS: Readonly<JsonObject> = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
};

export interface ClientOffer {
  readonly clientInfo: Implementation;
  /** MCP client capabilities. */
  readonly offers: Readonly<JsonObject>;
  /** Asks a modern server for log messages from this level on. */
  readonly logLevel?: string;
}

export function modernEnvelope(offer: ClientOffer, version: string): JsonObject {
  return {
    [VERSION_KEY]: version,
    [CLIENT_INFO_KEY]: offer.clientInfo,
    [CLIENT_CAPABILITIES_KEY]: modernCapabilities(offer.offers),
    ...(offer.logLevel === undefined ? {} : { [LOG_LEVEL_KEY]: offer.logLevel }),
  };
}

/** The modern era has no notification for changed roots. */
export function modernCapabilities(capabilities: Readonly<JsonObject>): JsonObject {
  const { roots } = capabilities;
  if (!isJsonObject(roots) || !("listChanged" in roots)) return capabilities;
  const { listChanged: _, ...rest } = roots;
  return { ...capabilities, roots: rest };
}
