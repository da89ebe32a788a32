import type { LoadedConfig } from "../config/load-config.ts";
import type { AskCallback, AskOutcome } from "../model/ask.ts";
import type { Clock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import { asToolcribError } from "../model/errors.ts";
import type { AuditLog } from "../telemetry/audit/log.ts";
import type { DecisionRecord } from "../telemetry/audit/record.ts";
import { Approvals } from "./approvals.ts";
import type { SharedPrincipals } from "./cluster/shared-principals.ts";
import type { HubEvents } from "./events.ts";
import { rememberAnswer } from "./rules.ts";

interface Parts {
  readonly clock: Clock;
  readonly events: Emitter<HubEvents>;
  readonly audit: AuditLog;
  readonly onAsk: AskCallback | undefined;
  readonly isBrought: (source: string) => boolean;
  readonly shared?: SharedPrincipals | undefined;
}

/**
 * Approvals that tell the hub's listeners, write answers down, and leave a trace in the audit.
 * @param config The one that holds now: it may change while questions are open.
 */
export function makeApprovals(config: () => LoadedConfig, parts: Parts): Approvals {
  const { clock, events, audit, onAsk, isBrought, shared } = parts;
  return new Approvals({
    clock,
    get timeoutMs() {
      return config().config.tools.askTimeout;
    },
    onAsk,
    isBrought,
    shared,
    remember: async (request) => {
      try {
        await rememberAnswer(config(), request);
        return true;
      } catch (error) {
        const message = `The answer for ${request.name} could not be written down: ${asToolcribError(error).message}`;
        events.emit("warning", { message });
        return false;
      }
    },
    onAsked: (request) => events.emit("ask", request),
    onAnswered: (request, answer, by) => {
      events.emit("answer", { request, answer });
      const { callId, session, name, origin, rule } = request;
      audit.decision({
        time: new Date(clock.now()).toISOString(),
        callId,
        session: session.id,
        door: session.door,
        role: session.role ?? null,
        user: session.user ?? null,
        kind: "ask",
        name,
        origin,
        decision: verdictOf(answer),
        rule,
        answer,
        ...(by === undefined ? {} : { answeredBy: by.user, answeredThrough: by.door }),
      });
    },
  });
}

function verdictOf(answer: AskOutcome): DecisionRecord["decision"] {
  if (answer === "withdrawn") return answer;
  return answer === "no" || answer === "timeout" ? "deny" : "allow";
}
