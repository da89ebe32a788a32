import type { AskCallback } from "../../model/ask.ts";
import type { CancelSignal } from "../../model/cancel.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Era } from "../../model/protocol.ts";
import type { RequestId, RpcError } from "../../model/rpc.ts";
import type { ClientSide } from "../../model/session.ts";
import type { InputRound } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import type { Outlet } from "./encoded.ts";

/** One request on its way, whichever era it came in. */
export interface Incoming {
  readonly id: RequestId;
  readonly method: string;
  readonly params: JsonObject;
  readonly era: Era;
  readonly session: Session;
  readonly client: ClientSide;
  readonly onAsk?: AskCallback | undefined;
  readonly outlet: Outlet;
  readonly signal: CancelSignal;
  readonly onNotice: (method: string, params: JsonObject) => void;
  readonly logLevel?: string | undefined;
  readonly input?: InputRound | undefined;
  /** A better answer than the source's, if the call fails for a reason that only the door knows. */
  readonly insteadOfFailure?: (() => RpcError | undefined) | undefined;
}
