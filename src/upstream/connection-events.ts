import type { LogMessage } from "../model/protocol.ts";
import type { ServerState } from "../model/server-state.ts";

export interface ConnectionEvents {
  state: { readonly previous: ServerState; readonly state: ServerState };
  /** The definitions are new. */
  changed: undefined;
  log: { readonly message: LogMessage };
  warning: string;
  "resource-updated": { readonly uri: string };
}
