/** Calls, questions and sessions. */
import type { AskRequest } from "../../../model/ask.ts";
import type { Clock } from "../../../model/clock.ts";
import type { StartRecord } from "../../../telemetry/call-record.ts";
import { listedApproval } from "../../../hub/activity/listed-approval.ts";
import type { Fields, Tell } from "./feed-event.ts";
import type { FeedHub } from "./feed-hub.ts";

/** Of a resource the name is a URI, which can be of any length. */
const LONGEST_NAME = 500;

export function tellCalls(hub: FeedHub, tell: Tell): (() => void)[] {
  return [
    hub.on("call-start", (record) => tell("call.started", startOf(record), { session: record.session })),
    hub.on("call", (record) => {
      const { decision, outcome, durationMs, resultBytes, findings = [] } = record;
      const codes = findings.map(({ code }) => code);
      tell(
        "call.finished",
        { ...startOf(record), decision, outcome, durationMs, resultBytes, findings: codes },
        { session: record.session },
      );
    }),
  ];
}

function startOf({ callId, time, session, door, role, user, kind, name, origin }: StartRecord): Fields<"call.started"> {
  const shown = name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME).toWellFormed()}…`;
  return { callId, time, session, door, role, user: user ?? null, kind, name: shown, serverId: origin?.source ?? null };
}

export function tellApprovals(
  hub: FeedHub,
  tell: Tell,
  clock: Clock,
  redactor: { maskAll<Value>(value: Value): Value },
): (() => void)[] {
  const approvalOf = (request: AskRequest): Fields<"approval.requested">["approval"] => {
    const { rule, rules, ...rest } = listedApproval(request, (value) => redactor.maskAll(value));
    return {
      ...rest,
      rule: { ...rule },
      rules: rules.map((each) => ({ ...each })),
      status: "pending",
      askedAt: new Date(clock.now()).toISOString(),
      answer: null,
      answeredAt: null,
      answeredBy: null,
    };
  };
  return [
    hub.on("ask", (request) => tell("approval.requested", { approval: approvalOf(request) })),
    hub.on("answer", ({ request: { id, callId }, answer }) => tell("approval.answered", { id, callId, answer })),
  ];
}

export function tellSessions(hub: FeedHub, tell: Tell): (() => void)[] {
  return [
    hub.on("session", ({ session: { id, door }, open }) => {
      tell(open ? "session.opened" : "session.closed", { id, door });
    }),
  ];
}
