import type { CatalogChange } from "../catalog/change.ts";
import type { AskAnswer, AskRequest } from "../model/ask.ts";
import type { LogMessage } from "../model/protocol.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import type { CallRecord } from "../telemetry/call-record.ts";

export interface HubEvents {
  /** A server changed its state. */
  server: { readonly info: ServerInfo; readonly previous: ServerState["kind"] };
  catalog: CatalogChange;
  /** A server's own log message. `user`: on whose connection, where each user has one; show it to nobody else. */
  log: { readonly server: string; readonly message: LogMessage; readonly user?: string };
  /** Something odd that harmed nothing. */
  warning: { readonly server?: string; readonly message: string };
  /** A call waits for somebody's yes. */
  ask: AskRequest;
  answer: { readonly request: AskRequest; readonly answer: AskAnswer | "timeout" };
  /** A call ended. */
  call: CallRecord;
  /** A resource that some session subscribed to changed; `uri` is the public one. */
  "resource-updated": { readonly server: string; readonly uri: string; readonly user?: string };
}
