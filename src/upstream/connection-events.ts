import type { JsonObject } from "../model/json.ts";
import type { LogMessage } from "../model/protocol.ts";
import type { ServerState } from "../model/server-state.ts";

export interface ConnectionEvents {
  state: { readonly previous: ServerState; readonly state: ServerState };
  /** The definitions are new. */
  changed: undefined;
  /**
   * `user`: whose connection it came on, where each user has one; null for the hub owner's own. `session`: the same where
   * each session has one. Nobody else's business.
   */
  log: {
    readonly message: LogMessage;
    readonly user?: string | null;
    readonly session?: string;
    /** The call that it belongs to and whose caller has had it already. */
    readonly callId?: string;
  };
  /** A notification that is none of the others and belongs to no call. */
  notice: {
    readonly method: string;
    readonly params: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
  warning: string;
  /** `params` as the server sent them, `uri` included. */
  "resource-updated": {
    readonly uri: string;
    readonly params: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
}
