import type { AgentEvent } from "../../agent/events.ts";
import { isJsonObject } from "../../model/json.ts";

/** A call that was held back because nobody could be asked: what whoever started `toolcrib run` can do, in place of the hub's own hint. */
export function withDenialHint(event: AgentEvent): AgentEvent {
  if (event.type !== "tool-call" || event.state !== "denied") return event;
  const { error } = event;
  const rule = error?.details?.["rule"];
  // Where somebody said no, there is no hint.
  if (error?.hint === undefined || !isJsonObject(rule) || rule["list"] !== "ask") return event;
  const otherwise = rule["level"] === "session" ? "give --mode auto" : `change the rule in ${String(rule["where"])}`;
  return { ...event, error: { ...error, hint: `Run it on a terminal to be asked, or ${otherwise}.` } };
}
