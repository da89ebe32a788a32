import type { LogMessage } from "../model/protocol.ts";
import type { ServerState } from "../model/server-state.ts";

export interface ConnectionEvents {
  state: { readonly previous: ServerState; readonly state: ServerState };
  /** The definitions are new. */
  changed: undefined;
  /** `user`: whose connection it came on, where each user has one. Nobody else's business. */
  log: { readonly message: LogMessage; readonly user?: string };
  warning: string;
  "resource-updated": { readonly uri: string; readonly user?: string };
}
