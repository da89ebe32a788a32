import type { Hub } from "../../hub/hub.ts";
import type { Invocation } from "../command.ts";
import type { AgentSeat } from "./agent-seat.ts";
import type { Interrupts } from "./interrupts.ts";
import type { TurnView } from "./turn-view.ts";

/** What a chat works with. */
export interface ChatParts {
  readonly invocation: Invocation;
  readonly hub: Hub;
  readonly seat: AgentSeat;
  readonly interrupts: Interrupts;
  readonly view: TurnView;
}
