/** What the client said at `initialize` that it can do. */
import type { InitializeRequest } from "@agentclientprotocol/sdk/unstable";

export interface ClientOffer {
  readonly readsFiles: boolean;
  readonly writesFiles: boolean;
  /** Asks its user for a server, with a form. */
  readonly forms: boolean;
  /** Has a place for notices of its own. */
  readonly notices: boolean;
}

export const NO_OFFER: ClientOffer = { readsFiles: false, writesFiles: false, forms: false, notices: false };

export function clientOffer({ clientCapabilities }: InitializeRequest): ClientOffer {
  return {
    readsFiles: clientCapabilities?.fs?.readTextFile === true,
    writesFiles: clientCapabilities?.fs?.writeTextFile === true,
    forms: clientCapabilities?.elicitation?.form != null,
    notices: clientCapabilities?.session?.notices != null,
  };
}
