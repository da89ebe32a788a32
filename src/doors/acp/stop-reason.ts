import type { StopReason } from "@agentclientprotocol/sdk/unstable";
import type { EndReason } from "../../agent/events.ts";

/** An `error` is an error of the request instead. */
export function stopReason(reason: Exclude<EndReason, "error">): StopReason {
  switch (reason) {
    case "done":
      return "end_turn";
    case "cancelled":
      return "cancelled";
    case "steps":
      return "max_turn_requests";
    case "tokens":
    case "length":
      return "max_tokens";
    case "refusal":
      return "refusal";
  }
}
