/** What a handler of an operation gets and gives. */
import type { CheckedInput, OperationName, OutputOf } from "../../../contract/operations.ts";
import type { EventName, FieldsOf } from "../../../contract/socket.ts";
import type { Caller } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Progress } from "../../../model/protocol.ts";
import type { Session } from "../../../sessions/session.ts";
import type { SessionExtras } from "../caller-session.ts";
import type { OpenedSessions } from "./opened-sessions.ts";
import type { OperatorHub } from "./operator-hub.ts";
import type { Shown } from "./shown.ts";

/** Takes secrets out of every string of a value. */
export interface Masking {
  maskAll<Value>(value: Value): Value;
}

export interface ApiParts extends SessionExtras {
  readonly hub: OperatorHub;
  readonly redactor: Masking;
  readonly version: string;
  /** Config keys that the command line sets, by the option that does: `{"http.port": "--port"}`, with their values. */
  readonly commandLine?: Readonly<Record<string, { readonly option: string; readonly value: unknown }>>;
  /** For `TOOLCRIB_LIMITS_*` and the folders of agent clients; `process.env` if absent. */
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
}

export interface HandlerParts extends ApiParts {
  readonly opened: OpenedSessions;
}

export interface OperationContext {
  readonly caller: Caller;
  /** The caller's own: what it sees is what the caller sees. */
  readonly session: Session;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** Tells the asker alone that something happened, of a door that can. */
  readonly tell?: <Name extends EventName>(type: Name, fields: Shown<FieldsOf<Name>>) => void;
  /** Address of the hub as the caller reaches it, without a slash at the end. */
  readonly baseUrl: string;
}

export type Handler<Name extends OperationName> = (
  input: CheckedInput<Name>,
  context: OperationContext,
  parts: HandlerParts,
) => Promise<Shown<OutputOf<Name>>> | Shown<OutputOf<Name>>;

export type Handlers<Names extends OperationName = OperationName> = { readonly [Name in Names]: Handler<Name> };
