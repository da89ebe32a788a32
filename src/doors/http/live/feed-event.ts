/** Something that happened, before it has a number and before it is known who hears of it. */
import type { EventName, FieldsOf } from "../../../contract/socket.ts";
import type { Shown } from "../api/shown.ts";
import type { ServerThen } from "./seen-servers.ts";

export type Fields<Name extends EventName> = Shown<FieldsOf<Name>>;

export interface Concern {
  /** Only for those who see this server, as it stood when it happened. */
  readonly server?: ServerThen;
  /** Only for those who may see a skill of this name. */
  readonly skill?: string;
  /** Also for the session whose own doing it is. */
  readonly session?: string;
}

export type FeedEvent<Name extends EventName = EventName> = {
  [Each in Name]: { readonly type: Each; readonly fields: Fields<Each>; readonly concern: Concern };
}[Name];

/** Takes what happened, in its order. */
export type Tell = <Name extends EventName>(type: Name, fields: Fields<Name>, concern?: Concern) => void;
